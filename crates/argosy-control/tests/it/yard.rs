//! The machines of the scripted cloud, which lies when it is told to, and robots that are their agents.

use crate::node::world::{agent, registration, results};
use crate::world::{Cloud, World};
use argosy_control::command::Wire;
use argosy_control::node::Heartbeat;
use argosy_control::pulse::{GpuSample, Sample, Via};
use argosy_control::{Control, Error};
use argosy_core::command::{Ack, CommandKind, Outcome};
use argosy_core::gate::Doomed;
use argosy_core::instance::{Instance, State};
use argosy_core::machine::{
    Abilities, Machine, MachineId, MachineState, Notice, Offer, Order, Purchase, Tags, Trouble,
};
use argosy_core::node::Node;
use argosy_store::Store;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// How the cloud lies, or fails, until it is told to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lies {
    /// Makes machines, and says nothing: the answer is lost.
    pub(crate) lose_creates: u32,
    /// Answers this to creates, and makes nothing.
    pub(crate) refuse: Option<Trouble>,
    /// Only for this number of the pool.
    pub(crate) refuse_number: Option<u32>,
    /// Creates that hang for ever after the machine was made.
    pub(crate) hang_after_create: bool,
    /// Has no tokens: a repeated create makes another machine.
    pub(crate) no_tokens: bool,
    /// Machines are not shown before they are so old.
    pub(crate) lag: SignedDuration,
    /// Listings show nothing, or only so many.
    pub(crate) show_only: Option<usize>,
    /// Says that it ended a machine, and does not.
    pub(crate) keep_alive: bool,
    /// Answers this to everything.
    pub(crate) all: Option<Trouble>,
    /// `room` answers this.
    pub(crate) room: Option<Trouble>,
    /// Machines never boot.
    pub(crate) no_boot: bool,
    /// Neither listings nor searches show what was made since this is so, for as long as it is.
    pub(crate) hide: bool,
    /// Says of machines that are to be ended that there are none, and leaves them.
    pub(crate) deny: bool,
    /// Reboots mend nothing.
    pub(crate) reboot_in_vain: bool,
    /// There are no more machines than this.
    pub(crate) capacity: Option<usize>,
    /// There are none in this zone.
    pub(crate) empty_zone: Option<&'static str>,
    /// The price list is away.
    pub(crate) no_prices: bool,
    /// The GPUs of the next machines are those of this one.
    pub(crate) used_gpus_of: Option<String>,
    /// How busy new machines are, in percent.
    pub(crate) load: f32,
}

#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) machine: Machine,
    pub(crate) token: String,
    pub(crate) at: Timestamp,
    /// It has power.
    pub(crate) on: bool,
    /// What its health checks say.
    pub(crate) health: &'static str,
    pub(crate) boots: u32,
    /// The GPUs it has are those of this machine, where they are not its own.
    pub(crate) gpus_of: Option<String>,
    /// The pool and the labels that its agent was started with.
    pub(crate) pool: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    /// How busy its GPUs are, in percent.
    pub(crate) load: f32,
    /// Whether what runs on it ends when it is drained.
    pub(crate) drains: bool,
    /// How long it takes to be cordoned.
    pub(crate) cordons_in: SignedDuration,
    /// Whether its GPUs pass a test.
    pub(crate) passes: bool,
    /// Nobody is shown it.
    pub(crate) hidden: bool,
    /// Its agent beats and reports, and fetches no command.
    pub(crate) deaf: bool,
}

impl Made {
    fn new(machine: Machine, now: Timestamp) -> Self {
        Self {
            machine,
            token: String::new(),
            at: now,
            on: false,
            health: WELL,
            boots: 1,
            gpus_of: None,
            pool: None,
            labels: BTreeMap::new(),
            load: 0.0,
            drains: true,
            cordons_in: SignedDuration::ZERO,
            passes: true,
            hidden: false,
            deaf: false,
        }
    }
}

/// What the checks of a machine say that is well, and of one that is not.
pub(crate) const WELL: &str = "boot=H nvml=H xid=H";
pub(crate) const SICK: &str = "boot=H nvml=U xid=H";

/// The machines.
#[derive(Default)]
pub(crate) struct Yard {
    pub(crate) made: BTreeMap<String, Made>,
    pub(crate) lies: Lies,
    pub(crate) next: u64,
    /// `create a`, `terminate m-1`: every call that got through.
    pub(crate) log: Vec<String>,
}

pub(crate) type Shared = Arc<Mutex<Yard>>;

impl Yard {
    /// Machines that really exist.
    pub(crate) fn living(&self) -> Vec<&Made> {
        self.made.values().filter(|made| made.machine.state != MachineState::Gone).collect()
    }

    pub(crate) fn count(&self, call: &str) -> usize {
        self.log.iter().filter(|made| made.starts_with(call)).count()
    }

    fn find(&self, purchase: &Purchase) -> Option<&Made> {
        let token = purchase.token.to_string();
        self.living().into_iter().find(|made| made.token == token)
    }

    fn make(&mut self, purchase: &Purchase, now: Timestamp) -> Machine {
        let same = self.find(purchase).map(|made| made.machine.clone());
        if let Some(machine) = same.filter(|_| !self.lies.no_tokens) {
            return machine;
        }
        self.next += 1;
        let id = format!("m-{}", self.next);
        let machine = Machine {
            id: MachineId::new(id.clone()),
            name: purchase.instance.to_string(),
            state: MachineState::Running,
            tags: purchase.tags.clone(),
            region: purchase.order.region.clone(),
            zone: purchase.order.zone.clone(),
            machine_type: purchase.order.machine_type.clone(),
            spot: purchase.order.spot,
            created_at: Some(now),
            internal_ip: String::new(),
            external_ip: String::new(),
            notice: None,
        };
        let made = Made {
            token: purchase.token.to_string(),
            on: !self.lies.no_boot,
            gpus_of: self.lies.used_gpus_of.clone(),
            pool: Some(purchase.pool.clone()),
            labels: purchase.labels.clone(),
            load: self.lies.load,
            hidden: self.lies.hide,
            ..Made::new(machine.clone(), now)
        };
        self.made.insert(id, made);
        machine
    }
}

impl Cloud {
    /// Changes how the cloud lies.
    pub(crate) fn lie(&self, change: impl FnOnce(&mut Lies)) {
        change(&mut self.yard.lock().unwrap().lies);
    }

    /// The truth about one machine, by its name.
    pub(crate) fn made(&self, name: &str, change: impl FnOnce(&mut Made)) {
        let mut yard = self.yard.lock().unwrap();
        let made = yard.made.values_mut().find(|made| made.machine.name == name).unwrap();
        change(made);
    }

    /// The names of the machines that really exist.
    pub(crate) fn living(&self) -> Vec<String> {
        let yard = self.yard.lock().unwrap();
        yard.living().iter().map(|made| made.machine.name.clone()).collect()
    }

    /// Machines that nobody bought here, with these tags.
    pub(crate) fn stranger(&self, name: &str, tags: Tags, now: Timestamp) {
        let mut yard = self.yard.lock().unwrap();
        yard.next += 1;
        let id = format!("m-{}", yard.next);
        let machine = Machine {
            id: MachineId::new(id.clone()),
            name: name.to_owned(),
            state: MachineState::Running,
            tags,
            region: "us-east1".to_owned(),
            zone: "us-east1-b".to_owned(),
            machine_type: "a3-highgpu-8g".to_owned(),
            spot: false,
            created_at: Some(now),
            internal_ip: String::new(),
            external_ip: String::new(),
            notice: None,
        };
        yard.made.insert(id, Made::new(machine, now));
    }

    /// Changes every machine that lives.
    pub(crate) fn each(&self, change: impl FnMut(&mut Made)) {
        let mut yard = self.yard.lock().unwrap();
        let lives = |made: &&mut Made| made.machine.state != MachineState::Gone;
        yard.made.values_mut().filter(lives).for_each(change);
    }

    /// How often something was asked for: `create`, `terminate m-1`.
    pub(crate) fn asked_for(&self, call: &str) -> usize {
        self.yard.lock().unwrap().count(call)
    }

    pub(crate) fn notice(&self, name: &str, notice: Notice) {
        self.made(name, |made| made.machine.notice = Some(notice));
    }

    fn heard(&self, what: String) -> Result<(), Trouble> {
        let mut yard = self.yard.lock().unwrap();
        yard.log.push(what);
        yard.lies.all.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn machine_abilities(&self) -> Abilities {
        let yard = self.yard.lock().unwrap();
        Abilities {
            tokens: !yard.lies.no_tokens,
            tags: true,
            reboot: true,
            console: true,
            spot: true,
            list_lag: yard.lies.lag,
        }
    }

    pub(crate) fn machine_offers(&self, region: &str) -> Result<Vec<Offer>, Trouble> {
        let priced = !self.yard.lock().unwrap().lies.no_prices;
        let offer = |machine_type: &str, cpus, gpus, price: f64| Offer {
            machine_type: machine_type.to_owned(),
            region: region.to_owned(),
            zones: ["b", "c", "d"].map(|zone| format!("{region}-{zone}")).to_vec(),
            cpus,
            gpus,
            price_per_hour: priced.then_some(price),
            spot_price_per_hour: priced.then_some(price / 4.0),
            available: true,
        };
        Ok(vec![
            offer("n1-standard-4", 4, 0, 0.25),
            offer("a3-highgpu-8g", 208, 8, 80.0),
            offer("m5.xlarge", 4, 0, 0.5),
        ])
    }

    pub(crate) fn machine_room(&self, _: &Order, _: u32) -> Result<(), Trouble> {
        self.yard.lock().unwrap().lies.room.clone().map_or(Ok(()), Err)
    }

    pub(crate) async fn machine_create(
        &self,
        purchase: &Purchase,
        now: Timestamp,
    ) -> Result<Machine, Trouble> {
        self.heard(format!("create {}", purchase.instance))?;
        let (machine, lost, hang) = {
            let mut yard = self.yard.lock().unwrap();
            let lies = yard.lies.clone();
            let meant = lies.refuse_number.is_none_or(|number| number == purchase.number);
            if let Some(trouble) = lies.refuse.filter(|_| meant) {
                return Err(trouble);
            }
            let zone = &purchase.order.zone;
            let full = lies.capacity.is_some_and(|most| most <= yard.living().len())
                && yard.find(purchase).is_none();
            if full || lies.empty_zone.is_some_and(|empty| empty == zone) {
                return Err(Trouble::Capacity {
                    code: "ZONE_RESOURCE_POOL_EXHAUSTED".to_owned(),
                    message: format!("no more machines in {zone}"),
                });
            }
            let machine = yard.make(purchase, now);
            let lost = 0 < yard.lies.lose_creates;
            yard.lies.lose_creates = yard.lies.lose_creates.saturating_sub(1);
            (machine, lost, lies.hang_after_create)
        };
        if hang {
            return std::future::pending().await;
        }
        if lost { Err(Trouble::Unsure("the answer was lost".to_owned())) } else { Ok(machine) }
    }

    pub(crate) fn machine_find(
        &self,
        purchase: &Purchase,
        now: Timestamp,
    ) -> Result<Option<Machine>, Trouble> {
        self.heard(format!("find {}", purchase.instance))?;
        let yard = self.yard.lock().unwrap();
        let lag = yard.lies.lag;
        let token = purchase.token.to_string();
        let found = yard.made.values().find(|made| made.token == token);
        let found =
            found.filter(|made| lag <= now.duration_since(made.at)).filter(|made| !made.hidden);
        Ok(found.map(|made| made.machine.clone()))
    }

    pub(crate) fn machine_list(&self, now: Timestamp) -> Result<Vec<Machine>, Trouble> {
        self.heard("list".to_owned())?;
        let yard = self.yard.lock().unwrap();
        let old = |made: &&Made| yard.lies.lag <= now.duration_since(made.at) && !made.hidden;
        let shown = yard.made.values().filter(old).map(|made| made.machine.clone());
        Ok(shown.take(yard.lies.show_only.unwrap_or(usize::MAX)).collect())
    }

    pub(crate) fn machine_terminate(&self, doomed: &Doomed) -> Result<(), Trouble> {
        self.heard(format!("terminate {}", doomed.machine()))?;
        let mut yard = self.yard.lock().unwrap();
        let (keep_alive, deny) = (yard.lies.keep_alive, yard.lies.deny);
        let Some(made) = yard.made.get_mut(doomed.machine().as_str()) else {
            return Err(Trouble::NotFound(format!("no machine {}", doomed.machine())));
        };
        if deny {
            return Err(Trouble::NotFound(format!("no machine {}", doomed.machine())));
        }
        if !keep_alive {
            made.machine.state = MachineState::Gone;
            made.on = false;
        }
        Ok(())
    }

    pub(crate) fn machine_reboot(&self, machine: &MachineId) -> Result<(), Trouble> {
        self.heard(format!("reboot {machine}"))?;
        let mut yard = self.yard.lock().unwrap();
        let in_vain = yard.lies.reboot_in_vain;
        if let Some(made) = yard.made.get_mut(machine.as_str()) {
            made.boots += 1;
            if !in_vain {
                made.health = WELL;
            }
        }
        Ok(())
    }
}

/// Agents of all machines of this control plane that have power: they register, beat, report and obey.
pub(crate) async fn robots(
    cloud: Arc<Cloud>,
    control: Control,
    store: Store,
) -> Result<(), &'static str> {
    let mut seen: BTreeMap<String, (u32, &'static str)> = BTreeMap::new();
    let mut changes = store.subscribe();
    let (mut beaten, mut news) = (None, true);
    loop {
        let ours = store.read(|view| view.installation().map(|found| found.value.id));
        let machines: Vec<Made> = {
            let yard = cloud.yard.lock().unwrap();
            let on = |made: &&Made| made.on && made.machine.tags.installation == ours;
            yard.living().into_iter().filter(on).cloned().collect()
        };
        let names: BTreeSet<String> =
            machines.iter().map(|made| made.machine.name.clone()).collect();
        seen.retain(|name, _| names.contains(name));
        let now = control.clock.now();
        let beat = beaten.is_none_or(|at| BEAT <= now.duration_since(at));
        if beat {
            beaten = Some(now);
        }
        // Commands come with commits; to ask for them all the time costs a test its patience.
        let fetch = std::mem::take(&mut news) || beat;
        for made in &machines {
            robot(&control, made, &mut seen, Turn { beat, fetch }).await;
        }
        let after = |time| control.clock.now().checked_add(time).unwrap();
        control.clock.sleep_until(after(STEP)).await;
        tokio::select! {
            changed = changes.changed() => news = changed.is_ok(),
            () = control.clock.sleep_until(after(REST)) => {}
        }
    }
}

/// How often agents beat.
const BEAT: SignedDuration = SignedDuration::from_secs(10);
/// How long they take for whatever they do, and how long they rest while nothing is committed.
const STEP: SignedDuration = SignedDuration::from_millis(300);
const REST: SignedDuration = SignedDuration::from_secs(2);

/// What it is time for.
#[derive(Clone, Copy)]
struct Turn {
    beat: bool,
    fetch: bool,
}

async fn robot(
    control: &Control,
    made: &Made,
    seen: &mut BTreeMap<String, (u32, &'static str)>,
    turn: Turn,
) {
    let name = made.machine.name.as_str();
    let caller = agent(name);
    let known = seen.get(name).copied();
    if known.map(|(boots, _)| boots) != Some(made.boots) {
        let mut said = registration(name);
        said.place.zone = made.machine.zone.as_str().into();
        said.machine.boot_id = format!("boot-{}", made.boots);
        said.machine.internal_ip.clone_from(&made.machine.internal_ip);
        said.pool.clone_from(&made.pool);
        said.labels.clone_from(&made.labels);
        if let Some(other) = &made.gpus_of {
            said.gpus = registration(other).gpus;
        }
        if control.nodes.register(&caller, said).await.is_err() {
            return;
        }
    }
    // What is no news is said in each round all the same, as agents do.
    if turn.beat || known != Some((made.boots, made.health)) {
        let report = results(made.health);
        if control.nodes.report(&caller, name, report).await.is_err() {
            return;
        }
        seen.insert(name.to_owned(), (made.boots, made.health));
    }
    if turn.beat {
        let utilization = made.load.is_finite().then_some(made.load);
        let gpu = |index| GpuSample { index, utilization, ..GpuSample::default() };
        let sample = Sample { gpus: (0..8).map(gpu).collect(), ..Sample::default() };
        let said = Heartbeat { node_time: None, sample: Some(sample) };
        // One that nobody knows any more registers again, as agents do.
        if let Err(Error::NodeNotFound(_)) = control.nodes.heartbeat(&caller, name, Via::Call, said)
        {
            seen.remove(name);
            return;
        }
    }
    if !turn.fetch || made.deaf {
        return;
    }
    let told = control.commands.fetch(&caller, name, Wire::Argosy).await.unwrap_or_default();
    for command in told {
        let outcome = match command.kind {
            CommandKind::Drain if made.drains => Outcome::Drained,
            CommandKind::Drain => continue,
            CommandKind::Cordon
            | CommandKind::RunDiagnostic
            | CommandKind::Terminate
            | CommandKind::Uncordon => Outcome::Completed,
        };
        if command.kind == CommandKind::Cordon && made.cordons_in.is_positive() {
            let done_at = control.clock.now().checked_add(made.cordons_in).unwrap();
            control.clock.sleep_until(done_at).await;
        }
        let tested = command.kind == CommandKind::RunDiagnostic;
        let result = tested.then(|| json!({"passed": made.passes}));
        let done = Ack { outcome: Some(outcome), progress: None, message: String::new(), result };
        let _ = control.commands.acknowledge(&caller, name, command.id, done).await;
    }
}

impl World {
    /// Every record of a machine.
    pub(crate) fn instances(&self) -> Vec<Arc<Instance>> {
        self.store.read(|view| view.instances().map(|record| record.value.clone()).collect())
    }

    /// Those that are not over.
    pub(crate) fn current(&self) -> Vec<Arc<Instance>> {
        self.instances().into_iter().filter(|record| !record.state.is_over()).collect()
    }

    /// `Running Running Failed`: their states, in order of their ids.
    pub(crate) fn states(&self) -> String {
        let words: Vec<&str> =
            self.instances().iter().map(|record| record.state.as_str()).collect();
        words.join(" ")
    }

    pub(crate) fn running(&self) -> usize {
        let running = |record: &&Arc<Instance>| matches!(record.state, State::Running { .. });
        self.current().iter().filter(running).count()
    }

    pub(crate) fn try_node(&self, id: &str) -> Option<Arc<Node>> {
        self.store.read(|view| view.node(id).map(|node| node.value.clone()))
    }
}
