//! Calls of the project's API: signed in, paged, and followed until they are done.

use super::auth::Auth;
use super::wire::{Operation, Warning, last};
use super::{DISPLAY, Pace, trouble};
use crate::rest::{Call, Effect, Failed, Rest, at, plain};
use argosy_control::clock::Clock;
use argosy_core::machine::Trouble;
use http::{Method, StatusCode};
use reqwest::Url;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Api {
    pub(super) rest: Rest,
    pub(super) auth: Auth,
    pub(super) compute: Url,
    pub(super) dns: Url,
    pub(super) project: String,
    pub(super) pace: Pace,
    pub(super) clock: Clock,
}

/// What became of an operation.
#[derive(Debug)]
pub(super) enum Followed {
    /// It is done.
    Done,
    /// It goes on.
    Running,
    /// It failed.
    Failed(Trouble),
    /// It could not be followed.
    Lost(Trouble),
}

/// The most pages of one list: 500 on each, twice as many machines as anybody has. A list without end is
/// a broken one.
const PAGES_MAX: usize = 1000;

impl Api {
    /// An address of Compute Engine, below the project.
    pub(super) fn compute(&self, path: &[&str], query: &[(&str, &str)]) -> Url {
        at(&at(&self.compute, &["projects", &self.project], &[]), path, query)
    }

    /// An address of Cloud DNS, below the project.
    pub(super) fn dns(&self, path: &[&str], query: &[(&str, &str)]) -> Url {
        at(&at(&self.dns, &["projects", &self.project], &[]), path, query)
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, url: Url) -> Result<T, Trouble> {
        let answer = self.call(Method::GET, url, None, Effect::Look).await;
        let answer = answer.map_err(|failed| self.explain(failed, Effect::Look))?;
        self.rest.parse(answer, Effect::Look)
    }

    /// The same; what is not there is `None`.
    pub(super) async fn look<T: DeserializeOwned>(&self, url: Url) -> Result<Option<T>, Trouble> {
        match self.call(Method::GET, url, None, Effect::Look).await {
            Ok(answer) => self.rest.parse(answer, Effect::Look).map(Some),
            Err(Failed::Said(said)) if said.status == StatusCode::NOT_FOUND => Ok(None),
            Err(failed) => Err(self.explain(failed, Effect::Look)),
        }
    }

    pub(super) async fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        url: Url,
        body: Option<&Value>,
    ) -> Result<T, Trouble> {
        let answer = self.call(method, url, body, Effect::Change).await;
        let answer = answer.map_err(|failed| self.explain(failed, Effect::Change))?;
        self.rest.parse(answer, Effect::Change)
    }

    /// A call as it is, for those who know better what a refusal means.
    pub(super) async fn call(
        &self,
        method: Method,
        url: Url,
        body: Option<&Value>,
        effect: Effect,
    ) -> Result<Value, Failed> {
        let mut call = Call::new(method, url, effect).json(body);
        let bearer = self.auth.bearer().await.map_err(Failed::Lost)?;
        call.authorization = Some(bearer.clone());
        match self.rest.call(&call).await {
            // A token that was withdrawn before its time; nothing was done with it.
            Err(Failed::Said(said)) if said.status == StatusCode::UNAUTHORIZED => {
                self.auth.refused(&bearer).await;
                call.authorization = Some(self.auth.bearer().await.map_err(Failed::Lost)?);
                self.rest.call(&call).await
            }
            answer => answer,
        }
    }

    pub(super) fn explain(&self, failed: Failed, effect: Effect) -> Trouble {
        match failed {
            Failed::Lost(trouble) | Failed::Garbled(trouble) => trouble,
            Failed::Said(said) => trouble::said(&self.rest, &said, effect),
        }
    }

    /// Every page of a list, or none.
    pub(super) async fn pages<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Vec<T>, Trouble> {
        let broken = |why: &str| Trouble::Unreachable(format!("no whole list from GCP: {why}"));
        let mut pages = Vec::new();
        let mut token = String::new();
        loop {
            let mut query = query.to_vec();
            if !token.is_empty() {
                query.push(("pageToken", &token));
            }
            let page: Value = self.get(self.compute(path, &query)).await?;
            let next = page.get("nextPageToken").and_then(Value::as_str).unwrap_or_default();
            let next = next.to_owned();
            pages.push(self.rest.parse(page, Effect::Look)?);
            if next.is_empty() {
                return Ok(pages);
            }
            if next == token || PAGES_MAX <= pages.len() {
                return Err(broken("it has no end"));
            }
            token = next;
        }
    }

    /// Waits for an operation, but not longer than `patience`.
    pub(super) async fn follow(&self, mut operation: Operation, patience: Duration) -> Followed {
        if operation.name.is_empty() {
            let trouble = self.rest.lost(Effect::Change, "its answer is no operation");
            return Followed::Lost(trouble);
        }
        let began = self.clock.monotonic();
        let mut lost = None;
        let mut pause = self.pace.poll;
        loop {
            if operation.status == "DONE" {
                return match trouble::operation(&operation) {
                    None => Followed::Done,
                    Some(trouble) => Followed::Failed(trouble),
                };
            }
            if patience <= self.clock.monotonic().saturating_sub(began) {
                return lost.map_or(Followed::Running, Followed::Lost);
            }
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(self.pace.poll.saturating_mul(5));
            match self.get(self.operation_url(&operation)).await {
                Ok(next) => (operation, lost) = (next, None),
                Err(trouble @ (Trouble::Credentials(_) | Trouble::Denied { .. })) => {
                    return Followed::Lost(trouble);
                }
                Err(trouble) => lost = Some(trouble),
            }
        }
    }

    /// Waits for an operation of a part; one that goes on is asked about again by the next attempt.
    pub(super) async fn finish(&self, operation: Operation) -> Result<(), Trouble> {
        let name = operation.name.clone();
        match self.follow(operation, self.pace.part_max).await {
            Followed::Done => Ok(()),
            Followed::Failed(trouble) | Followed::Lost(trouble) => Err(trouble),
            Followed::Running => {
                let message = format!("the operation {} of {DISPLAY} goes on", plain(&name));
                Err(Trouble::Unsure(message))
            }
        }
    }

    fn operation_url(&self, operation: &Operation) -> Url {
        let name = operation.name.as_str();
        match (&operation.zone, &operation.region) {
            (Some(zone), _) => self.compute(&["zones", last(zone), "operations", name], &[]),
            (None, Some(region)) => {
                self.compute(&["regions", last(region), "operations", name], &[])
            }
            (None, None) => self.compute(&["global", "operations", name], &[]),
        }
    }
}

/// Half a list is a lie: whatever could not be asked spoils it.
pub(super) fn whole<'a>(
    unreachables: &[String],
    warnings: impl Iterator<Item = &'a Warning>,
) -> Result<(), Trouble> {
    // What an empty zone says.
    let mut warnings = warnings.filter(|warning| warning.code != "NO_RESULTS_ON_PAGE");
    let why = match (unreachables.first(), warnings.next()) {
        (Some(place), _) => format!("{} could not be asked", last(place)),
        (None, Some(warning)) => format!("{}: {}", warning.code, warning.message),
        (None, None) => return Ok(()),
    };
    Err(Trouble::Unreachable(plain(&format!("no whole list from {DISPLAY}: {why}"))))
}
