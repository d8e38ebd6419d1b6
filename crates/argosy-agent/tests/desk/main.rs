//! The commands that people type, as processes: with made-up GPUs, and with a scripted NVML in place of the
//! driver's.

use argosy_agent::config::Config;
use argosy_nvml_standin::{Behaviour, Fault, SCRIPT_ENV, Script, library};
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn agent(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_argosy-agent"));
    command.args(words).env_remove("ARGOSY_TOKEN");
    command
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("it prints text")
}

/// A driver that follows a script, for one test.
struct Driver {
    dir: PathBuf,
}

impl Driver {
    fn new(name: &str, script: &Script) -> Self {
        let dir = std::env::temp_dir().join(format!("argosy-desk-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory for this test");
        script.write(&dir.join("script.json")).expect("a script for this test");
        Self { dir }
    }

    fn scan(&self) -> (i32, Value) {
        let exe = std::env::current_exe().expect("this test has a path");
        let library = library(&exe).expect("cargo builds the stand-in with this test");
        let output = agent(&["scan", "-o", "json", "--nvml-library"])
            .arg(library)
            .env(SCRIPT_ENV, self.dir.join("script.json"))
            .output()
            .expect("the agent can be started");
        let report = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output.status.code().expect("it ends by itself"), report)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.dir);
    }
}

fn reason<'a>(report: &'a Value, code: &str) -> Option<&'a Value> {
    report["reasons"].as_array()?.iter().find(|reason| reason["code"] == code)
}

#[test]
fn a_scan_through_nvml_sees_eight_gpus_that_are_well() {
    let (_, report) = Driver::new("well", &Script::h100s(8)).scan();
    assert_eq!(report["gpus"].as_array().unwrap().len(), 8);
    assert_eq!(report["gpus"][3]["identity"]["name"], "NVIDIA H100 80GB HBM3");
    assert_eq!(report["driver"]["version"], "580.159.04");
    assert!(report["gpus"][3]["reading"]["temperature_celsius"].is_u64());
    // What else is wrong with the machine that runs this test is not the GPUs' fault.
    let nvml = report["checks"].as_array().unwrap().iter().find(|check| check["check"] == "nvml");
    assert_eq!(nvml.unwrap()["word"], "healthy");
}

#[test]
fn a_scan_through_nvml_finds_a_lost_gpu_a_failed_remap_and_heat() {
    let mut script = Script::h100s(4).with_fault(Fault {
        call: None,
        gpu: Some(2),
        behaviour: Behaviour::Return(15),
    });
    script.gpus[1].fields.insert(145, 1);
    script.gpus[0].temperature_celsius = Some(96);
    let (code, report) = Driver::new("sick", &script).scan();
    assert_eq!((code, &report["verdict"]), (4, &Value::from("unhealthy")));
    assert_eq!(report["gpus"][2]["unreadable"], "GPU_IS_LOST");
    assert!(reason(&report, "GpuLost").is_some(), "{}", report["reasons"]);
    assert_eq!(reason(&report, "Hot").unwrap()["gpu"], 0);
    assert_eq!(reason(&report, "RowRemapFailed").unwrap()["gpu"], 1);
}

#[test]
fn a_driver_that_hangs_is_a_verdict_within_five_seconds() {
    let script =
        Script::h100s(4).with_fault(Fault { call: None, gpu: Some(1), behaviour: Behaviour::Hang });
    #[expect(clippy::disallowed_methods, reason = "five seconds by the clock on the wall")]
    let began = Instant::now();
    let (code, report) = Driver::new("hung", &script).scan();
    assert_eq!(code, 4);
    assert!(reason(&report, "ProbeHung").is_some(), "{}", report["reasons"]);
    assert!(report["took_ms"].as_u64().unwrap() < 5_000, "{}", report["took_ms"]);
    assert!(began.elapsed() < Duration::from_secs(10), "the process itself must end, too");
}

#[test]
fn exit_codes_follow_the_verdict() {
    let rows: &[(&[&str], &[i32])] = &[
        // The machine that runs this test may be degraded by itself, and is hardly unhealthy.
        (&["scan", "--gpu", "fake:2xH100"], &[0, 3]),
        (&["scan", "--gpu", "fake:2xH100", "--inject", "row-remap-pending gpu:0"], &[3]),
        (&["scan", "--gpu", "fake:2xH100", "--inject", "xid:79 gpu:1"], &[4]),
        (&["scan", "--gpu", "fake:2xH100", "--expect-gpus", "8"], &[4]),
        (&["scan", "--gpu", "none"], &[0, 3]),
        (&["scan", "--gpu", "fake:9000xH100"], &[2]),
        (&["scan", "--inject", "heal"], &[1]),
        (&["watch", "--once", "--gpu", "fake:2xH100"], &[0]),
        (&["watch", "--gpu", "none"], &[1]),
        (&["inject", "xid:79", "--gpu", "3"], &[2]),
        (&["inject", "--yes-inject-a-fault", "heal", "--data-dir", "/nowhere"], &[1]),
        (&["doctor", "--gpu", "fake:2xH100", "--inject", "lost gpu:0"], &[1]),
    ];
    for (words, expected) in rows {
        let output = agent(words).output().unwrap();
        let code = output.status.code().unwrap();
        assert!(expected.contains(&code), "{words:?}: {code}, {output:?}");
        assert!(!text(&output).contains('\u{1b}'), "no colour in a pipe: {words:?}");
    }
}

/// The user that may do nothing.
const NOBODY: u32 = 65_534;

#[test]
fn a_doctor_without_permissions_names_the_way_out() {
    let driver = Driver::new("nobody", &Script::h100s(1));
    let data_dir = driver.dir.join("data");
    std::fs::create_dir_all(&data_dir).unwrap();
    let is_root = std::fs::metadata(&data_dir).unwrap().uid() == 0;
    // Where root has built, perhaps nobody else may go.
    let program = driver.dir.join("argosy-agent");
    std::fs::copy(env!("CARGO_BIN_EXE_argosy-agent"), &program).unwrap();
    let mut command = Command::new(program);
    command.args(["doctor", "-o", "json", "--gpu", "none", "--data-dir"]).arg(&data_dir);
    if is_root {
        std::fs::set_permissions(&data_dir, Permissions::from_mode(0o700)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    } else {
        std::fs::set_permissions(&data_dir, Permissions::from_mode(0o500)).unwrap();
    }
    let output = command.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |what: &str| {
        let mut findings = report["findings"].as_array().unwrap().iter();
        findings.find(|finding| finding["what"] == what).unwrap().clone()
    };
    assert_eq!(output.status.code(), Some(1), "{report}");
    let data_dir = of("data dir");
    assert_eq!(data_dir["state"], "fail", "{data_dir}");
    assert!(data_dir["way_out"].as_str().unwrap().contains("agent's user"), "{data_dir}");
    // Where everybody may read the kernel's log, there is nothing to be refused.
    let restricted = std::fs::read_to_string("/proc/sys/kernel/dmesg_restrict");
    if restricted.is_ok_and(|word| word.trim() == "1") && Path::new("/dev/kmsg").exists() {
        let kmsg = of("kmsg");
        assert_eq!(kmsg["state"], "warn", "{kmsg}");
        assert!(kmsg["way_out"].as_str().unwrap().contains("CAP_SYSLOG"), "{kmsg}");
    }
}

#[test]
fn the_example_of_a_configuration_is_one_also_with_every_line_in_force() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/etc/agent.yaml");
    let example = std::fs::read_to_string(&path).unwrap();
    let config = Config::parse(&example, &path).unwrap();
    assert_eq!(config.servers, ["https://argosy.example.com:8443"]);
    let in_force: String = example
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(key) if !key.starts_with(' ') || key.starts_with("  ") => format!("{key}\n"),
            Some(_) | None => format!("{line}\n"),
        })
        .collect();
    let all = serde_json::to_value(Config::parse(&in_force, &path).unwrap()).unwrap();
    let unsaid = |value: &Value| value.is_null() || value == &Value::Bool(false);
    let left_out: Vec<&String> = all
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| unsaid(value))
        .map(|(key, _)| key)
        .collect();
    assert!(left_out.is_empty(), "the example does not tell of {left_out:?}");
}
