//! What all lists have in common: pages, watches, and a narrow door for those that look at a lot.

use super::gate::Made;
use super::query::Query;
use super::{Answer, Ask, fields::Shown, json_bytes};
use crate::problem::{Fault, internal};
use crate::stream;
use argosy_api::route::SIZE_DEFAULT;
use argosy_control::Revision;
use argosy_control::watch::{Watch, Watched};
use axum::http::Method;
use bytes::Bytes;
use serde::Serialize;

/// Which page of a list.
#[derive(Clone, Copy)]
pub(super) struct Page {
    /// Counted from 1.
    pub(super) page: usize,
    pub(super) size: usize,
}

impl Page {
    pub(super) fn of(query: &Query) -> Self {
        let page = query.number("page").unwrap_or(1);
        let size = query.number("size").or(query.number("pageSize")).unwrap_or(SIZE_DEFAULT);
        Self { page, size }
    }

    /// How many items come before it.
    pub(super) fn skip(self) -> usize {
        self.page.saturating_sub(1).saturating_mul(self.size)
    }
}

/// One page of a list.
#[derive(Serialize)]
pub(super) struct Listed<I> {
    pub(super) kind: String,
    pub(super) page: usize,
    pub(super) size: usize,
    pub(super) total: usize,
    pub(super) revision: u64,
    #[serde(flatten)]
    pub(super) cost: Option<Cost>,
    pub(super) items: Vec<I>,
}

/// What everything that a list is about costs.
#[derive(Serialize)]
pub(super) struct Cost {
    pub(super) cost_per_hour: f64,
    pub(super) unpriced: u32,
}

/// The answer that follows a list or an item.
pub(super) async fn watch<T, W>(
    ask: &Ask,
    mut watch: Watch<T>,
    after: Option<Revision>,
    show: stream::Show<T, W>,
) -> Answer
where
    T: Watched + Send + Sync,
    T::Scope: Send + Sync,
    T::Cursor: Send + Sync,
    T::Id: Send + Sync,
    W: Serialize + 'static,
{
    // Now, while the answer can still be 410.
    watch.check().await?;
    if ask.parts.method == Method::HEAD {
        return Ok(stream::head());
    }
    let path = ask.parts.uri.path().to_owned();
    let origin = stream::Origin { path, request_id: ask.caller.request_id.clone() };
    Ok(stream::events(&ask.server, watch, after, show, origin))
}

/// An item that is shown as it is.
pub(super) fn whole<W>(item: W) -> Shown<W> {
    Shown::Whole(Box::new(item))
}

/// The answer to a list that looks at a lot: only a few are made at once, each on a thread where it keeps
/// no node waiting, and those who ask for the same share it.
pub(super) async fn heavy<I: Serialize>(
    ask: &Ask,
    make: impl FnOnce() -> Result<Listed<I>, Fault> + Send + 'static,
) -> Answer {
    let (gate, control) = (&ask.gate, &ask.server.control);
    let (key, asked_at) = (ask.page_key(), control.clock.monotonic());
    let made = || gate.page(&key, asked_at, control.revision(), control.clock.monotonic());
    if let Some(body) = made() {
        return Ok(json_bytes(body));
    }
    let _turn = gate.turn(&key).await;
    if let Some(body) = made() {
        return Ok(json_bytes(body));
    }
    let at_work = gate.enter().await?;
    let made_at = control.clock.monotonic();
    let write = move || -> Result<(Revision, Bytes), Fault> {
        // With the work, not with the request: who gives up does not make room for more of it.
        let _at_work = at_work;
        let listed = make()?;
        let body = serde_json::to_vec(&listed).map_err(|error| {
            tracing::error!(%error, "a list could not be written as JSON");
            internal()
        })?;
        Ok((Revision(listed.revision), Bytes::from(body)))
    };
    let (revision, body) = tokio::task::spawn_blocking(write).await.map_err(|error| {
        tracing::error!(%error, "a list could not be made");
        internal()
    })??;
    gate.keep(key, Made { revision, at: made_at, body: body.clone() });
    Ok(json_bytes(body))
}
