//! Machines that exist already, entered by SSH: to buy one is to claim it, and to return it is to leave it as
//! it was.
//!
//! A claim lies on the host, so that two control planes never share one. Hosts do their part themselves: what
//! was sent whole is finished or undone there, whatever becomes of us or of the line.
//!
//! What a newcomer gets wrong: a host that does not answer is not free and not gone. It has the claim that it
//! had when it last answered; of one that never did nobody knows, and then there is no listing.

mod line;
mod memory;
mod script;
mod survey;

use crate::boot::{AgentSource, Boot, BootError, Layout, Sha256};
use crate::process::{nothing_to_make, unknown};
use argosy_control::clock::Clock;
use argosy_control::provider::{Ask, Done, Part, Provider, Refusal};
use argosy_core::gate::Doomed;
use argosy_core::instance::InstanceId;
use argosy_core::machine::{
    Abilities, Machine, MachineId, MachineState, Offer, Order, Purchase, Trouble,
};
use async_trait::async_trait;
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use line::{As, Caller, Door, Said, Silence, last_line};
use memory::{Memory, Remembered};
use script::code;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use survey::{Claim, Survey, Tenancy, parts};
use tokio::sync::Semaphore;
use tracing::{info, warn};
use uuid::Uuid;

/// Which hosts there are and how they are entered.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// What all of them say of where they are.
    pub region: String,
    /// The private key, without a passphrase or with an agent that knows it.
    pub key_file: PathBuf,
    /// The keys of the hosts. A host that shows another is not entered.
    pub known_hosts: PathBuf,
    /// Whether what changes a host is done through `sudo -n /bin/sh`; else whoever enters must be root.
    pub sudo: bool,
    /// The program: `ssh`.
    pub ssh: PathBuf,
    /// Its configuration file, for jump hosts and the like. What is said here wins.
    pub ssh_config: Option<PathBuf>,
    /// Where it is remembered what hosts said: a directory of our own.
    pub state: PathBuf,
    /// How a host gets its agent.
    pub boot: Boot,
    /// Before every path on a host, for hosts that are not whole machines; nothing otherwise.
    pub root: String,
}

/// A machine that exists.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// What people call it.
    pub name: String,
    /// Where it is entered: a name or an IP address.
    pub address: String,
    /// At which port.
    pub port: u16,
    /// As whom.
    pub user: String,
    /// What it is.
    pub machine_type: String,
    /// Virtual CPUs, as offered.
    pub cpus: u32,
    /// GPUs, as offered.
    pub gpus: u32,
    /// Where it is; empty in a place without zones.
    pub zone: String,
    /// What it is said to cost, in US dollars.
    pub price_per_hour: Option<f64>,
    /// Labels of its node, beside those of the pool.
    pub labels: BTreeMap<String, String>,
}

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Of the agent.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// A file that is not there.
    #[error("cannot use {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A path that ssh cannot be told.
    #[error("{0}: a path with quotes or line ends cannot be given to ssh")]
    Path(PathBuf),
    /// Too many hosts, or none.
    #[error("{0} hosts are named; there must be between 1 and {max}", max = HOSTS_MAX)]
    Count(usize),
    /// A host that cannot be one.
    #[error("host {name}: {why}")]
    Host {
        /// Which.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

/// How many hosts there may be: each is asked every two minutes, and forty at a time take a second or two.
const HOSTS_MAX: usize = 2000;
/// How many hosts are asked at once: each is a process here.
const CALLS_MAX: usize = 40;
/// How long a question to a host may take, the connection included.
const ASK_MAX: Duration = Duration::from_secs(20);
/// How long all questions of a listing may wait for their turn. Hundreds of dead hosts take ten seconds each.
const TURN_MAX: Duration = Duration::from_secs(90);
/// How long an agent may take to be sent: 30 MB over a slow line.
const STAGE_MAX: Duration = Duration::from_secs(300);
/// How long a claim may take, without setup commands, which have five minutes each.
const CLAIM_MAX: Duration = Duration::from_secs(120);
/// How long a setup command may take; see `boot`.
const SETUP_MAX: Duration = Duration::from_secs(310);
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

/// What changes when a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileMark {
    inode: u64,
    len: u64,
    modified_ns: (i64, i64),
}

/// What one host answered.
struct Answer<'a> {
    host: &'a Host,
    survey: Result<Survey, Silence>,
    /// What was known of it before.
    before: Remembered,
}

impl Hosts {
    /// Checks the settings. No host is asked yet.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(settings: Settings, clock: Clock) -> Result<Self, SettingsError> {
        settings.boot.check()?;
        check_hosts(&settings.hosts)?;
        let file = |path: &Path| {
            let told = path.display().to_string();
            if told.contains(['"', '\n', '\r']) {
                return Err(SettingsError::Path(path.to_owned()));
            }
            let found = std::fs::File::open(path).map(|_| ());
            found.map_err(|source| SettingsError::File { path: path.to_owned(), source })
        };
        file(&settings.key_file)?;
        file(&settings.known_hosts)?;
        settings.ssh_config.as_deref().map_or(Ok(()), file)?;
        if let AgentSource::File(path) = &settings.boot.agent {
            file(path)?;
        }
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

    /// Asks hosts what they are, all at once.
    async fn ask<'a>(&'a self, hosts: Vec<&'a Host>) -> Result<Vec<Answer<'a>>, Trouble> {
        let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
        let memory = self.memory.clone();
        let before = aside(move || names.iter().map(|name| memory.of(name)).collect()).await;
        let before: Vec<Remembered> = before.map_err(unreadable)?;
        let script = script::survey(&self.layout);
        let surveys = join_all(hosts.iter().map(|host| self.survey(host, &script))).await;
        let answers = hosts.into_iter().zip(surveys).zip(before);
        let answers =
            answers.map(|((host, survey), before)| self.settle(Answer { host, survey, before }));
        let answers: Vec<Answer<'a>> = join_all(answers).await;
        let said: Vec<(String, Tenancy)> = answers
            .iter()
            .filter_map(|Answer { host, survey, .. }| {
                Some((host.name.clone(), survey.as_ref().ok()?.tenancy.clone()))
            })
            .collect();
        let memory = self.memory.clone();
        let kept =
            aside(move || said.iter().try_for_each(|(host, tenancy)| memory.said(host, tenancy)));
        kept.await.map_err(unreadable)?;
        Ok(answers)
    }

    /// Finds out what became of an attempt that did not come back, by calling it off: after that the host says
    /// for certain whether it is claimed.
    async fn settle<'a>(&self, answer: Answer<'a>) -> Answer<'a> {
        let Answer { host, survey: Ok(survey), before } = &answer else { return answer };
        let Some(asked) = &before.asked else { return answer };
        let answered = survey.claim_of(asked.token).is_some();
        // Somebody here waits for it.
        if answered || self.desk().reserved.contains(&host.name) {
            return answer;
        }
        let off = script::call_off(asked, &self.layout);
        let called = self.caller.script(&door(host), As::Root, &off, ASK_MAX).await;
        let survey = match called {
            Ok(said) if said.code == 0 => self.survey(host, &script::survey(&self.layout)).await,
            Ok(said) => Err(Silence::Broken(refused(host, &said).to_string())),
            Err(silence) => Err(silence),
        };
        let mut answer = Answer { host, survey, before: before.clone() };
        if let Ok(survey) = &answer.survey
            && self.answered(host, Some(survey.tenancy.clone())).await.is_ok()
        {
            answer.before.asked = None;
        }
        answer
    }

    async fn survey(&self, host: &Host, script: &str) -> Result<Survey, Silence> {
        let turn = tokio::time::timeout(TURN_MAX, self.calls.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Err(Silence::Away("too many hosts do not answer to wait for this one".into()));
        };
        let said = self.caller.script(&door(host), As::Guest, script, ASK_MAX).await;
        let survey = said.and_then(|said| {
            let Said { code, stderr, stdout } = said;
            Survey::parse(&stdout).ok_or_else(|| {
                let why = format!("its answer is not whole ({code}): {}", last_line(&stderr));
                Silence::Broken(why)
            })
        });
        self.desk().answered.insert(host.name.clone(), survey.is_ok());
        survey
    }

    /// The trouble with one host, of a call that changed nothing.
    fn silent(&self, host: &Host, silence: &Silence) -> Trouble {
        silence.of_reading(&host.name, &self.settings.known_hosts)
    }

    /// The trouble with one host, of a call that may have changed something. A host that alone does not let us
    /// in is no reason to give up on all.
    fn broken(&self, host: &Host, silence: &Silence) -> Trouble {
        let trouble = silence.of_change(&host.name, &self.settings.known_hosts);
        match trouble {
            Trouble::Credentials(message) if self.others_answer(host) => {
                Trouble::Denied { permission: format!("ssh to {}", host.name), message }
            }
            other => other,
        }
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

    /// The machine of a token among answers; `None` if it is certain that there is none.
    fn among(&self, answers: &[Answer<'_>], token: Uuid) -> Result<Option<Machine>, Trouble> {
        let mut doubt = None;
        for Answer { host, survey, before } in answers {
            let asked = before.asked.as_ref().is_some_and(|claim| claim.token == token);
            match survey {
                Ok(survey) => {
                    let shown = survey.machines();
                    let found = shown.into_iter().find(|(claim, _)| claim.token == token);
                    if let Some((claim, state)) = found {
                        return Ok(Some(self.show(host, claim, state)));
                    }
                    if asked {
                        let name = &host.name;
                        let why = format!("{name} was asked a moment ago and has not answered yet");
                        doubt = Some(Trouble::Unreachable(why));
                    }
                }
                Err(silence) => {
                    let elsewhere = match &before.said {
                        Some(Tenancy::Claimed(claim)) => claim.token != token,
                        Some(Tenancy::Free | Tenancy::Foreign | Tenancy::Unreadable) => true,
                        None => false,
                    };
                    if asked || !elsewhere {
                        doubt = Some(self.silent(host, silence));
                    }
                }
            }
        }
        let nobody = answers.iter().all(|answer| answer.survey.is_err());
        if nobody && let Some(Answer { host, survey: Err(silence), .. }) = answers.first() {
            doubt.get_or_insert_with(|| self.silent(host, silence));
        }
        doubt.map_or(Ok(None), Err)
    }

    /// Why no host can be had: what all of them have in common, or what each says.
    fn none_free(&self, order: &Order, answers: &[Answer<'_>], tried: &[Trouble]) -> Trouble {
        let silences: Vec<Trouble> = answers
            .iter()
            .filter_map(|Answer { host, survey, .. }| {
                Some(self.silent(host, survey.as_ref().err()?))
            })
            .chain(tried.iter().cloned())
            .collect();
        let alike = |trouble: &&Trouble| {
            let first = silences.first().map(std::mem::discriminant);
            Some(std::mem::discriminant(*trouble)) == first
        };
        if let Some(trouble) = silences.first()
            && answers.len() <= silences.len()
            && silences.iter().all(|trouble| alike(&trouble))
        {
            return trouble.clone();
        }
        let count = |test: fn(&Tenancy) -> bool| {
            let said = answers.iter().filter_map(|answer| answer.survey.as_ref().ok());
            said.filter(|survey| test(&survey.tenancy)).count()
        };
        let claimed = count(|tenancy| matches!(tenancy, Tenancy::Claimed(_)));
        let foreign = count(|tenancy| matches!(tenancy, Tenancy::Foreign | Tenancy::Unreadable));
        let mut message = format!(
            "none of the {} hosts of type {} is free: {claimed} are claimed, {foreign} have an agent \
             that is not ours to touch, {} cannot be used",
            answers.len(),
            order.machine_type,
            silences.len(),
        );
        for trouble in silences.iter().take(3) {
            message.push_str("; ");
            message.push_str(&trouble.to_string());
        }
        Trouble::Capacity { code: "NoFreeHost".to_owned(), message }
    }

    /// Sees to it that a host has the agent's file, whole.
    async fn stage(&self, host: &Host) -> Result<Option<Sha256>, Trouble> {
        let AgentSource::File(path) = &self.settings.boot.agent else { return Ok(None) };
        let sha256 = self.checksum(path).await?;
        let door = door(host);
        let looked = script::has_agent(&self.layout, &sha256);
        let said = self.caller.script(&door, As::Guest, &looked, ASK_MAX).await;
        let said = said.map_err(|silence| self.silent(host, &silence))?;
        if said.stdout.lines().any(|line| line == "there") {
            return Ok(Some(sha256));
        }
        let take = script::stage(&self.layout, &sha256);
        let said = self.caller.feed(&door, As::Root, &take, path, STAGE_MAX).await;
        let said = said.map_err(|silence| self.silent(host, &silence))?;
        match said.code {
            0 => Ok(Some(sha256)),
            code::CHECKSUM => {
                let name = &host.name;
                Err(Trouble::Unreachable(format!("{name}: the agent did not arrive whole")))
            }
            _ => Err(refused(host, &said)),
        }
    }

    /// The checksum of the agent's file, as it is now.
    async fn checksum(&self, path: &Path) -> Result<Sha256, Trouble> {
        let known = self.desk().agent.clone();
        let file = path.to_owned();
        let found = aside(move || {
            let facts = std::fs::metadata(&file)?;
            let modified_ns = (facts.mtime(), facts.mtime_nsec());
            let mark = FileMark { inode: facts.ino(), len: facts.len(), modified_ns };
            match known {
                Some((before, sha256)) if before == mark => Ok((mark, sha256)),
                Some(_) | None => Ok((mark, Sha256::of_file(&file)?)),
            }
        });
        let found = found.await.map_err(|cause| Trouble::Invalid {
            field: "agent".to_owned(),
            message: format!("the agent {} cannot be read: {cause}", path.display()),
        })?;
        let sha256 = found.1.clone();
        self.desk().agent = Some(found);
        Ok(sha256)
    }

    /// Claims one host and has its agent started.
    async fn claim(&self, host: &Host, purchase: &Purchase) -> Result<Machine, Tried> {
        let staged = self.stage(host).await.map_err(Tried::Elsewhere)?;
        let claim = Claim::new(purchase, &self.settings.boot.server, self.clock.now());
        let mut told = purchase.clone();
        told.order.zone = host.zone.clone();
        // What the pool says of its nodes wins over what the host says of itself.
        let own = host.labels.iter().filter(|(key, _)| !purchase.labels.contains_key(*key));
        told.labels.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        let Settings { boot, .. } = &self.settings;
        let script = script::claim(boot, staged.as_ref(), &told, &claim, &self.layout);
        let setup = u32::try_from(boot.setup_commands.len()).unwrap_or(u32::MAX);
        let time_max = CLAIM_MAX.saturating_add(SETUP_MAX.saturating_mul(setup));
        let (memory, name, asked) = (self.memory.clone(), host.name.clone(), claim.clone());
        let noted = aside(move || memory.asks(&name, &asked)).await;
        noted.map_err(|cause| Tried::Over(unreadable(cause)))?;
        let said = self.caller.script(&door(host), As::Root, &script, time_max).await;
        let said = match said {
            Ok(said) => said,
            Err(silence @ Silence::Broken(_)) => {
                return Err(Tried::Over(self.broken(host, &silence)));
            }
            Err(silence) => {
                self.answered(host, None).await.map_err(Tried::Over)?;
                return Err(Tried::Elsewhere(self.silent(host, &silence)));
            }
        };
        let name = &host.name;
        let why = last_line(&said.stderr);
        let (tenancy, tried) = match said.code {
            0 => (Some(Tenancy::Claimed(claim.clone())), None),
            code::TAKEN => {
                let message = format!("{name} was taken a moment ago");
                let code = "HostTaken".to_owned();
                (None, Some(Tried::Elsewhere(Trouble::Capacity { code, message })))
            }
            code::RELEASED => (None, Some(Tried::Over(returned(purchase)))),
            code::OFF => {
                let message = format!("{name}: the claim was called off by somebody else");
                (None, Some(Tried::Over(Trouble::Throttled { retry_after_s: None, message })))
            }
            code::BUSY => {
                let message = format!("{name}: somebody else works on it");
                (None, Some(Tried::Elsewhere(Trouble::Throttled { retry_after_s: None, message })))
            }
            code::UNDONE => {
                let message = format!(
                    "{name}: the agent could not be installed, and nothing is left of it there: {why}"
                );
                let code = "BootstrapFailed".to_owned();
                (Some(Tenancy::Free), Some(Tried::Elsewhere(Trouble::Capacity { code, message })))
            }
            // Its files or its process are left, and so is the claim: it can be found and returned.
            code::LEFT => {
                let message = format!("{name}: the agent could not be installed, and stays: {why}");
                return Err(Tried::Over(Trouble::Unsure(message)));
            }
            // Ended by a signal: nobody knows where.
            signal if 128 <= signal => {
                let message = format!("{name}: the claim was ended by signal {}", signal - 128);
                return Err(Tried::Over(Trouble::Unsure(message)));
            }
            _ => (None, Some(Tried::Elsewhere(refused(host, &said)))),
        };
        self.answered(host, tenancy).await.map_err(Tried::Over)?;
        tried.map_or(Ok(self.show(host, &claim, MachineState::Starting)), Err)
    }

    async fn answered(&self, host: &Host, tenancy: Option<Tenancy>) -> Result<(), Trouble> {
        let (memory, name) = (self.memory.clone(), host.name.clone());
        let noted = aside(move || memory.answered(&name, tenancy)).await;
        // What was done was done: only the memory of it is old.
        noted.map_err(|cause| Trouble::Unsure(unreadable(cause).to_string()))
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

/// How an attempt at one host ended without a machine.
enum Tried {
    /// Nothing was done: another host may do.
    Elsewhere(Trouble),
    /// No other host may be tried.
    Over(Trouble),
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
        let names: Vec<String> =
            self.settings.hosts.iter().map(|host| host.name.clone()).collect();
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
        let is_free = |answer: &&Answer<'_>| {
            answer.survey.as_ref().is_ok_and(|survey| survey.tenancy == Tenancy::Free)
        };
        let free = answers.iter().filter(is_free).count();
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
        let asked_of = |answer: &&Answer<'_>| {
            answer.before.asked.as_ref().is_some_and(|claim| claim.token == purchase.token)
        };
        let shown = answers.iter().filter_map(|answer| answer.survey.as_ref().ok());
        if shown.clone().any(|survey| survey.has_released(purchase.token)) {
            return Err(returned(purchase));
        }
        let held = answers.iter().find(|answer| {
            answer.survey.as_ref().is_ok_and(|survey| survey.claim_of(purchase.token).is_some())
        });
        if held.is_some() {
            let found = self.among(&answers, purchase.token)?;
            return found.ok_or_else(|| Trouble::Unsure("it was there a moment ago".to_owned()));
        }
        // What a host was sent may still be on its way: while that is not called off, nobody else is asked.
        if let Some(Answer { host, survey, .. }) = answers.iter().find(asked_of) {
            let why = survey.as_ref().err().map(|silence| self.silent(host, silence).to_string());
            let why = why.unwrap_or_else(|| format!("{} has not answered yet", host.name));
            return Err(Trouble::Unsure(why));
        }
        let now = self.clock.now();
        let mut free: Vec<&Host> = answers
            .iter()
            .filter(|answer| {
                answer.before.asked.is_none()
                    && answer.survey.as_ref().is_ok_and(|survey| survey.tenancy == Tenancy::Free)
            })
            .map(|answer| answer.host)
            .collect();
        {
            let desk = self.desk();
            free.sort_by_key(|host| desk.failed.get(&host.name).copied());
        }
        let mut tried = Vec::new();
        for host in free {
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
                    self.desk().failed.insert(host.name.clone(), now);
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
                Ok(survey) => {
                    let shown = survey.machines().into_iter();
                    machines.extend(shown.map(|(claim, state)| self.show(host, claim, state)));
                    continue;
                }
                Err(silence) => silence,
            };
            if nobody || before.said.is_none() && before.asked.is_none() {
                let why = self.silent(host, silence);
                return Err(if nobody { why } else { never_reached(host, why) });
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

/// A host of which nothing is known stands in the way of a listing.
fn never_reached(host: &Host, why: Trouble) -> Trouble {
    let way_out = format!(
        "{} has never been reached, so that nobody knows whether it carries a machine of ours: make it \
         reachable, or take it out of the configuration ({why})",
        host.name
    );
    match why {
        Trouble::Invalid { field, .. } => Trouble::Invalid { field, message: way_out },
        _ => Trouble::Unreachable(way_out),
    }
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

fn check_hosts(hosts: &[Host]) -> Result<(), SettingsError> {
    if hosts.is_empty() || HOSTS_MAX < hosts.len() {
        return Err(SettingsError::Count(hosts.len()));
    }
    let mut names = HashSet::new();
    for host in hosts {
        let bad = |why: &str| {
            Err(SettingsError::Host { name: host.name.clone(), why: why.to_owned() })
        };
        if host.name.is_empty() || host.name.chars().any(char::is_control) {
            return bad("its name is empty or cannot be written");
        }
        if !names.insert(host.name.as_str()) {
            return bad("it is named twice");
        }
        // What begins with a hyphen would be an option of ssh.
        let word = |text: &str, more: &str| {
            let fits = |char: char| char.is_ascii_alphanumeric() || more.contains(char);
            !text.is_empty() && !text.starts_with('-') && text.chars().all(fits)
        };
        if !word(&host.address, ".-_:%") {
            return bad("its address must be a name or an IP address");
        }
        if !word(&host.user, ".-_") {
            return bad("its user must be a name");
        }
        if host.port == 0 {
            return bad("its port must not be 0");
        }
        if host.machine_type.is_empty() {
            return bad("it has no machine type");
        }
        if host.price_per_hour.is_some_and(|price| !price.is_finite() || price < 0.0) {
            return bad("its price must be a number of dollars");
        }
    }
    Ok(())
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

/// Files are read and written where waiting for a disk is nobody's loss.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|cause| Err(io::Error::other(cause)))
}

fn unreadable(cause: io::Error) -> Trouble {
    Trouble::Unreachable(format!("what is remembered of hosts cannot be used: {cause}"))
}

#[cfg(test)]
mod tests;
