//! The network of a cluster: a VPC with a subnet and a security group, known by the cluster's id in a tag;
//! and what is checked before anything is made.
//!
//! What a newcomer gets wrong: EC2 has no tokens here. A create whose answer was lost is found by its tag the
//! next time; should the listing lag then, there are two, and `remove` removes both.

use super::answer::{CLUSTER, Created, Groups, Nothing, Page, Regions, Subnets, Vpcs};
use super::query::{Fault, Query};
use super::{Aws, words};
use argosy_control::provider::{Ask, Done, Refusal};
use argosy_core::catalog::Catalog;
use argosy_core::resource::Kind;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The addresses of a cluster's network. Networks of clusters are not connected, so all have the same.
const VPC_CIDR: &str = "10.0.0.0/16";

/// The part of them that its one subnet has: room for 4,000 machines, and for more subnets.
const SUBNET_CIDR: &str = "10.0.0.0/20";

/// What is there of a cluster's network.
#[derive(Debug, Default)]
struct Network {
    vpcs: Vec<String>,
    /// With the VPC of each.
    subnets: Vec<(String, String)>,
    groups: Vec<(String, String)>,
}

impl Network {
    fn is_empty(&self) -> bool {
        self.vpcs.is_empty() && self.subnets.is_empty() && self.groups.is_empty()
    }
}

impl Aws {
    pub(super) fn in_our_region(&self, ask: &Ask) -> Result<(), Refusal> {
        match Catalog::region_of(&ask.cluster.spec) {
            Some(region) if region != self.region => Err(words::other_region(region, &self.region)),
            Some(_) | None => Ok(()),
        }
    }

    /// What can be checked without making anything.
    pub(super) async fn checked(&self, ask: &Ask) -> Result<Done, Refusal> {
        self.in_our_region(ask)?;
        let checks = match ask.resource.kind {
            Kind::Cluster => self.check_cluster(ask).await?,
            Kind::NodePool => self.check_pool(ask).await?,
        };
        let message = if ask.resource.generation <= 1 {
            let passed = checks.iter().filter(|(_, passed)| *passed).map(|(name, _)| *name);
            let passed: Vec<&str> = passed.collect();
            let passed = passed.join(", ");
            format!("Validation completed successfully. All checks passed: {passed}")
        } else {
            "Validation completed successfully for updated spec".to_owned()
        };
        let results: BTreeMap<_, _> = checks.into_iter().collect();
        Ok(words::done("AllChecksPassed", message, json!({ "validationResults": results })))
    }

    async fn check_cluster(&self, ask: &Ask) -> Result<Vec<(&'static str, bool)>, Refusal> {
        let query = Query::read("DescribeRegions").with("RegionName.1", &self.region);
        let regions: Regions = self.client.ec2(&query).await.map_err(|fault| self.no(fault))?;
        let (regions, _) = regions.split();
        let known = regions.iter().any(|region| region.region_name == self.region);
        self.may("CreateVpc", |query| query.with("CidrBlock", VPC_CIDR)).await?;
        if !self.image.is_empty() {
            let launch = |query: Query| {
                let query = query.with("MinCount", "1").with("MaxCount", "1");
                query.with("ImageId", &self.image).with("InstanceType", "t3.micro")
            };
            self.may("RunInstances", launch).await?;
        }
        // Whether the zone is there is the DNS adapter's to judge; here it is only told.
        let zone = self.has_zone(ask).await?;
        Ok(vec![
            ("route53ZoneFound", zone),
            ("regionAccessible", known),
            ("permissionsSufficient", true),
        ])
    }

    async fn check_pool(&self, ask: &Ask) -> Result<Vec<(&'static str, bool)>, Refusal> {
        let named = ask.resource.spec.get("machineType").and_then(Value::as_str);
        if let Some(machine_type) = named {
            let catalogue = self.catalogue().await.map_err(|fault| self.no(fault))?;
            if !catalogue.has(machine_type) {
                let message = catalogue.unknown(machine_type, &self.region);
                let guidance = "Change the spec.".to_owned();
                return Err(words::refusal("UnknownMachineType", message, guidance));
            }
        }
        Ok(vec![("clusterAccessible", true), ("machineTypeAvailable", true)])
    }

    /// Asks whether a call would be allowed, without doing it.
    async fn may(
        &self,
        action: &'static str,
        with: impl FnOnce(Query) -> Query,
    ) -> Result<(), Refusal> {
        let query = with(Query::read(action)).with("DryRun", "true");
        match self.client.ec2::<Nothing>(&query).await {
            Ok(Nothing {}) => Ok(()),
            Err(fault) if fault.code() == "DryRunOperation" => Ok(()),
            Err(fault) => Err(self.no(fault)),
        }
    }

    pub(super) async fn ensure_network(&self, ask: &Ask) -> Result<Done, Refusal> {
        self.in_our_region(ask)?;
        let mut ids = Vec::new();
        match self.make_network(ask, &mut ids).await {
            Ok(()) => {
                let region = &self.region;
                let message = format!("Network created in {region}");
                let data = json!({ "region": region, "resources": ids });
                Ok(words::done("InfrastructureReady", message, data))
            }
            Err(fault) => Err(Refusal { applied: !ids.is_empty(), ..self.no(fault) }),
        }
    }

    /// Finds or makes one of each; `ids` has what is there, also if the rest fails.
    async fn make_network(&self, ask: &Ask, ids: &mut Vec<String>) -> Result<(), Fault> {
        let there = self.network(ask).await?;
        let vpc = match there.vpcs.first() {
            Some(vpc) => vpc.clone(),
            None => {
                let query = Query::change("CreateVpc").with("CidrBlock", VPC_CIDR);
                self.made(tagged(query, "vpc", ask)).await?
            }
        };
        ids.push(vpc.clone());
        let within = |parts: &[(String, String)]| {
            parts.iter().find(|(_, of)| *of == vpc).map(|(id, _)| id.clone())
        };
        let subnet = match within(&there.subnets) {
            Some(subnet) => subnet,
            None => {
                let query = Query::change("CreateSubnet");
                let query = query.with("VpcId", &vpc).with("CidrBlock", SUBNET_CIDR);
                self.made(tagged(query, "subnet", ask)).await?
            }
        };
        ids.push(subnet);
        let group = match within(&there.groups) {
            Some(group) => group,
            None => {
                let query = Query::change("CreateSecurityGroup")
                    .with("VpcId", &vpc)
                    .with("GroupName", format!("argosy-{}", ask.cluster.id))
                    .with("GroupDescription", "Machines of an Argosy cluster");
                self.made(tagged(query, "security-group", ask)).await?
            }
        };
        ids.push(group);
        Ok(())
    }

    async fn made(&self, query: Query) -> Result<String, Fault> {
        let created: Created = self.client.ec2(&query).await?;
        created.id().ok_or_else(|| Fault {
            permission: format!("ec2:{}", query.action),
            effect: query.effect,
            kind: super::query::FaultKind::NoAnswer("the answer has no id".to_owned()),
        })
    }

    pub(super) async fn remove_network(&self, ask: &Ask) -> Result<Done, Refusal> {
        let left = self.unmake_network(ask).await.map_err(|fault| match fault.code() {
            "DependencyViolation" => {
                let message = "The cluster's network is still in use".to_owned();
                let guidance = "Remove what is in it, then it goes by itself.".to_owned();
                words::refusal("NetworkInUse", message, guidance)
            }
            _ => self.no(fault),
        })?;
        if !left.is_empty() {
            let message = "AWS removed the cluster's network and still shows it".to_owned();
            let guidance = "It is looked at again by itself.".to_owned();
            return Err(words::refusal("NetworkNotRemoved", message, guidance));
        }
        let message = "Infrastructure resources successfully cleaned up";
        Ok(words::done("InfrastructureRemoved", message, json!({})))
    }

    /// Removes what is there, from the inside out; what is left then.
    async fn unmake_network(&self, ask: &Ask) -> Result<Network, Fault> {
        let there = self.network(ask).await?;
        if there.is_empty() {
            return Ok(there);
        }
        for (group, _) in &there.groups {
            self.unmade(Query::change("DeleteSecurityGroup").with("GroupId", group)).await?;
        }
        for (subnet, _) in &there.subnets {
            self.unmade(Query::change("DeleteSubnet").with("SubnetId", subnet)).await?;
        }
        for vpc in &there.vpcs {
            self.unmade(Query::change("DeleteVpc").with("VpcId", vpc)).await?;
        }
        self.network(ask).await
    }

    async fn unmade(&self, query: Query) -> Result<(), Fault> {
        match self.client.ec2::<Nothing>(&query).await {
            Ok(Nothing {}) => Ok(()),
            Err(fault) if fault.code().ends_with(".NotFound") => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// What carries the cluster's tag; the oldest names first, so that everybody picks the same.
    async fn network(&self, ask: &Ask) -> Result<Network, Fault> {
        let id = ask.cluster.id.to_string();
        let filter = format!("tag:{CLUSTER}");
        let query = |action| Query::read(action).filter(&filter, &[&id]);
        let vpcs = self.pages::<Vpcs>(query("DescribeVpcs")).await?;
        let subnets = self.pages::<Subnets>(query("DescribeSubnets")).await?;
        let groups = self.pages::<Groups>(query("DescribeSecurityGroups")).await?;
        let mut network = Network {
            vpcs: vpcs.into_iter().map(|vpc| vpc.vpc_id).collect(),
            subnets: subnets.into_iter().map(|subnet| (subnet.subnet_id, subnet.vpc_id)).collect(),
            groups: groups.into_iter().map(|group| (group.group_id, group.vpc_id)).collect(),
        };
        network.vpcs.sort();
        network.subnets.sort();
        network.groups.sort();
        Ok(network)
    }
}

fn tagged(query: Query, kind: &str, ask: &Ask) -> Query {
    query
        .with("TagSpecification.1.ResourceType", kind)
        .with("TagSpecification.1.Tag.1.Key", CLUSTER)
        .with("TagSpecification.1.Tag.1.Value", ask.cluster.id.to_string())
        .with("TagSpecification.1.Tag.2.Key", "Name")
        .with("TagSpecification.1.Tag.2.Value", ask.cluster.name.as_str())
}
