//! The records of a cluster in Route 53: `api.<cluster>.<domain>` and `*.apps.<cluster>.<domain>`.
//!
//! They point to `spec.dns.target` (an address, or a host name). Who has no target yet gets text records in
//! their place: the names are taken, and nobody is sent to a wrong address. A third record,
//! `_argosy.<cluster>.<domain>`, says whose the others are; it comes and goes in the same batch as they do,
//! and a batch is done whole or not at all. What it does not vouch for is never changed or removed.

use super::query::Fault;
use super::{Aws, words, xml};
use argosy_control::provider::{Ask, Done, Refusal};
use argosy_core::id::ResourceId;
use argosy_core::machine::Trouble;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::IpAddr;

/// How long resolvers may keep our records, in seconds. Short: a cluster's address may change.
const TTL_S: u32 = 60;

/// How many pages of a zone are looked through for the records of a cluster. They lie next to each other, so
/// one is enough; more means that the cluster's name has thousands of records below it.
const PAGES_MAX: usize = 20;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ZonesByName {
    #[serde(rename = "HostedZones")]
    zones: HostedZones,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HostedZones {
    #[serde(rename = "HostedZone")]
    zone: Vec<HostedZone>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct HostedZone {
    id: String,
    name: String,
    config: ZoneConfig,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct ZoneConfig {
    private_zone: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct RecordPage {
    resource_record_sets: RecordSets,
    is_truncated: bool,
    next_record_name: String,
    next_record_type: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct RecordSets {
    resource_record_set: Vec<WireRecord>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct WireRecord {
    name: String,
    #[serde(rename = "Type")]
    kind: String,
    #[serde(rename = "TTL")]
    ttl: Option<u32>,
    resource_records: WireValues,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct WireValues {
    resource_record: Vec<WireValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct WireValue {
    value: String,
}

#[derive(Debug, Default, Deserialize)]
struct Changed {}

/// A record, by its name without the final dot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    name: String,
    kind: String,
    /// `None`: an alias, which is never ours.
    ttl_s: Option<u32>,
    value: Vec<String>,
}

/// The records that a cluster asks for.
#[derive(Debug)]
struct Wish {
    domain: String,
    /// Which one says whose the others are.
    owner: Record,
    records: [Record; 2],
}

impl Wish {
    fn read(ask: &Ask) -> Result<Self, Refusal> {
        let domain = domain(ask)?;
        let (id, cluster) = (ask.cluster.id, ask.cluster.name.as_str());
        let target = ask.cluster.spec.get("dns").and_then(|dns| dns.get("target"));
        let (kind, value) = match target.and_then(Value::as_str) {
            Some(target) => pointing_to(target)?,
            None => ("TXT", quoted("argosy: no target yet, see spec.dns.target")),
        };
        let record = |name: String, kind: &str, value: String| Record {
            name,
            kind: kind.to_owned(),
            ttl_s: Some(TTL_S),
            value: vec![value],
        };
        let records = [format!("api.{cluster}.{domain}"), format!("*.apps.{cluster}.{domain}")];
        Ok(Self {
            owner: record(format!("_argosy.{cluster}.{domain}"), "TXT", owner_of(id)),
            records: records.map(|name| record(name, kind, value.clone())),
            domain,
        })
    }

    fn names(&self) -> [&str; 2] {
        self.records.each_ref().map(|record| record.name.as_str())
    }
}

fn domain(ask: &Ask) -> Result<String, Refusal> {
    let spec = &ask.cluster.spec;
    let base = spec.get("dns").and_then(|dns| dns.get("baseDomain"));
    let domain = base.or_else(|| spec.get("domain")).and_then(Value::as_str);
    let domain = domain.unwrap_or("example.com").trim_end_matches('.').to_ascii_lowercase();
    if host_name(&domain) { Ok(domain) } else { Err(words::bad_domain(&domain)) }
}

fn host_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    text.len() <= 253 && text.contains('.') && text.split('.').all(label)
}

/// The kind and the value of a record that points to a target.
fn pointing_to(target: &str) -> Result<(&'static str, String), Refusal> {
    match target.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => Ok(("A", address.to_string())),
        Ok(IpAddr::V6(address)) => Ok(("AAAA", address.to_string())),
        Err(_) => {
            let host = target.trim_end_matches('.').to_ascii_lowercase();
            if host_name(&host) { Ok(("CNAME", host)) } else { Err(words::bad_target(target)) }
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn owner_of(cluster: ResourceId) -> String {
    quoted(&format!("heritage=argosy,cluster={cluster}"))
}

/// Route 53 writes `*` as `\052`, and a dot at the end.
fn plain_name(name: &str) -> String {
    name.trim_end_matches('.').replace("\\052", "*").to_ascii_lowercase()
}

impl From<WireRecord> for Record {
    fn from(wire: WireRecord) -> Self {
        let values = wire.resource_records.resource_record.into_iter();
        Self {
            name: plain_name(&wire.name),
            kind: wire.kind,
            ttl_s: wire.ttl,
            value: values.map(|value| value.value).collect(),
        }
    }
}

impl Aws {
    pub(super) async fn ensure_records(&self, ask: &Ask) -> Result<Done, Refusal> {
        self.in_our_region(ask)?;
        let wish = Wish::read(ask)?;
        let Some(zone) = self.hosted_zone(&wish.domain).await.map_err(|fault| self.no(fault))?
        else {
            return Err(words::zone_not_found(&wish.domain));
        };
        let found = self.records_of(&zone, &wish).await.map_err(|fault| self.no(fault))?;
        let changes = changes(&wish, &found)?;
        if !changes.is_empty() {
            self.change(&zone, &changes).await.map_err(|fault| self.no(fault))?;
            let found = self.records_of(&zone, &wish).await.map_err(|fault| self.no(fault))?;
            let there = |record: &Record| found.iter().any(|found| same(found, record));
            if !wish.records.iter().all(there) {
                let message = "Route 53 took the DNS records and does not show them yet".to_owned();
                let guidance = "It is looked at again by itself.".to_owned();
                let refusal = words::refusal("RecordsNotVerified", message, guidance);
                return Err(Refusal { applied: true, ..refusal });
            }
        }
        let data = json!({ "recordsCreated": wish.names() });
        Ok(words::done("AllRecordsCreated", "All DNS records created and verified", data))
    }

    pub(super) async fn remove_records(&self, ask: &Ask) -> Result<Done, Refusal> {
        let removed = || Ok(words::done("RecordsRemoved", "DNS records removed", json!({})));
        // A spec that no records can come of has none.
        let Ok(wish) = Wish::read(ask) else { return removed() };
        let zone = self.hosted_zone(&wish.domain).await.map_err(|fault| self.no(fault))?;
        let Some(zone) = zone else { return removed() };
        let found = self.records_of(&zone, &wish).await.map_err(|fault| self.no(fault))?;
        if !found.iter().any(|record| same(record, &wish.owner)) {
            return removed();
        }
        let ours: Vec<Change> = found.into_iter().filter(is_ours).map(Change::Delete).collect();
        self.change(&zone, &ours).await.map_err(|fault| self.no(fault))?;
        let left = self.records_of(&zone, &wish).await.map_err(|fault| self.no(fault))?;
        if left.iter().any(|record| same(record, &wish.owner)) {
            let message = "Route 53 removed the DNS records and still shows them".to_owned();
            let guidance = "It is looked at again by itself.".to_owned();
            return Err(words::refusal("RecordsNotRemoved", message, guidance));
        }
        removed()
    }

    /// Whether there is a zone for the cluster's domain.
    pub(super) async fn has_zone(&self, ask: &Ask) -> Result<bool, Refusal> {
        let domain = domain(ask)?;
        let zone = self.hosted_zone(&domain).await.map_err(|fault| self.no(fault))?;
        Ok(zone.is_some())
    }

    /// The id of the zone of exactly this domain; a public one before a private one.
    async fn hosted_zone(&self, domain: &str) -> Result<Option<String>, Fault> {
        let path = format!("hostedzonesbyname?dnsname={domain}&maxitems=10");
        let ZonesByName { zones } = self.client.dns("ListHostedZonesByName", &path, None).await?;
        let named = zones.zone.into_iter().filter(|zone| plain_name(&zone.name) == domain);
        let zone = named.min_by_key(|zone| zone.config.private_zone);
        let id = zone.map(|zone| zone.id.trim_start_matches("/hostedzone/").to_owned());
        // It becomes part of a path.
        Ok(id.filter(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric())))
    }

    /// What the zone has under the names of the wish.
    async fn records_of(&self, zone: &str, wish: &Wish) -> Result<Vec<Record>, Fault> {
        let [api, apps] = wish.names();
        let names = [api, apps, wish.owner.name.as_str()];
        // Route 53 sorts by the labels from the end: all of ours follow on the cluster's own name.
        let below = wish.owner.name.trim_start_matches("_argosy.").to_owned();
        let mut from = format!("name={below}");
        let mut found = Vec::new();
        for _ in 0..PAGES_MAX {
            let path = format!("hostedzone/{zone}/rrset?{from}&maxitems=100");
            let page: RecordPage = self.client.dns("ListResourceRecordSets", &path, None).await?;
            let records = page.resource_record_sets.resource_record_set.into_iter();
            let records: Vec<Record> = records.map(Record::from).collect();
            let past = records.last().is_none_or(|last| !last.name.ends_with(&below));
            found
                .extend(records.into_iter().filter(|record| names.contains(&record.name.as_str())));
            let next = plain_name(&page.next_record_name);
            if !page.is_truncated || past || next.is_empty() {
                break;
            }
            let kind = page.next_record_type;
            from = format!("name={}&type={kind}", next.replace('*', "%5C052"));
        }
        Ok(found)
    }

    async fn change(&self, zone: &str, changes: &[Change]) -> Result<(), Fault> {
        let path = format!("hostedzone/{zone}/rrset/");
        let Changed {} =
            self.client.dns("ChangeResourceRecordSets", &path, Some(batch(changes))).await?;
        Ok(())
    }

    /// Why AWS did not do it.
    pub(super) fn no(&self, fault: Fault) -> Refusal {
        words::of_trouble(Trouble::from(fault), &self.region)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Change {
    Create(Record),
    Delete(Record),
}

/// What leads from what is there to what is wanted.
fn changes(wish: &Wish, found: &[Record]) -> Result<Vec<Change>, Refusal> {
    let owner = found.iter().find(|record| record.name == wish.owner.name);
    match owner {
        Some(owner) if !same(owner, &wish.owner) => {
            return Err(words::record_taken(&owner.name, "belongs to another cluster"));
        }
        None => {
            if let Some(taken) = found.first() {
                return Err(words::record_taken(&taken.name, "was not made by Argosy"));
            }
        }
        Some(_) => {}
    }
    let wanted = |record: &Record| wish.records.iter().any(|wanted| same(wanted, record));
    let mut changes: Vec<Change> = Vec::new();
    for record in found {
        if record.name != wish.owner.name && is_ours(record) && !wanted(record) {
            changes.push(Change::Delete(record.clone()));
        }
    }
    let missing = |record: &&Record| !found.iter().any(|found| same(found, record));
    changes.extend(wish.records.iter().filter(missing).cloned().map(Change::Create));
    if owner.is_none() {
        changes.push(Change::Create(wish.owner.clone()));
    }
    Ok(changes)
}

/// Whether it is of a kind that we make, under a name that is ours: somebody may have put a CAA record or an
/// alias beside it.
fn is_ours(record: &Record) -> bool {
    matches!(record.kind.as_str(), "A" | "AAAA" | "CNAME" | "TXT") && record.ttl_s.is_some()
}

/// Equal in what matters; who changed the time to live by hand had a reason.
fn same(a: &Record, b: &Record) -> bool {
    let values = |record: &Record| -> Vec<String> {
        record.value.iter().map(|value| value.trim_end_matches('.').to_owned()).collect()
    };
    a.name == b.name && a.kind == b.kind && values(a) == values(b)
}

fn batch(changes: &[Change]) -> String {
    let mut body = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
         <ChangeResourceRecordSetsRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">\
         <ChangeBatch><Changes>",
    );
    for change in changes {
        let (action, record) = match change {
            Change::Create(record) => ("CREATE", record),
            Change::Delete(record) => ("DELETE", record),
        };
        let Record { name, kind, ttl_s, value } = record;
        let (name, kind) = (xml::escape(name), xml::escape(kind));
        let ttl_s = ttl_s.unwrap_or(TTL_S);
        // Writing to a string cannot fail.
        let _ = write!(
            body,
            "<Change><Action>{action}</Action><ResourceRecordSet><Name>{name}</Name>\
             <Type>{kind}</Type><TTL>{ttl_s}</TTL><ResourceRecords>"
        );
        for value in value {
            let value = xml::escape(value);
            let _ = write!(body, "<ResourceRecord><Value>{value}</Value></ResourceRecord>");
        }
        body.push_str("</ResourceRecords></ResourceRecordSet></Change>");
    }
    body.push_str("</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>");
    body
}

#[cfg(test)]
mod tests;
