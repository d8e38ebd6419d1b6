//! Workload systems: who is told that a machine takes no more work.

pub mod webhook;

pub mod slurm;

pub mod kubernetes;

use argosy_control::clock::Clock;
use argosy_control::scheduler::Scheduler;
use kubernetes::{KubernetesScheduler, KubernetesSettings};
use slurm::{SlurmScheduler, SlurmSettings};
use std::sync::Arc;
use webhook::{WebhookScheduler, WebhookSettings};

/// Which workload system there is, and how it is reached.
pub enum SchedulerSettings {
    /// Something that is told by webhook.
    Webhook(WebhookSettings),
    /// Slurm.
    Slurm(SlurmSettings),
    /// Kubernetes.
    Kubernetes(KubernetesSettings),
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SettingsError {
    /// Which: `drain_url`.
    pub key: &'static str,
    /// What is wrong with it.
    pub message: String,
}

impl SettingsError {
    fn new(key: &'static str, message: impl ToString) -> Self {
        Self { key, message: message.to_string() }
    }
}

impl SchedulerSettings {
    /// Makes what the settings describe. Nobody is asked anything yet: a system that is down now must not
    /// keep us from starting.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub async fn build(self, clock: Clock) -> Result<Arc<dyn Scheduler>, SettingsError> {
        match self {
            Self::Webhook(settings) => Ok(Arc::new(WebhookScheduler::new(settings, clock)?)),
            Self::Slurm(settings) => Ok(Arc::new(SlurmScheduler::new(settings)?)),
            Self::Kubernetes(settings) => {
                Ok(Arc::new(KubernetesScheduler::new(settings, clock).await?))
            }
        }
    }
}

/// One line of at most `chars_max` characters, whatever it was made from: what comes from outside must not
/// forge a line of a log or move a terminal's cursor.
fn one_line(text: &str, chars_max: usize) -> String {
    // Ten times as many are looked at, so that a long run of spaces costs no more than its share.
    let spaced: String = text
        .chars()
        .take(chars_max.saturating_mul(10))
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    words.join(" ").chars().take(chars_max).collect()
}

#[cfg(test)]
mod tests;
