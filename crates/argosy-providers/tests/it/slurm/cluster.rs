//! A real Slurm on this machine: munged, slurmctld and two slurmd as plain processes, in a directory.
//!
//! Without control groups and accounting, which a sandbox may not have; jobs are real processes.

use crate::harness::{Process, TestDir, await_until, free_ports};
use argosy_providers::scheduler::slurm::{SlurmScheduler, SlurmSettings};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A running Slurm with the nodes `n1` and `n2`, one job each.
pub(crate) struct Cluster {
    // Before the directory: they end before it is removed.
    controller: Option<Process>,
    _nodes: Vec<Process>,
    _munge: Process,
    dir: TestDir,
}

/// Where Debian has the daemons; the PATH of people who are not root lacks it.
const DAEMONS: &str = "/usr/sbin";

impl Cluster {
    pub(crate) async fn start() -> Self {
        let dir = TestDir::new();
        write_files(dir.path());
        let text = |name: &str| dir.join(name).display().to_string();
        let munge = Process::start(
            dir.path(),
            "munged",
            &daemon("munged"),
            &[
                "--foreground",
                "--force",
                &format!("--socket={}", text("munge.socket")),
                &format!("--key-file={}", text("munge.key")),
                &format!("--pid-file={}", text("munged.pid")),
                &format!("--seed-file={}", text("munged.seed")),
            ],
        );
        await_until("munged listens", async || dir.join("munge.socket").exists().then_some(()))
            .await;
        let nodes = ["n1", "n2"].map(|node| {
            let words = ["-D", "-N", node, "-f", &text("slurm.conf")];
            Process::start(dir.path(), node, &daemon("slurmd"), &words)
        });
        let mut cluster = Self { controller: None, _nodes: nodes.into(), _munge: munge, dir };
        cluster.start_controller().await;
        cluster
    }

    /// Starts the controller and waits until it has heard from its nodes.
    pub(crate) async fn start_controller(&mut self) {
        let conf = self.dir.join("slurm.conf").display().to_string();
        let words = ["-D", "-f", &conf];
        let controller = Process::start(self.dir.path(), "slurmctld", &daemon("slurmctld"), &words);
        self.controller = Some(controller);
        await_until("the nodes are there", async || {
            let states = self.run("sinfo", &["--noheader", "--Node", "--format=%T"]);
            let states: Vec<&str> = states.split_whitespace().collect();
            let sure = |state: &&str| !state.contains(['*', 'u']);
            (states.len() == 2 && states.iter().all(sure)).then_some(())
        })
        .await;
    }

    /// Asks the controller to end, and waits until it has: it writes down what it knows when it does.
    pub(crate) async fn stop_controller(&mut self) {
        self.run("scontrol", &["shutdown", "slurmctld"]);
        self.controller.take().expect("a running controller").ended().await;
    }

    /// The scheduler under test, for this cluster.
    pub(crate) fn scheduler(&self, name_label: Option<&str>) -> SlurmScheduler {
        let conf = Some(self.dir.join("slurm.conf"));
        let name_label = name_label.map(ToOwned::to_owned);
        let settings = SlurmSettings { conf, name_label, ..SlurmSettings::default() };
        SlurmScheduler::new(settings).expect("settings that can be used")
    }

    /// What one of Slurm's programs prints when a person runs it.
    pub(crate) fn run(&self, program: &str, words: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(words).env("SLURM_CONF", self.dir.join("slurm.conf"));
        let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// State and reason of a node, as a person sees them, without the star of a node that is about to be
    /// asked how it is.
    pub(crate) fn node(&self, node: &str) -> String {
        let words = ["--noheader", "--Node", "--format=%T|%E", "--nodes", node];
        self.run("sinfo", &words).trim().replace("*|", "|")
    }

    /// Submits a job for one node that runs until it is told to end; its id.
    pub(crate) fn submit(&self, node: &str) -> String {
        let end = self.dir.join(&format!("end-{node}"));
        // It also ends with the directory: a test that fails must not leave it behind.
        let (here, end) = (self.dir.path().display(), end.display());
        let script = format!("while [ -d {here} ] && ! [ -e {end} ]; do sleep 0.1; done");
        let words = ["--parsable", "--output=/dev/null", "--nodelist", node, "--wrap", &script];
        let id = self.run("sbatch", &words).trim().to_owned();
        assert!(!id.is_empty(), "the job was not taken");
        id
    }

    /// Jobs on a node end, and those that follow end at once.
    pub(crate) fn end_jobs(&self, node: &str) {
        std::fs::write(self.dir.join(&format!("end-{node}")), "").expect("a writable directory");
    }

    /// The state of a job, as a person sees it; empty if it is over and forgotten.
    pub(crate) fn job(&self, id: &str) -> String {
        let words = ["--noheader", "--format=%T", "--states=all", "--jobs", id];
        self.run("squeue", &words).trim().to_owned()
    }

    pub(crate) async fn await_job(&self, id: &str, state: &str) {
        let what = format!("job {id} is {state}");
        await_until(&what, async || (self.job(id) == state).then_some(())).await;
    }
}

fn daemon(name: &str) -> PathBuf {
    let path = Path::new(DAEMONS).join(name);
    assert!(path.exists(), "{name} is not installed: run scripts/install-test-deps");
    path
}

/// What a node shows that is idle again after a drain: Slurm 22.05 forgets the reason, 24.11 keeps it.
pub(crate) fn back_in_service(reason: &str) -> String {
    match major_version() {
        ..=22 => "idle|none".to_owned(),
        23.. => format!("idle|{reason}"),
    }
}

/// The first number of `slurm-wlm 24.11.5`.
fn major_version() -> u32 {
    let output = Command::new(daemon("slurmd")).arg("-V").output().expect("Slurm is installed");
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().last().unwrap_or_default();
    let major = version.split('.').next().unwrap_or_default();
    major.parse().unwrap_or_else(|_| panic!("no version: {text}"))
}

fn write_files(dir: &Path) {
    let user = Command::new("id").arg("-un").output().expect("id is part of every Debian").stdout;
    let user = String::from_utf8_lossy(&user).trim().to_owned();
    let [controller, n1, n2] = free_ports();
    let here = dir.display();
    let conf = format!(
        "ClusterName=argosy
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={here}/munge.socket
SlurmctldPort={controller}
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/spool-%n
SlurmctldPidFile={here}/slurmctld.pid
SlurmdPidFile={here}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/linear
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
KillWait=1
NodeName=n1 NodeAddr=127.0.0.1 NodeHostname=localhost Port={n1} CPUs=1
NodeName=n2 NodeAddr=127.0.0.1 NodeHostname=localhost Port={n2} CPUs=1
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"
    );
    std::fs::write(dir.join("slurm.conf"), conf).expect("a writable directory");
    // From 23.11 on it asks for control groups even if nothing uses them, unless it is told not to; what was before
    // does not know the word.
    if 23 <= major_version() {
        std::fs::write(dir.join("cgroup.conf"), "CgroupPlugin=disabled\n")
            .expect("a writable directory");
    }
    for name in ["state", "spool-n1", "spool-n2"] {
        std::fs::create_dir(dir.join(name)).expect("a writable directory");
    }
    let key: Vec<u8> = (0..1024_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let path = dir.join("munge.key");
    std::fs::write(&path, key).expect("a writable directory");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, private).expect("a file of ours");
}
