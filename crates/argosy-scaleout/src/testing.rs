//! A real PostgreSQL for tests: one server per test process, an empty database for each test.
//!
//! `ARGOSY_TEST_POSTGRES` may name a running server instead, by the URL of a user who may create
//! databases.

use crate::postgres::create_database;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Where Debian's packages put their programs, a folder a version.
const INSTALLED: &str = "/usr/lib/postgresql";

/// The oldest version that is supported.
const OLDEST: u32 = 15;

/// The programs of the newest version that is installed: Debian 12 has 15, Debian 13 has 17.
fn programs() -> PathBuf {
    let folders = std::fs::read_dir(INSTALLED).into_iter().flatten().flatten();
    let versions = folders.filter_map(|folder| {
        let version: u32 = folder.file_name().to_str()?.parse().ok()?;
        let programs = folder.path().join("bin");
        (OLDEST <= version && programs.join("initdb").exists()).then_some((version, programs))
    });
    let newest = versions.max().map(|(_, programs)| programs);
    newest.expect(
        "PostgreSQL 15 or newer is not installed: run `apt-get install postgresql`, or name a \
         running server in ARGOSY_TEST_POSTGRES",
    )
}

/// Serves until its standard input ends, which it does when the test process does, however that
/// happens; then nothing is left behind. Ctrl-C is for the tests: they end, and so does this.
const SCRIPT: &str = r#"
set -e
trap '' INT TERM HUP
cd /
dir=$(mktemp -d -t argosy-postgres.XXXXXX)
ctl() { "$PROGRAMS/pg_ctl" -D "$dir/data" -l "$dir/log" -w "$@" >>"$dir/log" 2>&1; }
end() { ctl -m immediate stop || true; rm -rf "$dir"; }
trap end EXIT
"$PROGRAMS/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$dir/log" 2>&1 ||
    { cat "$dir/log" >&2; exit 1; }
{
    echo "listen_addresses = ''"
    echo "unix_socket_directories = '$dir'"
    echo "fsync = $FSYNC"
    echo "max_connections = 400"
} >>"$dir/data/postgresql.conf"
ctl start || { cat "$dir/log" >&2; exit 1; }
echo "$dir"
while read -r mode verb; do
    case $verb in
    start) ctl start ;;
    stop) ctl -m "$mode" stop ;;
    esac
    echo done
done
"#;

/// An empty database on the server that all tests of this process share, as a URL.
pub async fn database() -> String {
    static SHARED: OnceLock<TestPostgres> = OnceLock::new();
    match std::env::var("ARGOSY_TEST_POSTGRES") {
        Ok(url) => fresh(&url).await,
        // It forgets at a power cut, and is a good deal faster for it.
        Err(_) => SHARED.get_or_init(|| TestPostgres::start_with("off")).database().await,
    }
}

/// A server of one's own, to be stopped and started at will.
#[derive(Debug)]
pub struct TestPostgres {
    socket_dir: PathBuf,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    // Ends by itself, when its standard input does.
    _keeper: Child,
}

impl TestPostgres {
    /// Starts a server that keeps what it acknowledged. Blocks for a second or two.
    pub fn start() -> Self {
        Self::start_with("on")
    }

    fn start_with(fsync: &str) -> Self {
        let mut child = as_ordinary_user()
            .args(["sh", "-c", SCRIPT])
            .env("PROGRAMS", programs())
            .env("FSYNC", fsync)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("setpriv and sh are part of every Debian");
        let stdin = child.stdin.take().expect("piped");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let pipes = Mutex::new((stdin, stdout));
        let mut server = Self { socket_dir: PathBuf::new(), pipes, _keeper: child };
        server.socket_dir = PathBuf::from(server.answer());
        server
    }

    /// An empty database, as a URL.
    pub async fn database(&self) -> String {
        let dir = self.socket_dir.display();
        fresh(&format!("postgres:///postgres?user=postgres&host={dir}")).await
    }

    /// Stops the server: connections are cut, transactions under way are rolled back.
    pub fn stop(&self) {
        self.tell("fast stop");
    }

    /// Kills the server as a power cut would.
    pub fn kill(&self) {
        self.tell("immediate stop");
    }

    /// Starts it again.
    pub fn start_again(&self) {
        self.tell("now start");
    }

    fn tell(&self, what: &str) {
        let sent = {
            let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
            writeln!(pipes.0, "{what}")
        };
        sent.expect("the server's keeper is there");
        assert_eq!(self.answer(), "done");
    }

    fn answer(&self) -> String {
        let mut line = String::new();
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        pipes.1.read_line(&mut line).expect("the server's keeper is there");
        assert!(!line.is_empty(), "PostgreSQL did not start; its log is above");
        line.trim().to_string()
    }
}

/// PostgreSQL refuses to run as root, which is what tests in a container usually are.
fn as_ordinary_user() -> Command {
    let root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !root {
        return Command::new("env");
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]);
    command
}

async fn fresh(url: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("argosy_test_{}_{number}", std::process::id());
    create_database(url, &name).await.expect("a user who may create databases");
    let (place, options) = url.split_once('?').unwrap_or((url, ""));
    let server = place.rsplit_once('/').map_or(place, |(server, _)| server);
    format!("{server}/{name}?{options}")
}
