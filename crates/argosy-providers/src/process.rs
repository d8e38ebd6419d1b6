//! Machines that are processes of this host: each is a real `argosy-agent`, with made-up GPUs or real ones.
//!
//! What a newcomer gets wrong: the processes are not ours to keep. They outlive us as machines outlive a
//! control plane, and whoever is started next finds them in their directory.

mod life;
mod room;

use crate::aside::aside;
use crate::boot::{AgentSource, Boot, BootError};
use crate::words::{nothing_to_make, unknown};
use argosy_control::clock::Clock;
use argosy_control::provider::{Ask, Done, Part, Provider, Refusal};
use argosy_core::gate::Doomed;
use argosy_core::instance::InstanceId;
use argosy_core::machine::{
    Abilities, Machine, MachineId, MachineState, Offer, Order, Purchase, Trouble,
};
use async_trait::async_trait;
use futures_util::future::join_all;
use jiff::SignedDuration;
use life::Process;
use room::{Bought, Room, Sight, Start};
use serde_json::Value;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tracing::{info, warn};
use uuid::Uuid;

/// Where processes come from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How an agent finds its server. Its program is a file of this host.
    pub boot: Boot,
    /// Where machines keep their files: a directory of our own.
    pub dir: PathBuf,
    /// What machines say of where they are.
    pub region: String,
    /// The zones of the region; none is a place without zones.
    pub zones: Vec<String>,
    /// What can be bought.
    pub types: Vec<MachineType>,
    /// How many processes there may be at once: this host has to carry them.
    pub max_processes: u32,
}

/// What a process can be bought as.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineType {
    /// What it is called.
    pub name: String,
    /// The agent's `--gpu`: `auto`, `none` or `fake:8xH100`.
    pub gpu: String,
    /// Virtual CPUs, as offered.
    pub cpus: u32,
    /// GPUs, as offered.
    pub gpus: u32,
    /// What it is said to cost, in US dollars.
    pub price_per_hour: Option<f64>,
}

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Of the agent.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// The agent is not a file here.
    #[error("agents of this host are started from a file, not from an address: name its path")]
    NotAFile,
    /// There is no agent.
    #[error("there is no agent at {0}")]
    NoAgent(PathBuf),
    /// Nothing can be bought.
    #[error("no machine type is named")]
    NoTypes,
    /// A type that cannot be.
    #[error("machine type {name}: {why}")]
    Type {
        /// Which.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The directory cannot be used.
    #[error("cannot use {path}")]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A provider whose machines are processes of this host.
///
/// Guarantees: one process for each token at most, wherever we are killed; a process that is not the one we
/// started is never signalled.
#[derive(Debug)]
pub struct Processes {
    settings: Settings,
    agent: PathBuf,
    clock: Clock,
    /// Held while a machine is made or booted, so that the count holds.
    making: tokio::sync::Mutex<()>,
    /// Waits for children to end, so that they do not stay as zombies. After our own end init does.
    reapers: Mutex<JoinSet<()>>,
    /// Where the next create stays for ever, for tests that drop it there.
    #[cfg(test)]
    halt: tests::Halt,
}

/// How long a process may take to end in order: an agent writes down what it could not tell.
const TERM_MAX: Duration = Duration::from_secs(10);
/// How long it may take after that to be no more: a killed process that waits for a disk ends when the disk answers,
/// which on a busy one takes many seconds. One that takes longer is stuck in the kernel.
const KILL_MAX: Duration = Duration::from_secs(30);
/// How often a process is looked at while it ends.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a machine is shown after it was gone: longer than anybody needs to notice.
const GONE_KEPT: SignedDuration = SignedDuration::from_hours(1);

/// What an agent finds in its environment, and nothing else: `ARGOSY_AGENT_…` of this process are ours.
const ENVIRONMENT: [&str; 4] = ["PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR"];

/// Between two steps of a create. Killed there, nothing may be lost or doubled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The room is made.
    Made,
    /// The lock is taken.
    Locked,
    /// The process runs, and nobody has written down which it is.
    Started,
    /// It is written down.
    Recorded,
}

impl Processes {
    /// Opens the directory, or makes it.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub fn new(settings: Settings, clock: Clock) -> Result<Self, SettingsError> {
        settings.boot.check()?;
        let AgentSource::File(agent) = &settings.boot.agent else {
            return Err(SettingsError::NotAFile);
        };
        let absolute = |path: &Path| {
            let path = path.to_owned();
            std::path::absolute(&path).map_err(|source| SettingsError::Directory { path, source })
        };
        let agent = absolute(agent)?;
        if !agent.is_file() {
            return Err(SettingsError::NoAgent(agent));
        }
        if settings.types.is_empty() {
            return Err(SettingsError::NoTypes);
        }
        for kind in &settings.types {
            check_type(kind)?;
        }
        // Processes are known by the path of their file: it must be the same wherever we are started from.
        let dir = absolute(&settings.dir)?;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.map_err(|source| SettingsError::Directory { path: dir.clone(), source })?;
        Ok(Self {
            agent,
            settings: Settings { dir, ..settings },
            clock,
            making: tokio::sync::Mutex::default(),
            reapers: Mutex::default(),
            #[cfg(test)]
            halt: tests::Halt::default(),
        })
    }

    fn room(&self, instance: &str) -> Room {
        Room::new(&self.settings.dir, instance)
    }

    /// The room of a machine that exists.
    async fn known(&self, id: &MachineId) -> Result<(Room, Bought), Trouble> {
        let none = || Trouble::NotFound(format!("there is no process {id}"));
        // The id becomes a path: only what can be an instance's is looked for.
        InstanceId::parse(id.as_str()).map_err(|_| none())?;
        let room = self.room(id.as_str());
        let looked = room.clone();
        let bought = aside(move || looked.bought()).await.map_err(unreadable)?;
        Ok((room, bought.ok_or_else(none)?))
    }

    fn check(&self, order: &Order) -> Result<&MachineType, Trouble> {
        let Settings { types, zones, region, .. } = &self.settings;
        let kind = types.iter().find(|kind| kind.name == order.machine_type);
        let kind = kind.ok_or_else(|| {
            let known = types.iter().map(|kind| kind.name.as_str());
            unknown("machineType", "machine type", &order.machine_type, known)
        })?;
        if order.region != *region {
            let known = std::iter::once(region.as_str());
            return Err(unknown("region", "region", &order.region, known));
        }
        if !order.zone.is_empty() && !zones.contains(&order.zone) {
            let known = zones.iter().map(String::as_str);
            return Err(unknown("zones", "zone", &order.zone, known));
        }
        if order.spot {
            let message = "processes of this host are not to be had as spot machines".to_owned();
            return Err(Trouble::Invalid { field: "spot".to_owned(), message });
        }
        Ok(kind)
    }

    /// How many more there may be.
    async fn left(&self) -> Result<u32, Trouble> {
        let dir = self.settings.dir.clone();
        let counted = aside(move || {
            let mut count = 0_u32;
            for (room, _) in Room::all(&dir)? {
                count += u32::from(!matches!(room.sight()?, Sight::Gone(_)));
            }
            Ok(count)
        });
        Ok(self.settings.max_processes.saturating_sub(counted.await.map_err(unreadable)?))
    }

    fn full(&self, available: u32) -> Trouble {
        let max = self.settings.max_processes;
        Trouble::Quota {
            resource: "processes".to_owned(),
            each: 1,
            available: available.into(),
            message: format!(
                "this host runs at most {max} machines as processes, and has room for {available} \
                 more; raise max_processes, or use another provider"
            ),
        }
    }

    fn show(&self, bought: &Bought, sight: Sight) -> Machine {
        Machine {
            id: MachineId::new(bought.instance.as_str()),
            name: bought.instance.to_string(),
            state: match sight {
                Sight::Up => MachineState::Running,
                Sight::Leaving => MachineState::Stopping,
                Sight::Down | Sight::Never => MachineState::Stopped,
                Sight::Gone(_) => MachineState::Gone,
            },
            tags: bought.tags.clone(),
            region: bought.order.region.clone(),
            zone: bought.order.zone.clone(),
            machine_type: bought.order.machine_type.clone(),
            spot: false,
            created_at: Some(bought.at),
            internal_ip: "127.0.0.1".to_owned(),
            external_ip: String::new(),
            notice: None,
        }
    }

    /// Starts the process of a room, unless it lives or is not to live any more.
    async fn start(&self, room: &Room, bought: &Bought) -> Result<(), Trouble> {
        let (prepared, purchase) = (room.clone(), bought.purchase());
        let gpu = self.settings.types.iter().find(|kind| kind.name == bought.order.machine_type);
        let gpu = gpu.map_or("auto", |kind| kind.gpu.as_str()).to_owned();
        let boot = self.settings.boot.clone();
        let start = aside(move || {
            let start = prepared.begin()?;
            if let Some(start) = &start {
                write_files(&prepared, &boot, &purchase, &gpu, start.boot)?;
            }
            Ok(start)
        });
        let Some(start) = start.await.map_err(undone)? else { return Ok(()) };
        self.reach(Step::Locked).await;
        let boot = start.boot;
        let child = self.spawn(room, bought, start).map_err(|cause| {
            let agent = self.agent.display();
            let message = format!("the agent {agent} cannot be started: {cause}");
            Trouble::Invalid { field: "agent".to_owned(), message }
        })?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        // Before it is reaped the pid is its own, also if it has ended already.
        let process = pid.and_then(Process::of);
        self.reap(child);
        self.reach(Step::Started).await;
        if let Some(process) = process {
            info!(instance = %bought.instance, pid = process.pid, boot, "a process was started");
            let recorded = room.clone();
            // It runs, and can be found without this.
            let written = aside(move || recorded.began(boot, process)).await;
            written.map_err(|cause| Trouble::Unsure(format!("it was started, and {cause}")))?;
        }
        self.reach(Step::Recorded).await;
        Ok(())
    }

    /// Starts a machine for the first time. What cannot be started leaves nothing.
    async fn launch(&self, room: &Room, bought: &Bought) -> Result<(), Trouble> {
        let Err(trouble) = self.start(room, bought).await else { return Ok(()) };
        if !matches!(trouble, Trouble::Invalid { .. }) {
            return Err(Trouble::Unsure(trouble.to_string()));
        }
        let never = room.clone();
        match aside(move || never.remove()).await {
            Ok(()) => Err(trouble),
            Err(cause) => {
                Err(Trouble::Unsure(format!("{trouble}; its directory is left: {cause}")))
            }
        }
    }

    fn spawn(&self, room: &Room, bought: &Bought, start: Start) -> io::Result<Child> {
        let args = self.settings.boot.agent_args(&bought.purchase(), &room.file("agent.json"));
        let mut command = Command::new(&self.agent);
        command.args(args).env_clear().current_dir(&self.settings.dir);
        for name in ENVIRONMENT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        // A group of its own: Ctrl-C at our terminal does not reach it.
        command.process_group(0).kill_on_drop(false);
        command.stdin(Stdio::from(start.lock));
        command.stdout(Stdio::from(start.console)).stderr(Stdio::from(start.also_console));
        command.spawn()
    }

    fn reap(&self, mut child: Child) {
        let mut reapers = self.reapers.lock().unwrap_or_else(PoisonError::into_inner);
        while reapers.try_join_next().is_some() {}
        reapers.spawn(async move { _ = child.wait().await });
    }

    /// Ends the process of a room; false if it does not end.
    async fn stop(&self, room: &Room) -> Result<bool, Trouble> {
        let process = |room: Room| aside(move || room.process());
        let Some(known) = process(room.clone()).await.map_err(unreadable)? else {
            return Ok(true);
        };
        known.terminate();
        if ends(&known, TERM_MAX).await {
            return Ok(true);
        }
        warn!(pid = known.pid, "a process did not end in order and is killed");
        known.kill();
        Ok(ends(&known, KILL_MAX).await)
    }

    /// Ends every process as a host that is switched off does: the machines stay, and `begin_again` boots them.
    ///
    /// For whoever wants nothing to be left running; a control plane that goes does not take its machines along.
    pub async fn rest(&self) {
        let _making = self.making.lock().await;
        let ends = self.rooms(Sight::Up).await.into_iter().map(|(room, bought)| async move {
            match self.stop(&room).await {
                Ok(true) => {}
                Ok(false) => warn!(instance = %bought.instance, "a process does not end"),
                Err(trouble) => warn!(instance = %bought.instance, %trouble, "a process was left"),
            }
        });
        join_all(ends).await;
    }

    /// Boots every machine whose process ended and that nobody returned.
    pub async fn begin_again(&self) {
        let _making = self.making.lock().await;
        for (room, bought) in self.rooms(Sight::Down).await {
            if let Err(trouble) = self.start(&room, &bought).await {
                warn!(instance = %bought.instance, %trouble, "a process does not begin again");
            }
        }
    }

    /// The rooms whose machine is seen so.
    async fn rooms(&self, wanted: Sight) -> Vec<(Room, Bought)> {
        let dir = self.settings.dir.clone();
        let rooms = aside(move || {
            let mut rooms = Vec::new();
            for (room, bought) in Room::all(&dir)? {
                if room.sight()? == wanted {
                    rooms.push((room, bought));
                }
            }
            Ok(rooms)
        });
        rooms.await.unwrap_or_else(|cause| {
            warn!(%cause, "the processes of this host cannot be listed");
            Vec::new()
        })
    }

    #[cfg(not(test))]
    async fn reach(&self, step: Step) {
        let _ = step;
    }

    #[cfg(test)]
    async fn reach(&self, step: Step) {
        self.halt.reach(step).await;
    }
}

#[async_trait]
impl Provider for Processes {
    fn kind(&self) -> &str {
        "process"
    }

    fn abilities(&self) -> Abilities {
        let list_lag = SignedDuration::ZERO;
        Abilities { tokens: true, tags: true, reboot: true, console: true, spot: false, list_lag }
    }

    async fn offers(&self, region: &str) -> Result<Vec<Offer>, Trouble> {
        if region != self.settings.region {
            return Ok(Vec::new());
        }
        let available = 0 < self.left().await?;
        let offer = |kind: &MachineType| Offer {
            machine_type: kind.name.clone(),
            region: region.to_owned(),
            zones: self.settings.zones.clone(),
            cpus: kind.cpus,
            gpus: kind.gpus,
            price_per_hour: kind.price_per_hour,
            spot_price_per_hour: None,
            available,
        };
        Ok(self.settings.types.iter().map(offer).collect())
    }

    async fn room(&self, order: &Order, count: u32) -> Result<(), Trouble> {
        self.check(order)?;
        let left = self.left().await?;
        if left < count { Err(self.full(left)) } else { Ok(()) }
    }

    async fn create(&self, purchase: &Purchase) -> Result<Machine, Trouble> {
        let _making = self.making.lock().await;
        let room = Room::new(&self.settings.dir, purchase.instance.as_str());
        let looked = room.clone();
        let bought = match aside(move || looked.bought()).await.map_err(undone)? {
            Some(bought) if bought.token == purchase.token => bought,
            Some(_) => {
                let instance = &purchase.instance;
                let message = format!("{instance} was bought before, with another token");
                return Err(Trouble::Invalid { field: "name".to_owned(), message });
            }
            None => {
                self.check(&purchase.order)?;
                if self.left().await? == 0 {
                    return Err(self.full(0));
                }
                let bought = Bought::new(purchase, self.clock.now());
                let (made, kept) = (room.clone(), bought.clone());
                aside(move || made.make(&kept)).await.map_err(undone)?;
                bought
            }
        };
        self.reach(Step::Made).await;
        // From here on there is a machine, which can be found, booted and returned.
        let unsure = |trouble: Trouble| Trouble::Unsure(trouble.to_string());
        if look(&room).await.map_err(unsure)? == Sight::Never {
            self.launch(&room, &bought).await?;
        }
        let sight = look(&room).await.map_err(unsure)?;
        Ok(self.show(&bought, sight))
    }

    async fn find(&self, purchase: &Purchase) -> Result<Option<Machine>, Trouble> {
        let room = self.room(purchase.instance.as_str());
        let looked = room.clone();
        let bought = aside(move || looked.bought()).await.map_err(unreadable)?;
        match bought.filter(|bought| bought.token == purchase.token) {
            None => Ok(None),
            // What was only meant is no machine, and a repeated create makes it one.
            Some(bought) => match look(&room).await? {
                Sight::Never => Ok(None),
                sight @ (Sight::Up | Sight::Leaving | Sight::Down | Sight::Gone(_)) => {
                    Ok(Some(self.show(&bought, sight)))
                }
            },
        }
    }

    async fn list(&self) -> Result<Vec<Machine>, Trouble> {
        let (dir, now) = (self.settings.dir.clone(), self.clock.now());
        // What was only meant is swept out while nobody makes anything.
        let unmaking = self.making.try_lock();
        let sweeps = unmaking.is_ok();
        let listed = aside(move || {
            let mut seen = Vec::new();
            for (room, bought) in Room::all(&dir)? {
                let sight = room.sight()?;
                match sight {
                    Sight::Gone(at) if GONE_KEPT < now.duration_since(at) => room.remove()?,
                    Sight::Never => {
                        if sweeps && GONE_KEPT < now.duration_since(bought.at) {
                            room.remove()?;
                        }
                    }
                    Sight::Up | Sight::Leaving | Sight::Down | Sight::Gone(_) => {
                        // A console that cannot be cut is no reason to lose sight of machines.
                        if let Err(cause) = room.trim() {
                            warn!(instance = %bought.instance, %cause, "a console is too long");
                        }
                        seen.push((bought, sight));
                    }
                }
            }
            Ok(seen)
        });
        let listed = listed.await.map_err(unreadable)?;
        Ok(listed.iter().map(|(bought, sight)| self.show(bought, *sight)).collect())
    }

    async fn terminate(&self, doomed: &Doomed) -> Result<(), Trouble> {
        let (room, bought) = self.known(doomed.machine()).await?;
        if matches!(look(&room).await?, Sight::Gone(_)) {
            return Ok(());
        }
        let leaving = room.clone();
        aside(move || leaving.leave()).await.map_err(unreadable)?;
        let stuck = || Trouble::Unsure(format!("{} does not end", bought.instance));
        if !self.stop(&room).await? {
            return Err(stuck());
        }
        let (ended, now) = (room.clone(), self.clock.now());
        match aside(move || ended.gone(now)).await.map_err(unreadable)? {
            true => Ok(()),
            false => Err(stuck()),
        }
    }

    async fn reboot(&self, machine: &MachineId) -> Result<(), Trouble> {
        let _making = self.making.lock().await;
        let (room, bought) = self.known(machine).await?;
        match look(&room).await? {
            Sight::Up | Sight::Down => {}
            Sight::Never | Sight::Leaving | Sight::Gone(_) => {
                return Err(Trouble::NotFound(format!("there is no process {machine} any more")));
            }
        }
        if !self.stop(&room).await? {
            return Err(Trouble::Unsure(format!("{machine} does not end")));
        }
        self.start(&room, &bought).await
    }

    async fn console(&self, machine: &MachineId) -> Result<String, Trouble> {
        let (room, _) = self.known(machine).await?;
        aside(move || room.console()).await.map_err(unreadable)
    }

    async fn preflight(&self, _ask: &Ask) -> Result<Done, Refusal> {
        Ok(nothing_to_make("Processes of this host need nothing around them"))
    }

    async fn ensure(&self, part: Part, _ask: &Ask) -> Result<Done, Refusal> {
        Ok(nothing_to_make(&format!("Processes of this host have no {}", named(part))))
    }

    async fn remove(&self, part: Part, _ask: &Ask) -> Result<Done, Refusal> {
        Ok(nothing_to_make(&format!("Processes of this host have no {}", named(part))))
    }
}

fn named(part: Part) -> &'static str {
    match part {
        Part::Dns => "DNS records",
        Part::Infrastructure => "network or control plane of their own",
    }
}

fn check_type(kind: &MachineType) -> Result<(), SettingsError> {
    let bad = |why: &str| SettingsError::Type { name: kind.name.clone(), why: why.to_owned() };
    let fake = kind.gpu.strip_prefix("fake:").is_some_and(|spec| !spec.is_empty());
    if !fake && !matches!(kind.gpu.as_str(), "auto" | "none") {
        return Err(bad("its gpu must be auto, none or fake:8xH100"));
    }
    if kind.price_per_hour.is_some_and(|price| !price.is_finite() || price < 0.0) {
        return Err(bad("its price must be a number of dollars"));
    }
    Ok(())
}

/// Writes what the agent reads.
fn write_files(
    room: &Room,
    boot: &Boot,
    purchase: &Purchase,
    gpu: &str,
    count: u32,
) -> io::Result<()> {
    let mut config = boot.identity(purchase);
    let mut say = |key: &str, value: String| _ = config.insert(key.to_owned(), value.into());
    say("gpu", gpu.to_owned());
    say("data_dir", room.file("data").display().to_string());
    // Another at each start, as a machine has: what was under way before is over.
    let boot_id = Uuid::new_v5(&purchase.token, &count.to_be_bytes());
    say("boot_id", boot_id.to_string());
    if let Some(token) = &boot.token {
        room.put("token", token.expose())?;
        say("token_file", room.file("token").display().to_string());
    }
    if let Some(pem) = &boot.ca_pem {
        room.put("ca.pem", pem)?;
        say("ca_file", room.file("ca.pem").display().to_string());
    }
    room.put("agent.json", &format!("{:#}", Value::Object(config)))
}

async fn look(room: &Room) -> Result<Sight, Trouble> {
    let room = room.clone();
    aside(move || room.sight()).await.map_err(unreadable)
}

/// Whether a process ends in time.
async fn ends(process: &Process, within: Duration) -> bool {
    let ended = async {
        while process.lives() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(within, ended).await.is_ok()
}

fn unreadable(cause: io::Error) -> Trouble {
    Trouble::Unreachable(format!("the directory of processes cannot be read: {cause}"))
}

/// Nothing was begun.
fn undone(cause: io::Error) -> Trouble {
    Trouble::Unreachable(format!("the directory of processes cannot be used: {cause}"))
}

#[cfg(test)]
pub(crate) mod tests;
