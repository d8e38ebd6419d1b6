//! A workload system that does as it is told, and remembers what it was told.

use argosy_control::scheduler::{DrainStatus, Machine, Scheduler, SchedulerError};
use async_trait::async_trait;
use jiff::Timestamp;
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
    calls: Mutex<Vec<String>>,
    script: Mutex<HashMap<String, Does>>,
    /// What it believes of each node: `cordon`, `drain`, `uncordon`.
    state: Mutex<BTreeMap<String, &'static str>>,
    /// How many jobs run on a node.
    jobs: Mutex<HashMap<String, u32>>,
}

impl Workload {
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

    async fn called(&self, machine: &Machine, what: &'static str) -> Result<(), SchedulerError> {
        let call = format!("{} {what}", machine.id);
        self.calls.lock().unwrap().push(call.clone());
        let does = self.script.lock().unwrap().get(&call).cloned();
        let set = || {
            if what != "status" {
                self.state.lock().unwrap().insert(machine.id.clone(), what);
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

    async fn cordon(&self, machine: &Machine, _: &str) -> Result<(), SchedulerError> {
        self.called(machine, "cordon").await
    }

    async fn uncordon(&self, machine: &Machine) -> Result<(), SchedulerError> {
        self.called(machine, "uncordon").await
    }

    async fn drain(&self, machine: &Machine, _: &str, _: Timestamp) -> Result<(), SchedulerError> {
        self.called(machine, "drain").await
    }

    async fn drain_status(&self, machine: &Machine) -> Result<DrainStatus, SchedulerError> {
        self.called(machine, "status").await?;
        match self.jobs.lock().unwrap().get(&machine.id).copied().unwrap_or(0) {
            0 => Ok(DrainStatus::Drained),
            left => Ok(DrainStatus::Draining { left: Some(left), message: format!("{left} jobs") }),
        }
    }
}
