//! The parts of the server, chosen and put together. Nothing else picks implementations.

use super::{clouds, declared, hosts};
use crate::config::{Config, Profile, catalog, conditions, graph, policy};
use crate::failure::{Exit, Failure};
use argosy_control::clock::Clock;
use argosy_control::extension::Extensions;
use argosy_control::ids::Ids;
use argosy_control::instance;
use argosy_control::scheduler::Scheduler;
use argosy_control::task::Tasks;
use argosy_control::{Control, MachineSettings, Outside, Settings};
use argosy_core::adapter::TimeWindow;
use argosy_core::sentinel::Rules;
use argosy_providers::metrics::{Token, WebMetrics};
use argosy_providers::simulated::console;
use argosy_providers::webhook::{Secret, WebhookNotifier};
use argosy_scaleout::postgres::Postgres;
use argosy_server::Server;
use argosy_server::auth::{Audience, Authenticator, Claims, Issuer, JwksSource, TokenEntry};
use argosy_server::listen;
use argosy_server::metrics::Metrics;
use argosy_store::embedded::Embedded;
use argosy_store::memory::Memory;
use argosy_store::{Engine, Store};
use axum::Router;
use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing::{error, info};

/// Where the simulated cloud's console is.
const CLOUD_PREFIX: &str = "/simulated-cloud/v1";

/// Opens everything, serves until a signal comes or something dies, and stops in order.
///
/// `demo` is the door of a demonstration, with where it is; only `argosy up` has one. `when_ready` runs beside
/// the server once it listens; when it ends, so does the server.
pub(crate) async fn serve(
    config: &Config,
    listener: TcpListener,
    demo: Option<(String, Router)>,
    when_ready: impl AsyncFnOnce(SocketAddr) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let address =
        listener.local_addr().map_err(|e| Failure::failed("the listener has no address").why(e))?;
    let clock = Clock::System;
    let ids = Ids::Random;
    let mut tasks = Tasks::default();

    let (store, driver) = Store::open(engine(config).await?).await.map_err(unusable)?;
    tasks.start("store", driver.run());

    let cloud = clouds::simulated(config, clock)?;
    let (clouds, housed) = clouds::clouds(config, cloud.as_ref(), address, clock)?;
    let outside = Outside {
        clouds,
        notifier: notifier(config, clock)?,
        schedulers: schedulers(config, clock).await?,
        extensions: Extensions { metrics: Some(measures(config, clock)?), ..Extensions::default() },
    };
    let lost = instance::unprovided(&store, &outside.clouds);
    if !lost.is_empty() {
        return Err(unprovided(&lost));
    }
    // Before anybody looks for them.
    for processes in &housed {
        processes.begin_again().await;
    }
    // Unique among all processes that share the store, and over restarts.
    let holder = ids.request(clock.now());
    let control =
        Control::start(store, settings(config)?, outside, clock, ids, &holder, &mut tasks);
    declared::make(&control, config).await?;
    if let Some(spec) = policy(config)? {
        let wrong = |error| Failure::usage("nodes.policy_file cannot be used").why(error);
        control.policies.seed(spec).map_err(wrong)?;
    }

    let authenticator = authenticator(config, clock).await?;
    reload_tokens(config, &authenticator, &mut tasks)?;
    let metrics = Metrics::new(env!("CARGO_PKG_VERSION"), clock.now());
    let (stop, stopping) = watch::channel(false);
    let app = Server {
        control,
        profile: profile(config.profile),
        authenticator: authenticator.clone(),
        metrics: metrics.clone(),
        demo: demo.is_some(),
        mounts: cloud
            .clone()
            .map(|cloud| (CLOUD_PREFIX.to_owned(), console::router(cloud)))
            .into_iter()
            .chain(demo)
            .collect(),
        dashboard: crate::dashboard::ASSETS,
        shutdown: stopping.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build_time: option_env!("ARGOSY_BUILD_TIME").unwrap_or_default().to_owned(),
    };
    let tls = match (&config.tls.cert_file, &config.tls.key_file) {
        (Some(cert), Some(key)) => Some(listen::tls(cert, key).map_err(|error| {
            Failure::usage("tls: the certificate or the key cannot be used").why(error)
        })?),
        (Some(_), None) | (None, Some(_)) | (None, None) => None,
    };
    let router = app.router();
    if let Some(cloud) = cloud {
        let server = match &tls {
            None => address,
            // Machines in this process need no certificate of ours, which may name another host.
            Some(_) => {
                let failed = |e| Failure::failed("simulated machines have no way in").why(e);
                let door = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
                let address = door.local_addr().map_err(failed)?;
                let (router, metrics) = (router.clone(), metrics.clone());
                let limits = limits(config);
                let door = listen::serve(door, None, router, limits, metrics, stopping.clone());
                tasks.start("simulated machines' way in", door);
                address
            }
        };
        hosts::start(cloud, server, authenticator, &mut tasks);
    }
    let mut http = pin!(listen::serve(listener, tls, router, limits(config), metrics, stopping));

    // Before anybody is told that we are here.
    let mut signals = StopSignals::listen()?;
    let outcome = tokio::select! {
        ended = &mut http => return Err(match ended {
            Ok(()) => Failure::failed("the listener ended, although it should not"),
            Err(error) => Failure::failed("the listener died").why(error),
        }),
        death = tasks.first_death() => {
            error!(%death, "a task died; the process ends");
            Err(Failure::failed(death.to_string()))
        }
        result = when_ready(address) => result,
        () = signals.next() => {
            info!("stopping");
            Ok(Exit::Ok)
        }
    };
    // Requests finish before the store goes.
    let _ = stop.send(true);
    let mut outcome = outcome;
    if outcome.is_ok() {
        tokio::select! {
            ended = http => if let Err(error) = ended {
                outcome = Err(Failure::failed("the listener died").why(error));
            },
            // Whoever asks twice does not want to wait for slow clients.
            () = signals.next() => {}
        }
    }
    for processes in &housed {
        processes.rest().await;
    }
    info!("stopped");
    outcome
}

fn profile(of: Profile) -> argosy_server::profile::Profile {
    match of {
        Profile::Full => argosy_server::profile::Profile::Full,
        Profile::Mvp => argosy_server::profile::Profile::Mvp,
        Profile::Upstream => argosy_server::profile::Profile::Upstream,
    }
}

fn limits(config: &Config) -> listen::Limits {
    listen::Limits {
        connections_max: config.limits.connections,
        head_max: config.limits.head_time.std(),
        idle_max: config.limits.idle_time.std(),
        drain_max: config.limits.shutdown_time.std(),
        ..listen::Limits::default()
    }
}

/// Hears SIGTERM and SIGINT from now on: without it they kill.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn listen() -> Result<Self, Failure> {
        let hear = |kind| {
            signal(kind).map_err(|error| Failure::failed("cannot listen for signals").why(error))
        };
        Ok(Self {
            terminate: hear(SignalKind::terminate())?,
            interrupt: hear(SignalKind::interrupt())?,
        })
    }

    /// Returns at the next of them.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// G9: what a provider still has would be lost sight of.
fn unprovided(lost: &[(String, usize)]) -> Failure {
    let lost: Vec<String> =
        lost.iter().map(|(name, count)| format!("{count} of provider `{name}`")).collect();
    Failure::usage(format!(
        "there are machines of providers that are not configured: {}",
        lost.join(", ")
    ))
    .why("nobody would watch or return them")
    .fix("put the providers back, delete their node pools, and take them out when no machine is left")
}

fn unusable(error: argosy_store::Error) -> Failure {
    Failure::failed("the store cannot be used").why(error)
}

async fn engine(config: &Config) -> Result<Arc<dyn Engine>, Failure> {
    match config.store.as_str() {
        "embedded" => {
            let dir = config.data_dir.clone();
            // It reads and checks all documents.
            let opened = tokio::task::spawn_blocking(move || Embedded::open(&dir)).await;
            let opened =
                opened.map_err(|e| Failure::failed("the store cannot be opened").why(e))?;
            Ok(Arc::new(opened.map_err(unusable)?))
        }
        "memory:" => Ok(Arc::new(Memory::new())),
        url => {
            let password = config.store_password.read("store_password")?;
            let url = match password {
                Some(password) => with_password(url, &password),
                None => url.to_owned(),
            };
            Ok(Arc::new(Postgres::connect(&url).await.map_err(unusable)?))
        }
    }
}

/// The address of a database with a password in it.
fn with_password(url: &str, password: &str) -> String {
    let password: String = password.bytes().map(|byte| format!("%{byte:02X}")).collect();
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?))) {
        Some((scheme, (user, rest))) => {
            let user = user.split(':').next().unwrap_or(user);
            format!("{scheme}://{user}:{password}@{rest}")
        }
        None => url.to_owned(),
    }
}

/// What the services and loops go by: the same for a server and for a simulation of one.
pub(crate) fn settings(config: &Config) -> Result<Settings, Failure> {
    let (sentinel, retention) = (&config.sentinel, &config.retention);
    Ok(Settings {
        adapters: graph(config).map_err(Failure::usage)?,
        rules: Rules {
            resync_not_ready: sentinel.resync_not_ready.signed(),
            resync_ready: sentinel.resync_ready.signed(),
            backoff_first: sentinel.backoff_first.signed(),
            backoff_max: sentinel.backoff_max.signed(),
        },
        window: TimeWindow {
            past: sentinel.report_past.signed(),
            future: sentinel.report_future.signed(),
        },
        catalog: catalog(config),
        authorization: config.auth.authorization,
        conditions: conditions(config).map_err(|errors| Failure::usage(errors.join("; ")))?,
        nodes: config.nodes.settings(),
        machines: MachineSettings {
            metrics: config.metrics_access(),
            ..config.machines.settings()
        },
        protect_new: config.deletion.protect,
        tombstones_kept: retention.tombstones.signed(),
        idempotency_kept: retention.idempotency_keys.signed(),
        audit_kept: retention.audit.signed(),
        history_kept: retention.status_history.signed(),
    })
}

fn notifier(config: &Config, clock: Clock) -> Result<Arc<WebhookNotifier>, Failure> {
    let mut secrets = HashMap::new();
    for adapter in config.adapters.cluster.iter().chain(&config.adapters.nodepool) {
        let key = format!("the secret of adapter `{}`", adapter.name);
        if let Some(secret) = adapter.secret.read(&key)? {
            let secret = Secret::new(secret.into_bytes())
                .map_err(|error| Failure::usage(format!("{key} cannot be used")).why(error))?;
            secrets.insert(adapter.name.clone(), secret);
        }
    }
    let allow: Result<Vec<_>, _> = config.webhooks.allow.iter().map(|text| text.parse()).collect();
    let allow = allow.map_err(|error| Failure::usage("webhooks.allow is wrong").why(error))?;
    let notifier = WebhookNotifier::new(secrets, allow, clock)
        .map_err(|error| Failure::failed("webhooks cannot be sent").why(error))?;
    Ok(Arc::new(notifier))
}

/// What measures pools whose spec asks for more than heartbeats.
fn measures(config: &Config, clock: Clock) -> Result<Arc<WebMetrics>, Failure> {
    let allow: Result<Vec<_>, _> = config.webhooks.allow.iter().map(|text| text.parse()).collect();
    let allow = allow.map_err(|error| Failure::usage("webhooks.allow is wrong").why(error))?;
    let mut tokens = BTreeMap::new();
    for (name, credential) in &config.metrics_credentials {
        if let Some(token) = credential.secret().read(&format!("metrics_credentials.{name}"))? {
            tokens.insert(name.clone(), Token::new(token));
        }
    }
    let metrics = WebMetrics::new(allow, tokens, config.metrics_access(), clock)
        .map_err(|error| Failure::failed("metrics cannot be asked for").why(error))?;
    Ok(Arc::new(metrics))
}

/// The workload systems. Nobody is asked anything yet: one that is down must not keep us from starting.
async fn schedulers(config: &Config, clock: Clock) -> Result<Vec<Arc<dyn Scheduler>>, Failure> {
    let mut schedulers = Vec::new();
    for settings in config.workload_system.settings(&config.webhooks)? {
        let scheduler = settings.build(clock).await;
        schedulers.push(
            scheduler
                .map_err(|error| Failure::usage("workload_system cannot be used").why(error))?,
        );
    }
    Ok(schedulers)
}

async fn authenticator(config: &Config, clock: Clock) -> Result<Authenticator, Failure> {
    if config.auth.is_none() {
        return Ok(Authenticator::none());
    }
    let tokens = match &config.auth.tokens_file {
        Some(file) => read_tokens(file)?,
        None => Vec::new(),
    };
    let issuers = config.auth.jwt.iter().map(issuer).collect();
    Authenticator::new(tokens, issuers, clock)
        .await
        .map_err(|error| Failure::usage(format!("auth: {}: {}", error.field, error.message)))
}

fn issuer(of: &crate::config::Issuer) -> Issuer {
    let jwks = match (&of.jwks_file, &of.jwks_url) {
        (Some(file), _) => JwksSource::File(file.clone()),
        (None, url) => JwksSource::Url(url.clone().unwrap_or_default()),
    };
    let claims = of.claims.clone();
    Issuer {
        issuer: of.issuer.clone(),
        audience: Audience::OneOf(of.audience.clone()),
        jwks,
        claims: Claims {
            subject: claims.subject,
            teams: claims.teams,
            role: claims.role,
            tenant: claims.tenant,
            adapter: claims.adapter,
            node: claims.node,
        },
        default_role: of.default_role,
    }
}

fn read_tokens(file: &Path) -> Result<Vec<TokenEntry>, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(format!("auth.tokens_file: cannot read {}", file.display())).why(error)
    })?;
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(&text, options).map_err(|error| {
        Failure::usage(format!("auth.tokens_file: {} cannot be understood", file.display()))
            .why(crate::output::clean(&error.to_string()))
            .fix("`argosy token new` prints entries for it")
    })
}

/// On SIGHUP the tokens are read again; a file that cannot be used leaves the old ones in place.
///
/// Also without a file: a signal that nobody listens to would end the process.
fn reload_tokens(
    config: &Config,
    authenticator: &Authenticator,
    tasks: &mut Tasks,
) -> Result<(), Failure> {
    let file = config.auth.tokens_file.clone();
    let authenticator = authenticator.clone();
    let mut hangups = signal(SignalKind::hangup())
        .map_err(|error| Failure::failed("cannot listen for SIGHUP").why(error))?;
    tasks.start("tokens", async move {
        while hangups.recv().await.is_some() {
            let Some(file) = &file else {
                info!("there is no tokens file to read again");
                continue;
            };
            let replaced =
                read_tokens(file).map_err(|failure| failure.to_string()).and_then(|tokens| {
                    authenticator.replace_tokens(tokens).map_err(|error| error.message)
                });
            match replaced {
                Ok(()) => info!(file = %file.display(), "read the tokens again"),
                Err(cause) => error!(cause, "kept the old tokens: the new ones cannot be used"),
            }
        }
        Err("no more signals")
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_put_into_an_address() {
        let rows = [
            ("postgres://me@db/x", "p@ss", "postgres://me:%70%40%73%73@db/x"),
            ("postgres://me:old@db:5432/x", "a", "postgres://me:%61@db:5432/x"),
            ("postgres://db/x", "a", "postgres://db/x"),
        ];
        for (url, password, expected) in rows {
            assert_eq!(with_password(url, password), expected);
        }
    }

    #[test]
    fn the_default_configuration_is_what_core_says() {
        let settings = settings(&Config::default()).unwrap();
        assert_eq!(settings.rules, Rules::default());
        assert_eq!(settings.nodes, argosy_core::node::settings::NodeSettings::default());
        assert_eq!(settings.window, TimeWindow::default());
        assert_eq!(settings.adapters, argosy_core::adapter::AdapterGraph::default());
    }
}
