//! What the server says has happened, checked against itself and against what clients were told.

use super::load::{Told, What};
use crate::harness::{PATIENCE, Server, text};
use argosy_api::client::{Collection, Watch};
use argosy_api::resource::{WatchEvent, WatchKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One state of one resource: the revision that made it, and its id.
type Place = (u64, String);

/// The changes of one kind of thing.
type Feed = BTreeMap<Place, WatchEvent>;

/// All that happened, from the first revision to the one at which it was read.
pub(crate) struct History {
    /// What the feeds of clusters and node pools told.
    events: Feed,
    audit: Vec<Value>,
}

impl History {
    /// Reads everything up to now, and checks that it fits together: the feeds have no holes, each change has
    /// one audit record, and replaying the feeds gives what is listed. It goes on happening meanwhile, for nodes
    /// say that they are there: what comes later is left out.
    pub(crate) async fn read(server: &Server) -> History {
        let clusters = list(server, "clusters").await;
        let pools = list(server, "nodepools").await;
        let head = number(&pools, "revision");
        // Read last, so that it has every record up to the head.
        let mut audit = audit(server).await;
        audit.retain(|record| number(record, "revision") <= head);

        let client = server.client();
        let watch = |of| client.watch(of, None, &[], Some(0));
        let audited = |kind: &str| places(&audit, kind);
        let (of_clusters, of_pools) = (audited("Cluster"), audited("NodePool"));
        let mut events = follow(watch(Collection::Clusters), "/uid", head, &of_clusters).await;
        same(&of_clusters, &events, "clusters");
        replays(&events, &clusters);
        let told = follow(watch(Collection::AllNodePools), "/uid", head, &of_pools).await;
        same(&of_pools, &told, "node pools");
        replays(&told, &pools);
        events.extend(told);
        for (kind, watch) in [
            ("Instance", client.watch_instances(None, &[], Some(0))),
            ("Command", client.watch_commands(None, &[], Some(0))),
        ] {
            let told = follow(watch, "/id", head, &audited(kind)).await;
            same(&audited(kind), &told, kind);
        }
        // What nodes report of themselves is told and not audited. The revisions that are left are those of
        // what has no feed: books, which are audited, and whom each process heard, which is not.
        let watch = client.watch_nodes(None, &[], Some(0));
        let told = follow(watch, "/id", head, &audited("Node")).await;
        let lacking: Vec<_> =
            audited("Node").into_iter().filter(|place| !told.contains_key(place)).collect();
        assert!(lacking.is_empty(), "changes of nodes that were audited and not told: {lacking:?}");

        let history = History { events, audit };
        history.is_legal();
        let verified = server.cli(&["audit", "verify"]).await;
        verified.expect(0);
        history
    }

    /// After every commit: no generation went back, no name is there twice, and no node pool
    /// outlives the deletion of its cluster.
    fn is_legal(&self) {
        let mut now: BTreeMap<&str, &Value> = BTreeMap::new();
        let mut events = self.events.iter().peekable();
        while let Some(((revision, id), event)) = events.next() {
            let object = event.object.as_ref().expect("a change has an object");
            if event.kind == WatchKind::Deleted {
                assert!(now.remove(id.as_str()).is_some(), "{id} was gone before {revision}");
            } else {
                let before = now.insert(id, object).map_or(0, |old| number(old, "generation"));
                let generation = number(object, "generation");
                assert!(before <= generation, "{id} went back to {generation} at {revision}");
                assert_eq!(number(object, "revision"), *revision);
            }
            if events.peek().is_none_or(|((next, _), _)| revision < next) {
                commit_is_whole(*revision, &now);
            }
        }
    }

    /// Everything a client was told is in the history, as it was told.
    pub(crate) fn contains(&self, told: &[Told]) {
        for told in told {
            let Told { what, id, revision, .. } = told;
            let event = self.events.get(&(*revision, id.clone()));
            let object = event.and_then(|event| event.object.as_ref());
            let Some(object) = object else { panic!("{told:?} was acknowledged, and is lost") };
            match what {
                What::Wrote { step, generation } => {
                    assert_eq!(text(object, "/labels/step"), step, "{told:?}");
                    assert_eq!(number(object, "generation"), *generation, "{told:?}");
                }
                What::Deleted => assert!(object["deleted_time"].is_string(), "{told:?}"),
            }
        }
    }

    /// How many reports of the clients' own adapter there are for a resource.
    pub(crate) fn reports(&self, id: &str) -> usize {
        let ours = |record: &&Value| {
            record["action"] == "report" && record["id"] == id && record["via"] == "none"
        };
        self.audit.iter().filter(ours).count()
    }

    /// How often something of this name was created.
    pub(crate) fn created(&self, name: &str) -> usize {
        let of = |record: &&Value| record["action"] == "create" && record["name"] == name;
        self.audit.iter().filter(of).count()
    }
}

fn commit_is_whole(revision: u64, now: &BTreeMap<&str, &Value>) {
    let mut names = BTreeSet::new();
    for resource in now.values() {
        let cluster = resource["cluster_id"].as_str();
        let name = (cluster, text(resource, "/name"));
        assert!(names.insert(name), "{name:?} is there twice at {revision}");
        if let Some(id) = cluster {
            let Some(cluster) = now.get(id) else { panic!("{name:?} is an orphan at {revision}") };
            let deleting = |it: &Value| it["deleted_time"].is_string();
            assert!(!deleting(cluster) || deleting(resource), "half a cascade at {revision}");
        }
    }
}

/// The changes that the audit log has of one kind of thing. That somebody was refused is no change.
fn places(audit: &[Value], kind: &str) -> Vec<Place> {
    let refused = |record: &Value| text(record, "/action").ends_with("-refused");
    let of = audit.iter().filter(|record| record["kind"] == kind && !refused(record));
    let place = |record: &Value| (number(record, "revision"), text(record, "/id").to_owned());
    let mut places: Vec<Place> = of.map(place).collect();
    places.sort();
    places
}

/// What was audited was told, and the other way round, each once.
fn same(audited: &[Place], told: &Feed, of: &str) {
    let told: Vec<Place> = told.keys().cloned().collect();
    assert_eq!(audited, told, "changes of {of}, as audited and as told");
}

/// A feed, replayed up to a list's revision, is what the list says.
fn replays(feed: &Feed, list: &Value) {
    let until = number(list, "revision");
    let mut replayed: BTreeMap<&str, &Value> = BTreeMap::new();
    for ((_, id), event) in feed.iter().take_while(|((revision, _), _)| *revision <= until) {
        match &event.object {
            Some(object) if event.kind != WatchKind::Deleted => replayed.insert(id, object),
            _ => replayed.remove(id.as_str()),
        };
    }
    let items = list["items"].as_array().expect("items").iter();
    let listed: BTreeMap<&str, &Value> = items.map(|item| (text(item, "/uid"), item)).collect();
    assert_eq!(replayed, listed, "the feed and the list differ at {until}");
}

/// A feed from its beginning, until all of `audited` is there or nothing comes any more: what is missing then is
/// told by whoever compares. Nothing after the head.
async fn follow(mut watch: Watch, key: &str, head: u64, audited: &[Place]) -> Feed {
    let last = audited.last().map_or(0, |(revision, _)| *revision);
    let mut feed = Feed::new();
    let mut seen = 0;
    let following = async {
        let complete = |feed: &Feed| audited.iter().all(|place| feed.contains_key(place));
        while seen <= head && (seen < last || !complete(&feed)) {
            let event = watch.next().await.expect("nothing is forgotten yet");
            assert!(seen <= event.revision, "the feed went back from {seen}");
            seen = event.revision;
            if let Some(object) = event.object.as_ref().filter(|_| seen <= head) {
                let place = (event.revision, text(object, key).to_owned());
                assert!(feed.insert(place, event).is_none(), "told twice at {seen}");
            }
        }
    };
    let _ = tokio::time::timeout(PATIENCE, following).await;
    feed
}

/// All audit records, newest first.
async fn audit(server: &Server) -> Vec<Value> {
    let mut records = Vec::new();
    let mut before = String::new();
    loop {
        let path = format!("/api/argosy/v1/audit?limit=1000{before}");
        let page = server.get(&path).await.expect(200);
        records.extend(page["items"].as_array().expect("items").iter().cloned());
        match page["next"].as_u64() {
            Some(next) => before = format!("&before={next}"),
            None => return records,
        }
    }
}

async fn list(server: &Server, of: &str) -> Value {
    let list = server.get(&format!("{of}?size=1000")).await.expect(200);
    assert_eq!(list["size"], list["total"], "too many for one page");
    list
}

pub(super) fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no number {name} in {value:#}"))
}
