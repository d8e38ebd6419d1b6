//! Machines that are processes: the real agent, many times, on this host.

use super::*;
use crate::harness::{Server, Setup};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// A server whose machines are agents beside it. They outlive it, so they are ended with the value.
pub(super) struct Yard {
    server: Server,
    /// The name of the provider.
    provider: &'static str,
}

impl Deref for Yard {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for Yard {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        self.server.kill9();
        for pid in self.alive().values() {
            let _ = kill(*pid);
        }
    }
}

fn kill(pid: u64) -> bool {
    let killed = Command::new("kill").args(["-s", "KILL", &pid.to_string()]).status();
    killed.is_ok_and(|status| status.success())
}

/// A process that has ended and was not waited for has no words.
fn lives(pid: u64) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).contains("argosy-agent")
}

impl Yard {
    async fn start() -> Self {
        let agent = agent();
        let agent = agent.display();
        let setup = Setup::embedded().without_cloud().config(&format!(
            "providers: {{ local: {{ type: process }} }}\n\
             machines: {{ agent: {{ path: {agent} }}, agent_args: [--allow-inject] }}\n\
             nodes: {{ heartbeat: 1s, stream_heartbeat: 1s, suspect_after: 2s, unreachable_after: 3s, \
             act_after: 1s, budget: {{ every: 0s }}, fleet: {{ amnesty: 10s }} }}"
        ));
        Self::of(setup.start().await, "local")
    }

    /// A server that has such a provider.
    pub(super) fn of(server: Server, provider: &'static str) -> Self {
        Self { server, provider }
    }

    fn machines(&self) -> PathBuf {
        self.dir().join("data/machines").join(self.provider)
    }

    /// The processes that live, by machine, as this host and not the server says.
    pub(super) fn alive(&self) -> BTreeMap<String, u64> {
        let dirs = std::fs::read_dir(self.machines()).into_iter().flatten().flatten();
        let processes = dirs.filter_map(|dir| {
            let text = std::fs::read_to_string(dir.path().join("process.json")).ok()?;
            let said: Value = serde_json::from_str(&text).expect("JSON");
            let pid = said["process"]["pid"].as_u64().filter(|pid| lives(*pid))?;
            Some((dir.file_name().into_string().expect("a name"), pid))
        });
        processes.collect()
    }

    fn inject(&self, machine: &str, fault: &str) {
        let data: &Path = &self.machines().join(machine).join("data");
        let ran = Command::new(agent())
            .args(["inject", "--yes-inject-a-fault", fault, "--gpu", "3", "--data-dir"])
            .arg(data)
            .output()
            .expect("the agent can be run");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}

#[tokio::test]
async fn real_agents_become_a_pool_that_heals_and_outlives_its_server() {
    let mut yard = Yard::start().await;
    let cluster = json!({ "provider": "local", "region": "local" });
    let spec = json!({ "nodeCount": 5, "machineType": "gpu-8x" });
    let path = make(&yard, &cluster, "workers", &spec).await;
    settled(&yard, &path, 5).await;
    resize(&yard, &path, &json!({ "nodeCount": 8, "machineType": "gpu-8x" })).await;
    let eight = settled(&yard, &path, 8).await;
    assert_eq!(yard.alive().into_keys().collect::<BTreeSet<_>>(), eight);

    // One says itself that it is sick.
    let sick = eight.first().expect("eight").clone();
    yard.inject(&sick, "xid:170");
    terminated(&yard, &sick).await;
    let now = settled(&yard, &path, 8).await;
    let new = newcomer(&eight, &now);
    assert_eq!(instance(&yard, &new).await["replaces"], json!(sick));
    let steps = walk(&yard, &sick).await;
    assert!(steps.ends_with(&WALK.map(str::to_owned)), "{steps:?}");

    // One dies, and says nothing.
    let lost = now.iter().find(|id| **id != new).expect("more than one").clone();
    assert!(kill(yard.alive()[&lost]), "a process of ours");
    let record = terminated(&yard, &lost).await;
    assert_eq!(record["reason"], "Replaced");
    let now = settled(&yard, &path, 8).await;
    assert!(!now.contains(&lost), "{now:?}");

    // The server dies, and they do not.
    let before = yard.alive();
    yard.kill9();
    assert_eq!(yard.alive(), before);
    yard.restart().await;
    assert_eq!(settled(&yard, &path, 8).await, now);
    assert_eq!(yard.alive(), before, "nobody was started or ended");

    delete(&yard, &path).await;
    assert_eq!(yard.alive(), BTreeMap::new());
}
