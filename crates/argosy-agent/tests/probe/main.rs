//! The child that asks the driver, as a process, with a scripted NVML: what it says, and what becomes of it
//! when the driver hangs, crashes or loses a GPU.

use argosy_agent::gpu::child::{Child, Options};
use argosy_agent::gpu::{Gpu, GpuError};
use argosy_nvml_standin::{Behaviour, Fault, Process, SCRIPT_ENV, Script, library};
use std::path::PathBuf;
use std::time::Duration;

/// For a call that never returns: short, so that it costs little.
const DEADLINE: Duration = Duration::from_secs(3);

/// For all others: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A machine with a scripted driver.
struct Machine {
    script: PathBuf,
    dir: PathBuf,
}

impl Machine {
    fn new(name: &str, script: &Script) -> Self {
        let dir = std::env::temp_dir().join(format!("argosy-probe-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary folder");
        let machine = Self { script: dir.join("script.json"), dir };
        machine.becomes(script);
        machine
    }

    fn becomes(&self, script: &Script) {
        script.write(&self.script).expect("the script can be written");
    }

    fn child(&self) -> Child {
        self.child_with(PATIENCE, PATIENCE)
    }

    /// The agent's side, with a deadline and the time that the child stays. The script's name goes to the
    /// child alone: tests run side by side.
    fn child_with(&self, deadline: Duration, idle: Duration) -> Child {
        let exe = std::env::current_exe().expect("a test has a path");
        let options = Options {
            nvml_library: Some(library(&exe).expect("cargo builds the stand-in with this test")),
            deadline,
            idle,
            environment: vec![(SCRIPT_ENV.into(), self.script.clone().into())],
            ..Options::default()
        };
        Child::new(env!("CARGO_BIN_EXE_argosy-agent").into(), options)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.dir);
    }
}

fn alive(pid: u32) -> bool {
    // A zombie has a state and no life.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim().starts_with('Z'))
}

#[tokio::test]
async fn everything_the_driver_knows_is_told() {
    let mut script = Script::h100s(8);
    script.gpus[3].processes = vec![Process { pid: std::process::id(), memory_bytes: 1 << 30 }];
    script.gpus[3].throttle_reasons = Some(0x40 | 0x4);
    script.gpus[3].mig = Some((1, 1));
    script.gpus[3].mig_instances = 2;
    script.gpus[3].nvlinks[7] = false;
    script.gpus[3].nvlink_errors.insert(0, 2);
    script.gpus[3].fields.extend([(3, 7), (5, 70), (143, 1), (144, 1), (230, 4), (94, 12)]);
    let machine = Machine::new("told", &script);
    let mut child = machine.child();

    let inventory = child.inventory().await.unwrap();
    assert_eq!(inventory.driver_version.as_deref(), Some("580.159.04"));
    assert_eq!(inventory.cuda_version.as_deref(), Some("13.0"));
    assert_eq!(inventory.gpus.len(), 8);
    let gpu = &inventory.gpus[3];
    assert_eq!(gpu.uuid, script.gpus[3].uuid);
    assert_eq!(gpu.name, "NVIDIA H100 80GB HBM3");
    assert_eq!(gpu.serial.as_deref(), Some("1652923000003"));
    assert_eq!(gpu.pci_bus_id, "00000000:30:00.0");
    assert_eq!(gpu.memory_total_bytes, Some(85_520_809_984));
    assert_eq!(gpu.compute_capability.as_deref(), Some("9.0"));
    assert_eq!((gpu.pcie_generation_max, gpu.pcie_width_max), (Some(5), Some(16)));
    assert_eq!((gpu.slowdown_celsius, gpu.shutdown_celsius), (Some(89), Some(92)));
    assert_eq!(gpu.power_limit_max_watts, Some(700.0));
    assert_eq!(gpu.mig.map(|mig| (mig.enabled, mig.instances)), Some((true, 2)));
    assert_eq!(gpu.nvlinks.len(), 18);
    assert_eq!(gpu.nvlinks[0].remote.as_deref(), Some("Switch"));
    assert!(!gpu.nvlinks[7].active);

    let sweep = child.sweep().await.unwrap();
    assert_eq!((sweep.count, sweep.gpus.len()), (8, 8));
    let gpu = &sweep.gpus[3];
    assert_eq!(gpu.temperature_celsius, Some(34));
    assert_eq!(gpu.memory_temperature_celsius, Some(40));
    assert_eq!(gpu.power_watts, Some(72.45));
    assert_eq!(gpu.throttle_reasons, ["SwPowerCap", "HwThermalSlowdown"]);
    let corrected = gpu.ecc_corrected.unwrap();
    assert_eq!((corrected.volatile, corrected.aggregate), (Some(7), Some(70)));
    let remaps = gpu.row_remaps.unwrap();
    assert_eq!((remaps.uncorrected, remaps.pending, remaps.failed), (1, true, false));
    assert_eq!(gpu.recovery_action, Some(4));
    assert_eq!(gpu.pcie_replays, Some(12));
    assert_eq!(gpu.nvlinks_down, Some(1));
    // The driver keeps no totals here: two on each of eighteen links.
    assert_eq!(gpu.nvlink_errors["replay"], 36);
    let processes = gpu.processes.as_ref().unwrap();
    assert_eq!((processes.len(), processes[0].pid), (1, std::process::id()));
    assert!(!processes[0].name.is_empty());
}

#[tokio::test]
async fn what_a_gpu_does_not_support_is_none_and_not_zero() {
    let mut script = Script::h100s(1);
    let old = &mut script.gpus[0];
    old.fields.clear();
    old.nvlinks.clear();
    old.mig = None;
    old.ecc_enabled = None;
    old.temperature_celsius = None;
    old.power_milliwatts = None;
    old.clocks_mhz = None;
    old.throttle_reasons = None;
    let machine = Machine::new("unsupported", &script);
    let mut child = machine.child();
    let gpu = child.sweep().await.unwrap().gpus.remove(0);
    assert_eq!((gpu.temperature_celsius, gpu.power_watts, gpu.sm_clock_mhz), (None, None, None));
    assert_eq!((gpu.ecc_corrected, gpu.row_remaps, gpu.retired_pages), (None, None, None));
    assert_eq!((gpu.recovery_action, gpu.nvlinks_down, gpu.mig), (None, None, None));
    assert!(gpu.nvlink_errors.is_empty());
    assert_eq!(child.inventory().await.unwrap().gpus[0].ecc_enabled, None);
}

#[tokio::test]
async fn n1_a_call_that_never_returns_costs_one_child_and_is_told() {
    let well = Script::h100s(2);
    let hung = well.clone().with_fault(Fault {
        call: Some("nvmlDeviceGetTemperature".to_owned()),
        gpu: Some(1),
        behaviour: Behaviour::Hang,
    });
    let machine = Machine::new("n1", &hung);
    let mut child = machine.child_with(DEADLINE, PATIENCE);
    // An inventory does not ask for the temperature: the child is well, and then it is not.
    child.inventory().await.unwrap();
    let pid = child.pid().unwrap();
    let error = child.sweep().await.unwrap_err();
    assert_eq!(error, GpuError::Hung { call: "sweep".into(), after: DEADLINE, gpu: Some(1) });
    assert!(!alive(pid), "the child that hung was given up");
    assert_eq!(child.pid(), None);

    machine.becomes(&well);
    assert_eq!(child.sweep().await.unwrap().gpus.len(), 2);
}

#[tokio::test]
async fn n1_a_driver_that_hangs_while_it_starts_is_told() {
    let hung = Script::h100s(2).with_fault(Fault::in_call("nvmlInit_v2", Behaviour::Hang));
    let machine = Machine::new("n1-init", &hung);
    let error = machine.child_with(DEADLINE, PATIENCE).inventory().await.unwrap_err();
    assert_eq!(error, GpuError::Hung { call: "start".into(), after: DEADLINE, gpu: None });
}

#[tokio::test]
async fn n1_a_caller_that_stops_waiting_leaves_no_old_answers_behind() {
    let well = Script::h100s(2);
    let hung = well.clone().with_fault(Fault::on_gpu(1, Behaviour::Hang));
    let machine = Machine::new("n1-dropped", &hung);
    let mut child = machine.child_with(DEADLINE, PATIENCE);
    assert!(tokio::time::timeout(DEADLINE / 4, child.sweep()).await.is_err());
    let pid = child.pid().unwrap();
    machine.becomes(&well);
    assert_eq!(child.inventory().await.unwrap().gpus.len(), 2);
    assert!(!alive(pid));
}

#[tokio::test]
async fn n2_a_gpu_that_vanishes_is_not_counted_any_more() {
    let machine = Machine::new("n2", &Script::h100s(8));
    let mut child = machine.child();
    assert_eq!(child.sweep().await.unwrap().count, 8);
    machine.becomes(&Script::h100s(7));
    let sweep = child.sweep().await.unwrap();
    assert_eq!((sweep.count, sweep.gpus.len(), sweep.unreadable.len()), (7, 7, 0));
}

#[tokio::test]
async fn n4_a_gpu_that_kills_the_probe_leaves_the_others_readable() {
    let bad = Script::h100s(8).with_fault(Fault::on_gpu(3, Behaviour::Abort));
    let machine = Machine::new("n4", &bad);
    let mut child = machine.child();
    let sweep = child.sweep().await.unwrap();
    let read: Vec<u32> = sweep.gpus.iter().map(|gpu| gpu.index).collect();
    assert_eq!((sweep.count, read), (8, vec![0, 1, 2, 4, 5, 6, 7]));
    assert_eq!(sweep.unreadable[&3], "ProbeCrashed: signal 6");
    let inventory = child.inventory().await.unwrap();
    assert_eq!((inventory.gpus.len(), inventory.unreadable.len()), (7, 1));
    // The child that was started for the others is kept.
    machine.becomes(&Script::h100s(8));
    assert_eq!(child.sweep().await.unwrap().gpus.len(), 8);
}

#[tokio::test]
async fn n4_a_driver_that_kills_every_child_is_given_up_in_bounded_time() {
    let all = Fault { call: None, gpu: None, behaviour: Behaviour::Abort };
    let machine = Machine::new("n4-all", &Script::h100s(8).with_fault(all));
    let error = machine.child().sweep().await.unwrap_err();
    assert_eq!(
        error,
        GpuError::Crashed { call: "sweep".into(), how: "signal 6".into(), gpu: Some(4) }
    );
    let start = Fault::in_call("nvmlInit_v2", Behaviour::Abort);
    machine.becomes(&Script::h100s(8).with_fault(start));
    let error = machine.child().sweep().await.unwrap_err();
    assert_eq!(
        error,
        GpuError::Crashed { call: "start".into(), how: "signal 6".into(), gpu: None }
    );
}

#[tokio::test]
async fn counters_that_grow_are_seen_to_grow() {
    let mut script = Script::h100s(1);
    script.gpus[0].grow.extend([(3, 5), (94, 2)]);
    let machine = Machine::new("growth", &script);
    let mut child = machine.child();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let gpu = child.sweep().await.unwrap().gpus.remove(0);
        seen.push((gpu.ecc_corrected.unwrap().volatile.unwrap(), gpu.pcie_replays.unwrap()));
    }
    assert_eq!(seen, [(0, 0), (5, 2), (10, 4)]);
}

#[tokio::test]
async fn a_gpu_that_is_lost_is_named_with_the_drivers_word() {
    for (code, word) in [(15, "GPU_IS_LOST"), (16, "RESET_REQUIRED"), (999, "UNKNOWN")] {
        let lost = Script::h100s(2).with_fault(Fault::on_gpu(1, Behaviour::Return(code)));
        let machine = Machine::new(&format!("lost-{code}"), &lost);
        let mut child = machine.child();
        let sweep = child.sweep().await.unwrap();
        assert_eq!((sweep.count, sweep.gpus.len()), (2, 1));
        assert_eq!(sweep.unreadable[&1], word);
        assert_eq!(child.inventory().await.unwrap().unreadable[&1], word);
    }
}

#[tokio::test]
async fn a_gpu_that_is_lost_in_the_middle_of_a_reading_is_lost() {
    let fault = Fault {
        call: Some("nvmlDeviceGetPowerUsage".to_owned()),
        gpu: Some(0),
        behaviour: Behaviour::Return(15),
    };
    let machine = Machine::new("lost-late", &Script::h100s(2).with_fault(fault));
    assert_eq!(machine.child().sweep().await.unwrap().unreadable[&0], "GPU_IS_LOST");
}

#[tokio::test]
async fn n3_a_driver_that_goes_and_comes_back_is_asked_by_a_new_child() {
    let well = Script::h100s(2);
    let machine = Machine::new("n3", &well);
    let mut child = machine.child();
    child.sweep().await.unwrap();
    let before = child.pid().unwrap();
    for (call, code, word) in [
        ("nvmlDeviceGetCount_v2", 9, "DRIVER_NOT_LOADED"),
        ("nvmlInit_v2", 18, "LIB_RM_VERSION_MISMATCH"),
    ] {
        let fault = Fault::in_call(call, Behaviour::Return(code));
        machine.becomes(&well.clone().with_fault(fault));
        let error = child.sweep().await.unwrap_err();
        assert!(matches!(&error, GpuError::Driver { code, .. } if code == word), "{error}");
    }
    machine.becomes(&well);
    assert_eq!(child.sweep().await.unwrap().gpus.len(), 2);
    assert_ne!(child.pid().unwrap(), before);
}

#[tokio::test]
async fn a_machine_without_nvml_says_so() {
    let options = Options {
        nvml_library: Some("/nowhere/libnvidia-ml.so.1".into()),
        deadline: PATIENCE,
        ..Options::default()
    };
    let mut child = Child::new(env!("CARGO_BIN_EXE_argosy-agent").into(), options);
    assert!(matches!(child.inventory().await.unwrap_err(), GpuError::Absent { message }
        if message.contains("/nowhere/libnvidia-ml.so.1")));
}

#[tokio::test]
async fn a_library_that_chatters_on_the_error_output_stops_nobody() {
    let fault = Fault {
        call: Some("nvmlDeviceGetPowerUsage".to_owned()),
        gpu: None,
        // More than a pipe holds.
        behaviour: Behaviour::Babble(200_000),
    };
    let machine = Machine::new("babble", &Script::h100s(2).with_fault(fault));
    assert_eq!(machine.child().sweep().await.unwrap().gpus.len(), 2);
}

#[tokio::test]
async fn a_child_that_nobody_asks_ends_and_the_next_question_starts_another() {
    let machine = Machine::new("idle", &Script::h100s(1));
    let mut child = machine.child_with(PATIENCE, Duration::ZERO);
    for _ in 0..3 {
        assert_eq!(child.sweep().await.unwrap().count, 1);
    }
}

#[tokio::test]
async fn a_gpu_that_would_be_shut_down_is_held_by_the_child() {
    let mut script = Script::h100s(2);
    script.gpus[1].persistence = Some(false);
    script.gpus[1].grow.insert(4, 1);
    let machine = Machine::new("held", &script);
    let mut child = machine.child_with(PATIENCE, Duration::ZERO);
    // The stand-in, too, counts from nothing in a new process.
    for count in 0..5 {
        let gpu = child.sweep().await.unwrap().gpus.remove(1);
        assert_eq!(gpu.ecc_uncorrected.unwrap().volatile, Some(count));
    }
}

#[tokio::test]
async fn a_child_ends_with_its_agent_even_in_a_call_that_never_returns() {
    use std::io::Write;
    let hung = Script::h100s(1).with_fault(Fault::in_call("nvmlInit_v2", Behaviour::Hang));
    let machine = Machine::new("orphan", &hung);
    let exe = std::env::current_exe().unwrap();
    let mut probe = tokio::process::Command::new(env!("CARGO_BIN_EXE_argosy-agent"));
    let probe = probe.arg("probe").arg("--nvml-library").arg(library(&exe).unwrap());
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut probe = probe.env(SCRIPT_ENV, &machine.script).stdin(reader).spawn().unwrap();
    writer.write_all(b"{\"ask\":\"sweep\"}\n").unwrap();
    // What remains of an agent that was killed: the end of its pipe.
    drop(writer);
    let status = tokio::time::timeout(Duration::from_secs(20), probe.wait()).await;
    let status = status.expect("the probe ends by itself").unwrap();
    assert!(!status.success());
}
