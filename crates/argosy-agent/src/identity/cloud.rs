//! What the cloud says about a machine, asked at the address that is the same in all of them.
//!
//! The machine's firmware names its maker, so a machine that is not a cloud's is not asked at all, and
//! does not wait for an answer that never comes.

use crate::host::{Roots, read};
use futures_util::future::{self, BoxFuture, Either};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use http::{Method, Request};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::time::Duration;
use tokio::net::TcpStream;

/// What a cloud says about a machine. What it does not say is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cloud {
    /// `aws`, `gcp` or `azure`.
    pub provider: String,
    /// `us-east-1`.
    pub region: Option<String>,
    /// `us-east-1a`.
    pub zone: Option<String>,
    /// `p5.48xlarge`.
    pub instance_type: Option<String>,
    /// The cloud's own id of the machine.
    pub instance_id: Option<String>,
    /// Its address inside.
    pub internal_ip: Option<IpAddr>,
    /// Its address outside.
    pub external_ip: Option<IpAddr>,
}

/// Whom to ask, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// Amazon's service.
    pub aws: SocketAddr,
    /// Google's.
    pub gcp: SocketAddr,
    /// Microsoft's.
    pub azure: SocketAddr,
    /// How long all of it may take. A service that is there answers within milliseconds.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let everywhere = SocketAddr::from((Ipv4Addr::new(169, 254, 169, 254), 80));
        let timeout = Duration::from_secs(1);
        Self { aws: everywhere, gcp: everywhere, azure: everywhere, timeout }
    }
}

/// The longest answer that is read. Microsoft's holds what the user wrote into it: up to 64 KiB.
const ANSWER_LEN_MAX: usize = 256 * 1024;

/// The longest value that is believed: the longest name of an instance type has about 30 bytes.
const VALUE_LEN_MAX: usize = 128;

/// Asks the clouds that this machine may be in, all at once. `None` if none answers in time.
pub async fn ask(roots: &Roots, options: &Options) -> Option<Cloud> {
    let vendor = read::word(&roots.sys.join("class/dmi/id/sys_vendor"));
    let may_be = |name: &str| vendor.as_deref().is_none_or(|vendor| vendor.contains(name));
    // Machines of Amazon that Xen runs (p2, p3, g3) name Xen; their number begins with Amazon's word.
    let number = read::word(&roots.sys.join("class/dmi/id/product_uuid"));
    let is_ec2 = number.is_some_and(|number| number.to_ascii_lowercase().starts_with("ec2"));
    let asked = FuturesUnordered::<BoxFuture<'_, Option<Cloud>>>::new();
    if may_be("Amazon") || is_ec2 {
        asked.push(aws(options.aws).boxed());
    }
    if may_be("Google") {
        asked.push(gcp(options.gcp).boxed());
    }
    if may_be("Microsoft") {
        asked.push(azure(options.azure).boxed());
    }
    let first = pin!(asked.filter_map(future::ready));
    tokio::time::timeout(options.timeout, first.into_future()).await.ok()?.0
}

async fn aws(at: SocketAddr) -> Option<Cloud> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Document {
        instance_id: String,
        region: Option<String>,
        availability_zone: Option<String>,
        instance_type: Option<String>,
        private_ip: Option<IpAddr>,
    }
    let ttl = ("x-aws-ec2-metadata-token-ttl-seconds", "60");
    let token = text(at, Method::PUT, "/latest/api/token", ttl).await?;
    let token = ("x-aws-ec2-metadata-token", token.trim());
    let document = json(at, "/latest/dynamic/instance-identity/document", token);
    let external = text(at, Method::GET, "/latest/meta-data/public-ipv4", token);
    let (document, external): (Option<Document>, _) = future::join(document, external).await;
    let document = document?;
    Some(Cloud {
        provider: "aws".to_owned(),
        region: value(document.region),
        zone: value(document.availability_zone),
        instance_type: value(document.instance_type),
        instance_id: value(Some(document.instance_id)),
        internal_ip: document.private_ip,
        external_ip: external.and_then(|ip| ip.trim().parse().ok()),
    })
}

async fn gcp(at: SocketAddr) -> Option<Cloud> {
    // Each by itself: all of it at once would hold the user's scripts and keys, too.
    let ask = |name: &'static str| async move {
        let path = format!("/computeMetadata/v1/instance/{name}");
        value(text(at, Method::GET, &path, ("metadata-flavor", "Google")).await)
    };
    // `projects/123/zones/us-central1-a`: a word of this form is Google's alone.
    let zone = ask("zone").await?;
    let zone = zone.strip_prefix("projects/")?.split_once("/zones/")?.1.to_owned();
    let (instance_type, instance_id, internal_ip, external_ip) = future::join4(
        ask("machine-type"),
        ask("id"),
        ask("network-interfaces/0/ip"),
        ask("network-interfaces/0/access-configs/0/external-ip"),
    )
    .await;
    Some(Cloud {
        provider: "gcp".to_owned(),
        region: zone.rsplit_once('-').map(|(region, _)| region.to_owned()),
        zone: Some(zone),
        instance_type: instance_type
            .map(|path| path.rsplit('/').next().unwrap_or_default().to_owned()),
        instance_id,
        internal_ip: internal_ip.and_then(|ip| ip.parse().ok()),
        external_ip: external_ip.and_then(|ip| ip.parse().ok()),
    })
}

async fn azure(at: SocketAddr) -> Option<Cloud> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Compute {
        vm_id: String,
        location: Option<String>,
        zone: Option<String>,
        vm_size: Option<String>,
    }
    let header = ("metadata", "true");
    let compute: Compute =
        json(at, "/metadata/instance/compute?api-version=2021-02-01", header).await?;
    let ip = |name: &'static str| async move {
        const AT: &str = "/metadata/instance/network/interface/0/ipv4/ipAddress/0";
        let path = format!("{AT}/{name}?api-version=2021-02-01&format=text");
        text(at, Method::GET, &path, header).await?.trim().parse().ok()
    };
    let (internal_ip, external_ip) =
        future::join(ip("privateIpAddress"), ip("publicIpAddress")).await;
    let region = value(compute.location);
    // A zone of Azure is a number in its region.
    let zone = value(compute.zone);
    let zone = region.as_ref().zip(zone).map(|(region, zone)| format!("{region}-{zone}"));
    Some(Cloud {
        provider: "azure".to_owned(),
        region,
        zone,
        instance_type: value(compute.vm_size),
        instance_id: value(Some(compute.vm_id)),
        internal_ip,
        external_ip,
    })
}

/// A word, if it looks like one: what comes from the network goes into labels and logs.
fn value(text: Option<String>) -> Option<String> {
    let text = text?;
    let word = text.trim();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
    let is_value = !word.is_empty() && word.len() <= VALUE_LEN_MAX && word.bytes().all(is_word);
    is_value.then(|| word.to_owned())
}

async fn json<T: DeserializeOwned>(at: SocketAddr, path: &str, header: (&str, &str)) -> Option<T> {
    serde_json::from_str(&text(at, Method::GET, path, header).await?).ok()
}

/// The body of a good answer; `None` for any other, whatever the reason: there is nothing to be done.
async fn text(at: SocketAddr, method: Method, path: &str, header: (&str, &str)) -> Option<String> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", at.to_string())
        .header("content-length", "0")
        .header("connection", "close")
        .header(header.0, header.1)
        .body(Empty::<Bytes>::new())
        .ok()?;
    let stream = TcpStream::connect(at).await.ok()?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.ok()?;
    let exchange = async {
        let response = sender.send_request(request).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let body = Limited::new(response.into_body(), ANSWER_LEN_MAX).collect().await.ok()?;
        String::from_utf8(body.to_bytes().into()).ok()
    };
    match future::select(pin!(exchange), pin!(connection)).await {
        Either::Left((answer, _)) => answer,
        // The other side has closed; what it said before is still to be read.
        Either::Right((_, exchange)) => exchange.await,
    }
}

#[cfg(test)]
mod tests;
