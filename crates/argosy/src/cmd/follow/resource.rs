//! Following clusters and node pools.

use super::{Subject, follow};
use crate::cmd::resource::Noun;
use crate::failure::{Exit, Failure};
use crate::session::Session;
use crate::view::{self, ClusterNames};
use argosy_api::client::Watch;
use argosy_api::resource::Resource;
use std::collections::BTreeMap;

/// Follows one resource until it is gone.
pub(in crate::cmd) async fn one(
    session: &Session,
    noun: &Noun,
    name: &str,
) -> Result<Exit, Failure> {
    follow(session, Resources { noun, name: Some(name), query: &[], clusters: BTreeMap::new() })
        .await
}

/// Follows a list, until somebody interrupts it.
pub(in crate::cmd) async fn all(
    session: &Session,
    noun: &Noun,
    query: &[(&str, &str)],
) -> Result<Exit, Failure> {
    follow(session, Resources { noun, name: None, query, clusters: BTreeMap::new() }).await
}

struct Resources<'a> {
    noun: &'a Noun,
    /// The one; otherwise all that the query finds.
    name: Option<&'a str>,
    query: &'a [(&'a str, &'a str)],
    clusters: ClusterNames,
}

impl Subject for Resources<'_> {
    type Item = Resource;

    const KEY: &'static str = "uid";

    fn is_one(&self) -> bool {
        self.name.is_some()
    }

    async fn read(&self, session: &Session) -> Result<(Vec<Resource>, u64), Failure> {
        let Some(name) = self.name else {
            return session.list_all(self.noun.collection(), self.query).await;
        };
        let (of, id) = self.noun.item(name);
        match session.client.get(of, id).await {
            Ok(item) => {
                let revision = item.revision;
                Ok((vec![item], revision))
            }
            Err(error) => Err(session.missing(error, of, id).await),
        }
    }

    fn watch(&self, session: &Session, after: u64) -> Watch {
        let Some(name) = self.name else {
            // Order is for lists; a watch tells things as they happen.
            let filter: Vec<(&str, &str)> =
                self.query.iter().copied().filter(|(name, _)| *name != "order").collect();
            return session.client.watch(self.noun.collection(), None, &filter, Some(after));
        };
        let (of, id) = self.noun.item(name);
        session.client.watch(of, Some(id), &[], Some(after))
    }

    fn key(item: &Resource) -> &str {
        &item.uid
    }

    fn revision(item: &Resource) -> u64 {
        item.revision
    }

    async fn prepare(&mut self, session: &Session, items: &BTreeMap<String, Resource>) {
        let unknown = |item: &Resource| {
            item.cluster_id.as_ref().is_some_and(|id| !self.clusters.contains_key(id))
        };
        if items.values().any(unknown) {
            let items: Vec<Resource> = items.values().cloned().collect();
            self.clusters = view::cluster_names(session, self.noun.kind, &items).await;
        }
    }

    fn table(&self, session: &Session, items: &[Resource]) -> String {
        view::table(session, self.noun.kind, items, &self.clusters)
    }
}
