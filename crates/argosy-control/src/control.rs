//! Every service, built once.

use crate::Revision;
use crate::adapter::Adapters;
use crate::audit::Audit;
use crate::clock::Clock;
use crate::command::Commands;
use crate::extension::Extensions;
use crate::ids::Ids;
use crate::instance::Instances;
use crate::loops::machines::MachineSettings;
use crate::loops::run::Hands;
use crate::loops::{self, Beats};
use crate::node::Nodes;
use crate::notify::Notifier;
use crate::office::Office;
use crate::policy::{Policies, PolicyBook};
use crate::provider::Provider;
use crate::pulse::PulseBoard;
use crate::resource::Resources;
use crate::safety::Safety;
use crate::scheduler::{Scheduler, key_of};
use crate::stats::Stats;
use crate::task::Tasks;
use argosy_core::access::Authorization;
use argosy_core::adapter::{AdapterGraph, TimeWindow};
use argosy_core::catalog::Catalog;
use argosy_core::node::settings::NodeSettings;
use argosy_core::resource::Kind;
use argosy_core::sentinel::Rules;
use argosy_policy::ConditionRules;
use argosy_store::Store;
use jiff::SignedDuration;
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

/// What the services and loops go by.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The adapters of each kind.
    pub adapters: AdapterGraph,
    /// When adapters are run again.
    pub rules: Rules,
    /// How far a reporter's clock may be off.
    pub window: TimeWindow,
    /// What can be asked for.
    pub catalog: Catalog,
    /// Whether teams matter.
    pub authorization: Authorization,
    /// Conditions that rules derive from the reports, by kind.
    pub conditions: BTreeMap<Kind, Arc<ConditionRules>>,
    /// What the node plane goes by.
    pub nodes: NodeSettings,
    /// How machines are bought, watched and returned.
    pub machines: MachineSettings,
    /// How long a tombstone is kept.
    pub tombstones_kept: SignedDuration,
    /// How long an idempotency key is remembered.
    pub idempotency_kept: SignedDuration,
    /// How long audit records are kept.
    pub audit_kept: SignedDuration,
    /// How long status history is kept.
    pub history_kept: SignedDuration,
}

/// The services.
#[derive(Clone)]
pub struct Control {
    /// Clusters and node pools.
    pub resources: Resources,
    /// Reports of adapters.
    pub adapters: Adapters,
    /// The audit log.
    pub audit: Audit,
    /// Nodes.
    pub nodes: Nodes,
    /// Commands to nodes.
    pub commands: Commands,
    /// Machines that we buy and return.
    pub instances: Instances,
    /// Health policies.
    pub policies: Policies,
    /// The brakes on what we do by ourselves.
    pub safety: Safety,
    /// What was done so far.
    pub stats: Arc<Stats>,
    /// The time.
    pub clock: Clock,
    /// New ids.
    pub ids: Ids,
    /// What everything goes by.
    pub settings: Arc<Settings>,
    pub(crate) office: Arc<Office>,
    beats: Arc<Beats>,
}

/// Who does the work outside.
pub struct Outside {
    /// Clouds, by the name in `spec.provider`.
    pub clouds: BTreeMap<String, Arc<dyn Provider>>,
    /// Delivers events to adapters outside.
    pub notifier: Arc<dyn Notifier>,
    /// Workload systems that are told of nodes; none, if nobody wants to know.
    pub schedulers: Vec<Arc<dyn Scheduler>>,
    /// What is added by whoever embeds us.
    pub extensions: Extensions,
}

impl Control {
    /// Builds the services, and starts the loops as tasks. `holder` names this process among those
    /// that share the store.
    pub fn start(
        store: Store,
        settings: Settings,
        outside: Outside,
        clock: Clock,
        ids: Ids,
        holder: &str,
        tasks: &mut Tasks,
    ) -> Control {
        let settings = Arc::new(settings);
        let stats = Arc::new(Stats::default());
        let beats = Arc::new(Beats::default());
        let (notes, left) = loops::notes::queue();
        let systems: Vec<String> =
            outside.schedulers.iter().map(|system| key_of(&**system)).collect();
        let office = Arc::new(Office {
            systems,
            store,
            clock,
            ids: ids.clone(),
            settings: settings.clone(),
            stats: stats.clone(),
            notes,
            plane: RwLock::new(Arc::new(settings.nodes.clone())),
        });
        let resources = Resources { office: office.clone() };
        let adapters = Adapters { resources: resources.clone() };
        let Outside { clouds, notifier, schedulers, extensions } = outside;
        let clouds = Arc::new(clouds);
        let instances = Instances::new(office.clone(), clouds.clone());
        let parts = loops::machines::Parts {
            office: office.clone(),
            adapters: adapters.clone(),
            board: PulseBoard::default(),
            clouds: clouds.clone(),
            extensions: Arc::new(extensions),
            told: instances.board.clone(),
        };
        let hands = {
            let adapters = adapters.clone();
            move |fence| Hands {
                adapters: adapters.clone(),
                clouds: clouds.clone(),
                notifier: notifier.clone(),
                fence,
            }
        };
        beats.beat("sentinel", clock.now());
        let (o, b, h) = (office.clone(), beats.clone(), holder.to_owned());
        tasks.start("sentinel", loops::sentinel::run(hands, o, b, h));
        let (o, b, h) = (office.clone(), beats.clone(), holder.to_owned());
        tasks.start("retention", loops::retention::run(o, b, h));
        tasks.start("plane", loops::plane::run(office.clone(), beats.clone()));
        let audit = Audit { office: office.clone() };
        let board = PulseBoard::default();
        let book = Arc::new(PolicyBook::default());
        let nodes = Nodes { office: office.clone(), board: board.clone(), policies: book.clone() };
        let (o, b, h) = (office.clone(), beats.clone(), holder.to_owned());
        tasks.start("notes", loops::notes::run(o, board.clone(), left, b, h));
        let (o, b, h) = (office.clone(), beats.clone(), holder.to_owned());
        tasks.start("commands", loops::command::run(o, b, h));
        tasks.start("dispatch", loops::command::ring(office.clone(), board.clone(), beats.clone()));
        if !schedulers.is_empty() {
            let (o, b, h) = (office.clone(), beats.clone(), holder.to_owned());
            tasks.start("external", loops::external::run(o, schedulers.into(), b, h));
        }
        let lookout = Arc::new(loops::liveness::Lookout::new(None));
        let (o, p, l, b) = (office.clone(), board.clone(), lookout.clone(), beats.clone());
        tasks.start("liveness", loops::liveness::run(o, p, l, b, holder.to_owned()));
        tasks.start("remedy", loops::remedy::run(office.clone(), board, lookout, beats.clone()));
        let parts = loops::machines::Parts { board: nodes.board.clone(), ..parts };
        tasks.start("machines", loops::machines::run(parts, beats.clone(), holder.to_owned()));
        let commands = Commands::new(nodes.clone());
        let policies = Policies { office: office.clone(), book };
        let safety = Safety { office: office.clone() };
        Control {
            resources,
            adapters,
            audit,
            nodes,
            commands,
            instances,
            policies,
            safety,
            stats,
            clock,
            ids,
            settings,
            office,
            beats,
        }
    }

    /// Every loop ran when it last should have.
    ///
    /// # Errors
    /// Says which loop is late: only starting the process again can help.
    pub fn alive(&self) -> Result<(), String> {
        match self.beats.late(self.clock.now()) {
            None => Ok(()),
            Some(name) => Err(format!("the loop `{name}` has not run for a minute")),
        }
    }

    /// The store can be reached, so that changes can be made.
    ///
    /// # Errors
    /// Says why not; it may pass.
    pub fn ready(&self) -> Result<(), String> {
        match self.office.store.trouble() {
            None => Ok(()),
            Some(cause) => Err(format!("the store is out of reach: {cause}")),
        }
    }

    /// The last commit that reads here see.
    pub fn revision(&self) -> Revision {
        self.office.store.read(|view| view.revision())
    }
}
