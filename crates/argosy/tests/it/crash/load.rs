//! Clients that write all the time, and note what they were told.
//!
//! What a newcomer gets wrong: after an error a client does not know whether its write happened. It
//! looks, and must find the state before or the state after, and nothing between.

use super::history::{History, number};
use crate::harness::{Api, PATIENCE, Reply, Server, await_until, await_until_within, text};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// How many clusters one client keeps: enough to be busy, few enough to list at the end.
const CLUSTERS_MAX: usize = 5;

/// How many node pools one cluster gets, where there are machines for them.
const POOLS_MAX: u64 = 3;

/// How long a client that asks again and again waits for one answer: one try must not use up the patience for all.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// How many tries of a run may have no answer in that time. One was seen in hundreds of runs, and nobody knows why;
/// two are a fault of the server.
const UNHEARD_MAX: u64 = 1;

/// What the server acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) what: What,
    pub(crate) id: String,
    pub(crate) revision: u64,
}

/// What was done.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Created or patched.
    Wrote {
        /// What the label `step` says since.
        step: String,
        /// The generation since.
        generation: u64,
    },
    /// Deleted.
    Deleted,
}

/// Clients at work, until they are told to stop.
pub(crate) struct Load {
    clients: JoinSet<Client>,
    done: Vec<Client>,
    shared: Arc<Shared>,
}

/// What a load came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// Writes that were acknowledged.
    pub(crate) acknowledged: u64,
    /// Requests that were sent and not answered, or answered with 503.
    pub(crate) unknown: u64,
    /// Writes that happened, as it turned out, although nobody said so.
    pub(crate) unanswered: u64,
}

#[derive(Default)]
struct Shared {
    acknowledged: AtomicU64,
    unknown: AtomicU64,
    unanswered: AtomicU64,
    unheard: AtomicU64,
    stop: AtomicBool,
}

/// A repeatable source of choices (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

impl Load {
    /// Starts clients whose choices follow from the seed.
    pub(crate) fn start(api: &Api, clients: u64, seed: u64) -> Self {
        Self::with_pools(api, clients, seed, POOLS_MAX)
    }

    /// The same, but they make no node pools: for servers that share a store, and have each a simulated cloud
    /// of its own. What one bought is nowhere to be found for the other, which rightly does not believe that.
    pub(crate) fn of_clusters(api: &Api, clients: u64, seed: u64) -> Self {
        Self::with_pools(api, clients, seed, 0)
    }

    fn with_pools(api: &Api, clients: u64, seed: u64, pools_max: u64) -> Self {
        let shared = Arc::new(Shared::default());
        let mut set = JoinSet::new();
        for number in 0..clients {
            let client = Client {
                api: api.clone(),
                number,
                chance: Chance::new(seed ^ (number << 32)),
                shared: shared.clone(),
                pools_max,
                made: 0,
                clusters: Vec::new(),
                told: Vec::new(),
                names: Vec::new(),
                reports: Vec::new(),
            };
            set.spawn(client.work());
        }
        Self { clients: set, done: Vec::new(), shared }
    }

    /// How many writes were acknowledged so far.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::SeqCst)
    }

    /// Waits until so many more writes were acknowledged.
    pub(crate) async fn progress(&self, writes: u64) {
        let goal = self.acknowledged() + writes;
        await_until("writes are acknowledged", async || {
            (goal <= self.acknowledged()).then_some(())
        })
        .await;
    }

    /// Lets each client finish what it is at.
    pub(crate) async fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        while let Some(client) = self.clients.join_next().await {
            self.done.push(client.expect("a client does not panic"));
        }
    }

    /// Stops, and checks all the clients were told against what the server says has happened.
    pub(crate) async fn verify(mut self, server: &Server) -> Counts {
        self.stop().await;
        let clients = &self.done;
        settle(server, clients.iter().map(|client| client.clusters.len()).sum()).await;
        let history = History::read(server).await;
        for client in clients {
            client.check(&history);
        }
        let unheard = self.shared.unheard.load(Ordering::SeqCst);
        assert!(unheard <= UNHEARD_MAX, "{unheard} requests had no answer in {ANSWER_MAX:?}");
        Counts {
            acknowledged: self.acknowledged(),
            unknown: self.shared.unknown.load(Ordering::SeqCst),
            unanswered: self.shared.unanswered.load(Ordering::SeqCst),
        }
    }
}

/// One client: the only one who writes what it writes.
struct Client {
    api: Api,
    number: u64,
    chance: Chance,
    shared: Arc<Shared>,
    /// How many node pools one cluster gets.
    pools_max: u64,
    made: u64,
    clusters: Vec<Cluster>,
    told: Vec<Told>,
    /// Every name it ever asked for.
    names: Vec<String>,
    /// By cluster: reports that were acknowledged, and those of which nothing is known.
    reports: Vec<(String, usize, usize)>,
}

/// A cluster as its client knows it.
#[derive(Clone, Debug)]
struct Cluster {
    id: String,
    step: u64,
    generation: u64,
    pools: u64,
    report: u64,
}

/// How a request ended.
enum Ended {
    Done(Reply),
    Unknown,
}

impl Client {
    async fn work(mut self) -> Self {
        while !self.shared.stop.load(Ordering::SeqCst) {
            let place = self.chance.below(CLUSTERS_MAX as u64) as usize;
            match self.chance.below(10) {
                _ if self.clusters.len() <= place => self.create().await,
                0..=3 => self.patch(place).await,
                4..=5 => self.report(place).await,
                6..=7 => self.create_pool(place).await,
                _ => self.delete(place).await,
            }
        }
        self
    }

    async fn ask(&self, request: RequestBuilder) -> Ended {
        ask(&self.shared, request).await
    }

    fn happened_unanswered(&self) {
        self.shared.unanswered.fetch_add(1, Ordering::SeqCst);
    }

    /// Asks again and again until there is an answer.
    async fn persist(&self, request: RequestBuilder) -> Reply {
        let shared = self.shared.clone();
        await_until("a request is answered", async move || {
            let request = request.try_clone().expect("a body in memory");
            match ask(&shared, request.timeout(ANSWER_MAX)).await {
                Ended::Done(reply) => Some(reply),
                Ended::Unknown => None,
            }
        })
        .await
    }

    async fn look(&self, path: &str) -> Reply {
        self.persist(self.api.request(Method::GET, path)).await
    }

    fn note(&mut self, resource: &Value, what: What) {
        self.shared.acknowledged.fetch_add(1, Ordering::SeqCst);
        let (id, revision) = (text(resource, "/uid").to_owned(), number(resource, "revision"));
        self.told.push(Told { what, id, revision });
    }

    fn wrote(&mut self, resource: &Value) {
        let step = text(resource, "/labels/step").to_owned();
        let generation = number(resource, "generation");
        self.note(resource, What::Wrote { step, generation });
    }

    /// Creates, again and again with the same key until it is answered: once, whatever happens.
    async fn create_once(&mut self, path: &str, body: &Value) -> Value {
        let key = format!("{}-{}", self.number, text(body, "/name"));
        self.names.push(text(body, "/name").to_owned());
        let mut made = Vec::new();
        for _ in 0..=self.chance.below(2) {
            let request = self.api.request(Method::POST, path).header("idempotency-key", &key);
            let reply = self.persist(request.json(body)).await;
            if made.is_empty() && reply.headers.contains_key("idempotency-replayed") {
                self.happened_unanswered();
            }
            made.push(reply.expect(201));
        }
        let first = made.first().expect("one at least").clone();
        assert!(made.iter().all(|again| again["uid"] == first["uid"]), "{made:#?}");
        first
    }

    async fn create(&mut self) {
        self.made += 1;
        let body = json!({
            "name": format!("load-{}-{}", self.number, self.made),
            "spec": { "provider": "gcp", "region": "us-east1", "nodeCount": 1 },
            "labels": { "step": "0" },
        });
        let created = self.create_once("clusters", &body).await;
        let id = text(&created, "/uid").to_owned();
        self.wrote_first(&created);
        self.reports.push((id.clone(), 0, 0));
        self.clusters.push(Cluster { id, step: 0, generation: 1, pools: 0, report: 0 });
    }

    async fn create_pool(&mut self, place: usize) {
        let cluster = &mut self.clusters[place];
        if cluster.pools == self.pools_max {
            return self.patch(place).await;
        }
        cluster.pools += 1;
        let (path, number) = (format!("clusters/{}/nodepools", cluster.id), cluster.pools);
        let body = json!({
            "name": format!("pool-{}-{}", &cluster.id[24..], number),
            "spec": { "machineType": "n1-standard-4", "nodeCount": 1 },
            "labels": { "step": "0" },
        });
        let created = self.create_once(&path, &body).await;
        self.wrote_first(&created);
    }

    /// A repeated create answers with what it has become since; only the first state is ours.
    fn wrote_first(&mut self, created: &Value) {
        assert_eq!(text(created, "/labels/step"), "0");
        assert_eq!(number(created, "generation"), 1);
        self.wrote(created);
    }

    async fn patch(&mut self, place: usize) {
        let before = self.clusters[place].clone();
        let path = format!("clusters/{}", before.id);
        let step = before.step + 1;
        let body = json!({ "labels": { "step": step.to_string() } });
        let ended = self.ask(self.api.request(Method::PATCH, &path).json(&body)).await;
        let (patched, answered) = match ended {
            Ended::Done(reply) => (reply.expect(200), true),
            Ended::Unknown => (self.look(&path).await.expect(200), false),
        };
        let found = (text(&patched, "/labels/step"), number(&patched, "generation"));
        if !answered && found == (before.step.to_string().as_str(), before.generation) {
            return;
        }
        assert_eq!(found, (step.to_string().as_str(), before.generation + 1), "half a patch");
        let cluster = &mut self.clusters[place];
        (cluster.step, cluster.generation) = (step, before.generation + 1);
        if !answered {
            self.happened_unanswered();
        }
        self.wrote(&patched);
    }

    async fn report(&mut self, place: usize) {
        let cluster = &mut self.clusters[place];
        cluster.report += 1;
        let Cluster { id, report, generation, .. } = cluster.clone();
        let conditions = ["Available", "Applied", "Health"]
            .map(|name| json!({ "type": name, "status": "True", "reason": "Probed" }));
        let body = json!({ "adapter": "probe", "observed_generation": generation,
            "conditions": conditions, "data": { "report": report } });
        let path = format!("clusters/{id}/statuses");
        let ended = self.ask(self.api.request(Method::PUT, &path).json(&body)).await;
        let counts = self.reports.iter_mut().find(|(of, ..)| *of == id).expect("ours");
        match ended {
            Ended::Done(reply) => {
                assert!(matches!(reply.status, 200 | 201), "{} {}", reply.status, reply.text);
                counts.1 += 1;
                self.shared.acknowledged.fetch_add(1, Ordering::SeqCst);
            }
            Ended::Unknown => counts.2 += 1,
        }
    }

    async fn delete(&mut self, place: usize) {
        let Cluster { id, generation, .. } = self.clusters[place].clone();
        let path = format!("clusters/{id}");
        match self.ask(self.api.request(Method::DELETE, &path)).await {
            Ended::Done(reply) => {
                let deleting = reply.expect(202);
                assert_eq!(number(&deleting, "generation"), generation + 1);
                self.note(&deleting, What::Deleted);
            }
            Ended::Unknown => {
                let reply = self.look(&path).await;
                if reply.status != 404 && !reply.expect(200)["deleted_time"].is_string() {
                    return;
                }
                self.happened_unanswered();
            }
        }
        self.clusters.remove(place);
    }

    fn check(&self, history: &History) {
        history.contains(&self.told);
        for name in &self.names {
            assert_eq!(history.created(name), 1, "{name}");
        }
        for (id, acknowledged, unknown) in &self.reports {
            let found = history.reports(id);
            let possible = *acknowledged..=acknowledged + unknown;
            assert!(possible.contains(&found), "{id}: {found} reports, not {possible:?}");
        }
    }
}

/// Asks once; the answer may be lost, or there is nobody to ask.
async fn ask(shared: &Shared, request: RequestBuilder) -> Ended {
    let interrupted = || {
        shared.unknown.fetch_add(1, Ordering::SeqCst);
        Ended::Unknown
    };
    let answer = match request.send().await {
        Ok(answer) => answer,
        // It was never sent.
        Err(error) if error.is_connect() => return Ended::Unknown,
        Err(error) => {
            shared.unheard.fetch_add(u64::from(error.is_timeout()), Ordering::SeqCst);
            return interrupted();
        }
    };
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    match answer.text().await {
        Ok(text) if status != 503 => Ended::Done(Reply { status, headers, text }),
        Ok(_) | Err(_) => interrupted(),
    }
}

/// Waits until everything is as it was asked for: nothing is stuck.
async fn settle(server: &Server, clusters: usize) {
    for of in ["clusters", "nodepools"] {
        // A purchase that was cut off, and whose pool is deleted, is known to have come to nothing when it
        // was not shown for a minute.
        let patience = PATIENCE * 2;
        await_until_within(patience, &format!("the {of} are ready or gone"), async || {
            let list = server.get(&format!("{of}?size=1000")).await.expect(200);
            let items = list["items"].as_array().expect("items");
            let ready = items.iter().all(|item| item["status"]["phase"] == "Ready");
            (ready && (of == "nodepools" || items.len() == clusters)).then_some(())
        })
        .await;
    }
}
