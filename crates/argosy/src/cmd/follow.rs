//! Following resources: a table in place on a terminal, JSON lines in a pipe.
//!
//! A server that restarts is waited for, and nothing is missed: the watch goes on after the last
//! revision it saw. If that is no longer retained, the list is read again and compared.

use super::resource::Noun;
use crate::failure::{Exit, Failure};
use crate::output::{Format, print};
use crate::session::Session;
use crate::view::{self, ClusterNames};
use argosy_api::client::{ClientError, Collection};
use argosy_api::resource::{Resource, WatchEvent, WatchKind};
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

/// How often ages are redrawn on a terminal.
const REDRAW: Duration = Duration::from_secs(1);

/// Follows one resource until it is gone.
pub(super) async fn one(session: &Session, noun: &Noun, name: &str) -> Result<Exit, Failure> {
    let (of, id) = noun.item(name);
    let item = match session.client.get(of, id).await {
        Ok(item) => item,
        Err(error) => return Err(session.missing(error, of, id).await),
    };
    let mut shown = Shown::new(session, noun);
    let mut after = item.revision;
    shown.start(vec![item]).await;
    loop {
        let mut watch = session.client.watch(of, Some(id), &[], Some(after));
        let error = loop {
            match shown.next(&mut watch).await {
                Ok(event) => {
                    let gone = event.kind == WatchKind::Deleted;
                    shown.take(event).await;
                    if gone {
                        return Ok(Exit::Ok);
                    }
                }
                Err(error) => break error,
            }
        };
        if error.status() != Some(410) {
            return Err(session.failure(error));
        }
        match session.client.get(of, id).await {
            Ok(item) => {
                after = item.revision;
                shown.compare(vec![item], after).await;
            }
            Err(error) if error.status() == Some(404) => {
                shown.compare(Vec::new(), after).await;
                return Ok(Exit::Ok);
            }
            Err(error) => return Err(session.failure(error)),
        }
    }
}

/// Follows a list, until somebody interrupts it.
pub(super) async fn all(
    session: &Session,
    noun: &Noun,
    query: &[(&str, &str)],
) -> Result<Exit, Failure> {
    let of: Collection<'_> = noun.collection();
    let (items, mut after) = session.list_all(of, query).await?;
    // Order is for lists; a watch tells things as they happen.
    let filter: Vec<(&str, &str)> =
        query.iter().copied().filter(|(name, _)| *name != "order").collect();
    let mut shown = Shown::new(session, noun);
    shown.start(items).await;
    loop {
        let mut watch = session.client.watch(of, None, &filter, Some(after));
        let error = loop {
            match shown.next(&mut watch).await {
                Ok(event) => shown.take(event).await,
                Err(error) => break error,
            }
        };
        if error.status() != Some(410) {
            return Err(session.failure(error));
        }
        let (items, revision) = session.list_all(of, query).await?;
        after = revision;
        shown.compare(items, revision).await;
    }
}

/// What the reader has seen.
struct Shown<'a> {
    session: &'a Session,
    noun: &'a Noun,
    /// A table in place; otherwise lines of JSON.
    live: bool,
    items: BTreeMap<String, Resource>,
    /// The uids in the order of the first list, then as they came.
    order: Vec<String>,
    clusters: ClusterNames,
}

impl<'a> Shown<'a> {
    fn new(session: &'a Session, noun: &'a Noun) -> Self {
        Self {
            session,
            noun,
            live: session.screen.live && matches!(session.format, Format::Table | Format::Wide),
            items: BTreeMap::new(),
            order: Vec::new(),
            clusters: ClusterNames::new(),
        }
    }

    async fn start(&mut self, items: Vec<Resource>) {
        for item in items {
            self.add(WatchKind::Added, item);
        }
        self.draw().await;
    }

    /// The next event; redraws while it waits, because ages grow.
    async fn next(&self, watch: &mut argosy_api::client::Watch) -> Result<WatchEvent, ClientError> {
        // Kept across redraws: a watch that is connecting again must not start over each second.
        let mut next = pin!(watch.next());
        loop {
            tokio::select! {
                event = &mut next => return event,
                () = tokio::time::sleep(REDRAW), if self.live => self.paint(),
            }
        }
    }

    async fn take(&mut self, event: WatchEvent) {
        let object = event.object.unwrap_or_default();
        match event.kind {
            WatchKind::Added | WatchKind::Modified => {
                if let Ok(item) = serde_json::from_value(object) {
                    self.add(event.kind, item);
                }
            }
            WatchKind::Deleted => {
                let uid = object.get("uid").and_then(serde_json::Value::as_str).unwrap_or_default();
                self.remove(uid, event.revision);
            }
            WatchKind::Bookmark | WatchKind::Error => return,
        }
        self.draw().await;
    }

    /// Takes a whole new list, telling only what differs.
    async fn compare(&mut self, items: Vec<Resource>, revision: u64) {
        let gone: Vec<String> = self
            .order
            .iter()
            .filter(|uid| !items.iter().any(|item| item.uid == **uid))
            .cloned()
            .collect();
        for uid in gone {
            self.remove(&uid, revision);
        }
        for item in items {
            match self.items.get(&item.uid).map(|known| known.revision) {
                Some(revision) if revision == item.revision => {}
                Some(_) => self.add(WatchKind::Modified, item),
                None => self.add(WatchKind::Added, item),
            }
        }
        self.draw().await;
    }

    fn add(&mut self, kind: WatchKind, item: Resource) {
        self.line(kind, item.revision, &item);
        if self.items.insert(item.uid.clone(), item.clone()).is_none() {
            self.order.push(item.uid);
        }
    }

    fn remove(&mut self, uid: &str, revision: u64) {
        self.order.retain(|known| known != uid);
        if let Some(item) = self.items.remove(uid) {
            self.line(WatchKind::Deleted, revision, &item);
        }
    }

    /// One event as a line of JSON, for a pipe.
    fn line(&self, kind: WatchKind, revision: u64, item: &Resource) {
        if !self.live {
            let event = WatchEvent { kind, revision, object: Some(view::to_value(item)) };
            let line = crate::output::line(&view::to_value(&event));
            print(&line);
        }
    }

    /// The table with everything in it, for a terminal.
    async fn draw(&mut self) {
        if !self.live {
            return;
        }
        let unknown = |item: &Resource| {
            item.cluster_id.as_ref().is_some_and(|id| !self.clusters.contains_key(id))
        };
        if self.items.values().any(unknown) {
            let items: Vec<Resource> = self.items.values().cloned().collect();
            self.clusters = view::cluster_names(self.session, self.noun.kind, &items).await;
        }
        self.paint();
    }

    fn paint(&self) {
        let items: Vec<Resource> =
            self.order.iter().filter_map(|uid| self.items.get(uid)).cloned().collect();
        let table = view::table(self.session, self.noun.kind, &items, &self.clusters);
        // To the top left, each line cleared before it is written, and what is below cleared too.
        let table = table.replace('\n', "\u{1b}[K\n");
        print(&format!(
            "\u{1b}[H{table}\u{1b}[K\n{} in {}; Ctrl-C ends\u{1b}[K\n\u{1b}[J",
            items.len(),
            crate::output::clean(&self.session.target.name)
        ));
    }
}
