use super::{Begin, Line, Logs, Options, Position, ProblemKind, Source};
use crate::watch::flood::Flood;
use crate::watch::log::LogWatch;
use jiff::Timestamp;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A directory of one test, gone with it.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("argosy-log-{}-{number}", std::process::id()));
        std::fs::create_dir_all(path.join("proc/sys/kernel/random")).unwrap();
        std::fs::create_dir_all(path.join("log")).unwrap();
        std::fs::write(path.join("proc/sys/kernel/random/boot_id"), "boot-1\n").unwrap();
        std::fs::write(path.join("proc/uptime"), "100.00 50.00\n").unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn options(&self) -> Options {
        Options {
            kmsg: self.path("kmsg"),
            proc: self.path("proc"),
            journalctl: self.path("journalctl"),
            journals: vec![self.path("journal")],
            var_log: self.path("log"),
            look_every: Duration::from_millis(1),
            now: Arc::new(|| Timestamp::from_second(1000).unwrap()),
            ..Options::default()
        }
    }

    /// A pipe in the place of the kernel's log, and the end that is written to.
    fn kmsg(&self) -> File {
        let path = self.path("kmsg");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
        // For reading, too: the pipe lives on when the reader goes.
        OpenOptions::new().read(true).write(true).open(path).unwrap()
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path(name);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn journal(&self) {
        std::fs::create_dir_all(self.path("journal/0123")).unwrap();
        std::fs::write(self.path("journal/0123/system.journal"), "").unwrap();
    }

    fn append(&self, name: &str, text: &str) {
        let file = OpenOptions::new().create(true).append(true).open(self.path(name));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn only(source: Source, options: Options) -> Options {
    Options { sources: Some(vec![source]), ..options }
}

async fn texts(logs: &mut Logs, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..count {
        let line = tokio::time::timeout(Duration::from_secs(30), logs.next()).await;
        texts.push(line.expect("a line was written").text);
    }
    texts
}

async fn line(logs: &mut Logs) -> Line {
    tokio::time::timeout(Duration::from_secs(30), logs.next()).await.expect("a line was written")
}

#[tokio::test]
async fn records_of_the_kernel_come_with_their_time() {
    let dir = Dir::new();
    let mut kmsg = dir.kmsg();
    kmsg.write_all(b"6,10,5000000,-;old\n K=v\n6,11,6000000,-;later\n").unwrap();
    let mut logs = Logs::open(only(Source::Kmsg, dir.options()));
    assert_eq!(logs.sources(), [Source::Kmsg]);
    let first = line(&mut logs).await;
    // The machine has been up for 100 s at second 1,000, and this was written 5 s after its start.
    assert_eq!((first.text.as_str(), first.at.as_second(), first.lost_before), ("old", 905, 0));
    assert_eq!(line(&mut logs).await.at.as_second(), 906);
    // What comes while we wait comes now, whatever the kernel's clock says.
    let mut next = Box::pin(logs.next());
    assert!(futures_util::poll!(&mut next).is_pending());
    kmsg.write_all(b"6,12,7000000,-;new\n").unwrap();
    assert_eq!(next.await.at.as_second(), 1000);
}

#[tokio::test]
async fn a_restart_neither_repeats_nor_loses_and_another_boot_begins_anew() {
    let dir = Dir::new();
    let mut kmsg = dir.kmsg();
    kmsg.write_all(b"6,10,1,-;a\n6,11,2,-;b\n").unwrap();
    let mut logs = Logs::open(only(Source::Kmsg, dir.options()));
    assert_eq!(texts(&mut logs, 2).await, ["a", "b"]);
    let file = dir.path("position");
    assert_eq!(Position::load(&file).unwrap(), None);
    logs.position().save(&file).unwrap();
    drop(logs);
    let saved = Position::load(&file).unwrap().unwrap();
    // The ring is read from its start again; 12 was overwritten meanwhile.
    kmsg.write_all(b"6,10,1,-;a\n6,11,2,-;b\n6,13,3,-;c\n").unwrap();
    let again = Options { position: saved.clone(), ..dir.options() };
    let mut logs = Logs::open(only(Source::Kmsg, again));
    let seen = line(&mut logs).await;
    assert_eq!((seen.text.as_str(), seen.lost_before), ("c", 1));
    drop(logs);
    std::fs::write(dir.path("proc/sys/kernel/random/boot_id"), "boot-2\n").unwrap();
    kmsg.write_all(b"6,0,1,-;first\n").unwrap();
    let again = Options { position: saved, ..dir.options() };
    assert_eq!(texts(&mut Logs::open(only(Source::Kmsg, again)), 1).await, ["first"]);
}

#[tokio::test]
async fn a_wait_that_is_given_up_loses_no_line() {
    let dir = Dir::new();
    let mut kmsg = dir.kmsg();
    let mut logs = Logs::open(only(Source::Kmsg, dir.options()));
    for n in 0..50 {
        {
            let mut next = Box::pin(logs.next());
            assert!(futures_util::poll!(&mut next).is_pending());
        }
        kmsg.write_all(format!("6,{n},1,-;line {n}\n").as_bytes()).unwrap();
        assert_eq!(texts(&mut logs, 1).await, [format!("line {n}")]);
    }
}

#[tokio::test]
async fn garbage_and_ten_megabytes_without_an_end_do_not_stop_the_kernels_log() {
    let dir = Dir::new();
    let mut kmsg = dir.kmsg();
    let mut logs = Logs::open(only(Source::Kmsg, dir.options()));
    let writer = std::thread::spawn(move || {
        let garbage: Vec<u8> = (0..64 * 1024_u32).map(|n| (n % 251) as u8).collect();
        for _ in 0..160 {
            kmsg.write_all(&garbage).unwrap();
        }
        kmsg.write_all(b"\n6,1,1,-;NVRM: after it\n").unwrap();
        kmsg
    });
    let mut seen = line(&mut logs).await;
    while seen.text != "NVRM: after it" {
        assert!(seen.text.len() <= super::LINE_LEN_MAX);
        seen = line(&mut logs).await;
    }
    writer.join().unwrap();
}

#[tokio::test]
async fn the_first_source_that_can_be_read_is_the_only_one_for_the_kernel() {
    let dir = Dir::new();
    let logs = Logs::open(dir.options());
    assert!(logs.sources().is_empty());
    assert!(logs.problems().iter().all(|problem| problem.kind == ProblemKind::Absent));
    assert_eq!(logs.problems().len(), 5);

    dir.append("log/messages", "");
    dir.append("log/fabricmanager.log", "");
    let messages = Source::Syslog(dir.path("log/messages"));
    let fabric = Source::Program(dir.path("log/fabricmanager.log"));
    assert_eq!(Logs::open(dir.options()).sources(), [messages, fabric.clone()]);

    // A directory for a journal that nobody writes is none.
    std::fs::create_dir_all(dir.path("journal/0123")).unwrap();
    dir.program("journalctl", "#!/bin/sh\nexec cat /dev/zero >/dev/null\n");
    assert_eq!(Logs::open(dir.options()).sources().len(), 2);
    dir.journal();
    assert_eq!(Logs::open(dir.options()).sources(), [Source::Journald]);

    let _kmsg = dir.kmsg();
    let logs = Logs::open(dir.options());
    assert_eq!(logs.sources(), [Source::Kmsg, fabric]);
    assert_eq!(logs.problems(), []);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_comes_later_is_found() {
    let dir = Dir::new();
    let mut logs = Logs::open(dir.options());
    {
        let mut next = Box::pin(logs.next());
        assert!(futures_util::poll!(&mut next).is_pending());
    }
    let mut kmsg = dir.kmsg();
    kmsg.write_all(b"6,1,1,-;here I am\n").unwrap();
    assert_eq!(logs.next().await.text, "here I am");
    assert_eq!((logs.sources(), logs.problems()), (vec![Source::Kmsg], vec![]));
}

#[tokio::test]
async fn n7_a_storm_of_faults_is_one_signal_and_a_count() {
    let dir = Dir::new();
    let mut kmsg = dir.kmsg();
    let mut logs = Logs::open(only(Source::Kmsg, dir.options()));
    let (mut watch, mut flood) = (LogWatch::default(), Flood::default());
    let mut sent = Vec::new();
    for n in 0..1000 {
        let text = "NVRM: Xid (PCI:0000:41:00): 31, pid=7, name=a, MMU Fault";
        kmsg.write_all(format!("3,{n},{n}000,-;{text}\n").as_bytes()).unwrap();
        let line = line(&mut logs).await;
        sent.extend(watch.read(&line).into_iter().filter_map(|signal| flood.on(signal, line.at)));
    }
    sent.extend(flood.finish());
    let counts: Vec<u32> = sent.iter().map(|signal| signal.count).collect();
    assert_eq!((counts, watch.faults()), (vec![1, 999], 1000));
}

#[tokio::test]
async fn a_log_that_may_not_be_read_says_what_to_do() {
    let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let problem = super::Problem::of(&Source::Kmsg, &denied);
    assert_eq!(problem.kind, ProblemKind::Forbidden);
    assert_eq!(
        problem.to_string(),
        "/dev/kmsg: permission denied; run as root, or give the capability CAP_SYSLOG"
    );
}

#[tokio::test]
async fn the_journal_is_followed_from_its_cursor_and_started_again() {
    let dir = Dir::new();
    dir.journal();
    // Tells what it was asked, then two entries with garbage between them, and ends.
    let asked = dir.path("asked");
    dir.program(
        "journalctl",
        &format!(
            "#!/bin/sh\necho \"$@\" >> {}\n\
             echo '{{\"__CURSOR\":\"c1\",\"__REALTIME_TIMESTAMP\":\"500000000\",\"MESSAGE\":\"one\"}}'\n\
             echo 'garbage'\necho '{{\"__CURSOR\":\"c2\",\"MESSAGE\":[116,119,111]}}'\n",
            asked.display()
        ),
    );
    let mut logs = Logs::open(only(Source::Journald, dir.options()));
    let first = line(&mut logs).await;
    assert_eq!((first.text.as_str(), first.at.as_second()), ("one", 500));
    assert_eq!(line(&mut logs).await.at.as_second(), 1000);
    assert_eq!(logs.position().journal_cursor.as_deref(), Some("c2"));
    // It ended, so it is started again, a second later, behind what was read.
    assert_eq!(line(&mut logs).await.text, "one");
    let asked = std::fs::read_to_string(asked).unwrap();
    let asked: Vec<&str> = asked.lines().collect();
    assert!(asked[0].contains("--no-tail --boot _TRANSPORT=kernel"), "{asked:?}");
    assert!(asked[1].contains("--no-tail --after-cursor=c2 _TRANSPORT=kernel"), "{asked:?}");
}

#[tokio::test]
async fn a_machine_without_journalctl_is_no_drama() {
    let dir = Dir::new();
    dir.journal();
    let logs = Logs::open(only(Source::Journald, dir.options()));
    assert!(logs.sources().is_empty());
    assert_eq!(logs.problems()[0].kind, ProblemKind::Absent);
}

fn file(dir: &Dir, position: Position, begin: Begin) -> Logs {
    let source = Source::Program(dir.path("log/a"));
    Logs::open(only(source, Options { position, begin, ..dir.options() }))
}

#[tokio::test]
async fn a_file_is_followed_over_growth_rotation_and_truncation() {
    let dir = Dir::new();
    dir.append("log/a", "years old\n");
    let mut logs = file(&dir, Position::default(), Begin::Boot);
    dir.append("log/a", "one\ntw");
    assert_eq!(texts(&mut logs, 1).await, ["one"]);
    dir.append("log/a", "o\n");
    assert_eq!(texts(&mut logs, 1).await, ["two"]);
    // What is written to the old one before it is put aside is not lost.
    dir.append("log/a", "three\n");
    std::fs::rename(dir.path("log/a"), dir.path("log/a.1")).unwrap();
    dir.append("log/a", "four\n");
    assert_eq!(texts(&mut logs, 2).await, ["three", "four"]);
    // Cut, and shorter than what was read: all of it is new.
    File::create(dir.path("log/a")).unwrap();
    dir.append("log/a", "5\n");
    assert_eq!(texts(&mut logs, 1).await, ["5"]);
}

#[tokio::test]
async fn a_file_goes_on_where_it_was_even_if_it_was_rotated_meanwhile() {
    let dir = Dir::new();
    dir.append("log/a", "");
    let mut logs = file(&dir, Position::default(), Begin::Now);
    dir.append("log/a", "one\ntwo\n");
    assert_eq!(texts(&mut logs, 1).await, ["one"]);
    let position = logs.position().clone();
    drop(logs);
    dir.append("log/a", "three\n");
    let mut logs = file(&dir, position.clone(), Begin::Boot);
    assert_eq!(texts(&mut logs, 2).await, ["two", "three"]);
    drop(logs);
    std::fs::rename(dir.path("log/a"), dir.path("log/a.1")).unwrap();
    dir.append("log/a", "four\n");
    let mut logs = file(&dir, position.clone(), Begin::Boot);
    assert_eq!(texts(&mut logs, 3).await, ["two", "three", "four"]);
    drop(logs);
    // The old one is gone, too: all of the new one is new.
    std::fs::remove_file(dir.path("log/a.1")).unwrap();
    assert_eq!(texts(&mut file(&dir, position, Begin::Boot), 1).await, ["four"]);
}

#[tokio::test]
async fn a_line_of_ten_megabytes_in_a_file_is_cut() {
    let dir = Dir::new();
    dir.append("log/a", "");
    let mut logs = file(&dir, Position::default(), Begin::Now);
    dir.append("log/a", &"é".repeat(5_000_000));
    dir.append("log/a", "\nshort\n");
    let seen = texts(&mut logs, 2).await;
    assert!((super::LINE_LEN_MAX - 4..=super::LINE_LEN_MAX).contains(&seen[0].len()));
    assert_eq!(seen[1], "short");
}

#[tokio::test]
async fn in_a_file_of_syslog_only_the_kernel_is_heard() {
    let dir = Dir::new();
    dir.append("log/messages", "");
    let mut logs = Logs::open(dir.options());
    dir.append(
        "log/messages",
        "Mar 29 15:38:59 host job[1]: a kernel: NVRM: Xid (PCI:0000:18:00): 79, no\n\
         Mar 29 15:38:59 host kernel: [12.3] NVRM: Xid (PCI:0000:18:00): 79, yes\n",
    );
    assert_eq!(texts(&mut logs, 1).await, ["[12.3] NVRM: Xid (PCI:0000:18:00): 79, yes"]);
}

#[test]
fn a_source_is_named_in_one_word() {
    let check = |text: &str, expected: Option<Source>| {
        assert_eq!(text.parse::<Source>().ok(), expected, "{text}");
    };
    check("kmsg", Some(Source::Kmsg));
    check("journald", Some(Source::Journald));
    check("/var/log/kern.log", Some(Source::Syslog("/var/log/kern.log".into())));
    check("program:/var/log/fm.log", Some(Source::Program("/var/log/fm.log".into())));
    check("kern.log", None);
    check("program:fm.log", None);
    check("", None);
    let error = "dmesg".parse::<Source>().unwrap_err().to_string();
    assert!(error.starts_with("`dmesg` is not a log"), "{error}");
}

#[test]
fn a_position_that_is_garbage_is_an_error_and_not_a_place() {
    let dir = Dir::new();
    for garbage in ["", "{", "[1]", "\0\0\0", &"x".repeat(200_000)] {
        std::fs::write(dir.path("position"), garbage).unwrap();
        let error = Position::load(&dir.path("position")).unwrap_err();
        assert!(
            [std::io::ErrorKind::InvalidData, std::io::ErrorKind::UnexpectedEof]
                .contains(&error.kind()),
            "{error:?}"
        );
    }
}

/// The real one: only where it can be opened, and written to by root.
#[tokio::test]
async fn a_line_written_to_the_real_kernel_log_is_read() {
    let options = Options { begin: Begin::Now, ..Options::default() };
    let mut logs = Logs::open(only(Source::Kmsg, options));
    if logs.sources().is_empty() {
        let problem = &logs.problems()[0];
        assert_ne!(problem.kind, ProblemKind::Failed, "{problem}");
        println!("skipped: {problem}");
        return;
    }
    let Ok(mut writer) = OpenOptions::new().write(true).open("/dev/kmsg") else {
        println!("skipped: /dev/kmsg cannot be written to");
        return;
    };
    let text = format!("argosy-agent test line {} \u{7}.", std::process::id());
    // Without its end a record may still grow, and the kernel keeps it.
    writer.write_all(format!("{text}\n").as_bytes()).unwrap();
    while line(&mut logs).await.text != text {}
    let position = logs.position().kmsg.clone().unwrap();
    assert!(!position.boot_id.is_empty());
}
