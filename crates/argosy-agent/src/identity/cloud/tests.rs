use super::{Cloud, Options, ask};
use crate::host::Roots;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What a service answers: to a request's first line and one header that it must have.
type Answers = BTreeMap<&'static str, (&'static str, String)>;

/// A service on a port of its own, until it is dropped.
struct Service {
    at: SocketAddr,
    _serving: JoinSet<()>,
}

async fn service(answers: Answers) -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            answer(stream, &answers).await;
        }
    });
    Service { at, _serving: serving }
}

async fn answer(mut stream: TcpStream, answers: &Answers) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await.unwrap_or(0) == 0 {
            return;
        }
        request.push(byte[0]);
    }
    let request = String::from_utf8(request).unwrap().to_ascii_lowercase();
    let line = request.lines().next().unwrap().trim_end_matches(" http/1.1").to_owned();
    let found = answers.iter().find(|(asked, _)| asked.to_ascii_lowercase() == line);
    let response = match found {
        Some((_, (header, body))) if request.contains(header) => {
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        }
        Some(_) => "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_owned(),
        None => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
    };
    let _ = stream.write_all(response.as_bytes()).await;
}

/// One that takes connections and then writes these bytes, again and again, or nothing.
async fn noise(bytes: &'static [u8], times: usize) -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut open = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            for _ in 0..times {
                if stream.write_all(bytes).await.is_err() {
                    break;
                }
            }
            open.push(stream);
        }
    });
    Service { at, _serving: serving }
}

/// Nobody listens there.
async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// A machine whose firmware says nothing.
fn roots() -> Roots {
    Roots::under(Path::new("/nowhere"))
}

async fn options() -> Options {
    let at = nobody().await;
    Options { aws: at, gcp: at, azure: at, timeout: Duration::from_secs(20) }
}

fn told(cloud: Option<Cloud>) -> String {
    let Some(cloud) = cloud else { return "none".to_owned() };
    let word = |word: Option<String>| word.unwrap_or_else(|| "-".to_owned());
    let ip = |ip: Option<std::net::IpAddr>| word(ip.map(|ip| ip.to_string()));
    [
        cloud.provider,
        word(cloud.region),
        word(cloud.zone),
        word(cloud.instance_type),
        word(cloud.instance_id),
        ip(cloud.internal_ip),
        ip(cloud.external_ip),
    ]
    .join(" ")
}

fn amazon() -> Answers {
    let token = "x-aws-ec2-metadata-token: secret";
    let document = r#"{"instanceId":"i-1","region":"us-east-1","availabilityZone":"us-east-1a",
        "instanceType":"p5.48xlarge","privateIp":"10.0.0.1","accountId":"1"}"#;
    Answers::from([
        ("PUT /latest/api/token", ("x-aws-ec2-metadata-token-ttl-seconds: 60", "secret\n".into())),
        ("GET /latest/dynamic/instance-identity/document", (token, document.into())),
        ("GET /latest/meta-data/public-ipv4", (token, "3.4.5.6".into())),
    ])
}

#[tokio::test]
async fn amazon_is_asked_with_a_token() {
    let service = service(amazon()).await;
    let options = Options { aws: service.at, ..options().await };
    assert_eq!(
        told(ask(&roots(), &options).await),
        "aws us-east-1 us-east-1a p5.48xlarge i-1 10.0.0.1 3.4.5.6"
    );
}

#[tokio::test]
async fn google_is_asked_for_each_thing() {
    let flavor = "metadata-flavor: google";
    let service = service(Answers::from([
        (
            "GET /computeMetadata/v1/instance/zone",
            (flavor, "projects/12/zones/us-central1-a".into()),
        ),
        (
            "GET /computeMetadata/v1/instance/machine-type",
            (flavor, "projects/12/machineTypes/a3-highgpu-8g".into()),
        ),
        ("GET /computeMetadata/v1/instance/id", (flavor, "42".into())),
        ("GET /computeMetadata/v1/instance/network-interfaces/0/ip", (flavor, "10.0.0.2".into())),
    ]))
    .await;
    let options = Options { gcp: service.at, ..options().await };
    assert_eq!(
        told(ask(&roots(), &options).await),
        "gcp us-central1 us-central1-a a3-highgpu-8g 42 10.0.0.2 -"
    );
}

#[tokio::test]
async fn microsoft_is_asked() {
    let service = service(Answers::from([(
        "GET /metadata/instance/compute?api-version=2021-02-01",
        (
            "metadata: true",
            r#"{"vmId":"v-1","location":"eastus","zone":"1","vmSize":"Standard_ND96isr_H100_v5","tags":""}"#.into(),
        ),
    )]))
    .await;
    let options = Options { azure: service.at, ..options().await };
    assert_eq!(
        told(ask(&roots(), &options).await),
        "azure eastus eastus-1 Standard_ND96isr_H100_v5 v-1 - -"
    );
}

#[tokio::test]
async fn a_machine_without_a_cloud_is_told_at_once() {
    assert_eq!(ask(&roots(), &options().await).await, None);
}

#[tokio::test]
async fn one_that_hangs_does_not_keep_the_others_from_answering() {
    let (amazon, hangs) = (service(amazon()).await, noise(b"", 0).await);
    let options = Options { aws: amazon.at, gcp: hangs.at, azure: hangs.at, ..options().await };
    assert_eq!(ask(&roots(), &options).await.unwrap().provider, "aws");
}

#[tokio::test(start_paused = true)]
async fn all_that_hang_cost_the_timeout_and_no_more() {
    let hangs = noise(b"", 0).await;
    let timeout = Duration::from_secs(1);
    let options = Options { aws: hangs.at, gcp: hangs.at, azure: hangs.at, timeout };
    let limit = timeout + Duration::from_millis(50);
    let answer = tokio::time::timeout(limit, ask(&roots(), &options)).await;
    assert_eq!(answer.expect("it ends by itself"), None);
}

#[tokio::test]
async fn garbage_and_ten_megabytes_are_no_answer() {
    const MEGABYTE: &[u8] = &[b'x'; 1 << 20];
    for (bytes, times) in [
        (b"\0\xff garbage \r\n\r\n".as_slice(), 1),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n\xff\xff{[]", 1),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n", 1),
        (b"HTTP/1.1 302 Found\r\nlocation: http://example.org/\r\ncontent-length: 0\r\n\r\n", 1),
        (MEGABYTE, 10),
    ] {
        let service = noise(bytes, times).await;
        let timeout = Duration::from_secs(1);
        let options = Options { aws: service.at, gcp: service.at, azure: service.at, timeout };
        assert_eq!(ask(&roots(), &options).await, None);
    }
    let huge = format!(r#"{{"instanceId":"i-1","x":"{}"}}"#, "x".repeat(10 << 20));
    let mut answers = amazon();
    answers.get_mut("GET /latest/dynamic/instance-identity/document").unwrap().1 = huge;
    let service = service(answers).await;
    let options = Options { aws: service.at, ..options().await };
    assert_eq!(ask(&roots(), &options).await, None);
}

#[tokio::test]
async fn values_that_are_no_words_are_dropped() {
    let mut answers = amazon();
    let document =
        r#"{"instanceId":"i-1","region":"a b","availabilityZone":"","instanceType":"\u0007"}"#;
    answers.get_mut("GET /latest/dynamic/instance-identity/document").unwrap().1 = document.into();
    let service = service(answers).await;
    let options = Options { aws: service.at, ..options().await };
    assert_eq!(told(ask(&roots(), &options).await), "aws - - - i-1 - 3.4.5.6");
}

#[tokio::test]
async fn a_machine_whose_maker_is_no_cloud_does_not_ask() {
    let directory: PathBuf =
        std::env::temp_dir().join(format!("argosy-cloud-{}", std::process::id()));
    let vendor = directory.join("sys/class/dmi/id/sys_vendor");
    std::fs::create_dir_all(vendor.parent().unwrap()).unwrap();
    let amazon = service(amazon()).await;
    let options = Options { aws: amazon.at, ..options().await };
    for (name, expected) in [("Supermicro\n", false), ("Amazon EC2\n", true), ("Google\n", false)] {
        std::fs::write(&vendor, name).unwrap();
        let answer = ask(&Roots::under(&directory), &options).await;
        assert_eq!(answer.is_some(), expected, "{name}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn r2_i16_a_machine_of_amazon_that_xen_runs_asks() {
    let dir = crate::testing::Dir::new();
    let dmi = dir.path().join("sys/class/dmi/id");
    std::fs::create_dir_all(&dmi).unwrap();
    std::fs::write(dmi.join("sys_vendor"), "Xen\n").unwrap();
    let amazon = service(amazon()).await;
    let options = Options { aws: amazon.at, ..options().await };
    for (number, expected) in [
        ("ec2a1b2c-0000-4000-8000-0123456789ab\n", true),
        ("EC2E1916-9099\n", true),
        ("4c4c\n", false),
    ] {
        std::fs::write(dmi.join("product_uuid"), number).unwrap();
        let answer = ask(&Roots::under(dir.path()), &options).await;
        assert_eq!(answer.is_some(), expected, "{number}");
    }
}
