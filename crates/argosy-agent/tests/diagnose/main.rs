//! `argosy-agent diagnose` as people and scripts use it: words, exit codes and JSON, with a scripted NVML.

use argosy_nvml_standin::{SCRIPT_ENV, Script, library};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A machine with a scripted driver.
struct Machine {
    dir: PathBuf,
}

impl Machine {
    fn new(name: &str, script: &Script) -> Self {
        let dir =
            std::env::temp_dir().join(format!("argosy-diagnose-it-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory of its own");
        script.write(&dir.join("script.json")).expect("a script can be written");
        Self { dir }
    }

    /// Runs the program with these words, and hears it out.
    fn diagnose(&self, line: &str) -> (Option<i32>, String, String) {
        let exe = std::env::current_exe().expect("a test knows its own path");
        let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_argosy-agent"))
            .arg("diagnose")
            .args(line.split_whitespace())
            .arg("--nvml-library")
            .arg(library(&exe).expect("cargo builds the stand-in with this test"))
            .env(SCRIPT_ENV, self.dir.join("script.json"))
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes text");
        (status.code(), text(stdout), text(stderr))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn quick_passes_well_gpus_and_fails_sick_ones() {
    let well = Machine::new("well", &Script::h100s(2));
    let (code, out, err) = well.diagnose("quick");
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.contains("GPU 1 NVIDIA H100 80GB HBM3") && out.contains("all 2 GPUs passed"),
        "{out}"
    );

    let mut script = Script::h100s(2);
    // A row remap that waits for a reset.
    script.gpus[1].fields.extend([(144, 1)]);
    let sick = Machine::new("sick", &script);
    let (code, out, err) = sick.diagnose("quick -o json");
    assert_eq!(code, Some(4), "{out}{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["passed"], false);
    assert_eq!(json["gpus"][0]["passed"], true);
    assert!(json["gpus"][1]["message"].as_str().unwrap().contains("row remap"), "{out}");
    // The other GPU alone is well.
    assert_eq!(sick.diagnose("quick --gpu 0").0, Some(0));
}

#[test]
fn what_cannot_be_tested_is_an_error_and_not_a_verdict() {
    let machine = Machine::new("absent", &Script::h100s(1));
    // Without a driver: there is no CUDA. With one: there is no GPU 63, and none is touched.
    let (code, out, err) = machine.diagnose("compute --gpu 63");
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(
        err.contains("libcuda.so.1 cannot be loaded") || err.contains("there is no GPU 63"),
        "{err}"
    );
    let (code, out, _) = machine.diagnose("memory --gpu 63 -o json");
    assert_eq!(code, Some(1), "{out}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(json["error"].is_string(), "{out}");
}

#[test]
fn a_driver_without_the_functions_we_call_costs_one_child_and_says_so() {
    let machine = Machine::new("symbols", &Script::h100s(1));
    let exe = std::env::current_exe().unwrap();
    // A library of the right name, and nothing of CUDA in it.
    let other = library(&exe).unwrap();
    for name in ["libcuda.so", "libcuda.so.1"] {
        std::os::unix::fs::symlink(&other, machine.dir.join(name)).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_argosy-agent"))
        .args(["diagnose", "bandwidth"])
        .env("LD_LIBRARY_PATH", &machine.dir)
        .env(SCRIPT_ENV, machine.dir.join("script.json"))
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("the test died (exit code 101)") && err.contains("cuInit"), "{err}");
}

#[test]
fn k15_words_that_are_not_understood_are_usage() {
    let machine = Machine::new("usage", &Script::h100s(1));
    let check = |line: &str, said: &str| {
        let (code, _, err) = machine.diagnose(line);
        assert_eq!(code, Some(2), "{line}: {err}");
        assert!(err.contains(said), "{line}: {err}");
    };
    check("stress --seconds 99999", "parameter seconds must be a whole number from 1 to 3600");
    check("compute --runs $(reboot)", "parameter runs must be a whole number from 1 to 10000");
    check("/bin/sh", "invalid value '/bin/sh'");
    check("--worker test=;reboot", "parameter test must be one of");
}
