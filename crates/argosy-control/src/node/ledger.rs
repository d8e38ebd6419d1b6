//! The ledgers of all nodes as one: what happened in the fleet, newest first, and as it happens.
//!
//! What a newcomer gets wrong: a line is shown to whoever may see its node now. Lines about a node that was
//! forgotten, or about another one that had its id before, are shown to nobody.

use super::{LEDGER, Nodes};
use crate::office::{PAGE, allow_verb, read_entry};
use crate::Error;
use argosy_core::access::{Caller, Verb};
use argosy_core::ledger::Entry;
use argosy_core::why::Noted;
use argosy_store::engine::{self, EntryQuery};

/// How many lines are looked at for one page. Somebody who looks for what is rare goes on from there.
const LOOKED_AT_MAX: usize = 20 * PAGE;

/// Which lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineFilter {
    /// Only those about this node.
    pub node: Option<String>,
    /// Only those about nodes of this pool.
    pub pool: Option<String>,
    /// Only those of this kind, as `What::kind` has it.
    pub kind: Option<String>,
}

/// One page of lines, newest first.
#[derive(Clone, Debug, Default)]
pub struct LinePage {
    /// The lines.
    pub lines: Vec<Noted>,
    /// Go on before this one; `None` at the end.
    pub next: Option<u64>,
}

impl Nodes {
    /// Lines about every node the caller may see, before a sequence number.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn lines_of_all(
        &self,
        caller: &Caller,
        filter: &LineFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<LinePage, Error> {
        allow_verb(caller, Verb::Read)?;
        let mut page = LinePage { lines: Vec::new(), next: before };
        for _ in 0..LOOKED_AT_MAX / PAGE {
            let query = EntryQuery {
                stream: LEDGER.to_owned(),
                subject: filter.node.clone(),
                cursor: page.next,
                newest_first: true,
                limit: PAGE,
            };
            let found = self.office.store.entries(&query).await?;
            page.next = None;
            for noted in self.shown(caller, filter, &found)? {
                page.lines.push(noted);
                if page.lines.len() == limit {
                    page.next = page.lines.last().map(|noted| noted.sequence);
                    return Ok(page);
                }
            }
            if found.len() < PAGE {
                return Ok(page);
            }
            page.next = found.last().map(|entry| entry.sequence);
        }
        Ok(page)
    }

    /// Follows lines about every node the caller may see; those after a sequence number, or those from now
    /// on.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn follow_lines(
        &self,
        caller: &Caller,
        filter: LineFilter,
        after: Option<u64>,
    ) -> Result<Lines, Error> {
        allow_verb(caller, Verb::Read)?;
        // Before the end is read: what comes in between is looked for at once.
        let changed = self.office.store.subscribe();
        let after = match after {
            Some(after) => after,
            None => self.office.store.stream_head(LEDGER).await?.map_or(0, |(last, _)| last),
        };
        Ok(Lines { nodes: self.clone(), caller: caller.clone(), filter, after, changed })
    }

    fn shown(
        &self,
        caller: &Caller,
        filter: &LineFilter,
        found: &[engine::Entry],
    ) -> Result<Vec<Noted>, Error> {
        let mut shown = Vec::new();
        for place in found {
            let entry: Entry = read_entry(place)?;
            let asked = filter.kind.as_deref().is_none_or(|kind| kind == entry.what.kind())
                && filter.node.as_deref().is_none_or(|node| node == entry.node.as_str());
            if asked {
                shown.push(Noted { sequence: place.sequence, revision: place.revision.0, entry });
            }
        }
        self.office.store.read(|view| {
            shown.retain(|noted| {
                let node = self.find(view, caller, noted.entry.node.as_str());
                node.is_ok_and(|node| {
                    let pool = filter.pool.as_deref();
                    node.value.registered_at <= noted.entry.at
                        && pool.is_none_or(|pool| node.value.pool.as_deref() == Some(pool))
                })
            });
        });
        Ok(shown)
    }
}

/// Lines as they are written.
pub struct Lines {
    nodes: Nodes,
    caller: Caller,
    filter: LineFilter,
    after: u64,
    changed: argosy_store::Follower,
}

impl Lines {
    /// The next lines, oldest first; never none. May be dropped at any await, and asked again.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn next(&mut self) -> Result<Vec<Noted>, Error> {
        loop {
            let query = EntryQuery {
                stream: LEDGER.to_owned(),
                subject: self.filter.node.clone(),
                cursor: Some(self.after),
                newest_first: false,
                limit: PAGE,
            };
            self.changed.mark_unchanged();
            let found = self.nodes.office.store.entries(&query).await?;
            if let Some(last) = found.last() {
                let shown = self.nodes.shown(&self.caller, &self.filter, &found)?;
                self.after = last.sequence;
                if !shown.is_empty() {
                    return Ok(shown);
                }
                continue;
            }
            if self.changed.changed().await.is_err() {
                // The store ends, and with it the process.
                std::future::pending::<()>().await;
            }
        }
    }
}
