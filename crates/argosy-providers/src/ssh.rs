//! Machines that exist already, entered by SSH: to buy one is to claim it, and to return it is to leave it as
//! it was.
//!
//! A claim lies on the host, so that two control planes never share one. Hosts do their part themselves: what
//! was sent whole is finished or undone there, whatever becomes of us or of the line.
//!
//! What a newcomer gets wrong: a host that does not answer is not free and not gone. It has the claim that it
//! had when it last answered; one that never did is left out and never used, and holds up nobody else.

mod ask;
mod claim;
mod line;
mod memory;
mod script;
mod settings;
mod survey;

use crate::aside::aside;
use crate::boot::{Layout, Sha256};
use crate::words::{nothing_to_make, unknown};
use argosy_control::clock::Clock;
use argosy_control::provider::{Ask, Done, Part, Provider, Refusal};
use argosy_core::gate::Doomed;
use argosy_core::instance::InstanceId;
use argosy_core::machine::{
    Abilities, Machine, MachineId, MachineState, Offer, Order, Purchase, Trouble,
};
use ask::Answer;
use async_trait::async_trait;
use claim::{FileMark, Tried};
use jiff::{SignedDuration, Timestamp};
use line::{As, Caller, Door, Said, Silence, last_line};
use memory::{Memory, Remembered};
use script::code;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use survey::{Claim, Tenancy, parts};
use tokio::sync::Semaphore;
use tracing::{info, warn};
use uuid::Uuid;

pub use settings::{Host, Settings, SettingsError};

/// How many hosts are asked at once: each is a process here.
const CALLS_MAX: usize = 40;
/// How long a question to a host may take, the connection included.
const ASK_MAX: Duration = Duration::from_secs(20);
/// How long all questions of a listing may wait for their turn. Hundreds of dead hosts take ten seconds each.
const TURN_MAX: Duration = Duration::from_secs(90);
/// How long a release may take: a unit has twenty seconds to stop.
const RELEASE_MAX: Duration = Duration::from_secs(90);
/// How many hosts one create tries before it says that there are none: each may take minutes.
const TRIES_MAX: usize = 3;

/// A provider of hosts that exist already.
///
/// Guarantees: a host is claimed by one instance at most, of all control planes; a token has one host at most;
/// a host whose key is not known is never spoken to.
#[derive(Debug)]
pub struct Hosts {
    settings: Settings,
    layout: Layout,
    caller: Caller,
    memory: Memory,
    clock: Clock,
    calls: Semaphore,
    desk: Mutex<Desk>,
}

/// What is under way, and what was lately.
#[derive(Debug, Default)]
struct Desk {
    /// Tokens that are being created.
    tokens: HashSet<Uuid>,
    /// Hosts that somebody is about to claim.
    reserved: HashSet<String>,
    /// When a host last failed to take an agent: others are tried first.
    failed: HashMap<String, Timestamp>,
    /// Whether a host answered when it was last asked.
    answered: HashMap<String, bool>,
    /// The checksum of the agent's file, as it was.
    agent: Option<(FileMark, Sha256)>,
}

impl Hosts {
    /// Checks the settings. No host is asked yet.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(settings: Settings, clock: Clock) -> Result<Self, SettingsError> {
        settings.check()?;
        let memory = Memory::open(&settings.state).map_err(|source| {
            let path = settings.state.clone();
            SettingsError::File { path, source }
        })?;
        let caller = Caller {
            ssh: settings.ssh.clone(),
            config: settings.ssh_config.clone(),
            key_file: settings.key_file.clone(),
            known_hosts: settings.known_hosts.clone(),
            sockets: sockets(),
            sudo: settings.sudo,
        };
        Ok(Self {
            layout: Layout::below(&settings.root),
            settings,
            caller,
            memory,
            clock,
            calls: Semaphore::new(CALLS_MAX),
            desk: Mutex::default(),
        })
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // Sets and dates: each change is whole.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hosts that are what is ordered.
    fn fitting(&self, order: &Order) -> Result<Vec<&Host>, Trouble> {
        let Settings { hosts, region, .. } = &self.settings;
        if order.region != *region {
            let known = std::iter::once(region.as_str());
            return Err(unknown("region", "region", &order.region, known));
        }
        let typed: Vec<&Host> =
            hosts.iter().filter(|host| host.machine_type == order.machine_type).collect();
        if typed.is_empty() {
            let known = hosts.iter().map(|host| host.machine_type.as_str());
            return Err(unknown("machineType", "machine type", &order.machine_type, known));
        }
        let there = |host: &&Host| order.zone.is_empty() || host.zone == order.zone;
        let fitting: Vec<&Host> = typed.iter().copied().filter(there).collect();
        if fitting.is_empty() {
            let known = typed.iter().map(|host| host.zone.as_str()).filter(|zone| !zone.is_empty());
            return Err(unknown("zones", "zone", &order.zone, known));
        }
        if order.spot {
            let message = "hosts of our own are not to be had as spot machines".to_owned();
            return Err(Trouble::Invalid { field: "spot".to_owned(), message });
        }
        Ok(fitting)
    }

    /// The trouble with one host, of a call that changed nothing.
    fn silent(&self, host: &Host, silence: &Silence) -> Trouble {
        silence.of_reading(&host.name, &self.settings.known_hosts)
    }

    /// The trouble with one host, of a call that may have changed something. A host that alone does not let us
    /// in is no reason to give up on all.
    fn broken(&self, host: &Host, silence: &Silence) -> Trouble {
        let trouble = silence.of_change(&host.name, &self.settings.known_hosts);
        if let Trouble::Credentials(message) = &trouble
            && self.others_answer(host)
        {
            let permission = format!("ssh to {}", host.name);
            return Trouble::Denied { permission, message: message.clone() };
        }
        trouble
    }

    fn others_answer(&self, host: &Host) -> bool {
        self.desk().answered.iter().any(|(name, answered)| *answered && *name != host.name)
    }

    fn show(&self, host: &Host, claim: &Claim, state: MachineState) -> Machine {
        let mut machine = survey::machine(&host.name, claim, state);
        machine.region = self.settings.region.clone();
        machine.zone = host.zone.clone();
        match host.address.parse::<IpAddr>() {
            Ok(ip) if is_internal(ip) => machine.internal_ip = host.address.clone(),
            Ok(_) => machine.external_ip = host.address.clone(),
            Err(_) => {}
        }
        machine
    }

    async fn answered(&self, host: &Host, tenancy: Option<Tenancy>) -> Result<(), Trouble> {
        let (memory, name) = (self.memory.clone(), host.name.clone());
        let noted = aside(move || memory.answered(&name, tenancy)).await;
        // What was done was done: only the memory of it is old.
        noted.map_err(|cause| Trouble::Unsure(unreadable(cause).to_string()))
    }

    /// The hosts that nobody has and nobody is about to have; those that failed lately come last.
    fn free<'a>(&self, answers: &[Answer<'a>]) -> Vec<&'a Host> {
        let is_free = |answer: &&Answer<'a>| {
            let said = answer.survey.as_ref().is_ok_and(|survey| survey.tenancy == Tenancy::Free);
            said && answer.before.asked.is_none()
        };
        let mut free: Vec<&Host> =
            answers.iter().filter(is_free).map(|answer| answer.host).collect();
        let desk = self.desk();
        free.sort_by_key(|host| desk.failed.get(&host.name).copied());
        free
    }

    /// The host of a machine, and its instance.
    fn known(&self, id: &MachineId) -> Result<(&Host, InstanceId), Trouble> {
        let none = || Trouble::NotFound(format!("there is no machine {id}"));
        let (name, instance) = parts(id).ok_or_else(none)?;
        let host = self.settings.hosts.iter().find(|host| host.name == name).ok_or_else(none)?;
        Ok((host, instance))
    }

    /// Marks a token as under way; `None` if it is.
    fn turn(&self, token: Uuid) -> Option<Turn<'_>> {
        let fresh = self.desk().tokens.insert(token);
        fresh.then(|| Turn { hosts: self, token, reserved: None })
    }
}

/// A create under way, until it is dropped.
struct Turn<'a> {
    hosts: &'a Hosts,
    token: Uuid,
    reserved: Option<String>,
}

impl Turn<'_> {
    /// Keeps a host from others; false if somebody has it.
    fn reserve(&mut self, host: &Host) -> bool {
        let mut desk = self.hosts.desk();
        if let Some(before) = self.reserved.take() {
            desk.reserved.remove(&before);
        }
        let free = desk.reserved.insert(host.name.clone());
        self.reserved = free.then(|| host.name.clone());
        free
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut desk = self.hosts.desk();
        desk.tokens.remove(&self.token);
        if let Some(host) = &self.reserved {
            desk.reserved.remove(host);
        }
    }
}

#[async_trait]
impl Provider for Hosts {
    fn kind(&self) -> &str {
        "static"
    }

    fn abilities(&self) -> Abilities {
        let root = self.settings.hosts.iter().all(|host| host.user == "root");
        Abilities {
            tokens: true,
            tags: true,
            reboot: self.settings.sudo || root,
            console: true,
            spot: false,
            list_lag: SignedDuration::ZERO,
        }
    }

    async fn offers(&self, region: &str) -> Result<Vec<Offer>, Trouble> {
        if region != self.settings.region {
            return Ok(Vec::new());
        }
        let names: Vec<String> = self.settings.hosts.iter().map(|host| host.name.clone()).collect();
        let memory = self.memory.clone();
        let known: io::Result<Vec<Remembered>> =
            aside(move || names.iter().map(|name| memory.of(name)).collect()).await;
        let mut offers: BTreeMap<&str, Offer> = BTreeMap::new();
        let mut zones: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (host, known) in self.settings.hosts.iter().zip(known.map_err(unreadable)?) {
            // One that was never asked may be free.
            let free = matches!(known.said, None | Some(Tenancy::Free)) && known.asked.is_none();
            let offer = offers.entry(&host.machine_type).or_insert_with(|| Offer {
                machine_type: host.machine_type.clone(),
                region: region.to_owned(),
                zones: Vec::new(),
                cpus: host.cpus,
                gpus: host.gpus,
                price_per_hour: host.price_per_hour,
                spot_price_per_hour: None,
                available: false,
            });
            offer.available |= free;
            offer.price_per_hour = match (offer.price_per_hour, host.price_per_hour) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            if !host.zone.is_empty() {
                zones.entry(&host.machine_type).or_default().insert(&host.zone);
            }
        }
        for (machine_type, offer) in &mut offers {
            let zones = zones.remove(machine_type).unwrap_or_default();
            offer.zones = zones.into_iter().map(str::to_owned).collect();
        }
        Ok(offers.into_values().collect())
    }

    async fn room(&self, order: &Order, count: u32) -> Result<(), Trouble> {
        let answers = self.ask(self.fitting(order)?).await?;
        let free = self.free(&answers).len();
        if usize::try_from(count).is_ok_and(|count| count <= free) {
            return Ok(());
        }
        let message = format!(
            "{count} more hosts of type {} are wanted, and {free} are free; add hosts, or give some back",
            order.machine_type
        );
        let available = u64::try_from(free).unwrap_or(u64::MAX);
        Err(Trouble::Quota { resource: "hosts".to_owned(), each: 1, available, message })
    }

    async fn create(&self, purchase: &Purchase) -> Result<Machine, Trouble> {
        let Some(mut turn) = self.turn(purchase.token) else {
            let message = format!("{} is being bought", purchase.instance);
            return Err(Trouble::Throttled { retry_after_s: Some(5), message });
        };
        let fitting = self.fitting(&purchase.order)?;
        let answers = self.ask(fitting).await?;
        let shown = answers.iter().filter_map(|answer| answer.survey.as_ref().ok());
        if shown.clone().any(|survey| survey.has_released(purchase.token)) {
            return Err(returned(purchase));
        }
        if shown.clone().any(|survey| survey.claim_of(purchase.token).is_some()) {
            let found = self.among(&answers, purchase.token)?;
            return found.ok_or_else(|| Trouble::Unsure("it was there a moment ago".to_owned()));
        }
        // What a host was sent may still be on its way, and what it had it may have: nobody else is asked then.
        let asked = |answer: &&Answer<'_>| {
            let said = &answer.before.said;
            let had =
                matches!(said, Some(Tenancy::Claimed(claim)) if claim.token == purchase.token);
            let free =
                answer.survey.as_ref().is_ok_and(|survey| survey.tenancy != Tenancy::Unreadable);
            let asked = answer.before.asked.as_ref();
            asked.is_some_and(|claim| claim.token == purchase.token) || had && !free
        };
        if let Some(Answer { host, survey, .. }) = answers.iter().find(asked) {
            let why = survey.as_ref().err().map(|silence| self.silent(host, silence).to_string());
            let why = why.unwrap_or_else(|| format!("{} has not answered yet", host.name));
            return Err(Trouble::Unsure(why));
        }
        let mut tried = Vec::new();
        for host in self.free(&answers) {
            if TRIES_MAX <= tried.len() {
                break;
            }
            if !turn.reserve(host) {
                continue;
            }
            match self.claim(host, purchase).await {
                Ok(machine) => {
                    self.desk().failed.remove(&host.name);
                    info!(host = host.name, instance = %purchase.instance, "a host was claimed");
                    return Ok(machine);
                }
                Err(Tried::Over(trouble)) => return Err(trouble),
                Err(Tried::Elsewhere(trouble)) => {
                    self.desk().failed.insert(host.name.clone(), self.clock.now());
                    warn!(host = host.name, %trouble, "a host could not be claimed");
                    tried.push(trouble);
                }
            }
        }
        Err(self.none_free(&purchase.order, &answers, &tried))
    }

    async fn find(&self, purchase: &Purchase) -> Result<Option<Machine>, Trouble> {
        let answers = self.ask(self.settings.hosts.iter().collect()).await?;
        self.among(&answers, purchase.token)
    }

    async fn list(&self) -> Result<Vec<Machine>, Trouble> {
        let answers = self.ask(self.settings.hosts.iter().collect()).await?;
        let nobody = answers.iter().all(|answer| answer.survey.is_err());
        let mut machines = Vec::new();
        for Answer { host, survey, before } in &answers {
            let silence = match survey {
                Ok(survey) if survey.tenancy == Tenancy::Unreadable => {
                    let Some(Tenancy::Claimed(claim)) = &before.said else {
                        return Err(unreadable_claim(host));
                    };
                    warn!(host = host.name, "a claim cannot be read and is listed as it was");
                    machines.push(self.show(host, claim, MachineState::Running));
                    continue;
                }
                Ok(survey) => {
                    let shown = survey.machines().into_iter();
                    machines.extend(shown.map(|(claim, state)| self.show(host, claim, state)));
                    continue;
                }
                Err(silence) => silence,
            };
            if nobody {
                return Err(self.silent(host, silence));
            }
            if before.said.is_none() && before.asked.is_none() {
                // What is asked of a host is remembered before it is asked: nothing of ours is there, unless the
                // memory was lost. Then a node that is heard speaks for its machine, and one that comes
                // back later is told of as nobody's.
                let why = self.silent(host, silence);
                warn!(host = host.name, %why, "a host has never been reached, and is left out: make it reachable, or take it out of the configuration");
                continue;
            }
            warn!(host = host.name, ?silence, "a host does not answer and is listed as it was");
            if let Some(claim) = &before.asked {
                machines.push(self.show(host, claim, MachineState::Starting));
            } else if let Some(Tenancy::Claimed(claim)) = &before.said {
                // Its agent may run all the same: whether it does is its own to say.
                machines.push(self.show(host, claim, MachineState::Running));
            }
        }
        Ok(machines)
    }

    async fn terminate(&self, doomed: &Doomed) -> Result<(), Trouble> {
        let (host, instance) = self.known(doomed.machine())?;
        let script = script::release(&instance, &self.layout);
        let said = self.caller.script(&door(host), As::Root, &script, RELEASE_MAX).await;
        let said = said.map_err(|silence| self.broken(host, &silence))?;
        let name = &host.name;
        match said.code {
            0 => {
                info!(host = name, %instance, "a host was given back");
                self.answered(host, Some(Tenancy::Free)).await
            }
            code::NONE => Err(Trouble::NotFound(format!("{name} is not claimed for {instance}"))),
            code::BUSY => {
                let message = format!("{name}: somebody else works on it");
                Err(Trouble::Throttled { retry_after_s: None, message })
            }
            code::LEFT => {
                let why = last_line(&said.stderr);
                Err(Trouble::Unsure(format!("{name} is still claimed for {instance}: {why}")))
            }
            _ => Err(refused(host, &said)),
        }
    }

    async fn reboot(&self, machine: &MachineId) -> Result<(), Trouble> {
        let (host, instance) = self.known(machine)?;
        if !self.abilities().reboot {
            let message = format!("{} cannot be booted without sudo", host.name);
            return Err(Trouble::Unable(message));
        }
        let script = script::reboot(&instance, &self.layout);
        let said = self.caller.script(&door(host), As::Root, &script, ASK_MAX).await;
        let said = said.map_err(|silence| self.broken(host, &silence))?;
        match said.code {
            0 => Ok(()),
            code::NONE => Err(Trouble::NotFound(format!("there is no machine {machine}"))),
            _ => Err(refused(host, &said)),
        }
    }

    async fn console(&self, machine: &MachineId) -> Result<String, Trouble> {
        let (host, instance) = self.known(machine)?;
        let script = script::console(&instance, &self.layout);
        let said = self.caller.script(&door(host), As::Root, &script, ASK_MAX).await;
        let said = said.map_err(|silence| self.silent(host, &silence))?;
        match said.code {
            0 => Ok(said.stdout),
            code::NONE => Err(Trouble::NotFound(format!("there is no machine {machine}"))),
            _ => Err(refused(host, &said)),
        }
    }

    async fn preflight(&self, _ask: &Ask) -> Result<Done, Refusal> {
        Ok(nothing_to_make("Hosts that exist need nothing around them"))
    }

    async fn ensure(&self, part: Part, _ask: &Ask) -> Result<Done, Refusal> {
        Ok(nothing_to_make(without(part)))
    }

    async fn remove(&self, part: Part, _ask: &Ask) -> Result<Done, Refusal> {
        Ok(nothing_to_make(without(part)))
    }
}

fn without(part: Part) -> &'static str {
    match part {
        Part::Dns => "Hosts that exist have their names already",
        Part::Infrastructure => "Hosts that exist have their network already",
    }
}

fn door(host: &Host) -> Door {
    Door { address: host.address.clone(), port: host.port, user: host.user.clone() }
}

/// A claim that may be ours, of a newer version or broken, stands in the way of a listing.
fn unreadable_claim(host: &Host) -> Trouble {
    let message = format!(
        "{} has a claim that this version cannot read: look at /var/lib/argosy/claim.json there, use the argosy \
         that wrote it, or take the host out of the configuration",
        host.name
    );
    Trouble::Invalid { field: "hosts".to_owned(), message }
}

/// What a host says that does not do what it was told; nothing was done.
fn refused(host: &Host, said: &Said) -> Trouble {
    let name = &host.name;
    let message = format!("{name}: {} (exit code {})", last_line(&said.stderr), said.code);
    let says = |words: &[&str]| words.iter().any(|word| said.stderr.contains(word));
    if says(&["sudo:", "is not in the sudoers file", "not allowed to execute"]) {
        return Trouble::Denied { permission: format!("sudo -n /bin/sh on {name}"), message };
    }
    if says(&["Permission denied", "Operation not permitted", "Read-only file system"]) {
        return Trouble::Denied { permission: format!("root on {name}"), message };
    }
    Trouble::Capacity { code: "HostRefused".to_owned(), message }
}

/// A late call must not bring back what was returned.
fn returned(purchase: &Purchase) -> Trouble {
    let message = format!("{} was bought before, and given back", purchase.instance);
    Trouble::Invalid { field: "token".to_owned(), message }
}

fn is_internal(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_private() || ip.is_loopback() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_loopback() || ip.is_unicast_link_local(),
    }
}

/// A directory for kept connections, of which nobody else can make one before us. A socket's path is short:
/// where it would not fit, or cannot be made, connections are not kept.
fn sockets() -> Option<PathBuf> {
    const PATH_LEN_MAX: usize = 40;
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("argosy-ssh-{}-{number}", std::process::id()));
    if PATH_LEN_MAX < path.as_os_str().len() {
        return None;
    }
    // Of a process with our id that was killed.
    _ = std::fs::remove_dir_all(&path);
    std::fs::DirBuilder::new().mode(0o700).create(&path).ok().map(|()| path)
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if let Some(path) = &self.caller.sockets {
            _ = std::fs::remove_dir_all(path);
        }
    }
}

fn unreadable(cause: io::Error) -> Trouble {
    Trouble::Unreachable(format!("what is remembered of hosts cannot be used: {cause}"))
}

#[cfg(test)]
mod tests;
