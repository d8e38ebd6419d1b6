use super::*;
use crate::gpu::fake::Fake;
use jiff::Timestamp;

fn eight() -> Figures {
    let fake = Fake::parse("8xH100", "metrics").unwrap();
    let figures = Figures::default();
    figures.inventoried(&fake.inventory().unwrap());
    figures.swept(&fake.sweep(Timestamp::UNIX_EPOCH).unwrap());
    Figures::count(&figures.heartbeats);
    Figures::count(&figures.heartbeats);
    Figures::set(&figures.spool_bytes, 4_096);
    figures
}

/// A line of the format: name, labels as they are written, value.
fn parsed(page: &str) -> Vec<(String, String, f64)> {
    let mut kinds = BTreeMap::new();
    let mut lines = Vec::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} twice");
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (what, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = match what.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').unwrap()),
            None => (what, ""),
        };
        assert!(name.starts_with("argosy_"), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
        let family = name.trim_end_matches("_sum").trim_end_matches("_count");
        let kind = kinds.get(name).or_else(|| kinds.get(family));
        let kind = kind.unwrap_or_else(|| panic!("{name} has no type"));
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        lines.push((name.to_owned(), labels.to_owned(), value.parse().unwrap()));
    }
    lines
}

#[test]
fn the_page_is_what_prometheus_reads() {
    let page = eight().page();
    let lines = parsed(&page);
    let of = |name: &str| lines.iter().filter(|line| line.0 == name).collect::<Vec<_>>();
    assert_eq!(of("argosy_agent_heartbeats_total")[0].2, 2.0);
    assert_eq!(of("argosy_agent_spool_bytes")[0].2, 4_096.0);
    assert_eq!(of("argosy_agent_sweep_duration_seconds_sum")[0].2, 0.005);
    assert_eq!(of("argosy_agent_sweep_duration_seconds_count")[0].2, 1.0);
    for (name, _, _, _) in GPU_ROWS {
        let lines = of(&format!("argosy_gpu_{name}"));
        assert_eq!(lines.len(), 8, "{name}");
        assert!(lines[3].1.starts_with("index=\"3\",uuid=\"GPU-"), "{}", lines[3].1);
        assert!(lines[3].1.ends_with("name=\"NVIDIA H100 80GB HBM3\""), "{}", lines[3].1);
    }
    assert_eq!(of("argosy_gpu_nvlink_errors_total").len(), 8 * 4);
    assert_eq!(of("argosy_gpu_count")[0].2, 8.0);
}

#[test]
fn what_the_driver_does_not_say_has_no_line() {
    let figures = Figures::default();
    let nothing = Reading { uuid: "GPU-\"\\\n\u{1b}x".to_owned(), ..Reading::default() };
    figures.swept(&Sweep { count: 1, gpus: vec![nothing], ..Sweep::default() });
    let page = figures.page();
    let lines = parsed(&page);
    let said: Vec<&str> = lines.iter().filter(|l| !l.1.is_empty()).map(|l| l.0.as_str()).collect();
    assert_eq!(said, ["argosy_agent_info", "argosy_gpu_readable"]);
    assert!(page.contains(r#"uuid="GPU-\"\\\nx""#), "{page}");

    figures.sweep_failed();
    let page = figures.page();
    assert!(!page.contains("argosy_gpu_"), "old values are not shown as new ones: {page}");
    assert!(page.contains("argosy_agent_sweeps_failed_total 1"));
}

async fn ask(request: &[u8], figures: &Figures) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let asked = async {
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    tokio::select! {
        () = serve(listener, figures) => panic!("it ended"),
        answer = asked => answer,
    }
}

#[tokio::test]
async fn two_pages_are_served_and_nothing_else() {
    let figures = eight();
    let rows: [(&[u8], &str, &str); 7] = [
        (b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK", "argosy_gpu_power_watts{"),
        (b"GET /metrics?a=b HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK", "version=0.0.4"),
        (b"GET /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK", "\r\n\r\nok\n"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found", "/metrics"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 Method Not Allowed", "only GET"),
        (b"\x16\x03\x01 not http", "HTTP/1.1 400 Bad Request", ""),
        (b"", "HTTP/1.1 400 Bad Request", ""),
    ];
    for (request, status, part) in rows {
        let answer = ask(request, &figures).await;
        assert!(answer.starts_with(status), "{answer}");
        assert!(answer.contains(part), "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    }
}

#[tokio::test]
async fn readers_that_say_nothing_do_not_keep_others_out_for_ever() {
    tokio::time::pause();
    let figures = eight();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let asked = async {
        let mut silent = Vec::new();
        for _ in 0..READERS_MAX {
            silent.push(TcpStream::connect(at).await.unwrap());
        }
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    tokio::select! {
        () = serve(listener, &figures) => panic!("it ended"),
        answer = asked => assert!(answer.ends_with("ok\n"), "{answer}"),
    }
}
