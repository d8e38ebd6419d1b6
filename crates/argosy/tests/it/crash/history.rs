//! What the server says has happened, checked against itself and against what clients were told.

use super::load::{Told, What};
use crate::harness::{PATIENCE, Server, await_until, text};
use argosy_api::client::Collection;
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
    audit: Vec<Value>,
}

impl History {
    /// Reads everything once nothing happens any more, and checks that it fits together: the feed
    /// has no holes, each change has one audit record, and replaying the feed gives what is listed.
    pub(crate) async fn read(server: &Server) -> History {
        let (audit, clusters, pools) = await_until("nothing happens any more", async || {
            let audit = audit(server).await;
            let lists = (list(server, "clusters").await, list(server, "nodepools").await);
            let head = audit.iter().map(|record| number(record, "revision")).max().unwrap_or(0);
            let quiet = |list: &Value| number(list, "revision") == head;
            (quiet(&lists.0) && quiet(&lists.1)).then_some((audit, lists.0, lists.1))
        })
        .await;
        let head = number(&clusters, "revision");
        let mut events = BTreeMap::new();
        for (kind, of) in
            [("Cluster", Collection::Clusters), ("NodePool", Collection::AllNodePools)]
        {
            let audited = audit.iter().filter(|record| record["kind"] == kind);
            let last = audited.map(|record| number(record, "revision")).max().unwrap_or(0);
            events.extend(follow(server, of, last).await);
        }
        let history = History { head, events, audit };
        history.has_no_holes();
        history.is_audited_once();
        history.is_legal();
        history.ends_in(&[clusters, pools]);
        let verified = server.cli(&["audit", "verify"]).await;
        verified.expect(0);
        history
    }

    fn has_no_holes(&self) {
        let seen: BTreeSet<u64> = self.events.keys().map(|(revision, _)| *revision).collect();
        let missing: Vec<u64> = (1..=self.head).filter(|it| !seen.contains(it)).collect();
        assert!(missing.is_empty(), "the feed to {} lacks {missing:?}", self.head);
    }

    fn is_audited_once(&self) {
        let mut records: Vec<Place> = self
            .audit
            .iter()
            .map(|record| (number(record, "revision"), text(record, "/id").to_owned()))
            .collect();
        records.sort();
        let changes: Vec<Place> = self.events.keys().cloned().collect();
        let extra: Vec<_> = records.iter().filter(|it| !self.events.contains_key(*it)).collect();
        let lacking: Vec<_> =
            changes.iter().filter(|it| records.binary_search(it).is_err()).collect();
        assert!(extra.is_empty() && lacking.is_empty(), "{extra:?} {lacking:?}");
        assert_eq!(records.len(), changes.len(), "a change was recorded twice");
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
async fn follow(server: &Server, of: Collection<'_>, last: u64) -> BTreeMap<Place, WatchEvent> {
    let mut events = BTreeMap::new();
    let mut watch = server.client().watch(of, None, &[], Some(0));
    let mut seen = 0;
    let following = async {
        while seen < last {
            let event = watch.next().await.expect("nothing is forgotten yet");
            assert!(seen <= event.revision, "the feed went back from {seen}");
            seen = event.revision;
            if let Some(object) = &event.object {
                let place = (event.revision, text(object, "/uid").to_owned());
                assert!(events.insert(place, event).is_none(), "told twice at {seen}");
            }
        }
    };
    let done = tokio::time::timeout(PATIENCE, following).await;
    assert!(done.is_ok(), "the feed of {of:?} stops at {seen}, before {last}");
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
