//! What the server says has happened, checked against itself and against what clients were told.

use super::load::{Told, What};
use crate::harness::{PATIENCE, Server, await_until, text};
use argosy_api::client::{Collection, Watch};
use argosy_api::resource::{WatchEvent, WatchKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One state of one resource: the revision that made it, and its id.
type Place = (u64, String);

/// All that ever happened, from the first revision on.
pub(crate) struct History {
    /// The last revision.
    pub(crate) head: u64,
    events: BTreeMap<Place, WatchEvent>,
    machines: BTreeSet<Place>,
    audit: Vec<Value>,
}

impl History {
    /// Reads everything once nothing happens any more, and checks that it fits together: the feed
    /// has no holes, each change has one audit record, and replaying the feed gives what is listed.
    pub(crate) async fn read(server: &Server) -> History {
        let (audit, clusters, pools) = await_until("nothing happens any more", async || {
            let clusters = list(server, "clusters").await;
            let audit = audit(server).await;
            let pools = list(server, "nodepools").await;
            let quiet = clusters["revision"] == pools["revision"];
            quiet.then_some((audit, clusters, pools))
        })
        .await;
        let head = number(&clusters, "revision");
        let mut events = BTreeMap::new();
        for (kind, of) in
            [("Cluster", Collection::Clusters), ("NodePool", Collection::AllNodePools)]
        {
            let audited = audit.iter().filter(|record| record["kind"] == kind);
            let last = audited.map(|record| number(record, "revision")).max().unwrap_or(0);
            let watch = server.client().watch(of, None, &[], Some(0));
            events.extend(follow(watch, "/uid", last).await);
        }
        let machines = audit.iter().filter(|record| record["kind"] == "Instance");
        let last = machines.map(|record| number(record, "revision")).max().unwrap_or(0);
        let watch = server.client().watch_instances(None, &[], Some(0));
        let machines: BTreeSet<Place> = follow(watch, "/id", last).await.into_keys().collect();
        let history = History { head, events, machines, audit };
        history.is_audited_once();
        history.is_legal();
        history.ends_in(&[clusters, pools]);
        let verified = server.cli(&["audit", "verify"]).await;
        verified.expect(0);
        history
    }

    /// What the audit log has of clusters, node pools and machines, the feeds have, and the other way round:
    /// so they have no holes. The revisions between are those of nodes, commands and our own books.
    fn is_audited_once(&self) {
        let of = |machines: bool| {
            let kind = move |record: &&Value| match record["kind"].as_str() {
                Some("Instance") => machines,
                Some("Cluster" | "NodePool") => !machines,
                _ => false,
            };
            let place =
                |record: &Value| (number(record, "revision"), text(record, "/id").to_owned());
            let mut records: Vec<Place> = self.audit.iter().filter(kind).map(place).collect();
            records.sort();
            records
        };
        let told: Vec<Place> = self.events.keys().cloned().collect();
        assert_eq!(of(false), told, "changes, as audited and as told");
        let told: Vec<Place> = self.machines.iter().cloned().collect();
        assert_eq!(of(true), told, "changes of machines, as audited and as told");
        assert!(told.last().is_none_or(|(last, _)| *last <= self.head));
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

    /// The feed, replayed, is what the lists say.
    fn ends_in(&self, lists: &[Value]) {
        let mut replayed: BTreeMap<&str, &Value> = BTreeMap::new();
        for ((_, id), event) in &self.events {
            match &event.object {
                Some(object) if event.kind != WatchKind::Deleted => replayed.insert(id, object),
                _ => replayed.remove(id.as_str()),
            };
        }
        let items = lists.iter().flat_map(|list| list["items"].as_array().expect("items"));
        let listed: BTreeMap<&str, &Value> = items.map(|item| (text(item, "/uid"), item)).collect();
        assert_eq!(replayed, listed, "the feed and the lists differ");
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

/// The feed from the beginning up to a revision that must come.
async fn follow(mut watch: Watch, key: &str, last: u64) -> BTreeMap<Place, WatchEvent> {
    let mut events = BTreeMap::new();
    let mut seen = 0;
    let following = async {
        while seen < last {
            let event = watch.next().await.expect("nothing is forgotten yet");
            assert!(seen <= event.revision, "the feed went back from {seen}");
            seen = event.revision;
            if let Some(object) = &event.object {
                let place = (event.revision, text(object, key).to_owned());
                assert!(events.insert(place, event).is_none(), "told twice at {seen}");
            }
        }
    };
    let done = tokio::time::timeout(PATIENCE, following).await;
    assert!(done.is_ok(), "the feed stops at {seen}, before {last}");
    events
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
