//! AWS for tests: moto's server, which keeps the machines and records, behind a door of ours that makes up
//! for what moto lacks and lies where it is told to.
//!
//! moto ignores client tokens, knows no scheduled events or spot interruptions, and sells machine types that
//! do not exist; the door does all that. One moto serves a whole test program, each stand-in has an account
//! of its own in it, so that tests can run at once.

mod door;
mod moto;

use super::answer::{Instances, Page, Vpcs};
use super::{Credentials, Keys, Rate, Rates, Settings, UserData, query::Query, xml};
use argosy_control::clock::Clock;
use argosy_core::machine::{Machine, MachineState};
use door::Door;
#[cfg(test)]
pub(super) use moto::python;
use reqwest::Url;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// An account at a cloud that behaves like AWS. It ends with the value.
pub struct Standin {
    door: Arc<Door>,
    url: Url,
    _server: JoinSet<()>,
}

/// How the stand-in misbehaves. Numbers count down; the rest stays until it is taken back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tricks {
    /// So many launches are done, and never answered.
    pub launches_unanswered: u32,
    /// So many launches are not done, and never answered.
    pub launches_lost: u32,
    /// So many launches are done, and answered with a 500.
    pub launches_with_error: u32,
    /// So many terminations are done, and answered with a 500.
    pub terminations_with_error: u32,
    /// Terminations are answered with success, and not done.
    pub terminations_lie: bool,
    /// So many calls are refused: too many.
    pub throttled: u32,
    /// The allowance is used up.
    pub no_quota: bool,
    /// There are no machines left.
    pub no_capacity: bool,
    /// The keys are no longer good for anything.
    pub revoked: bool,
    /// Actions that the keys do not allow: `RunInstances`.
    pub denied: Vec<String>,
    /// For how long machines are not shown.
    pub list_lag: Duration,
    /// Listings are empty.
    pub lists_empty: bool,
    /// Listings show every second machine.
    pub lists_halved: bool,
    /// Listings fail after their first page.
    pub lists_broken: bool,
    /// How many machines a page has.
    pub page_size: Option<u32>,
}

/// A machine that exists, and what it was given to boot with.
#[derive(Clone, Debug, PartialEq)]
pub struct Booted {
    /// As EC2 would show it.
    pub machine: Machine,
    /// Its user data; empty if it was not bought through the door.
    pub user_data: String,
}

/// Where the stand-in's machines are.
pub const REGION: &str = "us-east-1";

/// An image it takes.
pub const IMAGE: &str = "ami-12c6146b";

impl Standin {
    /// Starts one; the first in a program starts moto, too, which takes a few seconds.
    ///
    /// # Panics
    /// If moto is not installed, or does not start: says what to do.
    pub async fn start(clock: Clock) -> Self {
        let moto = tokio::task::spawn_blocking(moto::url).await.expect("moto starts");
        let door = Arc::new(Door::new(moto, clock));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let url = Url::parse(&format!("http://127.0.0.1:{port}/")).expect("a URL of ours");
        let router = door::router(door.clone());
        let mut server = JoinSet::new();
        server.spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Self { door, url, _server: server }
    }

    /// Where it answers: the `endpoint` of the settings.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Settings with which a provider speaks to it, as fast as it can.
    pub fn settings(&self, user_data: UserData) -> Settings {
        let fast = Rate { burst: 10_000, per_s: 10_000.0 };
        Settings {
            region: REGION.to_owned(),
            credentials: Credentials::Keys(Keys::new("AKIDEXAMPLE", "not-a-secret", None)),
            endpoint: Some(self.url.clone()),
            subnets: Vec::new(),
            security_groups: Vec::new(),
            image: IMAGE.to_owned(),
            key_name: None,
            instance_profile: None,
            user_data,
            prices: BTreeMap::new(),
            rates: Rates { launches: fast, changes: fast, reads: fast, dns: fast },
        }
    }

    /// Changes how it misbehaves.
    pub fn trick(&self, change: impl FnOnce(&mut Tricks)) {
        change(&mut self.door.world().tricks);
    }

    /// Lets time pass for its listings.
    pub fn pass(&self, time: Duration) {
        self.door.world().passed += time;
    }

    /// Schedules an event for a machine, as AWS does before it repairs what is below it: `system-reboot`.
    pub fn schedule(&self, machine: &str, code: &str, not_before: &str) {
        let event = (code.to_owned(), not_before.to_owned());
        self.door.world().events.insert(machine.to_owned(), event);
    }

    /// Says that a spot machine is about to be taken back.
    pub fn reclaim(&self, machine: &str, said_at: &str) {
        self.door.world().reclaimed.insert(machine.to_owned(), said_at.to_owned());
    }

    /// The machines that exist, past the door: not those that are gone.
    pub async fn machines(&self) -> Vec<Booted> {
        let mut booted = Vec::new();
        let mut next = None;
        loop {
            let query = Query::read("DescribeInstances").with("MaxResults", "1000");
            let query = query.with_some("NextToken", next.as_deref());
            let page: Instances = self.asked(&query).await;
            let (reservations, following) = page.split();
            let instances = reservations.into_iter().flat_map(|all| all.instances.item);
            let machines = instances.filter_map(|instance| instance.machine(REGION));
            let world = self.door.world();
            booted.extend(machines.filter(|machine| machine.state != MachineState::Gone).map(
                |machine| {
                    let user_data = world.user_data.get(machine.id.as_str());
                    Booted { user_data: user_data.cloned().unwrap_or_default(), machine }
                },
            ));
            match following {
                Some(following) => next = Some(following),
                None => return booted,
            }
        }
    }

    /// Makes a machine by hand, as somebody else in the account would.
    pub async fn make_by_hand(&self) {
        let query = Query::change("RunInstances")
            .with("MinCount", "1")
            .with("MaxCount", "1")
            .with("ImageId", IMAGE)
            .with("InstanceType", "t3.micro");
        let _: super::answer::Nothing = self.asked(&query).await;
    }

    /// Makes the hosted zone of a domain.
    pub async fn create_zone(&self, domain: &str) {
        let body = format!(
            "<CreateHostedZoneRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">\
             <Name>{domain}</Name><CallerReference>{domain}</CallerReference>\
             </CreateHostedZoneRequest>"
        );
        self.door.dns_by_hand("hostedzone", Some(body)).await;
    }

    /// The records of a domain that has a zone, without those that every zone has: `name kind value`, sorted.
    pub async fn records(&self, domain: &str) -> Vec<String> {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "PascalCase")]
        struct Row {
            id: String,
            name: String,
            #[serde(rename = "Type")]
            kind: String,
            resource_records: Values,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "PascalCase")]
        struct Values {
            resource_record: Vec<Value>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "PascalCase")]
        struct Value {
            value: String,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "PascalCase")]
        struct Rows {
            hosted_zone: Vec<Row>,
            resource_record_set: Vec<Row>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "PascalCase")]
        struct Answer {
            hosted_zones: Rows,
            resource_record_sets: Rows,
        }
        let path = format!("hostedzonesbyname?dnsname={domain}&maxitems=1");
        let answer = self.door.dns_by_hand(&path, None).await;
        let zones: Answer = xml::read(&answer).expect("moto's own XML");
        let Some(zone) = zones.hosted_zones.hosted_zone.first() else { return Vec::new() };
        let path = format!("{}/rrset", zone.id.trim_start_matches('/'));
        let answer = self.door.dns_by_hand(&path, None).await;
        let records: Answer = xml::read(&answer).expect("moto's own XML");
        let rows = records.resource_record_sets.resource_record_set.into_iter();
        let rows = rows.filter(|row| !matches!(row.kind.as_str(), "NS" | "SOA"));
        let mut rows: Vec<String> = rows
            .map(|row| {
                let values = row.resource_records.resource_record.into_iter();
                let values: Vec<String> = values.map(|value| value.value).collect();
                let name = row.name.trim_end_matches('.');
                format!("{name} {} {}", row.kind, values.join(","))
            })
            .collect();
        rows.sort();
        rows
    }

    /// The ids of the networks that were made for clusters.
    pub async fn networks(&self) -> Vec<String> {
        let query = Query::read("DescribeVpcs").filter("tag-key", &[super::answer::CLUSTER]);
        let (vpcs, _) = self.asked::<Vpcs>(&query).await.split();
        vpcs.into_iter().map(|vpc| vpc.vpc_id).collect()
    }

    /// What moto answers, past the door.
    async fn asked<T: serde::de::DeserializeOwned>(&self, query: &Query) -> T {
        let answer = self.door.ec2_by_hand(query).await;
        xml::read(&answer).unwrap_or_else(|cause| {
            panic!("{cause}: {}", String::from_utf8_lossy(&answer));
        })
    }
}
