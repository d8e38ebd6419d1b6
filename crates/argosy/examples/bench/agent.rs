//! What the agent costs on its machine, and how fast it is: the release build against a server beside it.
//!
//! Eight GPUs come from a stand-in for NVML, through the same child process as real ones. What is done on a
//! machine with a GPU is in `docs/hardware/`.

use crate::figures::Figures;
use crate::http::Connection;
use crate::now;
use crate::server::{Adapters, Home, Server, resident_bytes};
use anyhow::{Context, Result, ensure};
use argosy_nvml_standin::{SCRIPT_ENV, Script};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

/// How much is asked.
pub(crate) struct AgentSizes {
    starts: usize,
    /// How long the agent is left alone, to see what it takes.
    rest: Duration,
}

impl AgentSizes {
    pub(crate) const FULL: Self = Self { starts: 20, rest: Duration::from_secs(90) };
    pub(crate) const QUICK: Self = Self { starts: 5, rest: Duration::from_secs(15) };
}

const GPUS: u32 = 8;

/// Codes that condemn nothing, so that what is measured is the way of a line and not of a cordon.
const CODES: [u32; 12] = [8, 11, 25, 32, 37, 39, 40, 41, 43, 69, 70, 71];

pub(crate) async fn agent(
    program: &Path,
    home: &Home,
    sizes: &AgentSizes,
    figures: &mut Figures,
) -> Result<()> {
    let beside = program.parent().context("the program is in no directory")?;
    let (agent, nvml) = (beside.join("argosy-agent"), beside.join("libargosy_nvml_standin.so"));
    for file in [&agent, &nvml] {
        let hint = "cargo build --release -p argosy-agent -p argosy-nvml-standin";
        ensure!(file.exists(), "{} is not there: {hint}", file.display());
    }
    let server = Server::start(program, home, Adapters::External).await?;
    let dir = home.path("agents");
    let script = home.path("nvml.json");
    Script::h100s(GPUS).write(&script)?;

    let mut started = Vec::new();
    for number in 0..sizes.starts {
        let began = now();
        let node = format!("start-{number}");
        let _agent = Agent::start(&agent, &server, &dir, &node, Some((&nvml, &script)))?;
        registered(&server, &node).await?;
        started.push(began.elapsed());
    }
    figures.times("agent.start", started);

    figures.times("agent.line", lines(&agent, &server, &dir).await?);

    let resting = Agent::start(&agent, &server, &dir, "resting", Some((&nvml, &script)))?;
    registered(&server, "resting").await?;
    let (cpu, began) = (resting.cpu()?, now());
    let mut largest: f64 = 0.0;
    while began.elapsed() < sizes.rest {
        largest = largest.max(resting.resident()?);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let used = (resting.cpu()? - cpu).as_secs_f64() / began.elapsed().as_secs_f64();
    figures.set("agent.cpu", used * 100.0);
    figures.set("agent.memory.largest", largest / 1e6);
    figures.set("agent.memory.idle", resident_bytes(resting.child.id())? / 1e6);
    figures.set("agent.sweep", resting.sweep_ms().await?);
    Ok(())
}

/// From the kernel writing a line to the server having committed it, one line after the other.
async fn lines(program: &Path, server: &Server, dir: &Path) -> Result<Vec<Duration>> {
    let node = "hearing";
    let agent = Agent::start(program, server, dir, node, None)?;
    registered(server, node).await?;
    let mut connection = Connection::open(server.port).await?;
    let mut times = Vec::new();
    for code in CODES {
        for gpu in 0..GPUS {
            let before = revision(&mut connection, node).await?;
            let mut socket = UnixStream::connect(agent.dir.join("inject.sock")).await?;
            let line = format!("{{\"inject\":\"xid\",\"gpu\":{gpu},\"code\":{code}}}\n");
            let began = now();
            socket.write_all(line.as_bytes()).await?;
            while revision(&mut connection, node).await? == before {
                ensure!(began.elapsed() < Duration::from_secs(5), "Xid {code} did not arrive");
            }
            times.push(began.elapsed());
        }
    }
    Ok(times)
}

async fn registered(server: &Server, node: &str) -> Result<()> {
    let mut connection = Connection::open(server.port).await?;
    let began = now();
    while connection.operation(&format!("/api/argosy/v1/nodes/{node}")).await?.0 != 200 {
        ensure!(began.elapsed() < Duration::from_secs(10), "{node} did not register");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

async fn revision(connection: &mut Connection, node: &str) -> Result<u64> {
    let (_, body) = connection.operation(&format!("/api/argosy/v1/nodes/{node}")).await?;
    let node: serde_json::Value = serde_json::from_slice(&body)?;
    node.get("revision").and_then(serde_json::Value::as_u64).context("a node without a revision")
}

/// An agent that runs until it is dropped.
struct Agent {
    child: Child,
    dir: PathBuf,
}

impl Agent {
    /// With the driver that stands in; without one, with made-up GPUs that can be made to fail.
    fn start(
        program: &Path,
        server: &Server,
        dir: &Path,
        node: &str,
        driver: Option<(&Path, &Path)>,
    ) -> Result<Self> {
        let dir = dir.join(node);
        std::fs::create_dir_all(&dir)?;
        let mut command = Command::new(program);
        command.args(["run", "--provider", "bench", "--node-id", node]);
        command.arg("--server").arg(format!("http://127.0.0.1:{}", server.port));
        command.arg("--data-dir").arg(&dir).args(["--metrics", "127.0.0.1:0"]);
        match driver {
            Some((nvml, script)) => {
                command.arg("--nvml-library").arg(nvml).env(SCRIPT_ENV, script);
            }
            None => {
                command.args(["--gpu", "fake:8xH100", "--allow-inject"]);
            }
        }
        let log = std::fs::File::create(dir.join("log"))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        Ok(Self { child, dir })
    }

    /// Of the agent and the child that asks the driver, if there is one now.
    fn resident(&self) -> Result<f64> {
        let id = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
        let children = children.split_whitespace().filter_map(|child| child.parse().ok());
        // One that has just ended counts no more.
        let children: f64 = children.filter_map(|child| resident_bytes(child).ok()).sum();
        Ok(resident_bytes(id)? + children)
    }

    /// Processor time, with that of children that have ended.
    fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(')').context("not a stat")?;
        let ticks = fields.split_whitespace().skip(11).take(4).map(str::parse::<u64>);
        Ok(Duration::from_millis(ticks.sum::<Result<u64, _>>()? * 10))
    }

    /// How long a look at all GPUs takes on average, by the agent's own count.
    async fn sweep_ms(&self) -> Result<f64> {
        let port = std::fs::read_to_string(self.dir.join("log"))?;
        let port = port.lines().find_map(|line| line.split("serving figures").nth(1));
        let port = port.and_then(|rest| rest.rsplit(':').next()?.trim().parse().ok());
        let mut connection = Connection::open(port.context("no page of figures")?).await?;
        let (_, page) = connection.operation("/metrics").await?;
        let page = String::from_utf8(page)?;
        let figure = |name: &str| {
            let name = format!("argosy_agent_sweep_duration_seconds_{name} ");
            page.lines().find_map(|line| line.strip_prefix(&name)?.parse::<f64>().ok())
        };
        let (sum, count) = (figure("sum").context("no sum")?, figure("count").context("no count")?);
        Ok(sum / count * 1e3)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
