mod rig;

use super::*;
use crate::boot::AgentSource;
use crate::conformance::{Lie, Rig, conforms};
use crate::process::tests::{doomed, real_agent};
use argosy_core::id::ResourceId;
use argosy_core::machine::Tags;
use rig::{Park, keygen, program};
use std::sync::Arc;

fn purchase(number: u32) -> Purchase {
    let token = Uuid::new_v5(&Uuid::NAMESPACE_DNS, &number.to_be_bytes());
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
        labels: BTreeMap::from([("team".to_owned(), "it's; $(touch owned)".to_owned())]),
    }
}

fn order() -> Order {
    Order {
        provider: "hall".to_owned(),
        region: "hall-1".to_owned(),
        zone: "rack-7".to_owned(),
        machine_type: "h100".to_owned(),
        spot: false,
        image: String::new(),
        price_per_hour: None,
    }
}

struct SshRig {
    park: Park,
    provider: Arc<Hosts>,
}

impl SshRig {
    /// Somebody else claims every host.
    fn take_all(&self, on: bool) {
        for (number, station) in (1..).zip(&self.park.stations) {
            let path = station.file("var/lib/argosy/claim.json");
            if on {
                let mut other =
                    Claim::new(&purchase(9000 + number), "http://b", Timestamp::UNIX_EPOCH);
                other.tags.installation = Some(Uuid::from_u128(99));
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, serde_json::to_string(&other).unwrap()).unwrap();
            } else if std::fs::read_to_string(&path).is_ok_and(|text| text.contains("http://b")) {
                std::fs::remove_file(path).unwrap();
            }
        }
    }

    fn let_in(&self, on: bool) {
        for station in &self.park.stations {
            let key = std::fs::read(self.park.dir.join("key.pub")).unwrap();
            let keys = if on { key } else { Vec::new() };
            std::fs::write(station.dir.join("authorized_keys"), keys).unwrap();
            station.hang_up();
        }
    }

    /// Makes the hosts' files somebody else's, as far as a host can tell.
    fn deny(&self, on: bool) {
        for station in &self.park.stations {
            let path = station.dir.join("bin/mkdir");
            if on {
                let text =
                    "#!/bin/sh\necho 'mkdir: cannot create: Permission denied' >&2\nexit 1\n";
                program(&path, text);
            } else {
                _ = std::fs::remove_file(path);
            }
        }
    }
}

impl Rig for SshRig {
    fn provider(&self) -> Arc<dyn Provider> {
        self.provider.clone()
    }

    async fn truth(&self) -> Vec<String> {
        self.park.running()
    }

    async fn inject(&self, lie: Lie) -> bool {
        match lie {
            Lie::TimeoutAfterCreate | Lie::ErrorAfterCreate => self.park.mark("after-done", true),
            Lie::TimeoutBeforeCreate | Lie::PartialSuccess => self.park.mark("before-done", true),
            Lie::ErrorAfterDelete => self.park.mark("after-gone", true),
            Lie::BrokenList => self.park.mark("before-survey", true),
            Lie::Capacity => self.take_all(true),
            Lie::RevokeCredentials => self.let_in(false),
            Lie::DenyCreate => self.deny(true),
            Lie::LagLists(_)
            | Lie::Throttle { .. }
            | Lie::Quota
            | Lie::DeleteLies
            | Lie::EmptyList
            | Lie::HalfList
            | Lie::PlainMachine => return false,
        }
        true
    }

    async fn calm(&self) {
        for name in ["after-done", "before-done", "after-gone", "before-survey"] {
            self.park.mark(name, false);
        }
        self.take_all(false);
        self.deny(false);
        let first = self.park.stations[0].dir.join("authorized_keys");
        if std::fs::read(first).unwrap().is_empty() {
            self.let_in(true);
        }
    }

    fn order(&self) -> Order {
        order()
    }

    async fn pass(&self, _time: Duration) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_provider_conforms() {
    let park = Park::new(2);
    let provider = Arc::new(park.open());
    conforms(&SshRig { park, provider }).await;
}

#[tokio::test]
async fn a_claimed_host_has_what_it_was_told_and_a_returned_one_nothing() {
    let park = Park::new(1);
    let hosts = park.open();
    let made = hosts.create(&purchase(1)).await.unwrap();
    let station = &park.stations[0];
    let config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(station.file("etc/argosy/agent.yaml")).unwrap())
            .unwrap();
    assert_eq!(config["labels"], serde_json::json!({"rack": "r7", "team": "it's; $(touch owned)"}));
    assert_eq!(config["pool"], "workers");
    assert_eq!(config["zone"], "rack-7");
    assert!(!station.dir.join("host/owned").exists());
    let token = std::fs::read_to_string(station.file("etc/argosy/agent.token")).unwrap();
    assert_eq!(token, "a-token-of-agents\n");
    assert_eq!(park.running(), [made.id.to_string()]);
    let shown = hosts.list().await.unwrap();
    assert_eq!(
        (shown[0].state, shown[0].internal_ip.as_str()),
        (MachineState::Running, "127.0.0.1")
    );
    assert!(hosts.console(&made.id).await.unwrap().contains("began as workers-"));

    if hosts.abilities().reboot {
        hosts.reboot(&made.id).await.unwrap();
        assert!(station.dir.join("host/boots").exists());
        assert_eq!(park.running(), [made.id.to_string()]);
    }

    hosts.terminate(&doomed(&made.id)).await.unwrap();
    assert_eq!(park.running(), [""; 0]);
    let token = purchase(1).token;
    let left = [format!("var/lib/argosy/released/{token}.json")];
    let files = station.files();
    let files: Vec<&String> = files.iter().filter(|file| !file.ends_with("argosy/lock")).collect();
    assert_eq!(files, left.iter().collect::<Vec<_>>());
    assert_eq!(hosts.list().await.unwrap()[0].state, MachineState::Gone);
}

#[tokio::test]
async fn g14_two_control_planes_never_share_a_host() {
    let park = Park::new(2);
    let (one, mut other) = (park.open(), park.settings());
    other.state = park.dir.join("state-of-another");
    let other = Hosts::new(other, Clock::System).unwrap();
    let mut theirs = purchase(2);
    theirs.tags.installation = Some(Uuid::from_u128(99));
    let (mine, not_mine) = (purchase(1), theirs.clone());
    let (mine, theirs) = tokio::join!(one.create(&mine), other.create(&not_mine));
    let (mine, theirs) = (mine.unwrap(), theirs.unwrap());
    let mut expected = [mine.id.to_string(), theirs.id.to_string()];
    expected.sort();
    assert_eq!(park.running(), expected);
    let refused = one.create(&purchase(3)).await.unwrap_err();
    let Trouble::Capacity { code, message } = &refused else { panic!("{refused:?}") };
    assert_eq!(code, "NoFreeHost");
    assert!(
        message.contains("none of the 2 hosts of type h100 is free: 2 are claimed"),
        "{message}"
    );
    let tags: Vec<_> = one.list().await.unwrap().iter().map(|m| m.tags.installation).collect();
    assert!(tags.contains(&Some(Uuid::from_u128(99))) && tags.contains(&Some(Uuid::from_u128(7))));
    // A machine of another day on the same host is not touched by its old name.
    let (host, _) = parts(&theirs.id).unwrap();
    let old = survey::machine_id(host, &purchase(1).instance);
    let answer = one.terminate(&doomed(&old)).await;
    assert!(matches!(answer, Err(Trouble::NotFound(_))), "{answer:?}");
    assert_eq!(park.running(), expected);
}

#[tokio::test]
async fn a_host_with_another_key_is_not_entered_and_the_way_out_is_said() {
    let mut park = Park::new(1);
    park.stations[0].stop();
    keygen(&park.stations[0].dir.join("host_key"));
    park.stations[0].start();
    let hosts = park.open();
    for trouble in [
        hosts.create(&purchase(1)).await.unwrap_err(),
        hosts.list().await.unwrap_err(),
        hosts.terminate(&doomed(&MachineId::new("gpu-0/workers-1"))).await.unwrap_err(),
    ] {
        let Trouble::Invalid { field, message } = &trouble else { panic!("{trouble:?}") };
        assert_eq!(field, "hosts");
        assert!(message.contains("host key") && message.contains("known_hosts"), "{message}");
    }
    // Nobody was let in, so nothing was said.
    assert!(!park.stations[0].dir.join("sessions").exists());
    park.know_hosts();
    hosts.create(&purchase(1)).await.unwrap();
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_no_half_agent() {
    let park = Park::new(1);
    std::fs::write(park.dir.join("agent"), "x".repeat(3_000_000)).unwrap();
    park.mark("cut-upload", true);
    let hosts = park.open();
    let refused = hosts.create(&purchase(1)).await.unwrap_err();
    assert!(matches!(refused, Trouble::Unreachable(_)), "{refused:?}");
    // The host notices on its own that the line is cut, some time after we did.
    let gone = async {
        while !park.stations[0].files().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let cleaned = tokio::time::timeout(Duration::from_secs(30), gone).await;
    assert!(cleaned.is_ok(), "left behind: {:?}", park.stations[0].files());
    park.mark("cut-upload", false);
    assert!(hosts.find(&purchase(1)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_host_that_cannot_take_the_agent_cleans_up_and_another_is_tried_first_then() {
    let park = Park::new(2);
    let mut settings = park.settings();
    settings.boot.setup_commands =
        vec!["case $PWD in */h0/*) echo no driver >&2; exit 9;; esac".to_owned()];
    let hosts = Hosts::new(settings, Clock::System).unwrap();
    let made = hosts.create(&purchase(1)).await.unwrap();
    assert!(made.id.as_str().starts_with("gpu-1/"), "{}", made.id);
    let left = park.stations[0].files();
    assert!(left.iter().all(|file| file.ends_with(".log") || file.ends_with("lock")), "{left:?}");
    let refused = hosts.create(&purchase(2)).await.unwrap_err();
    let Trouble::Capacity { message, .. } = &refused else { panic!("{refused:?}") };
    assert!(message.contains("gpu-0: the agent could not be installed"), "{message}");
    assert!(message.contains("failed (9): setup command 1"), "{message}");
}

#[tokio::test]
async fn a_host_that_does_not_answer_keeps_its_claim_and_one_that_never_did_concerns_nobody_else() {
    let mut park = Park::new(2);
    let hosts = park.open();
    let made = hosts.create(&purchase(1)).await.unwrap();
    assert_eq!(hosts.list().await.unwrap().len(), 1);
    park.stations[0].stop();
    let shown = hosts.list().await.unwrap();
    assert_eq!((&shown[0].id, shown[0].state), (&made.id, MachineState::Running));
    // What it had it has; what is not there is nowhere.
    let look = hosts.find(&purchase(1)).await;
    assert!(matches!(look, Err(Trouble::Unreachable(_))), "{look:?}");
    assert!(hosts.find(&purchase(2)).await.unwrap().is_none());
    let answer = hosts.terminate(&doomed(&made.id)).await;
    assert!(matches!(answer, Err(Trouble::Unreachable(_))), "{answer:?}");
    let elsewhere = hosts.create(&purchase(2)).await.unwrap();
    assert!(elsewhere.id.as_str().starts_with("gpu-1/"));

    // As after the loss of all that was remembered.
    let mut settings = park.settings();
    settings.state = park.dir.join("new-state");
    let hosts = Hosts::new(settings, Clock::System).unwrap();
    let shown = hosts.list().await.unwrap();
    assert_eq!(shown.iter().map(|machine| &machine.id).collect::<Vec<_>>(), [&elsewhere.id]);
    // A purchase that may be there is not made again.
    let look = hosts.find(&purchase(1)).await;
    assert!(matches!(look, Err(Trouble::Unreachable(_))), "{look:?}");
    assert!(hosts.find(&purchase(2)).await.unwrap().is_some());
    // And it is never taken for free.
    let refused = hosts.create(&purchase(3)).await.unwrap_err();
    assert!(matches!(refused, Trouble::Capacity { .. }), "{refused:?}");
    // Where nobody answers there is no listing.
    park.stations[1].stop();
    let refused = hosts.list().await.unwrap_err();
    assert!(matches!(refused, Trouble::Unreachable(_)), "{refused:?}");
}

#[tokio::test]
async fn a3_a_create_that_is_dropped_or_cut_off_makes_one_machine_at_most() {
    for lie in ["before-done", "after-done"] {
        let park = Park::new(3);
        park.mark(lie, true);
        let first = park.open();
        let answer = first.create(&purchase(1)).await;
        assert!(matches!(answer, Err(Trouble::Unsure(_))), "{lie}: {answer:?}");
        drop(first);
        park.mark(lie, false);
        // As after a restart: what is remembered is on the disk.
        let second = park.open();
        let found = second.find(&purchase(1)).await.unwrap();
        assert_eq!(found.is_some(), lie == "after-done");
        let made = second.create(&purchase(1)).await.unwrap();
        assert_eq!(park.running(), [made.id.to_string()], "{lie}");
    }
}

#[tokio::test]
async fn a3_a_host_goes_on_by_itself_when_nobody_listens_any_more() {
    let park = Park::new(2);
    let mut settings = park.settings();
    // The installation waits until it is let go on.
    let wait = "while [ ! -e go ]; do sleep 0.02; done";
    settings.boot.setup_commands = vec![wait.to_owned()];
    let hosts = Hosts::new(settings.clone(), Clock::System).unwrap();
    let (wanted, claim) = (purchase(1), park.stations[0].file("var/lib/argosy/claim.json"));
    let claimed = async {
        while !claim.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        made = hosts.create(&wanted) => panic!("{made:?}"),
        () = claimed => {}
    }
    drop(hosts);
    let hosts = Hosts::new(settings, Clock::System).unwrap();
    let found = hosts.find(&purchase(1)).await.unwrap().unwrap();
    assert_eq!(found.state, MachineState::Starting);
    assert_eq!(hosts.create(&purchase(1)).await.unwrap().id, found.id);
    std::fs::write(park.stations[0].dir.join("host/go"), "").unwrap();
    while hosts.find(&purchase(1)).await.unwrap().unwrap().state != MachineState::Running {
        tokio::task::yield_now().await;
    }
    assert_eq!(park.running(), [found.id.to_string()]);
}

#[tokio::test]
async fn a_late_claim_that_was_called_off_does_nothing() {
    let park = Park::new(1);
    let hosts = park.open();
    let host = &hosts.settings.hosts[0];
    let claim = Claim::new(&purchase(1), "http://a", Timestamp::UNIX_EPOCH);
    hosts.memory.asks(&host.name, &claim).unwrap();
    // It is on its way for longer than anybody waits; the look calls it off, and then it arrives.
    assert!(hosts.find(&purchase(1)).await.unwrap().is_none());
    let boot = &hosts.settings.boot;
    let late = script::claim(boot, None, &purchase(1), &claim, &hosts.layout);
    let said = hosts.caller.script(&door(host), As::Root, &late, ASK_MAX).await.unwrap();
    assert_eq!(said.code, code::OFF, "{}", said.stderr);
    assert_eq!(hosts.memory.of(&host.name).unwrap().asked, None);
    assert!(hosts.create(&purchase(1)).await.is_ok());
}

#[tokio::test]
async fn a_claim_that_cannot_be_read_is_neither_free_nor_gone() {
    let park = Park::new(1);
    let hosts = park.open();
    let made = hosts.create(&purchase(1)).await.unwrap();
    hosts.list().await.unwrap();
    std::fs::write(park.stations[0].file("var/lib/argosy/claim.json"), "{\"version\":2}").unwrap();
    // Twice: what was known is not forgotten by the first look.
    for _ in 0..2 {
        assert_eq!(hosts.list().await.unwrap()[0].id, made.id);
    }
    let refused = hosts.create(&purchase(2)).await.unwrap_err();
    assert!(matches!(refused, Trouble::Capacity { .. }), "{refused:?}");
    let refused = hosts.create(&purchase(1)).await.unwrap_err();
    assert!(matches!(refused, Trouble::Unsure(_)), "{refused:?}");
    let look = hosts.find(&purchase(1)).await;
    assert!(matches!(look, Err(Trouble::Unreachable(_))), "{look:?}");
    let mut settings = park.settings();
    settings.state = park.dir.join("new-state");
    let refused = Hosts::new(settings, Clock::System).unwrap().list().await.unwrap_err();
    let Trouble::Invalid { message, .. } = &refused else { panic!("{refused:?}") };
    assert!(message.contains("gpu-0 has a claim that this version cannot read"), "{message}");
}

#[tokio::test]
async fn an_agent_that_somebody_installed_is_left_alone() {
    let park = Park::new(1);
    let unit = park.stations[0].file("etc/systemd/system/argosy-agent.service");
    std::fs::create_dir_all(unit.parent().unwrap()).unwrap();
    std::fs::write(&unit, "[Service]\n").unwrap();
    let hosts = park.open();
    let refused = hosts.create(&purchase(1)).await.unwrap_err();
    let Trouble::Capacity { message, .. } = &refused else { panic!("{refused:?}") };
    assert!(message.contains("1 have an agent that is not ours to touch"), "{message}");
    assert!(hosts.list().await.unwrap().is_empty());
    assert_eq!(std::fs::read_to_string(&unit).unwrap(), "[Service]\n");
}

#[tokio::test]
async fn without_sudo_it_is_said_what_is_missing() {
    let park = Park::new(1);
    let sudo = "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n";
    program(&park.stations[0].dir.join("bin/sudo"), sudo);
    let mut settings = park.settings();
    settings.sudo = true;
    let hosts = Hosts::new(settings, Clock::System).unwrap();
    let refused = hosts.create(&purchase(1)).await.unwrap_err();
    let Trouble::Denied { permission, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(permission, "sudo -n /bin/sh on gpu-0");
}

#[tokio::test]
async fn a_real_agent_is_sent_checked_and_started() {
    let park = Park::new(1);
    let mut settings = park.settings();
    settings.boot.agent = AgentSource::File(real_agent());
    settings.boot.extra_args = ["--gpu", "fake:8xH100"].map(str::to_owned).into();
    let hosts = Hosts::new(settings, Clock::System).unwrap();
    let made = hosts.create(&purchase(1)).await.unwrap();
    while !hosts.console(&made.id).await.unwrap().contains("the agent begins") {
        tokio::task::yield_now().await;
    }
    let console = hosts.console(&made.id).await.unwrap();
    assert!(console.contains("argosy-agent 0."), "{console}");
    assert_eq!(park.running(), [made.id.to_string()]);
    assert_eq!(hosts.list().await.unwrap()[0].state, MachineState::Running);
    hosts.terminate(&doomed(&made.id)).await.unwrap();
    assert_eq!(park.running(), [""; 0]);
    assert!(!park.stations[0].file("usr/local/bin/argosy-agent").exists());
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_refused() {
    let park = Park::new(1);
    let check = |change: &dyn Fn(&mut Settings), about: &str| {
        let mut settings = park.settings();
        change(&mut settings);
        let error = Hosts::new(settings, Clock::System).unwrap_err().to_string();
        assert!(error.contains(about), "{error} does not say {about}");
    };
    check(&|s| s.hosts.clear(), "0 hosts are named");
    check(&|s| s.hosts.push(s.hosts[0].clone()), "gpu-0: it is named twice");
    check(&|s| s.hosts[0].address = "-oProxyCommand=touch owned".into(), "its address must be");
    check(&|s| s.hosts[0].user = "-x".into(), "its user must be");
    check(&|s| s.hosts[0].price_per_hour = Some(-1.0), "price");
    check(&|s| s.key_file = "/nowhere/key".into(), "/nowhere/key");
    check(&|s| s.known_hosts = "a\"b".into(), "quotes");
    check(&|s| s.boot.agent = AgentSource::File("/nowhere/agent".into()), "/nowhere/agent");
}
