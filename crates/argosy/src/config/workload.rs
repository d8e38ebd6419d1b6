//! Who is told that a node takes no more work.

use super::{Duration, Key, Secret, Section, Webhooks};
use crate::failure::Failure;
use argosy_providers::scheduler::SchedulerSettings;
use argosy_providers::scheduler::kubernetes::{Access, KubernetesSettings, NodeName};
use argosy_providers::scheduler::slurm::SlurmSettings;
use argosy_providers::scheduler::webhook::WebhookSettings;
use argosy_providers::webhook::{Allow, Secret as SigningSecret};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

section! {
    /// Who runs the work on nodes, and is told when a node gets none. Each that is given is told.
    WorkloadSystem {
        /// Something that takes a webhook.
        webhook: Option<WorkloadWebhook> = None,
        /// Slurm.
        slurm: Option<WorkloadSlurm> = None,
        /// Kubernetes.
        kubernetes: Option<WorkloadKubernetes> = None,
    }
}

section! {
    /// A workload system that takes a webhook, in Navarch's form. Addresses that are not public must be
    /// named in `webhooks.allow`.
    WorkloadWebhook {
        /// Is told of a cordon.
        cordon_url: Option<String> = None,
        /// Is told that a cordon or a drain is over.
        uncordon_url: Option<String> = None,
        /// Is told of a drain.
        drain_url: Option<String> = None,
        /// Is asked how far a drain is. Without it every drain lasts until its deadline.
        drain_status_url: Option<String> = None,
        /// How long one attempt may take, its answer included; at most 10 s.
        timeout: Duration = Duration::from_std(WebhookSettings::default().timeout),
        /// Sent with each request, as they are written here.
        headers: BTreeMap<String, String> = BTreeMap::new(),
        /// What events are signed with, by reference; without it they are not.
        secret: Secret = Secret::default(),
    }
}

section! {
    /// Slurm, by its own programs.
    WorkloadSlurm {
        /// A name to look for in `PATH`, or a path from the root. `squeue` is expected beside it.
        scontrol: PathBuf = SlurmSettings::default().scontrol,
        /// Slurm's configuration file, if it is not where its programs look by themselves.
        conf: Option<PathBuf> = None,
        /// The label of a node with its name in Slurm. Without it that is the hostname, up to its first
        /// dot.
        name_label: Option<String> = None,
    }
}

section! {
    /// Kubernetes, by its API.
    WorkloadKubernetes {
        /// We run in a pod of the cluster, under its service account. This, or `kubeconfig`.
        in_cluster: bool = false,
        /// A file as `kubectl` has it.
        kubeconfig: Option<PathBuf> = None,
        /// One of its contexts, if it is not the current one.
        context: Option<String> = None,
        /// What a node is called in Kubernetes: `id`, `hostname`, `provider-id` or `label`.
        node: KubernetesName = KubernetesName::Id,
        /// The label of a node with its name in Kubernetes, for `node: label`.
        name_label: Option<String> = None,
        /// How long a pod may take to end, instead of what it asks for itself.
        grace: Option<Duration> = None,
        /// Whether pods that are left at the deadline of a drain are deleted, past their disruption
        /// budgets.
        force: bool = false,
    }
}

/// What a node is called in Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KubernetesName {
    Id,
    Hostname,
    ProviderId,
    Label,
}

impl WorkloadSystem {
    /// What does not fit together. What only the system itself can say is not asked here.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(webhook) = &self.webhook {
            found.extend(webhook.complaints());
        }
        if let Some(kubernetes) = &self.kubernetes {
            found.extend(kubernetes.complaints());
        }
        found
    }

    /// What each is reached by. Reads the secrets.
    pub(crate) fn settings(&self, webhooks: &Webhooks) -> Result<Vec<SchedulerSettings>, Failure> {
        let mut all = Vec::new();
        if let Some(webhook) = &self.webhook {
            all.push(SchedulerSettings::Webhook(webhook.settings(webhooks)?));
        }
        if let Some(slurm) = &self.slurm {
            let WorkloadSlurm { scontrol, conf, name_label } = slurm.clone();
            all.push(SchedulerSettings::Slurm(SlurmSettings { scontrol, conf, name_label }));
        }
        if let Some(kubernetes) = &self.kubernetes {
            all.push(SchedulerSettings::Kubernetes(kubernetes.settings()));
        }
        Ok(all)
    }
}

impl WorkloadWebhook {
    fn complaints(&self) -> Vec<String> {
        let key = "workload_system.webhook";
        let mut found = Vec::new();
        let urls = [
            ("cordon_url", &self.cordon_url),
            ("uncordon_url", &self.uncordon_url),
            ("drain_url", &self.drain_url),
            ("drain_status_url", &self.drain_status_url),
        ];
        if urls.iter().all(|(_, url)| url.is_none()) {
            found.push(format!("{key}: it has no address; give cordon_url, drain_url or another"));
        }
        // Who is told that a node is out and not that it is back keeps it out for good; who is told of cordons is
        // told when they end.
        let out = [("cordon_url", &self.cordon_url), ("drain_url", &self.drain_url)];
        let out = out.into_iter().find(|(_, url)| url.is_some()).map(|(name, _)| name);
        match (out, self.uncordon_url.is_some()) {
            (Some(out), false) => found.push(format!(
                "{key}.uncordon_url: it is not given, but {out} is: whoever is told that a node gets no work must \
                 hear that it gets work again; give uncordon_url, or neither"
            )),
            (None, true) => found.push(format!(
                "{key}.cordon_url: it is not given, but uncordon_url is; give cordon_url or drain_url"
            )),
            (Some(_), true) | (None, false) => {}
        }
        for (name, url) in urls {
            if url
                .as_ref()
                .is_some_and(|url| !url.starts_with("https://") && !url.starts_with("http://"))
            {
                found.push(format!("{key}.{name}: it must start with https:// or http://"));
            }
        }
        let longest = Duration::from_std(WebhookSettings::default().timeout);
        if self.timeout == Duration::from_secs(0) || longest < self.timeout {
            let time = self.timeout;
            found.push(format!("{key}.timeout: {time} is not between 1ms and {longest}"));
        }
        if self.secret.file.is_some() && self.secret.env.is_some() {
            found.push(format!("{key}.secret: give file or env, not both"));
        }
        found
    }

    fn settings(&self, webhooks: &Webhooks) -> Result<WebhookSettings, Failure> {
        let key = "workload_system.webhook.secret";
        let secret = self.secret.read(key)?.map(|secret| SigningSecret::new(secret.into_bytes()));
        let secret = secret
            .transpose()
            .map_err(|error| Failure::usage(format!("{key} cannot be used")).why(error))?;
        let allow: Result<Vec<Allow>, _> = webhooks.allow.iter().map(|text| text.parse()).collect();
        let allow = allow.map_err(|error| Failure::usage("webhooks.allow is wrong").why(error))?;
        Ok(WebhookSettings {
            cordon_url: self.cordon_url.clone(),
            uncordon_url: self.uncordon_url.clone(),
            drain_url: self.drain_url.clone(),
            drain_status_url: self.drain_status_url.clone(),
            timeout: self.timeout.std(),
            headers: self.headers.clone(),
            secret,
            allow,
        })
    }
}

impl WorkloadKubernetes {
    fn complaints(&self) -> Vec<String> {
        let key = "workload_system.kubernetes";
        let mut found = Vec::new();
        if self.in_cluster == self.kubeconfig.is_some() {
            found.push(format!("{key}: give exactly one of in_cluster and kubeconfig"));
        }
        if self.context.is_some() && self.kubeconfig.is_none() {
            found.push(format!("{key}.context: only a kubeconfig has contexts"));
        }
        let named = self.name_label.as_ref().is_some_and(|label| !label.is_empty());
        match (self.node, named) {
            (KubernetesName::Label, false) => {
                found.push(format!("{key}.name_label: `node: label` needs to know which"));
            }
            (KubernetesName::Id | KubernetesName::Hostname | KubernetesName::ProviderId, true) => {
                found.push(format!("{key}.name_label: only `node: label` looks at one"));
            }
            (KubernetesName::Label, true)
            | (KubernetesName::Id | KubernetesName::Hostname | KubernetesName::ProviderId, false) =>
                {}
        }
        found
    }

    fn settings(&self) -> KubernetesSettings {
        KubernetesSettings {
            access: match &self.kubeconfig {
                Some(path) => {
                    Access::Kubeconfig { path: path.clone(), context: self.context.clone() }
                }
                None => Access::InCluster,
            },
            node: match self.node {
                KubernetesName::Id => NodeName::Id,
                KubernetesName::Hostname => NodeName::Hostname,
                KubernetesName::ProviderId => NodeName::ProviderId,
                KubernetesName::Label => {
                    NodeName::Label(self.name_label.clone().unwrap_or_default())
                }
            },
            grace: self.grace.map(Duration::std),
            force: self.force,
        }
    }
}

#[cfg(test)]
mod tests;
