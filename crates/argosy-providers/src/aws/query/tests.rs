use super::{Call, Effect, FaultKind, Query, refused, services, signed};
use crate::aws::{Aws, Credentials, Keys, Rates, Settings};
use crate::user_data::UserData;
use argosy_control::clock::Clock;
use argosy_control::provider::Provider;
use argosy_core::machine::{MachineId, Trouble};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use jiff::Timestamp;
use reqwest::Url;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[test]
fn parameters_are_numbered_and_escaped() {
    let query = Query::read("DescribeInstances")
        .filter("tag-key", &["a b"])
        .filter("instance-state-name", &["running", "pending"])
        .with_some("NextToken", Some("x+/="))
        .with_some("KeyName", None);
    assert_eq!(
        query.body(),
        "Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=tag-key&Filter.1.Value.1=a+b\
         &Filter.2.Name=instance-state-name&Filter.2.Value.1=running&Filter.2.Value.2=pending\
         &NextToken=x%2B%2F%3D"
    );
}

#[test]
fn services_are_where_aws_has_them() {
    let rows = [
        (
            "us-east-1",
            "https://ec2.us-east-1.amazonaws.com/",
            "https://route53.amazonaws.com/",
            "us-east-1",
        ),
        (
            "eu-west-3",
            "https://ec2.eu-west-3.amazonaws.com/",
            "https://route53.amazonaws.com/",
            "us-east-1",
        ),
        (
            "cn-north-1",
            "https://ec2.cn-north-1.amazonaws.com.cn/",
            "https://route53.amazonaws.com.cn/",
            "cn-northwest-1",
        ),
        (
            "us-gov-east-1",
            "https://ec2.us-gov-east-1.amazonaws.com/",
            "https://route53.us-gov.amazonaws.com/",
            "us-gov-west-1",
        ),
    ];
    for (region, ec2_url, dns_url, dns_region) in rows {
        let (ec2, dns) = services(region, None).expect("services");
        assert_eq!((ec2.url.as_str(), ec2.region.as_str()), (ec2_url, region));
        assert_eq!((dns.url.as_str(), dns.region.as_str()), (dns_url, dns_region));
    }
}

#[test]
fn a_call_is_signed_for_its_service_region_and_time() {
    let (ec2, _) = services("eu-west-1", None).expect("services");
    let call = Call {
        service: &ec2,
        permission: "ec2:DescribeRegions".to_owned(),
        effect: Effect::Read,
        method: Method::POST,
        url: ec2.url.clone(),
        content_type: "application/x-www-form-urlencoded; charset=utf-8",
        body: "Action=DescribeRegions&Version=2016-11-15".to_owned(),
    };
    let keys = |token: Option<&str>| {
        let token = token.map(ToOwned::to_owned);
        aws_credential_types::Credentials::new("AKIDEXAMPLE", "wJalrXUtnFEMI", token, None, "test")
    };
    let now = SystemTime::from("2026-11-15T09:00:00Z".parse::<Timestamp>().expect("a time"));
    let headers = signed(&call, keys(Some("session")), now).expect("a signature");
    let text = |name: &str| headers[name].to_str().expect("text").to_owned();
    assert_eq!(text("x-amz-date"), "20261115T090000Z");
    assert_eq!(text("x-amz-security-token"), "session");
    let authorization = text("authorization");
    let scope = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261115/eu-west-1/ec2/aws4_request, ";
    assert!(authorization.starts_with(scope), "{authorization}");
    assert!(authorization.contains("content-type;host;x-amz-date"), "{authorization}");
    let other = Call { body: "Action=Other".to_owned(), ..call };
    let headers = signed(&other, keys(Some("session")), now).expect("a signature");
    assert_ne!(headers["authorization"].to_str().expect("text"), authorization);
}

/// Prints the `Authorization` header that AWS's own Python library makes.
const BOTOCORE: &str = r#"
import datetime, json, sys
import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
case = json.load(sys.stdin)
now = datetime.datetime(2026, 11, 15, 9, 0, 0)
botocore.auth.get_current_datetime = lambda *_, **__: now
request = AWSRequest(case["method"], case["url"], {"content-type": case["type"]}, case["body"])
keys = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI", case["token"])
botocore.auth.SigV4Auth(keys, case["service"], case["region"]).add_auth(request)
print(request.headers["Authorization"])
"#;

/// The signature of a call, as AWS's own library makes it.
fn signed_by_botocore(call: &Call<'_>, token: Option<&str>) -> String {
    let case = serde_json::json!({
        "method": call.method.as_str(),
        "url": call.url.as_str(),
        "type": call.content_type,
        "body": call.body,
        "token": token,
        "service": call.service.name,
        "region": call.service.region,
    });
    let mut command = Command::new(crate::aws::standin::python());
    command.args(["-c", BOTOCORE]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("Python starts");
    let mut words = child.stdin.take().expect("a pipe");
    words.write_all(case.to_string().as_bytes()).expect("it listens");
    drop(words);
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn signatures_are_those_of_awss_own_library() {
    let (ec2, dns) = services("eu-west-1", None).expect("services");
    let query = Query::read("DescribeInstances").filter("tag:a b", &["ü&=+/%"]);
    let form = "application/x-www-form-urlencoded; charset=utf-8";
    let listing = "/2013-04-01/hostedzone/Z1/rrset?name=%5C052.apps.prod.example.com&type=A";
    let rows = [
        (&ec2, Method::POST, "/", form, query.body(), None),
        (&ec2, Method::POST, "/", form, query.body(), Some("a/session+token==")),
        (&dns, Method::GET, listing, "text/xml", String::new(), None),
        (
            &dns,
            Method::POST,
            "/2013-04-01/hostedzone/Z1/rrset/",
            "text/xml",
            "<a/>".to_owned(),
            None,
        ),
    ];
    for (service, method, path, content_type, body, token) in rows {
        let url = service.url.join(path).expect("a path");
        let permission = String::new();
        let effect = Effect::Read;
        let call = Call { service, permission, effect, method, url, content_type, body };
        let session = token.map(ToOwned::to_owned);
        let keys = aws_credential_types::Credentials::new(
            "AKIDEXAMPLE",
            "wJalrXUtnFEMI",
            session,
            None,
            "test",
        );
        let now = SystemTime::from("2026-11-15T09:00:00Z".parse::<Timestamp>().expect("a time"));
        let headers = signed(&call, keys, now).expect("a signature");
        let ours = headers["authorization"].to_str().expect("text");
        assert_eq!(ours, signed_by_botocore(&call, token), "{}", call.url);
    }
}

#[test]
fn errors_are_read_in_both_dialects_and_cut() {
    let mut headers = HeaderMap::new();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("7"));
    let read = |body: &str| {
        let refused = refused(StatusCode::BAD_REQUEST, &headers, body.as_bytes());
        assert_eq!(refused.retry_after_s, Some(7));
        (refused.code, refused.message)
    };
    let ec2 = "<Response><Errors><Error><Code>A</Code><Message>b\u{7}c</Message></Error></Errors>\
               <RequestID>r</RequestID></Response>";
    assert_eq!(read(ec2), ("A".to_owned(), "bc".to_owned()));
    let dns = "<ErrorResponse><Error><Type>Sender</Type><Code>B</Code><Message>d</Message></Error>\
               <RequestId>r</RequestId></ErrorResponse>";
    assert_eq!(read(dns), ("B".to_owned(), "d".to_owned()));
    for body in ["", "<html>", "oops"] {
        assert_eq!(read(body), (String::new(), "AWS answered 400 Bad Request".to_owned()));
    }
    let long = format!(
        "<Response><Errors><Error><Code>A</Code><Message>{}</Message></Error></Errors></Response>",
        "x".repeat(9_999)
    );
    assert_eq!(read(&long).1.len(), 600);
}

/// A server that answers every request with the same bytes and hangs up; `None`: it never answers.
async fn server(answer: Option<&'static [u8]>) -> (Url, tokio::task::JoinSet<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let mut silent = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 16 * 1024];
            let _ = stream.read(&mut request).await;
            match answer {
                Some(answer) => drop(stream.write_all(answer).await),
                None => silent.push(stream),
            }
        }
    });
    (Url::parse(&format!("http://127.0.0.1:{port}/")).expect("a URL"), tasks)
}

fn aws(endpoint: Url, clock: Clock) -> Aws {
    let settings = Settings {
        region: "us-east-1".to_owned(),
        credentials: Credentials::Keys(Keys::new("AKID", "secret", None)),
        endpoint: Some(endpoint),
        subnets: Vec::new(),
        security_groups: Vec::new(),
        image: "ami-1".to_owned(),
        key_name: None,
        instance_profile: None,
        user_data: UserData::default(),
        prices: BTreeMap::new(),
        rates: Rates::default(),
    };
    Aws::new(settings, clock).expect("settings that can be used")
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let moved =
        b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
    let (url, _tasks) = server(Some(moved)).await;
    let answer = aws(url, Clock::System).reboot(&MachineId::new("i-1")).await;
    assert!(matches!(answer, Err(Trouble::Unsure(_))), "{answer:?}");
}

#[tokio::test]
async fn an_answer_that_says_it_is_endless_is_cut() {
    // As long as it likes: 20 MiB are more than is read.
    let mut long = b"HTTP/1.1 200 OK\r\ncontent-length: 20971520\r\n\r\n".to_vec();
    long.resize(long.len() + 20 * 1024 * 1024, b' ');
    let (url, _tasks) = server(Some(long.leak())).await;
    let query = Query::read("DescribeRegions");
    let fault = aws(url, Clock::System).client.ec2::<crate::aws::answer::Nothing>(&query).await;
    let fault = fault.expect_err("too long");
    assert!(matches!(&fault.kind, FaultKind::NoAnswer(why) if why.contains("longer")), "{fault:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up_after_its_time() {
    let (url, _tasks) = server(None).await;
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let began = clock.monotonic();
    let answer = aws(url, clock).reboot(&MachineId::new("i-1")).await;
    assert!(matches!(answer, Err(Trouble::Unsure(_))), "{answer:?}");
    let took = clock.monotonic() - began;
    assert!(took <= Duration::from_secs(31), "{took:?}");
}

/// G5: what AWS wants us to wait is waited, and only by calls of that kind.
#[tokio::test(start_paused = true)]
async fn who_is_told_to_wait_waits_and_nobody_else_does() {
    let busy = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 20\r\ncontent-length: 107\r\n\r\n\
        <Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>x</Message></Error></Errors></Response>  ";
    let (url, _tasks) = server(Some(busy)).await;
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let aws = aws(url, clock);
    let machine = MachineId::new("i-1");
    let timed = async |looks: bool| {
        let began = clock.monotonic();
        let trouble = match looks {
            true => aws.console(&machine).await.expect_err("it is busy"),
            false => aws.reboot(&machine).await.expect_err("it is busy"),
        };
        let told = matches!(trouble, Trouble::Throttled { retry_after_s: Some(20), .. });
        assert!(told, "{trouble:?}");
        (clock.monotonic() - began).as_secs()
    };
    assert_eq!(timed(false).await, 0);
    assert_eq!(timed(true).await, 0, "looking is counted apart");
    assert_eq!(timed(false).await, 20);
}

#[tokio::test]
async fn a_listing_that_never_ends_is_none() {
    let body = "HTTP/1.1 200 OK\r\ncontent-length: 71\r\n\r\n\
                <x><reservationSet/><nextToken>again-and-again-and-ag</nextToken></x>  ";
    let (url, _tasks) = server(Some(body.as_bytes())).await;
    let answer = aws(url, Clock::System).list().await;
    let Err(Trouble::Unreachable(why)) = answer else { panic!("{answer:?}") };
    assert!(why.contains("does not end"), "{why}");
}
