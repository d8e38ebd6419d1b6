//! What the service account needs to be allowed, by provider.

/// The permissions of one provider, each by what it is needed for.
pub(super) struct Permissions {
    /// Checking a cluster.
    pub(super) buckets: &'static str,
    /// Checking a node pool.
    pub(super) pools: &'static str,
    /// Making DNS records.
    pub(super) records: &'static str,
    /// Making a network.
    pub(super) networks: &'static str,
    /// Making a control plane.
    pub(super) clusters: &'static str,
    /// Making machines.
    pub(super) machines: &'static str,
}

impl Permissions {
    /// A provider the catalog adds speaks Google's words.
    pub(super) fn of(provider: &str) -> &'static Self {
        match provider {
            "aws" => &AWS,
            "lambda" => &LAMBDA,
            _ => &GCP,
        }
    }

    pub(super) fn all(&self) -> [&'static str; 6] {
        [self.buckets, self.pools, self.records, self.networks, self.clusters, self.machines]
    }
}

static GCP: Permissions = Permissions {
    buckets: "storage.buckets.get",
    pools: "container.nodePools.list",
    records: "dns.changes.create",
    networks: "compute.networks.create",
    clusters: "container.clusters.create",
    machines: "compute.instances.create",
};

static AWS: Permissions = Permissions {
    buckets: "s3:ListBucket",
    pools: "eks:ListNodegroups",
    records: "route53:ChangeResourceRecordSets",
    networks: "ec2:CreateVpc",
    clusters: "eks:CreateCluster",
    machines: "ec2:RunInstances",
};

static LAMBDA: Permissions = Permissions {
    buckets: "filesystems.read",
    pools: "instances.list",
    records: "records.create",
    networks: "networks.create",
    clusters: "clusters.create",
    machines: "instances.launch",
};
