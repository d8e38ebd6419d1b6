use super::*;
use crate::clock::Simulated;
use argosy_api::rpc::attach::Told;
use argosy_api::rpc::node::{
    AckCommandResponse, Command, CommandType, HealthEventType, HealthReport, RegisterNodeRequest,
    RegisterNodeResponse, ReportHealthResponse, Welcome,
};
use jiff::SignedDuration;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

const EPOCH: &str = "2025-10-28T12:00:00Z";

/// A control plane in memory: it takes everybody in and answers everything.
#[derive(Default)]
struct Plane {
    /// By agent: the id of its node.
    streams: BTreeMap<AgentNumber, String>,
    registered: BTreeMap<String, RegisterNodeRequest>,
    beats: BTreeMap<String, Vec<Vec<f32>>>,
    reports: BTreeMap<String, Vec<HealthReport>>,
    /// `node command STATE message`.
    acks: Vec<String>,
    results: Vec<String>,
}

struct Fake {
    plane: Arc<Mutex<Plane>>,
    answers: mpsc::Receiver<(AgentNumber, Event)>,
    answer: mpsc::Sender<(AgentNumber, Event)>,
}

impl Line for Fake {
    fn attach(&mut self, agent: AgentNumber, hello: Hello) {
        self.plane.lock().unwrap().streams.insert(agent, hello.node_id);
        self.tell(agent, Told::from(Welcome::default()));
    }

    fn say(&mut self, agent: AgentNumber, said: Said) {
        let mut plane = self.plane.lock().unwrap();
        let Some(node) = plane.streams.get(&agent).cloned() else {
            panic!("something is said without a stream");
        };
        let told = match said {
            Said::Register(request) => {
                plane.registered.insert(node, *request);
                Some(Told::from(RegisterNodeResponse::default()))
            }
            Said::Heartbeat(beat) => {
                let gpus = beat.metrics.into_option().map(|metrics| metrics.gpus);
                let busy =
                    gpus.unwrap_or_default().iter().map(|gpu| gpu.utilization_percent).collect();
                plane.beats.entry(node).or_default().push(busy);
                None
            }
            Said::Health(report) => {
                let sequence = report.sequence;
                plane.reports.entry(node).or_default().push(*report);
                Some(Told::from(ReportHealthResponse { sequence, ..Default::default() }))
            }
            Said::Ack(ack) => {
                let state = ack.state.as_known().unwrap_or_default();
                plane.acks.push(format!("{node} {} {state:?} {}", ack.command_id, ack.message));
                plane.results.push(ack.result_json.clone());
                let (command_id, state) = (ack.command_id, ack.state);
                Some(Told::from(AckCommandResponse { command_id, state }))
            }
            Said::Hello(_) | Said::Heartbeats(_) => None,
        };
        drop(plane);
        if let Some(told) = told {
            self.tell(agent, told);
        }
    }

    fn poll(&mut self, _: AgentNumber) {}

    fn detach(&mut self, agent: AgentNumber) {
        self.plane.lock().unwrap().streams.remove(&agent);
    }

    async fn next(&mut self) -> (AgentNumber, Event) {
        self.answers.recv().await.expect("we hold a sender")
    }
}

impl Fake {
    fn tell(&self, agent: AgentNumber, told: Told) {
        self.answer.try_send((agent, Event::Told(told))).unwrap();
    }
}

struct World {
    swarm: Swarm,
    plane: Arc<Mutex<Plane>>,
    answer: mpsc::Sender<(AgentNumber, Event)>,
}

impl World {
    fn new() -> Self {
        let (answer, answers) = mpsc::channel(16_384);
        let plane = Arc::new(Mutex::new(Plane::default()));
        let line = Fake { plane: plane.clone(), answers, answer: answer.clone() };
        let clock = Arc::new(Simulated::new(EPOCH.parse().unwrap()));
        Self { swarm: Swarm::start(Load::default(), clock, line), plane, answer }
    }

    fn boot(&self, node_id: &str) {
        self.swarm.boot(spec(node_id)).unwrap();
    }

    fn plane(&self) -> MutexGuard<'_, Plane> {
        self.plane.lock().unwrap()
    }

    /// Pushes a command to a node.
    fn command(&self, node_id: &str, id: &str, kind: CommandType, parameters: &[(&str, &str)]) {
        let agent = self.plane().streams.iter().find(|(_, node)| *node == node_id).map(|(n, _)| *n);
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let command = Command {
            id: id.to_owned(),
            r#type: kind.into(),
            parameters: parameters.iter().map(text).collect(),
            ..Command::default()
        };
        let event = Event::Told(Told::from(command));
        self.answer.try_send((agent.expect("it is attached"), event)).unwrap();
    }

    /// The acks of a command: its states, and what was said last.
    fn acks(&self, id: &str) -> (Vec<String>, String) {
        let plane = self.plane();
        let of = plane.acks.iter().filter(|ack| ack.split(' ').nth(1) == Some(id));
        let states = of.clone().filter_map(|ack| ack.split(' ').nth(2)).map(str::to_owned);
        let last = of.clone().next_back().map(|ack| ack.splitn(4, ' ').nth(3).unwrap_or_default());
        (states.collect(), last.unwrap_or_default().to_owned())
    }
}

fn spec(node_id: &str) -> Spec {
    Spec {
        node_id: node_id.to_owned(),
        pool: "workers".to_owned(),
        provider: "gcp".to_owned(),
        region: "us-east1".to_owned(),
        zone: "us-east1-b".to_owned(),
        machine_type: "a3-highgpu-8g".to_owned(),
        gpus: 8,
        model: "H100".to_owned(),
        labels: BTreeMap::from([("rack".to_owned(), "r7".to_owned())]),
        boot: 0,
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_registers_with_its_gpus_and_its_pool() {
    let world = World::new();
    world.boot("workers-1");
    world.swarm.boot(Spec { node_id: "plain-1".to_owned(), gpus: 0, ..spec("") }).unwrap();
    pass(1).await;
    assert_eq!(world.swarm.count(), 2);
    let plane = world.plane();
    let node = &plane.registered["workers-1"];
    assert_eq!((node.pool.as_str(), node.zone.as_str()), ("workers", "us-east1-b"));
    assert_eq!(node.instance_type, "a3-highgpu-8g");
    assert_eq!(node.gpus.len(), 8);
    assert_eq!(node.gpus[0].name, "NVIDIA H100 80GB HBM3");
    assert_eq!(node.labels.get("rack").map(String::as_str), Some("r7"));
    assert_eq!(plane.registered["plain-1"].gpus.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn gpus_that_nobody_makes_are_refused() {
    let world = World::new();
    let abacus = Spec { model: "Abacus".to_owned(), ..spec("a-1") };
    assert!(matches!(world.swarm.boot(abacus), Err(SpecError::Model { .. })));
    let many = Spec { gpus: 65, ..spec("a-1") };
    assert!(matches!(world.swarm.boot(many), Err(SpecError::Count { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_machines_register_and_beat() {
    let world = World::new();
    for number in 0..1_000 {
        world.boot(&format!("workers-{number}"));
    }
    pass(1).await;
    assert_eq!(world.swarm.count(), 1_000);
    assert_eq!(world.plane().registered.len(), 1_000);
    pass(30).await;
    let plane = world.plane();
    let beats: Vec<usize> = plane.beats.values().map(Vec::len).collect();
    assert_eq!(beats.len(), 1_000);
    assert!(beats.iter().all(|beats| (3..=5).contains(beats)), "{beats:?}");
}

#[tokio::test(start_paused = true)]
async fn how_busy_a_machine_is_moves_within_what_is_possible() {
    let world = World::new();
    world.boot("workers-1");
    pass(1_800).await;
    let plane = world.plane();
    let busy: Vec<f32> = plane.beats["workers-1"].iter().flatten().copied().collect();
    assert!(1_000 < busy.len());
    assert!(busy.iter().all(|percent| (0.0..=100.0).contains(percent)));
    let most = busy.iter().copied().fold(0.0, f32::max);
    let least = busy.iter().copied().fold(100.0, f32::min);
    assert!(30.0 < most - least, "from {least} to {most}");
}

#[tokio::test(start_paused = true)]
async fn a_gpu_that_falls_off_the_bus_is_reported_as_on_a_real_machine() {
    let world = World::new();
    world.boot("workers-1");
    world.boot("workers-2");
    pass(5).await;
    let injected = world.swarm.inject("workers-1", "xid:79 gpu:3".parse().unwrap()).await;
    assert_eq!(injected, Ok(()));
    pass(1).await;
    let plane = world.plane();
    let events: Vec<_> =
        plane.reports["workers-1"].iter().flat_map(|report| &report.events).collect();
    let xid = events.iter().find(|event| event.r#type == HealthEventType::HEALTH_EVENT_TYPE_XID);
    let xid = xid.expect("the kernel's line is told");
    assert_eq!(xid.metrics.get("xid_code").map(String::as_str), Some("79"));
    let words: Vec<_> =
        plane.reports["workers-1"].iter().flat_map(|report| &report.results).collect();
    assert!(words.iter().any(|word| word.message.contains("GPU 3")), "{words:?}");
    let others = plane.reports["workers-2"].iter().flat_map(|report| &report.events).count();
    assert_eq!(others, 0, "the other machine is well");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_injected_is_told() {
    let world = World::new();
    world.boot("workers-1");
    world.swarm.boot(Spec { node_id: "plain-1".to_owned(), gpus: 0, ..spec("") }).unwrap();
    let xid = || "xid:79 gpu:3".parse::<Injection>().unwrap();
    let rows = [
        ("nobody", xid(), "no machine is up that is called nobody"),
        ("plain-1", xid(), "plain-1 has no GPUs"),
        (
            "workers-1",
            "lost gpu:8".parse().unwrap(),
            "there is no GPU 8: this machine has 8, from 0 on",
        ),
    ];
    for (node_id, injection, expected) in rows {
        let error = world.swarm.inject(node_id, injection).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_killed_is_silent_and_comes_back_with_its_disk() {
    let world = World::new();
    world.boot("workers-1");
    pass(5).await;
    world.swarm.kill("workers-1");
    pass(1).await;
    let beats = world.plane().beats["workers-1"].len();
    assert_eq!((world.swarm.count(), world.plane().streams.len()), (0, 0));
    pass(600).await;
    assert_eq!(world.plane().beats["workers-1"].len(), beats, "not a word");
    let before = world.plane().registered["workers-1"].boot_id.clone();
    world.swarm.boot(Spec { boot: 1, ..spec("workers-1") }).unwrap();
    pass(5).await;
    assert_ne!(world.plane().registered["workers-1"].boot_id, before);
    assert!(beats < world.plane().beats["workers-1"].len());
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_the_work_says_so_and_ends_when_it_has_left() {
    let world = World::new();
    world.boot("workers-1");
    pass(1).await;
    world.command("workers-1", "c1", CommandType::COMMAND_TYPE_CORDON, &[]);
    world.command("workers-1", "c2", CommandType::COMMAND_TYPE_DRAIN, &[("timeout", "60")]);
    pass(10).await;
    assert_eq!(world.acks("c1").1, "takes no new work");
    let (states, last) = world.acks("c2");
    assert!(states.contains(&"COMMAND_STATE_RUNNING".to_owned()), "{states:?}");
    assert_eq!(states.last().map(String::as_str), Some("COMMAND_STATE_COMPLETED"));
    assert_eq!(last, "nothing runs on a GPU");
    let told = world.plane().acks.iter().any(|ack| ack.contains("waiting: on the GPUs: python"));
    assert!(told, "{:?}", world.plane().acks);
    pass(20).await;
    let idle = world.plane().beats["workers-1"].last().cloned().unwrap();
    assert_eq!(idle, [0.0; 8]);
    world.command("workers-1", "c3", CommandType::COMMAND_TYPE_UNCORDON, &[]);
    pass(25).await;
    let busy = world.plane().beats["workers-1"].last().cloned().unwrap();
    assert!(busy.iter().all(|percent| 0.0 < *percent), "{busy:?}");
}

#[tokio::test(start_paused = true)]
async fn a_diagnostic_tells_a_well_machine_from_a_sick_one() {
    let world = World::new();
    world.boot("workers-1");
    pass(1).await;
    let quick = [("test", "quick")];
    world.command("workers-1", "c1", CommandType::COMMAND_TYPE_RUN_DIAGNOSTIC, &quick);
    pass(5).await;
    assert_eq!(world.acks("c1").1, "all 8 GPUs passed");
    world.swarm.inject("workers-1", "row-remap-failed gpu:2".parse().unwrap()).await.unwrap();
    world.command("workers-1", "c2", CommandType::COMMAND_TYPE_RUN_DIAGNOSTIC, &quick);
    pass(5).await;
    assert_eq!(world.acks("c2").1, "GPU 2 failed");
    let plane = world.plane();
    let results: Vec<_> = plane.results.iter().filter(|result| !result.is_empty()).collect();
    assert!(results[0].contains(r#""passed":true"#) && results[1].contains(r#""passed":false"#));
}

#[tokio::test(start_paused = true)]
async fn a_terminated_agent_ends_when_its_end_was_heard() {
    let world = World::new();
    world.boot("workers-1");
    pass(1).await;
    world.command("workers-1", "c1", CommandType::COMMAND_TYPE_TERMINATE, &[]);
    pass(10).await;
    assert_eq!(world.acks("c1").0.last().map(String::as_str), Some("COMMAND_STATE_COMPLETED"));
    assert_eq!((world.swarm.count(), world.plane().streams.len()), (0, 0));
}

#[test]
fn how_busy_machines_are_is_spread_over_them() {
    let now: Timestamp = EPOCH.parse().unwrap();
    let later = now + SignedDuration::from_mins(4);
    let load = Load::default();
    let machine = |at: Timestamp| {
        let name = |number: u32| format!("workers-{number}");
        let all: Vec<f32> = (0..100).map(|number| load.percent(&name(number), at)).collect();
        all.iter().sum::<f32>() / 100.0
    };
    for mean in [machine(now), machine(later)] {
        assert!((mean - load.mean_percent).abs() < 12.0, "{mean}");
    }
}
