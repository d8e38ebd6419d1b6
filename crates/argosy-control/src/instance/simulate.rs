//! What an autoscaler would have done with what was measured. Nothing is written, and nobody is asked.

use super::Instances;
use crate::Error;
use crate::loops::machines::history;
use crate::office::allow_verb;
use argosy_core::access::{Caller, Verb};
use argosy_core::autoscale::{
    Autoscaling, History, Metrics, RawMetrics, RawSample, Refused, Sample, SimPool, SimStep,
    Summary, simulate,
};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::id::ResourceId;
use argosy_core::pool::PoolSpec;
use jiff::SignedDuration;
use serde_json::Value;

/// What is to be simulated; what is not said is taken from the pool as it is.
#[derive(Clone, Debug, Default)]
pub struct Simulate {
    /// As it would stand in `spec.autoscaling`.
    pub autoscaling: Option<Value>,
    /// What was measured.
    pub history: Option<Vec<RawSample>>,
    /// The smallest size.
    pub min: Option<u32>,
    /// The largest size.
    pub max: Option<u32>,
    /// How many nodes it begins with.
    pub nodes: Option<u32>,
    /// How long a machine takes until its node is ready.
    pub boot: SignedDuration,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// How many samples it went by.
    pub samples: usize,
    /// Measurements that cannot be true, and were not used.
    pub refused: Vec<Refused>,
    /// Each look.
    pub steps: Vec<SimStep>,
    /// What it comes to.
    pub summary: Summary,
    /// The same, for a pool that always has as many nodes as its spec says.
    pub fixed: Summary,
}

impl Instances {
    /// What was measured of a pool, oldest first.
    ///
    /// # Errors
    /// `NotFound`, `Forbidden`.
    pub async fn history(&self, caller: &Caller, pool: ResourceId) -> Result<Vec<Sample>, Error> {
        allow_verb(caller, Verb::Read)?;
        self.office.store.read(|view| self.pool(view, caller, Verb::Read, pool).map(drop))?;
        history(&self.office, pool).await
    }

    /// Replays a history: the one that is asked for, or what was `recorded`. It may take a second: not for a thread that others wait for.
    ///
    /// # Errors
    /// `NotFound`, `Forbidden`; `Invalid` if the autoscaling, or the pool's spec, is; `Precondition` if there
    /// is nothing to go by.
    pub fn simulate(
        &self,
        caller: &Caller,
        pool: ResourceId,
        asked: Simulate,
        recorded: Vec<Sample>,
    ) -> Result<Simulated, Error> {
        allow_verb(caller, Verb::Read)?;
        let (resource, cluster) = self.office.store.read(|view| {
            let found = self.pool(view, caller, Verb::Read, pool)?;
            let cluster = found.value.owner.and_then(|owner| view.resource(owner));
            Ok::<_, Error>((found.value.clone(), cluster.map(|cluster| cluster.value.clone())))
        })?;
        let none = Default::default();
        let of_cluster = cluster.as_ref().map_or(&none, |cluster| &cluster.spec);
        let settings = &self.office.settings;
        let spec = PoolSpec::read(&resource.spec, of_cluster, &settings.catalog);
        let spec = spec.map_err(Error::Invalid)?;
        let autoscaling = asked.autoscaling.as_ref().or(resource.spec.get("autoscaling"));
        let Some(autoscaling) = autoscaling else {
            let message = "the node pool has no autoscaling; say which one to simulate";
            let error = FieldError::new("autoscaling", Constraint::Required, message);
            return Err(Error::Invalid(vec![error]));
        };
        let autoscaling = Autoscaling::parse(autoscaling, "autoscaling").map_err(Error::Invalid)?;
        let (history, refused) = match asked.history {
            None => (History::from(recorded), Vec::new()),
            Some(history) => {
                let raw = RawMetrics { history, ..RawMetrics::default() };
                let (metrics, refused) = Metrics::plausible(raw);
                (metrics.history, refused)
            }
        };
        let Some(first) = history.first() else {
            return Err(Error::Precondition(format!(
                "nothing was measured of the node pool {} yet; give a history, or wait",
                resource.name
            )));
        };
        let (min, max) = (asked.min.unwrap_or(spec.min), asked.max.unwrap_or(spec.max));
        if max < min {
            let message = format!("min is {min} and max is {max}; min must not be larger");
            return Err(Error::Invalid(vec![FieldError::new("min", Constraint::Max, message)]));
        }
        let nodes = asked.nodes.unwrap_or(first.nodes).clamp(min, max);
        let boot = asked.boot;
        let every = settings.machines.autoscale_every;
        let steps = simulate(&autoscaling, SimPool { min, max, nodes, boot }, &history, every);
        Ok(Simulated {
            samples: history.len(),
            refused,
            summary: Summary::of(&steps),
            fixed: Summary::of_static(&steps, spec.nodes),
            steps,
        })
    }
}
