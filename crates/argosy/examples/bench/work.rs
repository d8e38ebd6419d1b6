//! What is asked of the server, and what is noted about it.

use crate::figures::Figures;
use crate::http::{Connection, Watch};
use crate::now;
use crate::server::{Adapters, Home, Server};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::json;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinSet, LocalSet};

/// How much is asked.
pub(crate) struct Sizes {
    pub(crate) clusters: usize,
    pub(crate) watchers: usize,
    /// Creates by one client, and until Ready one at a time.
    alone: usize,
    /// Creates by 64 clients.
    together: usize,
    /// Until Ready, 16 in flight.
    in_flight: usize,
    /// Each kind of list.
    lists: usize,
    /// Changes that every watcher is told of.
    changes: usize,
    restarts: usize,
}

impl Sizes {
    pub(crate) const FULL: Self = Self {
        clusters: 10_000,
        watchers: 1_000,
        alone: 300,
        together: 5_000,
        in_flight: 800,
        lists: 2_000,
        changes: 100,
        restarts: 5,
    };
    pub(crate) const QUICK: Self = Self {
        clusters: 1_000,
        watchers: 200,
        alone: 100,
        together: 1_000,
        in_flight: 200,
        lists: 300,
        changes: 20,
        restarts: 2,
    };
}

/// Creates that nobody reconciles, and watchers of them.
pub(crate) async fn creates(
    program: &Path,
    home: &Home,
    sizes: &Sizes,
    figures: &mut Figures,
) -> Result<()> {
    let server = Server::start(program, home, Adapters::External).await?;
    figures.set("memory.empty", server.resident_bytes()? / 1e6);
    let mut next = 0;
    // What only the first requests pay is not what is asked for here.
    create(&server, &mut next, 20, 1).await?;

    let began = now();
    let times = create(&server, &mut next, sizes.alone, 1).await?;
    figures.set("create.1.rate", per_second(sizes.alone, began));
    figures.times("create.1", times);

    create(&server, &mut next, 256, 64).await?;
    let (began, cpu) = (now(), server.cpu()?);
    let times = create(&server, &mut next, sizes.together, 64).await?;
    figures.set("create.64.rate", per_second(sizes.together, began));
    figures.set("create.64.cpu", each(server.cpu()? - cpu, sizes.together));
    figures.times("create.64", times);

    fan_out(&server, sizes, figures).await
}

/// Clusters that become Ready; then lists of them, their memory, and starting with them.
pub(crate) async fn clusters(
    program: &Path,
    home: &Home,
    sizes: &Sizes,
    figures: &mut Figures,
) -> Result<()> {
    let server = Server::start(program, home, Adapters::Instant).await?;
    let mut next = 0;
    until_ready(&server, &mut next, 20, 1).await?;

    let cpu = server.cpu()?;
    let times = until_ready(&server, &mut next, sizes.alone, 1).await?;
    figures.set("ready.cpu", each(server.cpu()? - cpu, sizes.alone));
    figures.times("ready.1", times);
    let began = now();
    let times = until_ready(&server, &mut next, sizes.in_flight, 16).await?;
    figures.set("ready.16.rate", per_second(sizes.in_flight, began));
    figures.times("ready.16", times);

    let missing = sizes.clusters.saturating_sub(next);
    until_ready(&server, &mut next, missing, 64).await?;
    figures.set("memory.loaded", server.resident_bytes()? / 1e6);
    for (key, path) in LISTS {
        lists(&server, key, path, sizes, figures).await?;
    }

    drop(server);
    let mut starts = Vec::new();
    for _ in 0..sizes.restarts {
        let server = Server::start(program, home, Adapters::Instant).await?;
        starts.push(server.ready_after);
        let resident = server.resident_bytes()? / 1e6;
        figures.set("memory.restarted", resident);
        let own = (resident - figures.get("memory.empty")) * 1e3;
        figures.set("memory.cluster", own / sizes.clusters as f64);
    }
    figures.times("start", starts);
    Ok(())
}

const PLACES: [(&str, &str); 9] = [
    ("gcp", "us-east1"),
    ("aws", "us-east-1"),
    ("lambda", "us-west-1"),
    ("gcp", "us-west1"),
    ("aws", "us-west-2"),
    ("lambda", "us-south-1"),
    ("gcp", "europe-west4"),
    ("aws", "eu-central-1"),
    ("lambda", "europe-central-1"),
];

const ENVIRONMENTS: [&str; 4] = ["production", "staging", "development", "test"];

const LISTS: [(&str, &str); 4] = [
    ("list", "/clusters?labels=environment:production,squad:s7&phase=Ready&provider=gcp"),
    (
        "search",
        "/clusters?search=labels.environment='staging'%20and%20spec.provider='aws'%20and%20\
         spec.nodeCount%20%3E%203",
    ),
    ("page", "/clusters?size=20"),
    ("name", "/clusters?name=r-0004"),
];

fn name(number: usize) -> String {
    format!("cluster-{number:06}")
}

/// The body of a create. The steps are prime, so that every combination comes up.
fn body(number: usize) -> String {
    let place = PLACES.get(number % PLACES.len());
    let environment = ENVIRONMENTS.get(number / 5 % ENVIRONMENTS.len());
    json!({
        "name": name(number),
        "spec": {
            "provider": place.map(|(provider, _)| provider),
            "region": place.map(|(_, region)| region),
            "nodeCount": 1 + number / 3 % 9,
            "network": { "podCidr": "10.0.0.0/14", "serviceCidr": "10.4.0.0/20" },
        },
        "labels": {
            "environment": environment,
            "squad": format!("s{}", number / 11 % 20),
            "cost-center": format!("cc-{}", number / 13 % 100),
        },
    })
    .to_string()
}

/// Creates by so many clients; how long each took to be acknowledged.
async fn create(
    server: &Server,
    next: &mut usize,
    count: usize,
    clients: usize,
) -> Result<Vec<Duration>> {
    let numbers = Rc::new(RefCell::new(*next..*next + count));
    *next += count;
    let port = server.port;
    spread(clients, async move || {
        let mut connection = Connection::open(port).await?;
        let mut times = Vec::new();
        loop {
            let Some(number) = numbers.borrow_mut().next() else { return Ok(times) };
            let body = body(number);
            let began = now();
            connection.ask("POST", "/clusters", &body, 201).await?;
            times.push(began.elapsed());
        }
    })
    .await
}

/// Does the same so many times at once, and gathers what comes of it.
async fn spread<T: 'static>(
    clients: usize,
    client: impl AsyncFn() -> Result<Vec<T>> + 'static,
) -> Result<Vec<T>> {
    let client = Rc::new(client);
    let local = LocalSet::new();
    let mut running = JoinSet::new();
    for _ in 0..clients {
        let client = client.clone();
        running.spawn_local_on(async move { client().await }, &local);
    }
    local
        .run_until(async {
            let mut all = Vec::new();
            while let Some(ended) = running.join_next().await {
                all.extend(ended??);
            }
            Ok(all)
        })
        .await
}

/// When clusters were seen to be Ready, by their names.
#[derive(Default)]
struct Seen {
    ready: RefCell<HashMap<String, Instant>>,
    news: Notify,
}

#[derive(Deserialize)]
struct Event {
    object: Option<Object>,
}

#[derive(Deserialize)]
struct Object {
    name: String,
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    phase: String,
}

/// Creates and waits until a watch of the list says Ready, with so many in flight; how long each
/// took from the sending of the create.
async fn until_ready(
    server: &Server,
    next: &mut usize,
    count: usize,
    in_flight: usize,
) -> Result<Vec<Duration>> {
    let port = server.port;
    let query = format!("&resource_version={}", revision(server).await?);
    let mut watch = Connection::open(port).await?.watch(&query).await?;
    let seen = Rc::new(Seen::default());
    let numbers = Rc::new(RefCell::new(*next..*next + count));
    *next += count;
    let (watching, creating) = (seen.clone(), seen);
    let work = spread(in_flight, async move || {
        let mut connection = Connection::open(port).await?;
        let mut times = Vec::new();
        loop {
            let Some(number) = numbers.borrow_mut().next() else { return Ok(times) };
            let (name, body) = (name(number), body(number));
            let began = now();
            connection.ask("POST", "/clusters", &body, 201).await?;
            times.push(creating.ready(&name).await - began);
        }
    });
    tokio::select! {
        times = work => times,
        Err(error) = watching.follow(&mut watch) => Err(error),
    }
}

impl Seen {
    async fn ready(&self, name: &str) -> Instant {
        loop {
            let news = self.news.notified();
            if let Some(at) = self.ready.borrow_mut().remove(name) {
                return at;
            }
            news.await;
        }
    }

    async fn follow(&self, watch: &mut Watch) -> Result<()> {
        loop {
            let event = watch.next().await?;
            let at = now();
            let text = std::str::from_utf8(&event)?;
            let Some(data) = text.lines().find_map(|line| line.strip_prefix("data: ")) else {
                continue;
            };
            let event: Event = serde_json::from_str(data)?;
            if let Some(Object { name, status }) = event.object
                && status.phase == "Ready"
            {
                self.ready.borrow_mut().insert(name, at);
                self.news.notify_waiters();
            }
        }
    }
}

#[derive(Deserialize)]
struct Page {
    total: usize,
    revision: u64,
}

/// Where a watch can begin.
async fn revision(server: &Server) -> Result<u64> {
    let mut connection = Connection::open(server.port).await?;
    let page = connection.ask("GET", "/clusters?size=1", "", 200).await?;
    let page: Page = serde_json::from_slice(&page)?;
    Ok(page.revision)
}

/// One kind of list, again and again on one connection.
async fn lists(
    server: &Server,
    key: &str,
    path: &str,
    sizes: &Sizes,
    figures: &mut Figures,
) -> Result<()> {
    let mut connection = Connection::open(server.port).await?;
    let first = connection.ask("GET", path, "", 200).await?;
    let first: Page = serde_json::from_slice(&first)?;
    // A list of nothing would be fast.
    ensure!(0 < first.total, "{path} finds nothing");
    let (before, cpu) = (inside(server).await?, server.cpu()?);
    let mut times = Vec::with_capacity(sizes.lists);
    for _ in 0..sizes.lists {
        let began = now();
        connection.ask("GET", path, "", 200).await?;
        times.push(began.elapsed());
    }
    let (after, cpu) = (inside(server).await?, server.cpu()? - cpu);
    figures.times(key, times);
    figures.set(format!("{key}.cpu"), each(cpu, sizes.lists));
    figures.set(format!("{key}.server"), (after - before) * 1e3 / sizes.lists as f64);
    Ok(())
}

/// How many seconds the server has spent on lists in all, by its own account.
async fn inside(server: &Server) -> Result<f64> {
    let (_, text) = Connection::open(server.port).await?.operation("/metrics").await?;
    let text = String::from_utf8(text)?;
    let sum = text.lines().find(|line| {
        line.starts_with("hyperfleet_api_request_duration_seconds_sum")
            && line.contains("method=\"GET\"")
            && line.contains("/clusters\"")
    });
    let sum = sum.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    sum.context("no duration of lists in /metrics")
}

/// Many watchers of one list, and one change after the other.
async fn fan_out(server: &Server, sizes: &Sizes, figures: &mut Figures) -> Result<()> {
    let query = format!("&resource_version={}", revision(server).await?);
    let told = watch::Sender::new(0_usize);
    let local = LocalSet::new();
    let mut watchers = JoinSet::new();
    for _ in 0..sizes.watchers {
        let mut watch = Connection::open(server.port).await?.watch(&query).await?;
        let told = told.clone();
        let follow = async move {
            loop {
                if watch.next().await?.starts_with(b"event: MODIFIED") {
                    told.send_modify(|told| *told += 1);
                }
            }
        };
        watchers.spawn_local_on(follow, &local);
    }
    let change = async {
        let mut connection = Connection::open(server.port).await?;
        let mut seen = told.subscribe();
        let mut times = Vec::new();
        for change in 1..=sizes.changes {
            let path = format!("/clusters/{}", name(change));
            let body = json!({ "labels": { "round": format!("r{change}") } }).to_string();
            let began = now();
            connection.ask("PATCH", &path, &body, 200).await?;
            seen.wait_for(|told| change * sizes.watchers <= *told).await?;
            times.push(began.elapsed());
        }
        Ok::<_, anyhow::Error>(times)
    };
    let (began, cpu) = (now(), server.cpu()?);
    let times = local.run_until(async {
        tokio::select! {
            times = change => times,
            Some(ended) = watchers.join_next() => ended?,
        }
    });
    figures.times("watch", times.await?);
    let events = sizes.changes * sizes.watchers;
    figures.set("watch.rate", per_second(events, began));
    figures.set("watch.cpu", each(server.cpu()? - cpu, events));
    Ok(())
}

pub(crate) fn per_second(count: usize, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}

/// Microseconds each.
pub(crate) fn each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}
