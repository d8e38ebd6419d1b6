use super::*;
use crate::boot::AgentToken;
use crate::conformance::{Lie, Rig, conforms};
use argosy_core::gate::{self, Guards};
use argosy_core::id::ResourceId;
use argosy_core::instance::{Instance, Reason, State, Terminating};
use argosy_core::machine::Tags;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use tokio::sync::Notify;

/// Where a create stays for ever.
#[derive(Debug, Default)]
pub(super) struct Halt {
    at: Mutex<Option<Step>>,
    reached: Notify,
}

impl Halt {
    pub(super) async fn reach(&self, step: Step) {
        if *self.at.lock().unwrap() == Some(step) {
            self.reached.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

/// A directory whose processes end with it.
struct Yard(PathBuf);

impl Yard {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("argosy-process-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        // Stands in for the agent where only the process matters: it waits to be told to end, and says so.
        let agent = path.join("agent");
        let text = "#!/bin/sh\ntrap 'echo ended; kill $!; exit 0' TERM\necho began\n\
                    sleep 600 & wait $!\n";
        std::fs::write(&agent, text).unwrap();
        std::fs::set_permissions(&agent, PermissionsExt::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn dir(&self) -> PathBuf {
        self.0.join("machines")
    }

    fn settings(&self) -> Settings {
        let gpu = |name: &str, gpu: &str| MachineType {
            name: name.to_owned(),
            gpu: gpu.to_owned(),
            cpus: 8,
            gpus: 8,
            price_per_hour: Some(2.5),
        };
        Settings {
            boot: Boot {
                server: "http://127.0.0.1:9".to_owned(),
                agent: AgentSource::File(self.0.join("agent")),
                token: Some(AgentToken::new("a-token-of-agents").unwrap()),
                ca_pem: None,
                extra_args: Vec::new(),
                setup_commands: Vec::new(),
            },
            dir: self.dir(),
            region: "local".to_owned(),
            zones: vec!["local-a".to_owned()],
            types: vec![gpu("fake-8x-h100", "fake:8xH100"), gpu("bare", "none")],
            max_processes: 4,
        }
    }

    /// As after a restart of the control plane: a new provider, the same directory.
    fn open(&self) -> Processes {
        Processes::new(self.settings(), Clock::System).unwrap()
    }

    /// The machines of processes that live, past the provider: by their command lines.
    fn alive(&self) -> Vec<String> {
        let dir = self.dir();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(words) = std::fs::read(entry.path().join("cmdline")) else { continue };
            let words: Vec<String> =
                words.split(|byte| *byte == 0).map(|w| String::from_utf8_lossy(w).into()).collect();
            let Some(at) = words.iter().position(|word| word == "--config") else { continue };
            let Some(config) = words.get(at + 1).map(PathBuf::from) else { continue };
            // A shell that starts something is a copy of itself, with the same words, for a moment.
            let pid: i32 = entry.file_name().to_string_lossy().parse().unwrap();
            let lives = Process::of(pid).is_some_and(|process| process.lives());
            let leads = rustix::process::getpgid(rustix::process::Pid::from_raw(pid))
                .is_ok_and(|group| group.as_raw_nonzero().get() == pid);
            if lives && leads && config.starts_with(&dir) {
                let name = config.parent().and_then(Path::file_name).unwrap();
                found.push(name.to_string_lossy().into_owned());
            }
        }
        found.sort();
        found
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        for (room, _) in Room::all(&self.dir()).unwrap_or_default() {
            if let Ok(Some(process)) = room.process() {
                process.kill();
            }
        }
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn purchase(number: u32) -> Purchase {
    let token = Uuid::new_v5(&Uuid::NAMESPACE_OID, &number.to_be_bytes());
    let instance = InstanceId::mint("workers", token);
    Purchase {
        instance: instance.clone(),
        token,
        tags: Tags {
            installation: Some(Uuid::from_u128(7)),
            instance: Some(instance),
            pool: Some(ResourceId::new(Uuid::from_u128(8))),
            token: Some(token),
        },
        order: order(),
        number,
        pool: "workers".to_owned(),
        tenant: "default".to_owned(),
        labels: BTreeMap::from([("rack".to_owned(), "r7".to_owned())]),
    }
}

fn order() -> Order {
    Order {
        provider: "local".to_owned(),
        region: "local".to_owned(),
        zone: "local-a".to_owned(),
        machine_type: "fake-8x-h100".to_owned(),
        spot: false,
        image: String::new(),
        price_per_hour: Some(2.5),
    }
}

/// What the gate lets go.
pub(crate) fn doomed(machine: &MachineId) -> Doomed {
    let Purchase { instance: id, token, order, number, pool: pool_name, tenant, .. } = purchase(0);
    let leaving = Terminating {
        machine: Some(machine.clone()),
        node: None,
        since: Timestamp::UNIX_EPOCH,
        reason: Reason::ScaleDown { asked: false },
        calls: 0,
        retry_at: None,
        trouble: None,
        absent_since: None,
        alarmed: false,
        console: String::new(),
    };
    let instance = Instance {
        id,
        tenant,
        pool: ResourceId::new(token),
        pool_name,
        number,
        token,
        order,
        ordered_at: Timestamp::UNIX_EPOCH,
        why: String::new(),
        replaces: None,
        purpose: argosy_core::instance::Purpose::Seat,
        adopted: false,
        departure: None,
        blocked: None,
        tried: Vec::new(),
        notice: None,
        sight: Default::default(),
        state: State::Terminating(leaving),
    };
    let guards =
        Guards { installation: Uuid::from_u128(7), shown: None, compared: true, recovery: None };
    gate::release(&instance, &guards).unwrap()
}

/// Waits until a machine has written something.
async fn written(provider: &impl Provider, id: &MachineId, text: &str) {
    while !provider.console(id).await.unwrap().contains(text) {
        tokio::task::yield_now().await;
    }
}

/// The real agent: built with the other programs of the workspace, or now.
pub(crate) fn real_agent() -> PathBuf {
    static AGENT: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = std::env::current_exe().unwrap();
        let agent = test.ancestors().nth(2).unwrap().join("argosy-agent");
        if !agent.is_file() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let built = std::process::Command::new(cargo)
                .args(["build", "--quiet", "--package", "argosy-agent"])
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .status();
            assert!(built.unwrap().success(), "cargo build --package argosy-agent");
        }
        agent
    });
    AGENT.clone()
}

#[tokio::test]
async fn a_real_agent_lives_logs_and_ends_in_order() {
    let yard = Yard::new();
    let mut settings = yard.settings();
    settings.boot.agent = AgentSource::File(real_agent());
    let provider = Processes::new(settings, Clock::System).unwrap();
    let made = provider.create(&purchase(1)).await.unwrap();
    written(&provider, &made.id, "the agent begins").await;
    let console = provider.console(&made.id).await.unwrap();
    assert!(console.contains(&format!("node_id=\"{}\"", made.id)), "{console}");
    assert_eq!(yard.alive(), [made.id.to_string()]);
    assert!(provider.room(made.id.as_str()).file("data").is_dir());

    provider.reboot(&made.id).await.unwrap();
    assert_eq!(yard.alive(), [made.id.to_string()]);
    let twice = |console: &str| console.matches("the agent begins").count() == 2;
    while !twice(&provider.console(&made.id).await.unwrap()) {
        tokio::task::yield_now().await;
    }
    provider.terminate(&doomed(&made.id)).await.unwrap();
    let console = provider.console(&made.id).await.unwrap();
    assert_eq!(console.matches("the agent ends").count(), 2, "{console}");
    assert_eq!(yard.alive(), [""; 0]);
}

struct ProcessRig {
    yard: Yard,
    provider: Arc<Processes>,
    /// Holds what fills the host up.
    full: tokio::sync::Mutex<Vec<MachineId>>,
}

impl Rig for ProcessRig {
    fn provider(&self) -> Arc<dyn Provider> {
        self.provider.clone()
    }

    async fn truth(&self) -> Vec<String> {
        let full = self.full.lock().await;
        let mut alive = self.yard.alive();
        alive.retain(|name| !full.iter().any(|id| id.as_str() == name));
        alive
    }

    async fn inject(&self, lie: Lie) -> bool {
        if lie != Lie::Quota {
            return false;
        }
        for number in 1..=self.provider.settings.max_processes {
            let made = self.provider.create(&purchase(number + 1000)).await.unwrap();
            self.full.lock().await.push(made.id);
        }
        true
    }

    async fn calm(&self) {
        for id in self.full.lock().await.drain(..) {
            self.provider.terminate(&doomed(&id)).await.unwrap();
        }
    }

    fn order(&self) -> Order {
        order()
    }

    async fn pass(&self, _time: Duration) {}
}

#[tokio::test]
async fn the_provider_conforms() {
    let yard = Yard::new();
    let provider = Arc::new(yard.open());
    let rig = ProcessRig { yard, provider, full: tokio::sync::Mutex::default() };
    conforms(&rig).await;
}

#[tokio::test]
async fn a3_killed_between_any_two_steps_there_is_one_process_for_each_token() {
    let steps = [Step::Made, Step::Locked, Step::Started, Step::Recorded];
    for (number, step) in (1..).zip(steps) {
        let yard = Yard::new();
        let purchase = purchase(number);
        let name = purchase.instance.to_string();
        let first = yard.open();
        *first.halt.at.lock().unwrap() = Some(step);
        tokio::select! {
            made = first.create(&purchase) => panic!("{step:?}: {made:?}"),
            () = first.halt.reached.notified() => {}
        }
        // Its reapers go with it, as with a process that is killed.
        drop(first);

        let second = yard.open();
        let began = matches!(step, Step::Started | Step::Recorded);
        let found = second.find(&purchase).await.unwrap();
        assert_eq!(found.is_some(), began, "{step:?}: {found:?}");
        assert_eq!(second.list().await.unwrap().len(), usize::from(began), "{step:?}");
        for _ in 0..3 {
            let made = second.create(&purchase).await.unwrap();
            assert_eq!(made.state, MachineState::Running, "{step:?}");
        }
        assert_eq!(yard.alive(), [name.as_str()], "{step:?}");
        assert_eq!(second.list().await.unwrap().len(), 1, "{step:?}");

        second.terminate(&doomed(&MachineId::new(name.as_str()))).await.unwrap();
        assert_eq!(yard.alive(), [""; 0], "{step:?}");
        let gone = second.find(&purchase).await.unwrap().unwrap();
        assert_eq!(gone.state, MachineState::Gone, "{step:?}");
    }
}

#[tokio::test]
async fn a_process_that_died_is_shown_as_stopped_and_a_reboot_starts_it_with_another_boot_id() {
    let yard = Yard::new();
    let provider = yard.open();
    let made = provider.create(&purchase(1)).await.unwrap();
    let room = provider.room(made.id.as_str());
    let boot_id = || {
        let config: Value =
            serde_json::from_slice(&std::fs::read(room.file("agent.json")).unwrap()).unwrap();
        config["boot_id"].as_str().unwrap().to_owned()
    };
    let first = boot_id();
    let process = room.process().unwrap().unwrap();
    process.kill();
    assert!(ends(&process, Duration::from_secs(60)).await);
    assert_eq!(provider.list().await.unwrap()[0].state, MachineState::Stopped);
    // A repeated create does not undo what happened to the machine.
    assert_eq!(provider.create(&purchase(1)).await.unwrap().state, MachineState::Stopped);

    provider.reboot(&made.id).await.unwrap();
    assert_eq!(provider.list().await.unwrap()[0].state, MachineState::Running);
    assert_ne!(boot_id(), first);
    assert_ne!(room.process().unwrap().unwrap(), process);
    assert_eq!(yard.alive().len(), 1);
}

#[tokio::test]
async fn a_process_outlives_the_provider_and_is_not_left_as_a_zombie() {
    let yard = Yard::new();
    let provider = yard.open();
    let made = provider.create(&purchase(1)).await.unwrap();
    drop(provider);
    assert_eq!(yard.alive().len(), 1);
    let provider = yard.open();
    let room = provider.room(made.id.as_str());
    let pid = room.process().unwrap().unwrap().pid;
    provider.terminate(&doomed(&made.id)).await.unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    assert!(!status.contains("State:\tR") && !status.contains("State:\tS"), "{status}");
}

#[tokio::test]
async fn the_console_is_what_was_written_and_is_cut_when_it_is_long() {
    let yard = Yard::new();
    let provider = yard.open();
    let made = provider.create(&purchase(1)).await.unwrap();
    let room = provider.room(made.id.as_str());
    written(&provider, &made.id, "began").await;
    provider.terminate(&doomed(&made.id)).await.unwrap();
    let console = provider.console(&made.id).await.unwrap();
    assert_eq!(console, "began\nended\n");
    let long = "0123456789abcde\n".repeat(80 * 1024);
    std::fs::write(room.file("console.log"), &long).unwrap();
    provider.list().await.unwrap();
    assert_eq!(std::fs::metadata(room.file("console.log")).unwrap().len(), 0);
    let kept = std::fs::metadata(room.file("console.log.1")).unwrap().len();
    assert_eq!(kept, 1024 * 1024);
    assert_eq!(provider.console(&made.id).await.unwrap().len(), 64 * 1024);
}

#[tokio::test]
async fn what_is_gone_is_shown_for_an_hour_and_keeps_no_credential() {
    let yard = Yard::new();
    let provider = yard.open();
    let made = provider.create(&purchase(1)).await.unwrap();
    let room = provider.room(made.id.as_str());
    let mode = std::fs::metadata(room.file("token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    provider.terminate(&doomed(&made.id)).await.unwrap();
    assert!(!room.file("token").exists());
    assert_eq!(provider.list().await.unwrap()[0].state, MachineState::Gone);
    std::fs::write(room.file("gone.json"), r#"{"at":"2020-01-01T00:00:00Z"}"#).unwrap();
    assert!(provider.list().await.unwrap().is_empty());
    assert!(!room.file("").exists());
}

#[tokio::test]
async fn what_cannot_be_started_leaves_nothing() {
    let yard = Yard::new();
    let provider = yard.open();
    std::fs::set_permissions(yard.0.join("agent"), PermissionsExt::from_mode(0o644)).unwrap();
    let refused = provider.create(&purchase(1)).await.unwrap_err();
    assert!(matches!(&refused, Trouble::Invalid { field, .. } if field == "agent"), "{refused:?}");
    assert!(provider.find(&purchase(1)).await.unwrap().is_none());
    assert!(Room::all(&yard.dir()).unwrap().is_empty());
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_refused() {
    let yard = Yard::new();
    let check = |change: &dyn Fn(&mut Settings), about: &str| {
        let mut settings = yard.settings();
        change(&mut settings);
        let error = Processes::new(settings, Clock::System).unwrap_err().to_string();
        assert!(error.contains(about), "{error} does not say {about}");
    };
    check(&|s| s.types.clear(), "no machine type");
    check(&|s| s.types[0].gpu = "8xH100".to_owned(), "fake-8x-h100: its gpu must be");
    check(&|s| s.types[0].price_per_hour = Some(f64::NAN), "price");
    check(&|s| s.boot.agent = AgentSource::File("/nowhere/agent".into()), "/nowhere/agent");
    check(&|s| s.boot.server = "argosy:8443".to_owned(), "argosy:8443");
    check(&|s| s.dir = yard.0.join("agent/x"), "cannot use");
}
