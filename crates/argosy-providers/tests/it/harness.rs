//! Processes, directories and ports of a test; all of them end with it.

use argosy_control::scheduler::{Drain, Machine};
use argosy_core::label::Labels;
use jiff::Timestamp;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long anything may take before a test gives up. Generous: it is only reached by what is broken.
const PATIENCE: Duration = Duration::from_secs(90);

/// Asks again until there is an answer; the only way to poll. `what` is named when time is up.
pub(crate) async fn await_until<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(found) = condition().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(found) => found,
        Err(_) => panic!("it did not happen in {} s: {what}", PATIENCE.as_secs()),
    }
}

/// A machine with an id and a hostname.
pub(crate) fn machine(id: &str, hostname: &str) -> Machine {
    let (id, hostname) = (id.to_owned(), hostname.to_owned());
    Machine { id, hostname, labels: Labels::default(), known_as: None }
}

/// A drain that forces nothing and has time until then.
pub(crate) fn drain(reason: &str, deadline: Timestamp) -> Drain {
    Drain { reason: reason.to_owned(), deadline, over: false, force: false }
}

/// Ports that are free, for programs that cannot choose one themselves. They are below those that the
/// kernel gives away by itself: nobody is given one between our look and the program's start.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at once begin at different places.
    let first = std::process::id().wrapping_mul(97);
    [(); N].map(|()| {
        let tried = (0..10_000).map(|_| first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)));
        let mut ports = tried.map(|number| 20_000 + u16::try_from(number % 10_000).expect("small"));
        let free = ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
        free.expect("a free port among ten thousand")
    })
}

/// A process that is killed when the test is done with it; what it prints is in a file.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program whose log is `dir/name.log`. It also ends when the test is killed.
    pub(crate) fn start(dir: &Path, name: &str, program: &Path, words: &[&str]) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).args(words);
        let log = dir.join(format!("{name}.log"));
        let file = std::fs::File::create(&log).expect("a writable directory");
        let also = file.try_clone().expect("a second handle");
        command.stdin(Stdio::null()).stdout(file).stderr(also);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, log }
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(&mut self) {
        await_until("the process ends", async || self.child.try_wait().expect("our own child"))
            .await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let text = std::fs::read_to_string(&self.log).unwrap_or_default();
            let tail: Vec<&str> = text.lines().rev().take(40).collect();
            eprintln!("the end of {}:", self.log.display());
            tail.iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}

/// A directory that is removed with the value.
pub(crate) struct TestDir(PathBuf);

impl TestDir {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("argosy-providers-it-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a writable directory");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
