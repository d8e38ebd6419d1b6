//! `argosy sim load`: simulated nodes on the real wire, against a server that runs.
//!
//! What a newcomer gets wrong: this is not virtual time. The nodes are made up, what they say is not, and
//! the server acts on it as on any other node's word.

mod calls;
mod show;
mod stream;
mod tally;

use crate::cmd::Client;
use crate::config::Duration;
use crate::failure::{Exit, Failure};
use crate::output::{Screen, clean, note};
use crate::session::Session;
use argosy_agent::gpu::fake::Fake;
use argosy_agent::gpu::fake::injection::Injection;
use argosy_agent::swarm::{AGENTS_MAX, Spec};
use argosy_control::clock::Clock;
use calls::Calls;
use clap::{Args, ValueEnum};
use futures_util::{StreamExt, stream as futures};
use show::{Outcome, Progress};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time;
use stream::Streams;
use tally::Tally;

/// Drive simulated nodes against a running server, over the real wire.
#[derive(Args, Debug)]
#[command(after_help = "\
The nodes are called PREFIX-000001 and so on. They register, send heartbeats and health reports and obey
commands, as agents do (--wire argosy, one stream each) or as Navarch's node daemon does (--wire navarch,
calls on a connection each). At the end they are forgotten, unless --keep is given; that takes a token which
may delete nodes, and a Navarch server has no way to forget one. Ctrl-C ends early and still prints the report.

Examples:
  argosy sim load --nodes 1000 --duration 5m
  argosy sim load --nodes 10000 --ramp 2m --interval 10s --faults-per-hour 60 --max-errors 100
  argosy sim load --server http://localhost:50051 --wire navarch --nodes 500 --rate 250 -o json")]
pub(crate) struct Load {
    /// How many nodes.
    #[arg(long, default_value_t = 100, value_name = "N")]
    nodes: u64,
    /// What they speak.
    #[arg(long, value_enum, default_value_t)]
    wire: Wire,
    /// For how long, once all nodes have started.
    #[arg(long, default_value = "1m", value_name = "DURATION")]
    duration: Duration,
    /// Over how long the nodes are started.
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    ramp: Duration,
    /// How often each node sends a heartbeat, instead of what the server says.
    #[arg(long, value_name = "DURATION", conflicts_with = "rate")]
    interval: Option<Duration>,
    /// How many heartbeats a second all nodes send together, instead of what the server says.
    #[arg(long, value_name = "NUMBER")]
    rate: Option<f64>,
    /// How often each node reports its health, instead of what the server says.
    #[arg(long, value_name = "DURATION")]
    report_interval: Option<Duration>,
    /// The GPUs of each node.
    #[arg(long, default_value = "8xH100", value_name = "COUNTxMODEL")]
    gpus: String,
    /// How many GPUs fail in an hour, over all nodes.
    #[arg(long, default_value_t = 0.0, value_name = "NUMBER")]
    faults_per_hour: f64,
    /// What calls are written in. Navarch's wire only; streams are binary.
    #[arg(long, value_enum, default_value_t)]
    encoding: Encoding,
    /// What the names of the nodes begin with.
    #[arg(long, default_value = "load", value_name = "TEXT")]
    prefix: String,
    /// The pool the nodes say they belong to.
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Leave the nodes known to the server at the end.
    #[arg(long)]
    keep: bool,
    /// End with exit code 1 if there were more errors than this.
    #[arg(long, default_value_t = 0, value_name = "N")]
    max_errors: u64,
}

/// What the nodes speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Wire {
    /// A stream each, as our agents do
    #[default]
    Argosy,
    /// Calls, as Navarch's node daemon makes them
    Navarch,
}

impl Wire {
    const fn name(self) -> &'static str {
        match self {
            Self::Argosy => "argosy",
            Self::Navarch => "navarch",
        }
    }

    /// How often a node may send a heartbeat: on streams what an agent obeys, which is whole seconds; by
    /// calls what one connection can carry.
    const fn intervals(self) -> RangeInclusive<time::Duration> {
        match self {
            Self::Argosy => time::Duration::from_secs(1)..=time::Duration::from_secs(300),
            Self::Navarch => time::Duration::from_millis(10)..=time::Duration::from_secs(300),
        }
    }
}

/// What calls are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Encoding {
    /// Binary, as the daemon writes
    #[default]
    Proto,
    /// Text
    Json,
}

/// How many nodes one process drives: those of a swarm. With calls each has a connection of its own.
const NODES_MAX: u64 = AGENTS_MAX as u64;
/// How long a run may take: a soak of a month.
const RUN_MAX: time::Duration = time::Duration::from_secs(31 * 86_400);
/// How many faults an hour may have: a thousand a second is a flood of another kind.
const FAULTS_MAX: f64 = 3_600_000.0;
/// How long the names of nodes may begin: room for the number within what a node's id may have.
const PREFIX_LEN_MAX: usize = 40;
/// How often reports may come: what an agent obeys.
const REPORTS: RangeInclusive<time::Duration> =
    time::Duration::from_secs(5)..=time::Duration::from_secs(3600);
/// How many files are open besides connections.
const FILES_BESIDES: u64 = 64;
/// How long the server may take to answer at all.
const PROBE_MAX: time::Duration = time::Duration::from_secs(5);
/// How often nodes are started and figures shown.
const TICK: time::Duration = time::Duration::from_millis(50);
/// How many nodes are forgotten at a time.
const FORGET_AT_ONCE: usize = 16;

/// What happens to GPUs, in turn: what fleets see most often, from the harmless to the final.
const FAULTS: [u32; 6] = [13, 31, 63, 94, 48, 79];

/// What was asked for, checked.
#[derive(Clone, Debug)]
struct Plan {
    nodes: u64,
    wire: Wire,
    ramp: time::Duration,
    duration: time::Duration,
    interval: Option<time::Duration>,
    report_interval: Option<time::Duration>,
    gpu_count: u32,
    model: String,
    faults_per_hour: f64,
    encoding: Encoding,
    prefix: String,
    pool: String,
}

impl Load {
    fn plan(&self) -> Result<Plan, Failure> {
        if !(1..=NODES_MAX).contains(&self.nodes) {
            return Err(Failure::usage(format!(
                "--nodes {}: one process drives from 1 to {NODES_MAX} nodes",
                self.nodes
            ))
            .fix("run several, each with its own --prefix"));
        }
        let (ramp, duration) = (self.ramp.std(), self.duration.std());
        if duration.is_zero() || RUN_MAX < ramp + duration {
            return Err(Failure::usage(
                "--duration and --ramp are together longer than nothing and at most 31d",
            ));
        }
        if !(0.0..=FAULTS_MAX).contains(&self.faults_per_hour) {
            return Err(Failure::usage(format!(
                "--faults-per-hour {}: from 0 to {FAULTS_MAX}",
                self.faults_per_hour
            )));
        }
        let machine = Fake::parse(&self.gpus, &self.prefix)
            .map_err(|error| Failure::usage(format!("--gpus {}: {error}", clean(&self.gpus))))?;
        let gpu_count = machine.inventory().map_or(0, |inventory| inventory.gpus.len());
        let model = self.gpus.split_once(['x', 'X']).map_or(&*self.gpus, |(_, model)| model);
        let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let prefix = &self.prefix;
        if !(1..=PREFIX_LEN_MAX).contains(&prefix.len()) || !prefix.chars().all(named) {
            return Err(Failure::usage(format!(
                "--prefix `{}`: 1 to {PREFIX_LEN_MAX} characters of a-z, 0-9 and -",
                clean(prefix)
            )));
        }
        if self.wire == Wire::Argosy && self.encoding == Encoding::Json {
            return Err(Failure::usage("--encoding json: streams are binary")
                .fix("add --wire navarch, or leave it out"));
        }
        let report_interval = self.report_interval.map(Duration::std);
        if let Some(every) = report_interval.filter(|every| !REPORTS.contains(every)) {
            let what = format!("--report-interval {}: from 5s to 1h", Duration::from_std(every));
            return Err(Failure::usage(what));
        }
        Ok(Plan {
            nodes: self.nodes,
            wire: self.wire,
            ramp,
            duration,
            interval: self.interval()?,
            report_interval,
            gpu_count: u32::try_from(gpu_count).unwrap_or(u32::MAX),
            model: model.to_owned(),
            faults_per_hour: self.faults_per_hour,
            encoding: self.encoding,
            prefix: prefix.clone(),
            pool: self.pool.clone().unwrap_or_default(),
        })
    }

    /// How often each node beats, by --interval or --rate.
    fn interval(&self) -> Result<Option<time::Duration>, Failure> {
        let (flag, every) = match (self.interval, self.rate) {
            (Some(every), _) => (format!("--interval {every}"), every.std()),
            (None, Some(rate)) => {
                let every = self.nodes as f64 / rate;
                let every = time::Duration::try_from_secs_f64(every).ok().filter(|_| 0.0 < rate);
                let every = every.unwrap_or(time::Duration::MAX);
                (format!("--rate {rate}"), every)
            }
            (None, None) => return Ok(None),
        };
        let can = self.wire.intervals();
        if !can.contains(&every) {
            let most = self.nodes as f64 / can.start().as_secs_f64();
            let least = self.nodes as f64 / can.end().as_secs_f64();
            return Err(Failure::usage(format!(
                "{flag}: on the wire {} a node sends a heartbeat every {} to {}; {} nodes together \
                 send {least:.2} to {most:.0} a second",
                self.wire.name(),
                Duration::from_std(*can.start()),
                Duration::from_std(*can.end()),
                self.nodes,
            )));
        }
        Ok(Some(every))
    }
}

impl Plan {
    fn name(&self, number: u64) -> String {
        format!("{}-{number:06}", self.prefix)
    }

    fn spec(&self, number: u64) -> Spec {
        Spec {
            node_id: self.name(number),
            pool: self.pool.clone(),
            provider: "simulated".to_owned(),
            region: "sim-1".to_owned(),
            zone: format!("sim-1{}", if number.is_multiple_of(2) { 'a' } else { 'b' }),
            machine_type: format!("sim-{}x{}", self.gpu_count, self.model.to_lowercase()),
            gpus: self.gpu_count,
            model: self.model.clone(),
            labels: BTreeMap::from([("argosy-load".to_owned(), self.prefix.clone())]),
            ..Spec::default()
        }
    }

    /// How many nodes have started after a time.
    fn due(&self, passed: time::Duration) -> u64 {
        if self.ramp <= passed {
            return self.nodes;
        }
        (self.nodes as f64 * passed.as_secs_f64() / self.ramp.as_secs_f64()) as u64
    }

    /// How many faults have happened after a time; none before all nodes have started.
    fn faults_due(&self, passed: time::Duration) -> u64 {
        let steady = passed.saturating_sub(self.ramp);
        (self.faults_per_hour * steady.as_secs_f64() / 3600.0) as u64
    }

    /// The nth fault: on which node, on which GPU, and what.
    fn fault(&self, number: u64) -> (u64, u32, u32) {
        // SplitMix64: the same in every run, and neighbours in time are nowhere near each other in the fleet.
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = mixed ^ (mixed >> 31);
        let gpu = (mixed >> 40) % u64::from(self.gpu_count.max(1));
        let gpu = u32::try_from(gpu).unwrap_or_default();
        let place = usize::try_from(number % FAULTS.len() as u64).unwrap_or_default();
        (1 + mixed % self.nodes, gpu, FAULTS.get(place).copied().unwrap_or(79))
    }
}

/// The nodes, on one of the wires.
enum Fleet {
    Streams(Streams),
    Calls(Box<Calls>),
}

impl Fleet {
    fn new(plan: &Plan, session: &Session, tally: &Tally) -> Result<Self, Failure> {
        let (server, token) = (&session.target.server, session.target.token.clone());
        let wrong = |error: String| Failure::usage(clean(&error));
        Ok(match plan.wire {
            Wire::Argosy => Self::Streams(Streams::new(plan, server, token, tally).map_err(wrong)?),
            Wire::Navarch => {
                Self::Calls(Box::new(Calls::new(plan, server, token, tally).map_err(wrong)?))
            }
        })
    }

    fn boot(&mut self, plan: &Plan, number: u64) -> Result<(), Failure> {
        let booted = match self {
            Self::Streams(streams) => streams.boot(plan.spec(number)),
            Self::Calls(calls) => calls.boot(plan.spec(number)),
        };
        booted.map_err(|error| Failure::usage(error.to_string()))
    }

    async fn fail(&self, node: &str, gpu: u32, xid: u32) {
        match self {
            Self::Streams(streams) => streams.inject(node, Injection::Xid { gpu, code: xid }).await,
            Self::Calls(calls) => calls.inject(node, gpu, xid),
        }
    }
}

/// `argosy sim load`
pub(super) fn run(client: Client<Load>, screen: Screen) -> Result<Exit, Failure> {
    let Client { printing, connection, command } = client;
    let plan = command.plan()?;
    let session = Session::open(&connection, &printing, screen)?;
    if plan.wire == Wire::Navarch {
        check_files(plan.nodes)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed("cannot start").why(error))?;
    runtime.block_on(async {
        probe(&session).await?;
        let tally = Tally::new(session.clock);
        let mut outcome = drive(&plan, &session, &tally).await?;
        if !command.keep {
            forget(&plan, &session, &mut outcome).await;
        }
        show::print(&session, &outcome);
        judge(&outcome, command.max_errors)
    })
}

/// Whether so many connections can be open here.
fn check_files(nodes: u64) -> Result<(), Failure> {
    let needed = nodes + FILES_BESIDES;
    // Where the system does not say, it will when there are too many.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    match soft {
        Some(soft) if soft < needed => Err(Failure::usage(format!(
            "{nodes} nodes with a connection each need {needed} open files, and {soft} are allowed here"
        ))
        .fix(format!("ulimit -n {needed}"))),
        Some(_) | None => Ok(()),
    }
}

/// Whether anybody is there, whoever it is.
async fn probe(session: &Session) -> Result<(), Failure> {
    let server = &session.target.server;
    let unreachable = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::Unreachable, format!("cannot reach the server at {}", clean(server)))
            .why(clean(&why.to_string()))
            .fix("start one here with `argosy up`, or choose another with --server or `argosy context use`")
    };
    let client = reqwest::Client::builder().timeout(PROBE_MAX).build();
    let client =
        client.map_err(|error| Failure::failed("cannot set up the HTTP client").why(error))?;
    let asked = client.get(format!("{}/healthz", server.trim_end_matches('/'))).send().await;
    asked.map(drop).map_err(|error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        unreachable(&cause)
    })
}

/// Starts the nodes, lets them live, and says what came of it.
async fn drive(plan: &Plan, session: &Session, tally: &Tally) -> Result<Outcome, Failure> {
    let clock: Clock = session.clock;
    let began = clock.monotonic();
    let mut fleet = Fleet::new(plan, session, tally)?;
    let mut progress = Progress::new(session.screen, plan);
    let (mut booted, mut failed, mut interrupted) = (0, 0, false);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut interruption = std::pin::pin!(tokio::signal::ctrl_c());
    let passed = loop {
        tokio::select! {
            biased;
            _ = &mut interruption => interrupted = true,
            _ = ticks.tick() => {}
        }
        let passed = clock.monotonic().saturating_sub(began);
        while booted < plan.due(passed) && !interrupted {
            booted += 1;
            fleet.boot(plan, booted)?;
        }
        if plan.ramp <= passed {
            tally.steady();
        }
        while failed < plan.faults_due(passed) {
            failed += 1;
            let (node, gpu, xid) = plan.fault(failed);
            fleet.fail(&plan.name(node), gpu, xid).await;
        }
        progress.show(tally, passed);
        refused(session, tally)?;
        if interrupted || plan.ramp + plan.duration <= passed {
            break passed;
        }
    };
    progress.close();
    // Before the nodes fall silent, which is no error of the server's.
    let counts = tally.read();
    drop(fleet);
    Ok(Outcome {
        wire: plan.wire.name(),
        server: session.target.server.clone(),
        nodes: plan.nodes,
        started: booted,
        passed,
        interrupted,
        counts,
        forgotten: 0,
        left: None,
    })
}

/// If the server wants none of them, there is nothing to measure.
fn refused(session: &Session, tally: &Tally) -> Result<(), Failure> {
    let Some(why) = tally.refused_by_all() else { return Ok(()) };
    let fix = match &session.target.token {
        Some(_) => {
            "the token must be one of the role node without --node, operator or admin: `argosy token new`"
        }
        None => "no token was sent; give one with --token-file, or in ARGOSY_TOKEN",
    };
    let what = format!("{} takes none of the nodes", clean(&session.target.server));
    Err(Failure::new(Exit::Auth, what).why(clean(&why)).fix(fix))
}

/// Has the server forget the nodes, as far as it can. Ctrl-C ends that, too.
async fn forget(plan: &Plan, session: &Session, outcome: &mut Outcome) {
    let registered = 0 < outcome.counts.registered;
    if !registered {
        return;
    }
    let forget = async |number: u64| {
        let name = plan.name(number);
        let reason = Some("a simulated node of `argosy sim load`, which has ended");
        session.client.delete_node(&name, true, reason).await
    };
    let mut answers = std::pin::pin!(
        futures::iter(1..=outcome.started).map(forget).buffer_unordered(FORGET_AT_ONCE)
    );
    let mut interruption = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        let answer = tokio::select! {
            biased;
            _ = &mut interruption => {
                outcome.left = Some("interrupted".to_owned());
                return;
            }
            answer = answers.next() => answer,
        };
        match answer {
            None => return,
            Some(Ok(())) => outcome.forgotten += 1,
            // One that never came to be known.
            Some(Err(error)) if error.status() == Some(404) && 0 < outcome.forgotten => {}
            Some(Err(error)) => {
                // What one is refused, all are: a token that may not, or a server that cannot.
                let known = outcome.counts.registered;
                outcome.left.get_or_insert_with(|| clean(&error.to_string()));
                if outcome.forgotten == 0 {
                    note(&format!(
                        "{known} nodes stay known to the server: {}",
                        clean(&error.to_string())
                    ));
                    return;
                }
            }
        }
    }
}

/// The exit code, by what was asked of the run.
fn judge(outcome: &Outcome, errors_max: u64) -> Result<Exit, Failure> {
    let counts = &outcome.counts;
    let errors = counts.errors();
    if errors_max < errors {
        let what = format!("{errors} errors; --max-errors allows {errors_max}");
        return Err(Failure::failed(what));
    }
    if outcome.interrupted {
        return Ok(Exit::Interrupted);
    }
    if counts.registered < outcome.started {
        let what = format!("{} of {} nodes registered", counts.registered, outcome.started);
        return Err(Failure::failed(what).fix("give them more time: --duration"));
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests;
