//! Slurm, by its own program `scontrol`.
//!
//! What a newcomer gets wrong: Slurm has no cordon. A node that is drained gets no new jobs, and those it
//! has run to their end; so a cordon and a drain are the same there. Jobs are only cancelled past the deadline of
//! a drain that says so.

mod program;
mod shown;

use super::{SettingsError, one_line};
use argosy_control::scheduler::{
    Abilities, Drain, DrainStatus, Listed, Machine, Out, Scheduler, SchedulerError,
};
use async_trait::async_trait;
use program::{Program, Said};
use shown::Shown;
use std::path::PathBuf;

/// How Slurm is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmSettings {
    /// Slurm's program: a name to look for in `PATH`, or a path from the root. `squeue` is expected beside
    /// it.
    pub scontrol: PathBuf,
    /// Slurm's configuration file, if it is not where the programs look by themselves.
    pub conf: Option<PathBuf>,
    /// The label of ours that holds a machine's name in Slurm. Without it that is the hostname, up to its
    /// first dot.
    pub name_label: Option<String>,
}

/// Drains and resumes nodes of a Slurm cluster.
///
/// Guarantees: only what we drained is resumed, which Slurm remembers in the reason of the drain; a node
/// that was drained by somebody else keeps their reason.
#[derive(Debug)]
pub struct SlurmScheduler {
    scontrol: Program,
    squeue: Program,
    scancel: Program,
    address: String,
    name_label: Option<String>,
}

/// How a reason of ours begins; by this we know it again.
const OURS: &str = "argosy:";

/// What stands in a reason of ours between it and the one that was there before.
const BEFORE: &str = "; before: ";

/// The most that is read of all nodes together: 2 KiB each for thirty thousand.
const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The longest reason, in characters. `sinfo -R` prints 20 of them, `scontrol show node` all.
const REASON_MAX: usize = 200;

/// The longest name of a node: a hostname's.
const NAME_MAX: usize = 253;

/// How many jobs are named to people; the others are counted.
const JOBS_NAMED: usize = 5;

impl Default for SlurmSettings {
    fn default() -> Self {
        Self { scontrol: PathBuf::from("scontrol"), conf: None, name_label: None }
    }
}

impl SlurmScheduler {
    /// Runs nothing yet.
    ///
    /// # Errors
    /// If the path of the program depends on where we were started.
    pub fn new(settings: SlurmSettings) -> Result<Self, SettingsError> {
        let bare = settings.scontrol.components().count() == 1;
        if !bare && settings.scontrol.is_relative() {
            let message = "must be a name to look for in PATH, or a path from the root";
            return Err(SettingsError::new("scontrol", message));
        }
        let conf = settings.conf.as_ref().map(|conf| format!(" {}", conf.display()));
        let address = format!("{}{}", settings.scontrol.display(), conf.unwrap_or_default());
        let beside = |name| settings.scontrol.with_file_name(name);
        let [scontrol, squeue, scancel] = Program::of_one(
            [settings.scontrol.clone(), beside("squeue"), beside("scancel")],
            settings.conf.as_ref(),
        );
        Ok(Self { scontrol, squeue, scancel, address, name_label: settings.name_label })
    }

    /// What the machine is called in Slurm.
    fn node(&self, machine: &Machine) -> Result<String, SchedulerError> {
        let name = match (&machine.known_as, &self.name_label) {
            (Some(name), _) => name,
            (None, None) => machine.hostname.split('.').next().unwrap_or_default(),
            (None, Some(label)) => machine.labels.get(label).unwrap_or_default(),
        };
        if name.is_empty() {
            let id = one_line(&machine.id, NAME_MAX);
            return Err(SchedulerError::UnknownNode(match &self.name_label {
                None => format!("node `{id}` has not said its hostname"),
                Some(label) => format!("node `{id}` has no label `{label}` with its name in Slurm"),
            }));
        }
        // `ALL`, `n[1-99]` and `n1,n2` name many nodes, and an option could hide behind a dash.
        let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let reserved = ["ALL", "DEFAULT"].iter().any(|word| name.eq_ignore_ascii_case(word));
        if !first || !name.bytes().all(plain) || reserved || NAME_MAX < name.len() {
            let name = one_line(name, NAME_MAX);
            let message = format!("`{name}` cannot be the name of one node in Slurm");
            return Err(SchedulerError::Refused(message));
        }
        Ok(name.to_owned())
    }

    async fn show(&self, node: &str) -> Result<Shown, SchedulerError> {
        let said = self.scontrol.run(&["show", "node", node]).await?;
        let text = said.or_explain(node)?;
        Shown::parse(&text).ok_or_else(|| {
            let text = one_line(&text, REASON_MAX);
            SchedulerError::Later(format!("`scontrol show node` cannot be understood: {text}"))
        })
    }

    async fn update(&self, node: &str, what: &[&str]) -> Result<(), SchedulerError> {
        let name = format!("NodeName={node}");
        let words: Vec<&str> =
            ["update", name.as_str()].into_iter().chain(what.iter().copied()).collect();
        self.scontrol.run(&words).await?.or_explain(node).map(drop)
    }

    async fn take_out(&self, machine: &Machine, reason: &str) -> Result<(), SchedulerError> {
        let node = self.node(machine)?;
        let shown = self.show(&node).await?;
        let reason = match (&shown.reason, shown.ours()) {
            // Drained by somebody else: it gets no work, and their reason is theirs.
            (Some(_), false) if shown.drain => return Ok(()),
            // Down for a reason of somebody else, which Slurm has only one place for.
            (Some(theirs), false) => format!("{reason}{BEFORE}{theirs}"),
            // What was there before us stays known, however often we say something else.
            (Some(ours), true) => match ours.split_once(BEFORE) {
                Some((_, theirs)) => format!("{reason}{BEFORE}{theirs}"),
                None => reason.to_owned(),
            },
            (None, _) => reason.to_owned(),
        };
        let reason = format!("{OURS} {}", cleaned(&reason));
        if shown.drain && shown.reason.as_ref() == Some(&reason) {
            return Ok(());
        }
        self.update(&node, &["State=DRAIN", &format!("Reason={reason}")]).await
    }

    /// Cancels what is left on a node.
    async fn cancel(&self, node: &str, jobs: &[String]) -> Result<(), SchedulerError> {
        let words: Vec<&str> = jobs.iter().map(String::as_str).collect();
        self.scancel.run(&words).await?.or_explain(node).map(drop)
    }

    /// The jobs that are on a node, each once.
    async fn jobs(&self, node: &str) -> Result<Vec<String>, SchedulerError> {
        // Any state but those of jobs that wait or are over.
        let states = "--states=RUNNING,COMPLETING,CONFIGURING,SUSPENDED,STOPPED,SIGNALING,STAGE_OUT,RESIZING";
        let nodes = format!("--nodelist={node}");
        let said = self.squeue.run(&["--noheader", "--format=%A", states, &nodes]).await?;
        let text = said.or_explain(node)?;
        let mut jobs: Vec<String> = text.split_whitespace().map(ToOwned::to_owned).collect();
        jobs.sort();
        jobs.dedup();
        Ok(jobs)
    }
}

#[async_trait]
impl Scheduler for SlurmScheduler {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn abilities(&self) -> Abilities {
        Abilities { list: true, cordon: true, drain: true }
    }

    fn name_of(&self, machine: &Machine) -> Result<String, SchedulerError> {
        self.node(machine)
    }

    async fn cordon(&self, machine: &Machine, reason: &str) -> Result<(), SchedulerError> {
        self.take_out(machine, reason).await
    }

    async fn uncordon(&self, machine: &Machine) -> Result<(), SchedulerError> {
        let node = self.node(machine)?;
        let shown = self.show(&node).await?;
        if !shown.drain || !shown.ours() {
            return Ok(());
        }
        // Not `RESUME`, which would also bring back a node that somebody has set down.
        self.update(&node, &["State=UNDRAIN"]).await?;
        // Slurm takes a node back by itself only if it is down for the reason that Slurm gave.
        let before = shown.reason.as_deref().and_then(|reason| reason.split_once(BEFORE));
        if let Some((_, theirs)) = before
            && self.show(&node).await?.is_down()
        {
            self.update(&node, &[&format!("Reason={theirs}")]).await?;
        }
        Ok(())
    }

    /// Jobs run to their end: Slurm's own limits of time are for those who submit them. People see the deadline in
    /// the reason.
    async fn drain(&self, machine: &Machine, drain: &Drain) -> Result<(), SchedulerError> {
        let Drain { reason, deadline, .. } = drain;
        self.take_out(machine, &format!("drain until {deadline:.0}, {reason}")).await
    }

    async fn drain_status(
        &self,
        machine: &Machine,
        drain: &Drain,
    ) -> Result<DrainStatus, SchedulerError> {
        let node = self.node(machine)?;
        let shown = self.show(&node).await?;
        if shown.drained() {
            return Ok(DrainStatus::Drained);
        }
        // A number is a courtesy: the state alone has decided.
        let jobs = self.jobs(&node).await.ok();
        let left = jobs.as_ref().map(|jobs| u32::try_from(jobs.len()).unwrap_or(u32::MAX));
        let state = &shown.state;
        let message = match &jobs {
            _ if !shown.drain => {
                format!("node {node} is {state}, and no longer drained in Slurm")
            }
            None => format!("node {node} is {state}"),
            Some(jobs) => {
                let named: Vec<&str> = jobs.iter().take(JOBS_NAMED).map(String::as_str).collect();
                let more = if JOBS_NAMED < jobs.len() { ", …" } else { "" };
                format!("node {node} is {state}, jobs on it: {}{more}", named.join(", "))
            }
        };
        if let (true, Some(jobs)) = (drain.over && drain.force && shown.drain, &jobs)
            && !jobs.is_empty()
        {
            self.cancel(&node, jobs).await?;
            return Ok(DrainStatus::Ending { left, message });
        }
        Ok(DrainStatus::Draining { left, message })
    }

    async fn list(&self) -> Result<Vec<Listed>, SchedulerError> {
        let said = self.scontrol.run_within(&["show", "node"], LIST_BYTES_MAX).await?;
        let text = said.or_explain("")?;
        Ok(Shown::all(&text).filter_map(|(name, shown)| shown.listed(name)).collect())
    }
}

impl Shown {
    /// What it says of the node; `None` while Slurm itself does not know.
    fn listed(&self, name: &str) -> Option<Listed> {
        let out = match (self.drain, self.ours()) {
            (true, true) => Out::ByUs,
            (true, false) => Out::ByOthers,
            (false, _) if self.is_unknown() => return None,
            (false, _) if self.is_down() => Out::ByOthers,
            (false, _) => Out::InUse,
        };
        let reason = self.reason.as_ref().map(|reason| format!(" {reason}")).unwrap_or_default();
        // The state of a node in use changes with each job, which is no news.
        let note = match out {
            Out::InUse => String::new(),
            Out::ByUs | Out::ByOthers => one_line(&format!("{}{reason}", self.state), REASON_MAX),
        };
        Some(Listed { name: name.to_owned(), out, note })
    }
}

impl Said {
    /// What was printed, if the program went well; what went wrong, as the caller can act on it.
    fn or_explain(self, node: &str) -> Result<String, SchedulerError> {
        if self.well {
            return Ok(self.stdout);
        }
        // Slurm has one exit code for everything; its sentences are older than its codes.
        let text = format!("{}\n{}", self.stderr, self.stdout);
        let has = |sentences: &[&str]| sentences.iter().any(|sentence| text.contains(sentence));
        let message = format!("Slurm: {}", one_line(&text, REASON_MAX));
        if has(&["Invalid node name specified", &format!("Node {node} not found")]) {
            Err(SchedulerError::UnknownNode(format!("Slurm has no node `{node}`")))
        } else if has(&[
            "Invalid user id",
            "Access/permission denied",
            "Invalid node state specified",
        ]) {
            Err(SchedulerError::Refused(message))
        } else {
            Err(SchedulerError::Later(message))
        }
    }
}

/// A reason as Slurm can keep it: one line without what it would take for quotes.
fn cleaned(reason: &str) -> String {
    let plain: String = one_line(reason, REASON_MAX)
        .chars()
        .map(|char| if matches!(char, '"' | '\'' | '`' | '\\') { ' ' } else { char })
        .collect();
    match one_line(&plain, REASON_MAX) {
        empty if empty.is_empty() => "no reason was given".to_owned(),
        plain => plain,
    }
}

#[cfg(test)]
mod tests;
