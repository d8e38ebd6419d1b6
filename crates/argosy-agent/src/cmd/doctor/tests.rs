use super::*;
use crate::cmd::gpus::Choice;
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

struct Machine(PathBuf);

impl Machine {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("argosy-doctor-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn setup(&self) -> Setup {
        let logs = crate::log::Options {
            kmsg: self.0.join("dev/kmsg"),
            proc: self.0.join("proc"),
            journalctl: self.0.join("no-journalctl"),
            journals: vec![self.0.join("journal")],
            var_log: self.0.join("var/log"),
            ..crate::log::Options::default()
        };
        let nobody = "127.0.0.1:1".parse().unwrap();
        let timeout = Duration::from_millis(100);
        Setup {
            roots: Roots::under(&self.0),
            logs,
            cloud: crate::identity::cloud::Options {
                aws: nobody,
                gcp: nobody,
                azure: nobody,
                timeout,
            },
            credentials: None,
            token_in_environment: false,
            library_path: Vec::new(),
            units: vec![self.0.join("systemd")],
        }
    }

    fn args(&self, gpu: &str) -> Args {
        let spec = gpu.strip_prefix("fake:");
        Args {
            output: Format::Text,
            gpus: GpuArgs {
                gpu: spec.map_or(Choice::None, |spec| Choice::Fake(spec.to_owned())),
                ..GpuArgs::default()
            },
            config: None,
            server: Vec::new(),
            data_dir: Some(self.0.join("data")),
            token_file: None,
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

fn find<'a>(findings: &'a [Finding], what: &str) -> &'a Finding {
    findings
        .iter()
        .find(|finding| finding.what == what)
        .unwrap_or_else(|| panic!("no {what}: {findings:?}"))
}

#[tokio::test]
async fn a_machine_with_nothing_is_told_what_is_missing() {
    let machine = Machine::new("nothing");
    let findings =
        examine(&machine.args("none"), Ok(Config::default()), &machine.setup()).await.unwrap();
    let rows = [
        ("nvml", State::None, "--gpu none"),
        ("kmsg", State::None, "No such file"),
        ("xid", State::Fail, "Xids go unseen"),
        ("infiniband", State::None, "no port"),
        ("data dir", State::Warn, "is not there"),
        ("server", State::None, "none is configured"),
        ("token", State::None, "none is given"),
        ("cloud", State::None, "no metadata service"),
        ("systemd", State::None, "is not installed"),
    ];
    for (what, state, part) in rows {
        let finding = find(&findings, what);
        assert_eq!(finding.state, state, "{finding:?}");
        assert!(finding.seen.contains(part), "{finding:?}");
    }
    let bad = findings.iter().filter(|finding| State::Warn <= finding.state);
    for finding in bad {
        assert!(!finding.way_out.is_empty(), "a way out of {finding:?}");
    }
}

#[tokio::test]
async fn what_is_there_is_seen() {
    let machine = Machine::new("well");
    machine.write("data/keep", "");
    machine.write("systemd/argosy-agent.service", "[Unit]");
    machine.write("sys/fs/cgroup/system.slice/argosy-agent.service/cgroup.procs", "1");
    machine.write("var/log/kern.log", "");
    machine.write("run/systemd/timesync/synchronized", "");
    let library = machine.write("lib/libcuda.so.1", "");
    let token = machine.write("token", "secret\n");
    let mut setup = machine.setup();
    setup.library_path = vec![library.parent().unwrap().to_owned()];
    let args = Args { token_file: Some(token), ..machine.args("fake:8xH100") };
    let findings = examine(&args, Ok(Config::default()), &setup).await.unwrap();
    for what in ["nvml", "gpus", "cuda", "kern.log", "xid", "data dir", "clock", "token", "systemd"]
    {
        assert_eq!(find(&findings, what).state, State::Ok, "{:?}", find(&findings, what));
    }
    let page = page(&findings, &Screen::plain());
    assert!(page.contains("8 of 8 GPUs can be read") && !page.contains("secret"), "{page}");
    assert!(page.ends_with("Everything that an agent needs is here.\n"), "{page}");
}

#[tokio::test]
async fn a_lost_gpu_and_an_empty_token_are_failures() {
    let machine = Machine::new("lost");
    let mut args = machine.args("fake:8xH100");
    args.gpus.inject = vec!["lost gpu:3".parse().unwrap()];
    args.token_file = Some(machine.write("token", " \n"));
    let findings = examine(&args, Ok(Config::default()), &machine.setup()).await.unwrap();
    assert_eq!(find(&findings, "gpus").state, State::Fail);
    assert!(find(&findings, "gpu 3").way_out.contains("fallen off the bus"));
    assert!(find(&findings, "token").seen.ends_with("is empty"));
}

#[tokio::test]
async fn a_configuration_is_used_and_a_bad_one_is_said() {
    let machine = Machine::new("config");
    let dir = machine.0.join("elsewhere");
    std::fs::create_dir_all(&dir).unwrap();
    let args = Args { data_dir: None, ..machine.args("none") };
    let text = format!("servers: [http://127.0.0.1:1]\ndata_dir: {}", dir.display());
    let config = Config::parse(&text, Path::new("agent.yaml"));
    let findings = examine(&args, config, &machine.setup()).await.unwrap();
    assert!(find(&findings, "data dir").seen.contains("elsewhere"), "{findings:?}");
    assert!(find(&findings, "server").seen.contains("127.0.0.1:1"), "{findings:?}");

    let config = Config::parse("sevrers: []", Path::new("agent.yaml"));
    let findings = examine(&args, config, &machine.setup()).await.unwrap();
    let finding = find(&findings, "config");
    assert_eq!(finding.state, State::Fail);
    assert!(finding.seen.contains("sevrers"), "{finding:?}");
}

async fn served(answer: &'static str) -> Vec<Finding> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1_024];
        let _count = stream.read(&mut request).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
    };
    let ((), findings) = tokio::join!(serve, look::server(&url));
    findings
}

#[tokio::test]
async fn a_server_is_asked_and_its_clock_compared() {
    let well = served("HTTP/1.1 200 OK\r\nDate: Sun, 01 Mar 2020 12:00:00 GMT\r\n\r\nok").await;
    assert_eq!(find(&well, "server").state, State::Ok);
    assert_eq!(find(&well, "clock skew").state, State::Warn, "{well:?}");
    let other = served("HTTP/1.1 404 Not Found\r\n\r\n").await;
    assert_eq!(find(&other, "server").state, State::Fail);
    let nonsense = served("SSH-2.0-OpenSSH_9\r\n").await;
    assert!(find(&nonsense, "server").seen.contains("no web server"), "{nonsense:?}");
    for url in ["", "argosy", "ftp://host", "http://", "http://[::1"] {
        assert_eq!(look::server(url).await[0].state, State::Fail, "{url}");
    }
    let closed = look::server("http://127.0.0.1:1").await;
    assert_eq!(closed[0].state, State::Fail);
    assert!(!closed[0].way_out.is_empty());
}

#[test]
fn a_data_directory_that_is_a_file_is_not_one() {
    let file = Machine::new("file");
    let path = file.write("data", "");
    assert_eq!(look::data_dir(&path).state, State::Warn);
    assert_eq!(look::data_dir(Path::new("/proc")).state, State::Fail, "nobody can write there");
}
