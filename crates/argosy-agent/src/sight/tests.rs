use super::*;
use crate::clock::Simulated;
use crate::gpu::GpuError;
use crate::testing::{Dir, poll};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// A machine with one InfiniBand port and one network link.
fn machine(dir: &Dir) -> Roots {
    for (file, text) in [
        ("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"),
        ("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "0\n"),
        ("sys/class/net/eth0/device/vendor", "0x15b3\n"),
        ("sys/class/net/eth0/operstate", "up\n"),
    ] {
        write_file(dir, file, text);
    }
    Roots::under(dir.path())
}

fn write_file(dir: &Dir, file: &str, text: &str) {
    let path = dir.path().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn eyes(dir: &Dir) -> Eyes {
    let roots = machine(dir);
    let options = Options {
        data_dir: dir.path().to_owned(),
        boot_id: "boot-1".to_owned(),
        expected: Expected { on_the_bus: 1, ..Expected::default() },
        roots: roots.clone(),
        host: Some(Host::start(roots).unwrap()),
        logs: None,
        fake: None,
        injections: None,
        figures: Arc::default(),
        clock: Arc::new(Simulated::new(at(0))),
    };
    open(options).eyes
}

/// The words of all checks but `boot` and `xid`, and the signals.
async fn look(eyes: &mut Eyes, sweep: &Result<Sweep, GpuError>, steady: i64, set_by: i64) -> Found {
    let (now, steady) = (at(steady + set_by), at(steady));
    eyes.check(&[], Round { inventory: None, sweep, now, steady }).await
}

fn words(found: &Found) -> String {
    let of = |name: &str| {
        let outcome = found.outcomes.iter().find(|outcome| outcome.check == name);
        outcome.map(|outcome| format!("{name} {:?} {}", outcome.word, outcome.reason)).unwrap()
    };
    format!("{}, {}", of("nvml"), of("host"))
}

const HOURS: i64 = 3600;

#[tokio::test]
async fn r2_i13_a_clock_that_is_set_makes_nothing_long_and_nothing_short() {
    let works = Ok(Sweep { count: 1, gpus: vec![Default::default()], ..Sweep::default() });
    let away = Err(GpuError::Driver { code: "X".to_owned(), message: "it is away".to_owned() });
    // By how much the clock is set once all is down, and how the machine is after two and after six minutes more.
    let (young, old) = (
        "nvml Degraded DriverRestarting, host Degraded NetworkDown",
        "nvml Unhealthy DriverError, host Unhealthy InfinibandDown",
    );
    for set_by in [0, 6 * HOURS, -6 * HOURS] {
        let dir = Dir::new();
        let mut eyes = eyes(&dir);
        let well = look(&mut eyes, &works, 0, 0).await;
        assert_eq!(words(&well), "nvml Healthy , host Healthy ");
        write_file(&dir, "sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
        write_file(&dir, "sys/class/net/eth0/operstate", "down\n");
        look(&mut eyes, &away, 60, 0).await;
        let found = look(&mut eyes, &away, 180, set_by).await;
        assert_eq!(words(&found), young, "set by {set_by}");
        // What is told has the time that people read.
        let down = found.signals.iter().find(|signal| signal.message.contains("eth0")).unwrap();
        assert_eq!((down.first, down.last), (at(180 + set_by), at(180 + set_by)));
        let found = look(&mut eyes, &away, 420, set_by).await;
        assert_eq!(words(&found), old, "set by {set_by}");
    }
}

#[tokio::test]
async fn r2_i13_a_window_of_errors_is_as_long_as_it_is() {
    // 100 symbol errors in an hour are usual. A clock set back must not leave the window open for seven.
    let works = Ok(Sweep { count: 1, gpus: vec![Default::default()], ..Sweep::default() });
    let dir = Dir::new();
    let mut eyes = eyes(&dir);
    let counter = "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error";
    look(&mut eyes, &works, 0, 0).await;
    for hour in 1..=5 {
        write_file(&dir, counter, &format!("{}\n", hour * 100));
        let found = look(&mut eyes, &works, hour * HOURS, -6 * HOURS).await;
        assert_eq!(words(&found), "nvml Healthy , host Healthy ", "hour {hour}");
    }
}

#[tokio::test]
async fn r2_i3_a_disk_that_hangs_takes_one_thread_however_often_it_is_tried() {
    let aside = Aside::default();
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let begun = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = begun.clone();
    let mut hanging = Box::pin(write(&aside, "it", move || {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        _ = held.recv();
        Ok(())
    }));
    assert!(futures_util::poll!(&mut hanging).is_pending());
    // Given up; its thread stays.
    drop(hanging);
    for _ in 0..100 {
        let count = begun.clone();
        let done = write(&aside, "it", move || {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Ok(())
        });
        assert!(!done.await);
    }
    drop(let_go);
    poll("it is free again", || aside.is_free().then_some(())).await;
    assert!(write(&aside, "it", || Ok(())).await);
    assert!(begun.load(std::sync::atomic::Ordering::SeqCst) <= 1);
}
