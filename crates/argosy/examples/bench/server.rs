//! The release build of the program, started on a store of its own.

use crate::http::Connection;
use crate::now;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Nobody runs these adapters, so a create is one commit and nothing follows it.
const ONLY_CREATES: &str = "
adapters:
  cluster:
    - { name: validation, runner: external }
    - { name: dns, runner: external, depends_on: [validation] }
    - { name: infrastructure, runner: external, depends_on: [dns] }
";

/// What reconciles the clusters of a server.
#[derive(Clone, Copy)]
pub(crate) enum Adapters {
    /// Nobody.
    External,
    /// The built-in ones, on a cloud that takes no time.
    Instant,
}

/// Where a server keeps its data; removed in the end.
pub(crate) struct Home {
    dir: PathBuf,
    /// `--store`, unless it is the embedded one.
    store: Option<String>,
}

impl Home {
    pub(crate) fn new(dir: PathBuf, store: Option<String>) -> Result<Self> {
        fs::create_dir_all(&dir)?;
        Ok(Self { dir, store })
    }
}

impl Home {
    /// A file or directory of its own.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// What the embedded store keeps, once no server has it; `None` if there is another store.
    pub(crate) fn data(&self) -> Option<PathBuf> {
        self.store.is_none().then(|| self.dir.join("data"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What is left behind is in the temporary directory.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// From the start of the process to the first time it said that it was ready.
    pub(crate) ready_after: Duration,
}

impl Server {
    pub(crate) async fn start(program: &Path, home: &Home, adapters: Adapters) -> Result<Self> {
        Self::start_with(program, home, adapters, "").await
    }

    /// With more in its configuration.
    pub(crate) async fn start_with(
        program: &Path,
        home: &Home,
        adapters: Adapters,
        more: &str,
    ) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let config = home.dir.join("config.yaml");
        let mut command = Command::new(program);
        command.args(["server", "--listen", &format!("127.0.0.1:{port}")]);
        command.arg("--data-dir").arg(home.dir.join("data")).arg("--config").arg(&config);
        command.args(home.store.iter().flat_map(|url| ["--store", url]));
        match adapters {
            Adapters::External => fs::write(&config, format!("{ONLY_CREATES}{more}"))?,
            Adapters::Instant => {
                fs::write(&config, if more.is_empty() { "{}\n" } else { more })?;
                command.arg("--simulated-cloud=instant");
            }
        }
        let log = home.dir.join("log");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        let began = now();
        let child = command.spawn().with_context(|| format!("{}", program.display()))?;
        let mut server = Self { child, port, ready_after: Duration::ZERO };
        while !server.is_ready().await {
            if server.child.try_wait()?.is_some() || Duration::from_secs(60) < began.elapsed() {
                bail!("the server did not start:\n{}", fs::read_to_string(&log)?);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.ready_after = began.elapsed();
        Ok(server)
    }

    async fn is_ready(&self) -> bool {
        let Ok(mut connection) = Connection::open(self.port).await else { return false };
        connection.operation("/readyz").await.is_ok_and(|(status, _)| status == 200)
    }

    pub(crate) fn resident_bytes(&self) -> Result<f64> {
        resident_bytes(self.child.id())
    }

    /// The processor time the server has used, all threads, user and system. Not PostgreSQL's.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program, in parentheses, may hold anything; user time is field 14.
        let (_, fields) = stat.rsplit_once(')').context("not a stat")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        let ticks: u64 = ticks.sum::<Result<_, _>>()?;
        // A tick is 10 ms on every Linux there is.
        Ok(Duration::from_millis(ticks * 10))
    }
}

/// The memory of a process that is not swapped out.
pub(crate) fn resident_bytes(process: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kibibytes.context("no VmRSS")? * 1024.0)
}

impl Drop for Server {
    fn drop(&mut self) {
        // As a crash would end it: what follows starts from what is on the disk.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
