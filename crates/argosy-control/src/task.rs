//! Every task has an owner that hears it die.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use tokio::task::{Id, JoinSet};

/// The long-running tasks of the process. Dropping it stops them all.
#[derive(Debug, Default)]
pub struct Tasks {
    set: JoinSet<Result<(), String>>,
    names: HashMap<Id, &'static str>,
}

/// A task that ended, although none should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task `{name}` died: {cause}")]
pub struct Death {
    /// Which.
    pub name: &'static str,
    /// How.
    pub cause: String,
}

impl Tasks {
    /// Starts a task that is meant to run until the process ends.
    pub fn start<E: fmt::Display>(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let handle = self.set.spawn(async move { task.await.map_err(|error| error.to_string()) });
        self.names.insert(handle.id(), name);
    }

    /// Waits until a task ends, which is a reason to end the process.
    pub async fn first_death(&mut self) -> Death {
        let (id, cause) = match self.set.join_next_with_id().await {
            Some(Ok((id, Ok(())))) => (id, "it ended, although it should not".to_owned()),
            Some(Ok((id, Err(cause)))) => (id, cause),
            Some(Err(death)) => (death.id(), death.to_string()),
            None => return std::future::pending().await,
        };
        Death { name: self.names.get(&id).copied().unwrap_or("unnamed"), cause }
    }
}
