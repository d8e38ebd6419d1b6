//! A cluster's records in Cloud DNS, and one more that says whose they are.
//!
//! What a newcomer gets wrong: a record of the right name may be somebody else's. Only where the owner's
//! record names our cluster is anything changed or removed.

use super::cluster::domain;
use super::wire::{ManagedZone, ManagedZones, RecordSet, RecordSets};
use super::{DISPLAY, Gcp};
use crate::words;
use argosy_control::provider::{Ask, Done, Refusal};
use argosy_core::machine::Trouble;
use http::Method;
use serde_json::{Value, json};
use std::net::IpAddr;

/// How long others may remember a record. Seconds.
const TTL_S: u32 = 60;

const SERVICE: &str = "Cloud DNS managed zone";

impl Gcp {
    pub(super) async fn ensure_records(&self, ask: &Ask) -> Result<Done, Refusal> {
        let mut applied = false;
        self.try_ensure_records(ask, &mut applied)
            .await
            .map_err(|refusal| Refusal { applied, ..refusal })
    }

    async fn try_ensure_records(&self, ask: &Ask, applied: &mut bool) -> Result<Done, Refusal> {
        let refused = |trouble: Trouble| words::refused(&trouble, DISPLAY);
        let domain = domain(&ask.cluster.spec).to_ascii_lowercase();
        let zone = self.zone_of(&domain).await.map_err(refused)?;
        let zone = zone.ok_or_else(|| words::zone_not_found(SERVICE, &domain))?;
        let names = names(ask, &domain);
        let targets = self.targets(ask)?;
        let owner = self.owner(&zone, ask, &domain).await?;
        if owner.is_none() {
            for name in &names {
                self.is_free(&zone, name).await?;
            }
            let claim = owner_record(ask, &domain);
            self.put(&zone, None, &claim).await.map_err(refused)?;
        }
        *applied = true;
        for name in &names {
            let wanted = record(name, &targets);
            self.put_only(&zone, &wanted).await.map_err(refused)?;
        }
        // What was answered with success is looked at once more.
        let mut verified = true;
        for name in &names {
            let wanted = record(name, &targets);
            let shown = self.records(&zone, name).await.map_err(refused)?;
            verified &= shown.contains(&wanted);
        }
        let created: Vec<&str> = names.iter().map(|name| name.trim_end_matches('.')).collect();
        let done = words::done(
            "AllRecordsCreated",
            "All DNS records created and verified",
            json!({ "recordsCreated": created, "zone": zone.name }),
        );
        Ok(Done { unhealthy: (!verified).then(words::health_check_failed), ..done })
    }

    pub(super) async fn remove_records(&self, ask: &Ask) -> Result<Done, Refusal> {
        let refused =
            |trouble: Trouble| Refusal { applied: true, ..words::refused(&trouble, DISPLAY) };
        let removed = || words::done("RecordsRemoved", "DNS records removed", json!({}));
        let domain = domain(&ask.cluster.spec).to_ascii_lowercase();
        let Some(zone) = self.zone_of(&domain).await.map_err(refused)? else {
            return Ok(removed());
        };
        let mine = owner_record(ask, &domain);
        let shown = self.records(&zone, &mine.name).await.map_err(refused)?;
        if !shown.iter().any(|shown| shown.rrdatas == mine.rrdatas) {
            // Never made, or removed already, or somebody else's.
            return Ok(removed());
        }
        for name in names(ask, &domain) {
            for record in self.records(&zone, &name).await.map_err(refused)? {
                self.delete_record(&zone, &record).await.map_err(refused)?;
            }
        }
        // The claim goes last: whoever comes after a failure still finds whose the rest is.
        self.delete_record(&zone, &mine).await.map_err(refused)?;
        let left = self.records(&zone, &mine.name).await.map_err(refused)?;
        if !left.is_empty() {
            let message = "DNS records are still shown after their removal".to_owned();
            let refusal = words::refusal("RemovalNotConfirmed", message, "It is tried again.");
            return Err(Refusal { applied: true, ..refusal });
        }
        Ok(removed())
    }

    /// The zone that holds a domain: its own, or that of the nearest parent.
    pub(super) async fn zone_of(&self, domain: &str) -> Result<Option<ManagedZone>, Trouble> {
        let mut name = domain.trim_end_matches('.');
        // A zone for a whole top-level domain is nobody's.
        while name.contains('.') {
            let dns_name = format!("{name}.");
            let url = self.api.dns(&["managedZones"], &[("dnsName", &dns_name)]);
            let found: ManagedZones = self.api.get(url).await?;
            let same = found.managed_zones.into_iter().filter(|zone| zone.dns_name == dns_name);
            let mut zones: Vec<ManagedZone> = same.collect();
            // A private zone of the same name is seen by some networks only.
            zones.sort_by_key(|zone| zone.visibility == "private");
            if let Some(zone) = zones.into_iter().next() {
                return Ok(Some(zone));
            }
            name = name.split_once('.').map_or("", |(_, parent)| parent);
        }
        Ok(None)
    }

    /// What the records lead to; nothing, while nobody has said.
    fn targets(&self, ask: &Ask) -> Result<Vec<String>, Refusal> {
        let dns = ask.cluster.spec.get("dns");
        let one = dns.and_then(|dns| dns.get("target")).and_then(Value::as_str);
        let several = dns.and_then(|dns| dns.get("targets")).and_then(Value::as_array);
        let several = several.into_iter().flatten().filter_map(Value::as_str);
        let named: Vec<String> = one.into_iter().chain(several).map(ToOwned::to_owned).collect();
        let targets = if named.is_empty() { self.settings.dns_targets.clone() } else { named };
        if targets.is_empty() {
            return Ok(targets);
        }
        let addresses = targets.iter().filter(|target| target.parse::<IpAddr>().is_ok()).count();
        if addresses != targets.len() && targets.len() != 1 {
            let message = "DNS records lead to addresses, or to one host name".to_owned();
            return Err(words::refusal("InvalidDNSTarget", message, "Change spec.dns.target."));
        }
        Ok(targets)
    }

    /// The claim on the cluster's names, if it is ours.
    async fn owner(
        &self,
        zone: &ManagedZone,
        ask: &Ask,
        domain: &str,
    ) -> Result<Option<RecordSet>, Refusal> {
        let mine = owner_record(ask, domain);
        let shown = self.records(zone, &mine.name).await;
        let shown = shown.map_err(|trouble| words::refused(&trouble, DISPLAY))?;
        match shown.into_iter().next() {
            None => Ok(None),
            Some(claim) if claim.rrdatas == mine.rrdatas => Ok(Some(claim)),
            Some(_) => Err(taken(mine.name.trim_end_matches('.'))),
        }
    }

    async fn is_free(&self, zone: &ManagedZone, name: &str) -> Result<(), Refusal> {
        let shown = self.records(zone, name).await;
        let shown = shown.map_err(|trouble| words::refused(&trouble, DISPLAY))?;
        if shown.is_empty() { Ok(()) } else { Err(taken(name.trim_end_matches('.'))) }
    }

    async fn records(&self, zone: &ManagedZone, name: &str) -> Result<Vec<RecordSet>, Trouble> {
        let path = ["managedZones", &zone.name, "rrsets"];
        let sets: RecordSets = self.api.get(self.api.dns(&path, &[("name", name)])).await?;
        Ok(sets.rrsets.into_iter().filter(|record| record.name == name).collect())
    }

    /// Makes a record, and removes those of the same name and another type: a name that leads to another
    /// name leads to nothing else.
    async fn put_only(&self, zone: &ManagedZone, wanted: &RecordSet) -> Result<(), Trouble> {
        let shown = self.records(zone, &wanted.name).await?;
        for other in shown.iter().filter(|shown| shown.kind != wanted.kind) {
            self.delete_record(zone, other).await?;
        }
        let same = shown.iter().find(|shown| shown.kind == wanted.kind);
        self.put(zone, same, wanted).await
    }

    async fn put(
        &self,
        zone: &ManagedZone,
        shown: Option<&RecordSet>,
        wanted: &RecordSet,
    ) -> Result<(), Trouble> {
        if shown == Some(wanted) {
            return Ok(());
        }
        let RecordSet { name, kind, ttl, rrdatas } = wanted;
        let body = json!({ "name": name, "type": kind, "ttl": ttl, "rrdatas": rrdatas });
        let zone = zone.name.as_str();
        let _: Value = if shown.is_some() {
            let url = self.api.dns(&["managedZones", zone, "rrsets", name, kind], &[]);
            self.api.change(Method::PATCH, url, Some(&body)).await?
        } else {
            let url = self.api.dns(&["managedZones", zone, "rrsets"], &[]);
            self.api.change(Method::POST, url, Some(&body)).await?
        };
        Ok(())
    }

    async fn delete_record(&self, zone: &ManagedZone, record: &RecordSet) -> Result<(), Trouble> {
        let path = ["managedZones", &zone.name, "rrsets", &record.name, &record.kind];
        let answer: Result<Value, Trouble> =
            self.api.change(Method::DELETE, self.api.dns(&path, &[]), None).await;
        match answer {
            Ok(_) | Err(Trouble::NotFound(_)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
}

fn taken(name: &str) -> Refusal {
    let message = format!("There are DNS records of {name} already, and they are not ours");
    let guidance = "Remove the records, or give the cluster another name or domain.";
    words::refusal("DNSRecordTaken", message, guidance)
}

/// The names of a cluster's records.
fn names(ask: &Ask, domain: &str) -> [String; 2] {
    let cluster = &ask.cluster.name;
    [format!("api.{cluster}.{domain}."), format!("*.apps.{cluster}.{domain}.")]
}

/// What says whose a cluster's records are.
fn owner_record(ask: &Ask, domain: &str) -> RecordSet {
    let Ask { cluster, .. } = ask;
    RecordSet {
        name: format!("_argosy.{}.{domain}.", cluster.name),
        kind: "TXT".to_owned(),
        ttl: TTL_S,
        rrdatas: vec![format!("\"argosy-cluster={}\"", cluster.id)],
    }
}

/// Addresses of one kind are told as such; a name is an alias.
fn record(name: &str, targets: &[String]) -> RecordSet {
    let v4 = targets.iter().filter(|target| target.parse::<std::net::Ipv4Addr>().is_ok());
    let v4: Vec<String> = v4.cloned().collect();
    let (kind, rrdatas) = if targets.is_empty() {
        // The names are kept for the cluster, and say why they lead nowhere.
        ("TXT", vec!["\"argosy: no target yet, see spec.dns.target\"".to_owned()])
    } else if !v4.is_empty() {
        ("A", v4)
    } else if targets.iter().all(|target| target.parse::<IpAddr>().is_ok()) {
        ("AAAA", targets.to_vec())
    } else {
        let alias = targets.iter().map(|it| format!("{}.", it.trim_end_matches('.')));
        ("CNAME", alias.collect())
    };
    RecordSet { name: name.to_owned(), kind: kind.to_owned(), ttl: TTL_S, rrdatas }
}
