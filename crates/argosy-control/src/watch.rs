//! Following a list or one item: every later change, or a clear "list again".
//!
//! One implementation for resources, nodes, commands and instances; what differs is in the files below. What a
//! newcomer gets wrong: a watch holds no list. It begins by reading what is there piece by piece, and
//! leaves out what changed since it began, because the changes tell of that.

mod command;
mod instance;
mod node;
mod resource;

use crate::{Error, Revision, Stored};
use argosy_core::resource::Resource;
use argosy_store::Store;
use argosy_store::view::{Event, View};
use std::collections::VecDeque;
use std::fmt;

pub use self::command::WatchCommands;
pub use self::instance::WatchInstances;
pub use self::node::WatchNodes;
pub(crate) use self::resource::Scope;
pub use self::resource::WatchList;

/// What can be watched. The set is closed.
pub trait Watched: Sized + 'static {
    /// Which one.
    type Id: Clone + fmt::Debug + fmt::Display;

    /// Which of them a watch shows, and to whom.
    type Scope;

    /// Where a list goes on that is read piece by piece.
    type Cursor;

    /// One of them in an event.
    type Change;

    /// Those that an event changed.
    fn changes(event: &Event) -> &[Self::Change];

    /// Which one a change is about.
    fn id(change: &Self::Change) -> Self::Id;

    /// As it was, and as it is; what it was is not known for events read back from the engine.
    fn sides(change: &Self::Change) -> (Option<&Stored<Self>>, Option<&Stored<Self>>);

    /// Some of what the scope shows, from the beginning or where it went on; and where it goes on after
    /// that, if there is more.
    fn listed(
        scope: &Self::Scope,
        view: &View,
        after: Option<&Self::Cursor>,
    ) -> (Vec<Stored<Self>>, Option<Self::Cursor>);

    /// Whether the scope shows it.
    fn shows(&self, scope: &Self::Scope, view: &View) -> bool;

    /// As it was made: nothing has happened to it since.
    fn is_new(&self) -> bool;

    /// Whether something that is out of sight now may have been in sight before this change, where
    /// what it was is not known.
    fn was_shown(scope: &Self::Scope, view: &View, change: &Self::Change) -> WasShown;
}

/// Whether something may have been in sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WasShown {
    /// It was not, or the watcher may not know of it.
    No,
    /// It may have been, and the watcher may know of it: it is told of the end of something that it
    /// perhaps never saw.
    Maybe,
    /// Nobody can tell whose it was: saying "deleted" could tell of others' things, silence could
    /// leave the watcher with what is gone. It must list again.
    Unknown,
}

/// One line of a watch.
#[derive(Clone, Debug)]
pub enum WatchEvent<T: Watched = Resource> {
    /// It is new to this watch.
    Added(Stored<T>),
    /// It changed.
    Modified(Stored<T>),
    /// It is gone, or no longer matches; as it last was, if that is known.
    Deleted {
        /// Which.
        id: T::Id,
        /// As it last was.
        last: Option<Stored<T>>,
        /// When.
        revision: Revision,
    },
    /// Nothing to show, but the watch has seen everything up to here.
    Bookmark(Revision),
}

impl<T: Watched> WatchEvent<T> {
    /// The commit it tells of.
    pub const fn revision(&self) -> Revision {
        match self {
            WatchEvent::Added(item) | WatchEvent::Modified(item) => item.revision,
            WatchEvent::Deleted { revision, .. } | WatchEvent::Bookmark(revision) => *revision,
        }
    }
}

/// How many commits may pass unseen before a watch says how far it is, so that a client that comes
/// back does not ask for what is no longer retained.
const BOOKMARK_EVERY: u64 = 1000;

/// How many items of the list that a watch begins with are read at a time. More would keep commits
/// waiting, and memory, a thousand times if a thousand watchers are slow; fewer would look for the place
/// to go on more often than at items.
const LISTED_MAX: usize = 128;

/// A running watch.
pub struct Watch<T: Watched = Resource> {
    scope: T::Scope,
    store: Store,
    listing: Listing<T::Cursor>,
    seen: Revision,
    told: Revision,
    queue: VecDeque<WatchEvent<T>>,
    changes: argosy_store::Follower,
}

/// How far the list is that a watch begins with.
enum Listing<C> {
    After(C),
    Complete,
}

impl<T: Watched> Watch<T> {
    /// `changes` was subscribed to before `view` was read, so that nothing falls between.
    pub(crate) fn start(
        scope: T::Scope,
        store: Store,
        view: &View,
        after: Option<Revision>,
        changes: argosy_store::Follower,
    ) -> Self {
        let (listing, queue) = (Listing::Complete, VecDeque::new());
        let seen = after.unwrap_or_else(|| view.revision());
        let mut watch = Self { scope, store, listing, seen, told: seen, queue, changes };
        if after.is_none() {
            watch.list(T::listed(&watch.scope, view, None));
        }
        watch
    }

    /// Queues a piece of the list that the watch begins with.
    fn list(&mut self, (items, next): (Vec<Stored<T>>, Option<T::Cursor>)) {
        let unchanged = items.into_iter().filter(|item| item.revision <= self.seen);
        self.queue.extend(unchanged.map(WatchEvent::Added));
        self.listing = match next {
            Some(next) => Listing::After(next),
            None => {
                self.queue.push_back(WatchEvent::Bookmark(self.seen));
                Listing::Complete
            }
        };
    }

    /// The next event; waits for it. May be dropped and called again.
    ///
    /// # Errors
    /// `Gone`, if the watcher was too slow or asked for too old a revision.
    pub async fn next(&mut self) -> Result<WatchEvent<T>, Error> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(event);
            }
            if let Listing::After(after) = &self.listing {
                let more = self.store.read(|view| T::listed(&self.scope, view, Some(after)));
                self.list(more);
                if self.queue.is_empty() {
                    // Few match and there are many: others may go first.
                    tokio::task::yield_now().await;
                }
                continue;
            }
            let caught_up = self.catch_up().await?;
            if BOOKMARK_EVERY <= self.seen.0 - self.told.0 && self.queue.is_empty() {
                self.told = self.seen;
                return Ok(WatchEvent::Bookmark(self.seen));
            }
            if caught_up {
                let seen = self.seen;
                let moved = self.changes.wait_for(|revision| seen < *revision).await;
                if moved.is_err() {
                    let stopped = "the store has stopped".to_owned();
                    return Err(argosy_store::Error::Unavailable(stopped).into());
                }
            }
        }
    }

    /// Finds out whether the watch can go on where it was asked to; waits for no change.
    ///
    /// # Errors
    /// `Gone`, if it cannot.
    pub async fn check(&mut self) -> Result<(), Error> {
        match self.listing {
            // It begins with what is there, so it can.
            Listing::After(_) => Ok(()),
            Listing::Complete => self.catch_up().await.map(drop),
        }
    }

    /// Takes in what has happened since; true if that was nothing.
    async fn catch_up(&mut self) -> Result<bool, Error> {
        let store = self.store.clone();
        let events = match store.events(self.seen).await? {
            Ok(events) => events,
            Err(oldest) => return Err(Error::Gone { asked: self.seen, oldest }),
        };
        for event in &events {
            let asked = self.seen;
            if !store.read(|view| self.take_in(view, event)) {
                return Err(Error::Gone { asked, oldest: event.revision });
            }
        }
        Ok(events.is_empty())
    }

    /// Queues what an event means to this watcher; false if that cannot be told.
    fn take_in(&mut self, view: &View, event: &Event) -> bool {
        self.seen = event.revision;
        for change in T::changes(event) {
            let (before, after) = T::sides(change);
            let shown = |side: &&Stored<T>| side.value.shows(&self.scope, view);
            let was_shown = before.is_some_and(|before| shown(&before));
            let left = || WatchEvent::Deleted {
                id: T::id(change),
                last: before.cloned(),
                revision: event.revision,
            };
            let next = match (before, after.filter(shown)) {
                (_, Some(after)) if was_shown => WatchEvent::Modified(after.clone()),
                (None, Some(after)) if !after.value.is_new() => WatchEvent::Modified(after.clone()),
                (_, Some(after)) => WatchEvent::Added(after.clone()),
                (Some(_), None) if was_shown => left(),
                (Some(_), None) => continue,
                (None, None) => match T::was_shown(&self.scope, view, change) {
                    WasShown::No => continue,
                    WasShown::Maybe => left(),
                    WasShown::Unknown => return false,
                },
            };
            self.told = event.revision;
            self.queue.push_back(next);
        }
        true
    }
}
