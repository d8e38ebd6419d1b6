use super::*;
use argosy_core::id::ResourceId;
use argosy_core::instance::InstanceId;
use argosy_core::machine::{Order, Tags};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use uuid::Uuid;

const AGENT: &[u8] = b"#!/bin/sh\nexit 0\n";

/// A directory with programs that stand in for those of a machine.
struct Sandbox(PathBuf);

impl Sandbox {
    /// `served` is what an address has, whatever the address.
    fn new(name: &str, served: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("argosy-boot-{name}-{}", std::process::id()));
        _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("bin")).unwrap();
        fs::write(path.join("served"), served).unwrap();
        let sandbox = Self(path);
        let at = sandbox.0.display().to_string();
        sandbox.program(
            "curl",
            &format!(
                "echo \"curl $*\" >> {at}/calls\n\
                 while [ $# -gt 1 ]; do [ \"$1\" = --output ] && out=$2; shift; done\n\
                 cp {at}/served \"$out\"\n"
            ),
        );
        sandbox.program("systemctl", &format!("echo \"systemctl $*\" >> {at}/calls\n"));
        sandbox.program("sleep", "exit 0\n");
        sandbox
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.0.join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn layout(&self) -> Layout {
        Layout::below(&self.0.join("root").display().to_string())
    }

    fn run(&self, script: &str) -> Output {
        let path = format!("{}:{}", self.0.join("bin").display(), "/usr/bin:/bin");
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(script).env_clear().env("PATH", path).current_dir(&self.0);
        shell.output().unwrap()
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.0.join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn boot() -> Boot {
    Boot {
        server: "https://argosy.example:8443".to_owned(),
        agent: AgentSource::Url {
            url: "https://get.example/agent?a=1&b=$HOME".to_owned(),
            sha256: Sha256::of(AGENT),
        },
        token: Some(AgentToken::new("s3cret").unwrap()),
        ca_pem: Some("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n".to_owned()),
        extra_args: vec!["--label".to_owned(), "100%=$x \"y\"".to_owned()],
        setup_commands: vec!["printf '%s' {{.Pool}} > said-pool".to_owned()],
    }
}

/// A purchase whose every text would like to be a command.
fn purchase() -> Purchase {
    let hostile =
        |word: &str| format!("{word}'; touch owned; $(touch owned) `touch owned`\n\"\\ %n");
    Purchase {
        instance: InstanceId::parse("workers-1").unwrap(),
        token: Uuid::nil(),
        tags: Tags { pool: Some(ResourceId::new(Uuid::nil())), ..Tags::default() },
        order: Order {
            provider: hostile("provider"),
            region: hostile("region"),
            zone: String::new(),
            machine_type: hostile("type"),
            spot: false,
            image: String::new(),
            price_per_hour: None,
        },
        number: 1,
        pool: hostile("pool"),
        tenant: hostile("tenant"),
        labels: BTreeMap::from([(hostile("key"), hostile("a,b=c")), ("rack".into(), "r7".into())]),
    }
}

#[test]
fn the_script_installs_the_agent_and_hostile_texts_stay_texts() {
    let (sandbox, boot, purchase) = (Sandbox::new("installs", AGENT), boot(), purchase());
    boot.check().unwrap();
    let layout = sandbox.layout();
    let script = boot.script(&purchase, &layout);
    // A second boot finds what is there.
    for _ in 0..2 {
        let done = sandbox.run(&script);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    assert!(!sandbox.0.join("owned").exists());
    let config: Value = serde_json::from_str(&sandbox.text(&layout.config())).unwrap();
    assert_eq!(config["node_id"], "workers-1");
    assert_eq!(config["servers"], json!(["https://argosy.example:8443"]));
    assert_eq!(config["pool"], purchase.pool);
    assert_eq!(config["labels"], json!(purchase.labels));
    assert_eq!(config["instance_type"], purchase.order.machine_type);
    assert_eq!(config.get("zone"), None);
    assert_eq!(sandbox.text(&layout.token()), "s3cret\n");
    let mode = |path: &str| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&layout.token()), 0o600);
    assert_eq!(mode(&layout.agent()), 0o755);
    assert_eq!(fs::read(layout.agent()).unwrap(), AGENT);
    assert_eq!(config["ca_file"], layout.ca());
    assert!(sandbox.text(&layout.ca()).ends_with("END CERTIFICATE-----\n"));
    assert_eq!(sandbox.text(&sandbox.0.join("said-pool").display().to_string()), purchase.pool);

    let unit = sandbox.text(&layout.unit());
    let started: Vec<&str> = unit.lines().filter(|line| line.starts_with("ExecStart=")).collect();
    let (agent, path) = (layout.agent(), layout.config());
    let expected = format!(
        r#"ExecStart="{agent}" "run" "--config" "{path}" "--node-id" "workers-1" "--label" "100%%=$$x \"y\"""#
    );
    assert_eq!(started, [expected]);
    assert!(unit.contains(&format!("LoadCredential=token:{}\n", layout.token())));
    assert!(unit.contains("Type=notify\n") && unit.contains("\n[Install]\n"));
    let calls = sandbox.calls();
    let restarts = calls.iter().filter(|call| *call == "systemctl restart argosy-agent.service");
    assert_eq!(restarts.count(), 2);
    let fetched: Vec<&String> = calls.iter().filter(|call| call.starts_with("curl")).collect();
    assert_eq!(fetched.len(), 1);
    assert!(fetched[0].ends_with("https://get.example/agent?a=1&b=$HOME"), "{fetched:?}");
}

#[test]
fn an_agent_of_the_image_is_not_fetched_and_without_a_token_none_is_loaded() {
    let sandbox = Sandbox::new("image", AGENT);
    let agent = AgentSource::File("/opt/argosy agent".into());
    let boot = Boot { agent, token: None, ..boot() };
    let layout = sandbox.layout();
    let done = sandbox.run(&boot.script(&purchase(), &layout));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let unit = sandbox.text(&layout.unit());
    assert!(unit.contains(r#"ExecStart="/opt/argosy agent" "run""#), "{unit}");
    assert!(!unit.contains("LoadCredential"));
    assert!(!Path::new(&layout.token()).exists());
    assert!(sandbox.calls().iter().all(|call| !call.starts_with("curl")));
}

#[test]
fn a_setup_command_that_fails_ends_it_and_is_named() {
    let sandbox = Sandbox::new("setup", AGENT);
    let setup_commands = vec!["true".to_owned(), "exit 7".to_owned()];
    let boot = Boot { setup_commands, ..boot() };
    let layout = sandbox.layout();
    let done = sandbox.run(&boot.script(&purchase(), &layout));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("argosy: setup failed (7): setup command 2"), "{said}");
    assert!(!Path::new(&layout.unit()).exists());
}

#[test]
fn the_user_data_fits_where_it_must_and_a_credential_shows_itself_to_nobody() {
    let ca_pem = Some("x".repeat(CA_LEN_MAX));
    let boot = Boot { ca_pem, ..boot() };
    boot.check().unwrap();
    let len = boot.user_data(&purchase()).len();
    assert!(len <= 16 * 1024, "{len} bytes");
    assert!(!format!("{boot:?}").contains("s3cret"));
}

#[test]
fn what_is_wrong_is_said_before_there_is_a_machine() {
    let check = |change: &dyn Fn(&mut Boot), about: &str| {
        let mut boot = boot();
        change(&mut boot);
        let error = boot.check().unwrap_err().to_string();
        assert!(error.contains(about), "{error} does not say {about}");
    };
    let command =
        |text: &'static str| move |boot: &mut Boot| boot.setup_commands = vec![text.into()];
    check(&|boot| boot.server = "argosy:8443".into(), "`argosy:8443` is not the address");
    check(&command("echo {{.Pol}}"), "did you mean {{.Pool}}?");
    check(&command("echo {{ if .Pool }}"), "`{{ if .Pool }}`; there are {{.ControlPlane}}");
    check(&command("echo {{.Pool"), "setup command 1 has `{{` without `}}`");
    check(&|boot| boot.ca_pem = Some("x".repeat(CA_LEN_MAX + 1)), "user data has room for 8192");
    let url = |url: &str| AgentSource::Url { url: url.into(), sha256: Sha256::of(b"") };
    check(&|boot| boot.agent = url("file:///etc/shadow"), "must start with https://");
    assert!(Sha256::parse("abc").is_err());
    assert!(AgentToken::new("two words").is_err() && AgentToken::new(" \n").is_err());
}

#[test]
fn nothing_but_the_agent_that_was_asked_for_is_installed() {
    let (sandbox, boot) = (Sandbox::new("checksum", b"something else"), boot());
    let layout = sandbox.layout();
    let done = sandbox.run(&boot.script(&purchase(), &layout));
    assert!(!done.status.success());
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("argosy: setup failed (1): check the agent"), "{said}");
    for path in [layout.agent(), format!("{}.new", layout.agent()), layout.unit()] {
        assert!(!Path::new(&path).exists(), "{path}");
    }
    assert!(sandbox.calls().iter().all(|call| !call.starts_with("systemctl")));
}
