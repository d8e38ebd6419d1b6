//! A workload system that does as it is told, and remembers what it was told.

use argosy_control::scheduler::{
    Abilities, Drain, DrainStatus, Listed, Machine, Out, Scheduler, SchedulerError,
};
use async_trait::async_trait;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

/// What the system does when it is called.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    Fail(SchedulerError),
    /// It does it, and never answers.
    DoAndHang,
    Hang,
    Panic,
}

#[derive(Default)]
pub(crate) struct Workload {
    /// Where it is; another address is another system.
    address: &'static str,
    /// Whether it can be asked what it holds.
    can_list: bool,
    calls: Mutex<Vec<String>>,
    script: Mutex<HashMap<String, Does>>,
    /// What it believes of each node: `cordon`, `drain`, `uncordon`; `theirs` if a person took it out.
    state: Mutex<BTreeMap<String, &'static str>>,
    /// How many jobs run on a node.
    jobs: Mutex<HashMap<String, u32>>,
    /// The last drain that it was told.
    drain: Mutex<Option<Drain>>,
}

impl Workload {
    /// One that can be asked what it holds.
    pub(crate) fn that_lists() -> Self {
        Self { can_list: true, ..Self::default() }
    }

    /// One at another address.
    pub(crate) fn at(address: &'static str) -> Self {
        Self { address, ..Self::default() }
    }

    /// What happens from now on when `n1 cordon` is called; `None` is success.
    pub(crate) fn when(&self, call: &str, does: Option<Does>) {
        let mut script = self.script.lock().unwrap();
        match does {
            Some(does) => script.insert(call.to_owned(), does),
            None => script.remove(call),
        };
    }

    /// Jobs run on a node.
    pub(crate) fn run(&self, node: &str, jobs: u32) {
        self.jobs.lock().unwrap().insert(node.to_owned(), jobs);
    }

    /// How many jobs run on a node.
    pub(crate) fn jobs(&self, node: &str) -> u32 {
        self.jobs.lock().unwrap().get(node).copied().unwrap_or(0)
    }

    /// Every call since the last time somebody asked, like `n1 cordon`.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    /// How often something was called.
    pub(crate) fn count(&self, call: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|made| *made == call).count()
    }

    /// What it believes of a node.
    pub(crate) fn state(&self, node: &str) -> &'static str {
        self.state.lock().unwrap().get(node).copied().unwrap_or("uncordon")
    }

    /// Somebody else changes what it believes of a node.
    pub(crate) fn set(&self, node: &str, state: &'static str) {
        self.state.lock().unwrap().insert(node.to_owned(), state);
    }

    /// The last drain that it was told.
    pub(crate) fn last_drain(&self) -> Drain {
        self.drain.lock().unwrap().clone().expect("a drain was told")
    }

    async fn called(&self, machine: &Machine, what: &'static str) -> Result<(), SchedulerError> {
        let name = self.name_of(machine)?;
        let call = format!("{name} {what}");
        self.calls.lock().unwrap().push(call.clone());
        let does = self.script.lock().unwrap().get(&call).cloned();
        let set = || {
            if what != "status" {
                self.state.lock().unwrap().insert(name.clone(), what);
            }
        };
        match does {
            None => {
                set();
                Ok(())
            }
            Some(Does::Fail(error)) => Err(error),
            Some(Does::DoAndHang) => {
                set();
                std::future::pending().await
            }
            Some(Does::Hang) => std::future::pending().await,
            Some(Does::Panic) => panic!("scripted"),
        }
    }
}

#[async_trait]
impl Scheduler for Workload {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn address(&self) -> String {
        self.address.to_owned()
    }

    fn abilities(&self) -> Abilities {
        Abilities { list: self.can_list, cordon: true, drain: true }
    }

    /// Its hostname, up to the first dot.
    fn name_of(&self, machine: &Machine) -> Result<String, SchedulerError> {
        let host = machine.hostname.split('.').next().filter(|host| !host.is_empty());
        Ok(machine.known_as.as_deref().or(host).unwrap_or(&machine.id).to_owned())
    }

    async fn cordon(&self, machine: &Machine, _: &str) -> Result<(), SchedulerError> {
        self.called(machine, "cordon").await
    }

    async fn uncordon(&self, machine: &Machine) -> Result<(), SchedulerError> {
        self.called(machine, "uncordon").await
    }

    async fn drain(&self, machine: &Machine, drain: &Drain) -> Result<(), SchedulerError> {
        *self.drain.lock().unwrap() = Some(drain.clone());
        self.called(machine, "drain").await
    }

    async fn drain_status(
        &self,
        machine: &Machine,
        drain: &Drain,
    ) -> Result<DrainStatus, SchedulerError> {
        self.called(machine, "status").await?;
        let name = self.name_of(machine)?;
        let left = self.jobs(&name);
        let message = format!("{left} jobs");
        Ok(match left {
            0 => DrainStatus::Drained,
            // Ends one job each time it is asked.
            1.. if drain.over && drain.force => {
                self.run(&name, left - 1);
                DrainStatus::Ending { left: Some(left), message }
            }
            1.. => DrainStatus::Draining { left: Some(left), message },
        })
    }

    async fn list(&self) -> Result<Vec<Listed>, SchedulerError> {
        self.calls.lock().unwrap().push("list".to_owned());
        let listed = |(name, state): (&String, &&str)| Listed {
            name: name.clone(),
            out: match *state {
                "uncordon" => Out::InUse,
                "theirs" => Out::ByOthers,
                _ => Out::ByUs,
            },
            note: (*state).to_owned(),
        };
        Ok(self.state.lock().unwrap().iter().map(listed).collect())
    }
}
