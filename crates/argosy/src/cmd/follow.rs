//! Following what a server holds: a table in place on a terminal, JSON lines in a pipe.
//!
//! A server that restarts is waited for, and nothing is missed: the watch goes on after the last
//! revision it saw. If that is no longer retained, everything is read again and compared.

mod resource;

pub(super) use resource::{all, one};

use crate::failure::{Exit, Failure};
use crate::output::{Format, clean, print};
use crate::session::Session;
use crate::view;
use argosy_api::client::{ClientError, Watch};
use argosy_api::resource::{WatchEvent, WatchKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

/// How often ages are redrawn on a terminal.
const REDRAW: Duration = Duration::from_secs(1);

/// Every how many redraws what no watch tells is read again.
const MEASURE_EVERY: u32 = 5;

/// How long reading it may take. Measurements that come later than the next ones are worth nothing.
const MEASURE_MAX: Duration = Duration::from_secs(4);

/// What is followed: one thing, or a list of them.
pub(super) trait Subject {
    type Item: Clone + Serialize + DeserializeOwned;

    /// The member of an item that says which it is.
    const KEY: &'static str;

    /// Whether it is one thing, which ends the watch when it is gone.
    fn is_one(&self) -> bool;

    /// What is there now, and the revision to go on from.
    async fn read(&self, session: &Session) -> Result<(Vec<Self::Item>, u64), Failure>;

    /// The watch from a revision on.
    fn watch(&self, session: &Session, after: u64) -> Watch;

    fn key(item: &Self::Item) -> &str;

    fn revision(item: &Self::Item) -> u64;

    /// Reads what the table needs besides the items.
    async fn prepare(&mut self, _session: &Session, _items: &BTreeMap<String, Self::Item>) {}

    /// Reads again what changes without a revision, and so without an event.
    async fn measure(&self, _session: &Session, _items: &mut BTreeMap<String, Self::Item>) {}

    fn table(&self, session: &Session, items: &[Self::Item]) -> String;
}

/// Follows a subject until it is gone, or until somebody interrupts it.
pub(super) async fn follow<S: Subject>(session: &Session, subject: S) -> Result<Exit, Failure> {
    let (items, mut after) = subject.read(session).await?;
    let mut shown = Shown::new(session, subject);
    shown.start(items).await;
    loop {
        let mut watch = shown.subject.watch(session, after);
        let error = loop {
            match shown.next(&mut watch).await {
                Ok(event) => {
                    let gone = event.kind == WatchKind::Deleted && shown.subject.is_one();
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
        match shown.subject.read(session).await {
            Ok((items, revision)) => {
                after = revision;
                shown.compare(items, revision).await;
            }
            Err(failure) if failure.exit == Exit::NotFound && shown.subject.is_one() => {
                shown.compare(Vec::new(), after).await;
                return Ok(Exit::Ok);
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// What the reader has seen.
struct Shown<'a, S: Subject> {
    session: &'a Session,
    subject: S,
    /// A table in place; otherwise lines of JSON.
    live: bool,
    items: BTreeMap<String, S::Item>,
    /// The keys in the order of the first list, then as they came.
    order: Vec<String>,
}

impl<'a, S: Subject> Shown<'a, S> {
    fn new(session: &'a Session, subject: S) -> Self {
        let live = session.screen.live && matches!(session.format, Format::Table | Format::Wide);
        Self { session, subject, live, items: BTreeMap::new(), order: Vec::new() }
    }

    async fn start(&mut self, items: Vec<S::Item>) {
        for item in items {
            self.add(WatchKind::Added, item);
        }
        self.draw().await;
    }

    /// The next event; redraws while it waits, because ages grow.
    async fn next(&mut self, watch: &mut Watch) -> Result<WatchEvent, ClientError> {
        // Kept across redraws: a watch that is connecting again must not start over each second.
        let mut next = pin!(watch.next());
        let mut redraws = 0_u32;
        loop {
            tokio::select! {
                event = &mut next => return event,
                () = tokio::time::sleep(REDRAW), if self.live => {
                    redraws = redraws.wrapping_add(1);
                    if redraws.is_multiple_of(MEASURE_EVERY) {
                        let measured = self.subject.measure(self.session, &mut self.items);
                        // A server that is away is shown by what it last said.
                        let _ = tokio::time::timeout(MEASURE_MAX, measured).await;
                    }
                    self.paint();
                }
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
                let key = object.get(S::KEY).and_then(serde_json::Value::as_str);
                self.remove(key.unwrap_or_default(), event.revision);
            }
            WatchKind::Bookmark | WatchKind::Error => return,
        }
        self.draw().await;
    }

    /// Takes a whole new list, telling only what differs.
    async fn compare(&mut self, items: Vec<S::Item>, revision: u64) {
        let gone: Vec<String> = self
            .order
            .iter()
            .filter(|key| !items.iter().any(|item| S::key(item) == key.as_str()))
            .cloned()
            .collect();
        for key in gone {
            self.remove(&key, revision);
        }
        for item in items {
            match self.items.get(S::key(&item)).map(S::revision) {
                Some(revision) if revision == S::revision(&item) => {}
                Some(_) => self.add(WatchKind::Modified, item),
                None => self.add(WatchKind::Added, item),
            }
        }
        self.draw().await;
    }

    fn add(&mut self, kind: WatchKind, item: S::Item) {
        self.line(kind, S::revision(&item), &item);
        let key = S::key(&item).to_owned();
        if self.items.insert(key.clone(), item).is_none() {
            self.order.push(key);
        }
    }

    fn remove(&mut self, key: &str, revision: u64) {
        self.order.retain(|known| known != key);
        if let Some(item) = self.items.remove(key) {
            self.line(WatchKind::Deleted, revision, &item);
        }
    }

    /// One event as a line of JSON, for a pipe.
    fn line(&self, kind: WatchKind, revision: u64, item: &S::Item) {
        if !self.live {
            let event = WatchEvent { kind, revision, object: Some(view::to_value(item)) };
            let line = crate::output::line(&view::to_value(&event));
            print(&line);
        }
    }

    /// The table with everything in it, for a terminal.
    async fn draw(&mut self) {
        if self.live {
            self.subject.prepare(self.session, &self.items).await;
            self.paint();
        }
    }

    fn paint(&self) {
        let items: Vec<S::Item> =
            self.order.iter().filter_map(|key| self.items.get(key)).cloned().collect();
        let table = self.subject.table(self.session, &items);
        let last = format!("{} in {}; Ctrl-C ends", items.len(), clean(&self.session.target.name));
        print(&self.session.screen.in_place(&table, &last));
    }
}
