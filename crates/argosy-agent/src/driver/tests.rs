use super::*;
use crate::check::Word;
use crate::clock::Simulated;
use crate::gpu::{GpuError, Inventory, Sweep};
use crate::link::Token;
use crate::spool::Spooled;
use argosy_api::rpc::node::Welcome;
use jiff::{SignedDuration, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};

fn load(figure: &AtomicU64) -> u64 {
    figure.load(Ordering::Relaxed)
}

fn order(id: &str) -> crate::command::Order {
    crate::command::Order {
        id: id.to_owned(),
        kind: Kind::Cordon,
        parameters: Default::default(),
        reason: String::new(),
        expires_at: None,
        deadline: None,
        quiet_seconds: 0,
    }
}

/// A driver whose control plane is nobody.
fn driver(dir: &crate::testing::Dir) -> Driver {
    start(dir).unwrap()
}

fn start(dir: &crate::testing::Dir) -> Result<Driver, RunError> {
    let now = Timestamp::from_second(1_000_000).unwrap();
    let servers = ["http://127.0.0.1:1".to_owned()];
    let who = Identity {
        node_id: "gpu-1".to_owned(),
        boot_id: "boot-1".to_owned(),
        agent_version: "1".to_owned(),
    };
    let parts = Parts {
        link: Link::new(&servers, &who.node_id, Token::None, None, dir.path()).unwrap(),
        who,
        machine: RegisterNodeRequest::default(),
        data_dir: dir.path().to_owned(),
        gpu: Box::new(NoGpus),
        watcher: Box::new(Without),
        signals: mpsc::channel(1).1,
        collector: Box::new(GpusOnly),
        handlers: Handlers::default(),
        figures: Arc::default(),
        clock: Arc::new(Simulated::new(now)),
    };
    Driver::start(parts)
}

#[tokio::test]
async fn two_agents_do_not_share_a_data_directory() {
    let dir = crate::testing::Dir::new();
    let first = driver(&dir);
    let sentence = start(&dir).err().unwrap().to_string();
    assert!(sentence.starts_with("another agent uses the data directory"), "{sentence}");
    assert!(sentence.contains("--data-dir"), "{sentence}");
    let Driver { disk, .. } = first;
    disk.finish().join().unwrap();
    driver(&dir);
}

/// Makes a file at which whoever opens it waits until somebody opens its other end, as at a disk that hangs.
fn hang(path: &std::path::Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
}

/// What comes of something, while time passes as fast as it can.
async fn in_time<T>(what: impl Future<Output = T>) -> T {
    let mut what = std::pin::pin!(what);
    loop {
        tokio::select! {
            biased;
            came = &mut what => return came,
            () = tokio::time::advance(Duration::from_secs(1)) => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test]
async fn a_disk_that_hangs_is_given_one_whole_at_a_time_and_what_it_missed_is_made_good() {
    let dir = crate::testing::Dir::new();
    let Driver { disk: mut writer, events, .. } = driver(&dir);
    // A loop that does not listen is what the thread waits for, here.
    let entry = |number: usize| crate::journal::Entry {
        order: order(&format!("c{number}")),
        boot_id: String::new(),
        begun_at: Timestamp::UNIX_EPOCH,
        end: None,
        answered: false,
    };
    let signal = Signal::once(crate::signal::SignalKind::Host, Timestamp::UNIX_EPOCH, "gone");
    let mut numbers = 0..EVENTS_MAX + 2 * disk::WRITES_MAX;
    while !writer.is_spool_behind() {
        let full = numbers.any(|number| writer.note(Box::new(entry(number))).is_err());
        assert!(full, "it takes more than it may");
        writer.keep(Keep::Signals(vec![signal.clone()]));
    }
    // The loop listens again.
    drop(events);
    let all = || Keep::All(Box::new(Spooled { report: None, signals: vec![signal.clone()] }));
    while writer.is_spool_behind() {
        writer.keep(all());
        tokio::task::yield_now().await;
    }
    writer.finish().join().unwrap();
    let spool = crate::record::Disk::open(&dir.path().join("spool")).unwrap();
    let (_, spooled, _) = crate::spool::Spool::open(Box::new(spool), 1024 * 1024).unwrap();
    assert_eq!(spooled.signals, [signal]);
}

#[tokio::test(start_paused = true)]
async fn a_duty_file_that_hangs_fails_the_command_and_stops_nothing_else() {
    let dir = crate::testing::Dir::new();
    let beside = dir.path().join("duty.new");
    hang(&beside);
    let mut driver = driver(&dir);
    driver.worker.begin(order("c1"));
    let end = in_time(async {
        loop {
            if let Some(Event::Ended { end, .. }) = driver.events.recv().await {
                return end;
            }
        }
    });
    let end = end.await;
    assert!(end.message.ends_with("the disk did not answer for 10 s"), "{end:?}");
    // Lets the thread go, as soon as it is there.
    _ = tokio::task::spawn_blocking(move || std::fs::read(beside)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_token_file_that_hangs_is_a_token_that_cannot_be_read() {
    let dir = crate::testing::Dir::new();
    let path = dir.path().join("token");
    hang(&path);
    let servers = ["http://127.0.0.1:1".to_owned()];
    let token = Token::File(path.clone());
    let link = Link::new(&servers, "gpu-1", token, None, dir.path()).unwrap();
    let Called::Lost(Loss::Refused(why)) = in_time(link.poll()).await else {
        panic!("it was not refused");
    };
    assert!(why.contains("cannot read the token file"), "{why}");
    assert!(why.ends_with("the disk did not answer for 10 s"), "{why}");
    let other_end = move || std::fs::File::options().write(true).open(path);
    _ = tokio::task::spawn_blocking(other_end).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_cannot_write_runs_and_says_so() {
    let dir = crate::testing::Dir::new();
    // What cannot be opened as a file, whoever asks: directories of those names.
    for name in ["spool", "journal", "starts"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let driver = driver(&dir);
    assert!(driver.disk.behind.load(Ordering::Relaxed));
    let own = Own::start(dir.path(), driver.clock.now(), 0, driver.disk.behind.clone());
    let outcome = own.outcome(&[], driver.clock.now()).unwrap();
    assert_eq!(outcome.reason, "SpoolFull");
    // It does not heal by a write that does not get there.
    let Driver { mut disk, .. } = driver;
    disk.keep(Keep::All(Box::default()));
    let behind = disk.behind.clone();
    disk.finish().join().unwrap();
    assert!(behind.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_read_is_lost_once_and_the_driver_sleeps_as_long_as_the_agent_wants() {
    let dir = crate::testing::Dir::new();
    let mut driver = driver(&dir);
    let (saying, _nobody_reads) = mpsc::channel(1);
    let (_telling, told) = mpsc::channel(1);
    let mut set = JoinSet::new();
    let task = set.spawn(std::future::pending::<()>());
    driver.stream = Some(Stream { saying, told, task });
    let registration = Arc::new(RegisterNodeRequest::default());
    driver.hear(Event::Described { registration, complete: true });
    // A registration, which fits, and a heartbeat, which does not.
    driver.hear(Event::Told(Told::from(Welcome::default())));
    assert!(driver.stream.is_none() && !driver.agent.is_heard());
    assert_eq!((load(&driver.figures.connected), load(&driver.figures.reconnects)), (0, 1));
    let wake = driver.agent.wakes_at().unwrap().duration_since(driver.clock.now());
    assert_eq!(SignedDuration::try_from(driver.wait()).unwrap(), wake.max(SignedDuration::ZERO));
    // What was left to say was not said by calls of its own.
    assert_eq!(driver.calls.capacity(), CALLS_MAX);
}

/// GPUs that count how often they are asked.
struct Asked {
    times: Arc<AtomicU64>,
    absent: bool,
}

#[async_trait::async_trait]
impl Gpu for Asked {
    async fn inventory(&mut self) -> Result<Inventory, GpuError> {
        Ok(Inventory::default())
    }

    async fn sweep(&mut self) -> Result<Sweep, GpuError> {
        Figures::count(&self.times);
        match self.absent {
            true => Err(GpuError::Absent { message: "no driver".to_owned() }),
            false => Ok(Sweep::default()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn heartbeats_do_not_ask_the_driver_each_time() {
    // Whether there is a driver, and how often it is asked by ten minutes of heartbeats.
    for (absent, expected) in [(false, 20), (true, 2)] {
        let times = Arc::new(AtomicU64::new(0));
        let gpu = Asked { times: times.clone(), absent };
        let clock = Simulated::new(Timestamp::from_second(1_000_000).unwrap());
        let mut tasks = JoinSet::new();
        let desk = GpuDesk::start(Box::new(gpu), Arc::new(clock), &mut tasks);
        for _ in 0..60 {
            assert_eq!(desk.sample().await.is_err(), absent);
            tokio::time::advance(Duration::from_secs(10)).await;
        }
        assert_eq!(load(&times), expected, "{absent}");
        // Rounds and drains look for themselves.
        for more in 1..=3 {
            _ = desk.sweep().await;
            assert_eq!(load(&times), expected + more, "{absent}");
        }
    }
}

#[test]
fn a_lost_gpu_is_worse_and_one_that_came_back_is_not() {
    use sense::Standing;
    let sweep = |count, unreadable: &[u32]| {
        let unreadable = unreadable.iter().map(|gpu| (*gpu, "GPU_IS_LOST".to_owned())).collect();
        Standing::of(&Ok(Sweep { count, unreadable, ..Sweep::default() }))
    };
    let fails = || Standing::of(&Err(GpuError::Absent { message: String::new() }));
    let rows = [
        (sweep(8, &[]), sweep(8, &[]), false),
        (sweep(8, &[]), sweep(7, &[]), true),
        (sweep(8, &[]), sweep(8, &[3]), true),
        (sweep(8, &[3]), sweep(8, &[3]), false),
        (sweep(8, &[3]), sweep(8, &[4]), true),
        (sweep(8, &[3]), sweep(8, &[]), false),
        (sweep(7, &[]), sweep(8, &[]), false),
        (sweep(8, &[]), fails(), true),
        (fails(), fails(), false),
        (fails(), sweep(8, &[3]), false),
    ];
    for (before, after, expected) in rows {
        assert_eq!(after.is_worse_than(&before), expected, "{before:?} {after:?}");
    }
}

/// A GPU that is lost when it is told to be.
struct Losing(Arc<AtomicU64>);

#[async_trait::async_trait]
impl Gpu for Losing {
    async fn inventory(&mut self) -> Result<Inventory, GpuError> {
        Ok(Inventory::default())
    }

    async fn sweep(&mut self) -> Result<Sweep, GpuError> {
        let count = u32::try_from(load(&self.0)).unwrap();
        Ok(Sweep { count, ..Sweep::default() })
    }
}

#[tokio::test(start_paused = true)]
async fn a_sample_that_sees_a_gpu_gone_raises_the_alarm_until_a_round_has_seen_it() {
    let gpus = Arc::new(AtomicU64::new(8));
    let clock = Simulated::new(Timestamp::from_second(1_000_000).unwrap());
    let mut tasks = JoinSet::new();
    let desk = GpuDesk::start(Box::new(Losing(gpus.clone())), Arc::new(clock), &mut tasks);
    let (seen, beaten) = (sense::Seen::default(), Arc::new(Notify::new()));
    let (sender, mut events) = mpsc::channel(8);
    let (looks, beats) = (desk.clone(), beaten.clone());
    let collector = Box::new(GpusOnly);
    sense::start_samples(collector, looks, seen.clone(), beats, sender, &mut tasks);
    let round = || async { *seen.lock().unwrap() = Some(sense::Standing::of(&desk.sweep().await)) };
    let mut beat = async || {
        beaten.notify_one();
        tokio::time::timeout(Duration::from_secs(30), events.recv()).await.ok().flatten()
    };
    round().await;
    assert_eq!(beat().await, None);
    gpus.store(7, Ordering::Relaxed);
    assert_eq!(beat().await, Some(Event::Alarmed));
    round().await;
    assert_eq!(beat().await, None);
}

#[test]
fn n5_an_agent_that_is_started_too_often_says_so() {
    let now = Timestamp::from_second(1_000_000).unwrap();
    let starts = |ago: &[i64]| -> Vec<Timestamp> {
        let ago = ago.iter().map(|ago| SignedDuration::from_secs(*ago));
        ago.map(|ago| now.saturating_sub(ago).unwrap()).collect()
    };
    let rows: [(&[i64], bool); 4] = [
        (&[0], false),
        (&[0, 1, 2, 3, 4], false),
        (&[0, 1, 2, 3, 4, 5], true),
        (&[0, 601, 602, 603, 604, 605, 606], false),
    ];
    for (ago, expected) in rows {
        let outcome = unstable(&starts(ago), now);
        let is = outcome.is_some_and(|outcome| {
            outcome.word == Word::Degraded && outcome.reason == "AgentUnstable"
        });
        assert_eq!(is, expected, "{ago:?}");
    }
}

#[test]
fn n5_starts_are_counted_across_processes() {
    let dir = crate::testing::Dir::new();
    let at = |second: i64| Timestamp::from_second(1_000_000 + second).unwrap();
    let start = |second| Own::start(dir.path(), at(second), 0, Arc::default());
    for second in 0..5 {
        let outcome = start(second).outcome(&[], at(second)).unwrap();
        assert_eq!(outcome.word, Word::Healthy, "{outcome:?}");
    }
    let unstable = start(6).outcome(&[], at(6)).unwrap();
    assert_eq!(
        (unstable.reason.as_str(), unstable.details["starts"].as_str()),
        ("AgentUnstable", "6")
    );
    let later = start(700).outcome(&[], at(700)).unwrap();
    assert_eq!(later.word, Word::Healthy);
    std::fs::write(dir.path().join("starts"), "rubbish").unwrap();
    assert_eq!(start(701).outcome(&[], at(701)).unwrap().word, Word::Healthy);
}

#[test]
fn only_checks_that_were_asked_for_are_told() {
    let outcomes = || vec![CheckOutcome::healthy("nvml", ""), CheckOutcome::healthy("host", "")];
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(wanted(outcomes(), &names(&[])).len(), 2);
    assert_eq!(wanted(outcomes(), &names(&["host", "unheard-of"])).len(), 1);
}
