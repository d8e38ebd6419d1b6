//! A cluster's network: a VPC, a subnetwork in its region, and a firewall that lets its machines talk.

use super::cluster::region;
use super::wire::{Network, Operation, Subnetwork};
use super::{DISPLAY, Gcp};
use crate::words;
use argosy_control::provider::{Ask, Done, Refusal};
use argosy_core::machine::Trouble;
use http::Method;
use serde_json::{Value, json};

impl Gcp {
    pub(super) async fn ensure_network(&self, ask: &Ask) -> Result<Done, Refusal> {
        let region = region(&ask.cluster.spec)?;
        let name = name(ask);
        let mut applied = false;
        let made = self.try_ensure_network(&name, region, &mut applied).await;
        made.map_err(|trouble| Refusal { applied, ..words::refused(&trouble, DISPLAY) })?;
        let message = format!("Network created in {region}");
        let data = json!({ "region": region, "resources": [&name, firewall(&name)] });
        Ok(words::done("InfrastructureReady", message, data))
    }

    async fn try_ensure_network(
        &self,
        name: &str,
        region: &str,
        applied: &mut bool,
    ) -> Result<(), Trouble> {
        self.api.region(region).await?;
        let range = self.settings.subnetwork_range.as_str();
        let network = format!("projects/{}/global/networks/{name}", self.settings.project);
        let description = "Made by Argosy for a cluster; removed with it.";
        let body = json!({
            "name": name, "description": description, "autoCreateSubnetworks": false,
            "routingConfig": { "routingMode": "REGIONAL" },
        });
        let path = ["global", "networks"];
        let shown: Option<Network> = self.ensure_one(&path, name, &body, applied).await?;
        // A cluster that moved leaves its old region first: both would have the same addresses.
        for (other, subnetwork) in shown.iter().flat_map(Network::places) {
            if other != region {
                self.remove_one(&["regions", other, "subnetworks", subnetwork]).await?;
            }
        }
        let body = json!({
            "name": name, "description": description, "network": network,
            "ipCidrRange": range, "privateIpGoogleAccess": true,
        });
        let path = ["regions", region, "subnetworks"];
        let shown: Option<Subnetwork> = self.ensure_one(&path, name, &body, applied).await?;
        if let Some(shown) = shown.filter(|shown| shown.ip_cidr_range != range) {
            // Grown by hand, or made under another setting: told, and not touched.
            tracing::warn!(
                network = name,
                found = shown.ip_cidr_range,
                wanted = range,
                "a cluster's subnetwork has another range than the settings say"
            );
        }
        let body = json!({
            "name": firewall(name), "description": description, "network": network,
            "direction": "INGRESS", "sourceRanges": [range],
            "allowed": [{ "IPProtocol": "all" }],
        });
        let path = ["global", "firewalls"];
        self.ensure_one::<Value>(&path, &firewall(name), &body, applied).await?;
        Ok(())
    }

    /// Makes a thing unless it is there; what was there is answered.
    async fn ensure_one<T: serde::de::DeserializeOwned>(
        &self,
        path: &[&str],
        name: &str,
        body: &Value,
        applied: &mut bool,
    ) -> Result<Option<T>, Trouble> {
        let one: Vec<&str> = path.iter().copied().chain([name]).collect();
        if let Some(shown) = self.api.look(self.api.compute(&one, &[])).await? {
            *applied = true;
            return Ok(Some(shown));
        }
        let url = self.api.compute(path, &[]);
        let begun: Result<Operation, Trouble> =
            self.api.change(Method::POST, url, Some(body)).await;
        match begun {
            Ok(begun) => {
                *applied = true;
                self.api.finish(begun).await?;
            }
            // Made between our look and our call, by a call of ours that was thought lost.
            Err(Trouble::Invalid { message, .. }) if message.contains("already exists") => {
                *applied = true;
            }
            Err(trouble) => return Err(trouble),
        }
        Ok(None)
    }

    pub(super) async fn remove_network(&self, ask: &Ask) -> Result<Done, Refusal> {
        let name = name(ask);
        let refused =
            |trouble: Trouble| Refusal { applied: true, ..words::refused(&trouble, DISPLAY) };
        let firewall = firewall(&name);
        self.remove_one(&["global", "firewalls", &firewall]).await.map_err(refused)?;
        let url = self.api.compute(&["global", "networks", &name], &[]);
        let shown: Option<Network> = self.api.look(url).await.map_err(refused)?;
        for (region, subnetwork) in shown.iter().flat_map(Network::places) {
            let path = ["regions", region, "subnetworks", subnetwork];
            self.remove_one(&path).await.map_err(refused)?;
        }
        self.remove_one(&["global", "networks", &name]).await.map_err(refused)?;
        let message = "Infrastructure resources successfully cleaned up";
        Ok(words::done("InfrastructureRemoved", message, json!({})))
    }

    /// Removes a thing; done means that it is no longer shown.
    async fn remove_one(&self, path: &[&str]) -> Result<(), Trouble> {
        let url = self.api.compute(path, &[]);
        let begun: Result<Operation, Trouble> =
            self.api.change(Method::DELETE, url.clone(), None).await;
        match begun {
            Ok(begun) => self.api.finish(begun).await?,
            Err(Trouble::NotFound(_)) => {}
            Err(trouble) => return Err(trouble),
        }
        match self.api.look::<Value>(url).await? {
            None => Ok(()),
            Some(_) => {
                let message = format!("{} is still shown after its removal", path.join("/"));
                Err(Trouble::Unsure(message))
            }
        }
    }
}

/// Named after the cluster's id: names of clusters are reused.
fn name(ask: &Ask) -> String {
    format!("argosy-{}", ask.cluster.id)
}

fn firewall(name: &str) -> String {
    format!("{name}-internal")
}
