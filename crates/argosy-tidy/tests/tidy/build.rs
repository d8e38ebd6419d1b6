//! What is built, from what, and what the scripts say to somebody whose machine cannot build it.

use crate::{assert_none, repo};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Crates that `make up` compiles, ours included. Each costs everybody who tries Argosy about a second; bring it down
/// when one goes, and raise it only with the reason of the new one in Cargo.toml.
const CRATES_MAX: usize = 358;

/// Programs that `make test` links and starts. Each costs a second or two; a new file in `tests/it` costs nothing.
const TEST_PROGRAMS_MAX: usize = 31;

/// The dependencies of other people without a comment line directly above.
fn without_reason(manifest: &str) -> Vec<String> {
    let section = manifest.split("[workspace.dependencies]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let mut above = "";
    let mut found = Vec::new();
    for line in section.lines() {
        let name = line.split(" = ").next().unwrap_or_default();
        let is_dependency = line.contains(" = ") && !line.starts_with('#');
        if is_dependency && !name.starts_with("argosy-") && !above.starts_with("# ") {
            found
                .push(format!("{name} has no reason: write a comment line above it in Cargo.toml"));
        }
        above = line;
    }
    found
}

/// The dependencies of a crate that bring a version of their own.
fn own_versions(name: &str, manifest: &str) -> Vec<String> {
    let mut counts = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            counts = line.contains("dependencies");
        } else if counts && line.contains('=') && !line.contains("workspace = true") {
            found.push(format!(
                "{name}: `{line}`: versions and reasons are in the root's Cargo.toml"
            ));
        }
    }
    found
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(repo::root()).output();
    let output = output.expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text from cargo")
}

#[test]
fn every_dependency_has_a_reason_in_one_place() {
    let root = std::fs::read_to_string(repo::root().join("Cargo.toml")).expect("Cargo.toml");
    let mut found = without_reason(&root);
    for name in repo::crates() {
        let path = repo::root().join("crates").join(&name).join("Cargo.toml");
        let manifest = std::fs::read_to_string(path).expect("a manifest in each crate");
        found.extend(own_versions(&name, &manifest));
    }
    assert_none(&found);
}

#[test]
fn a_dependency_without_a_reason_is_found() {
    let check = |dependencies: &str, count: usize| {
        let manifest =
            format!("[workspace.dependencies]\n{dependencies}\n\n[profile.dev]\na = 1\n");
        assert_eq!(without_reason(&manifest).len(), count, "{dependencies}");
    };
    check("# Why.\na = \"1\"", 0);
    check("argosy-core = { path = \"x\" }\n\n# Why.\na = \"1\"", 0);
    check("a = \"1\"", 1);
    check("# Why.\na = \"1\"\nb = { version = \"1\" }", 1);
    check("# Why.\n\na = \"1\"", 1);
    assert_eq!(
        own_versions("x", "[dependencies]\na.workspace = true\n[features]\nf = []").len(),
        0
    );
    assert_eq!(own_versions("x", "[dev-dependencies]\na = \"1\"").len(), 1);
}

#[test]
fn what_everybody_compiles_does_not_grow_unseen() {
    let mut packages = BTreeSet::new();
    for program in ["argosy", "argosy-agent"] {
        let edges = "normal,build";
        let tree = ["tree", "--locked", "--package", program, "--edges", edges, "--prefix", "none"];
        let text = cargo(&tree);
        packages.extend(text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()));
    }
    println!("make up compiles {} crates; the bound is {CRATES_MAX}", packages.len());
    assert!(
        packages.len() <= CRATES_MAX,
        "{} crates; say why in Cargo.toml, or trim",
        packages.len()
    );

    let metadata = cargo(&["metadata", "--locked", "--no-deps", "--format-version=1"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("JSON from cargo");
    let packages = metadata.get("packages").and_then(Value::as_array).expect("packages");
    let targets = packages.iter().filter_map(|it| it.get("targets")?.as_array()).flatten();
    let tested = |target: &&Value| target.get("test").and_then(Value::as_bool) == Some(true);
    let programs = targets.filter(tested).count();
    println!("make test starts {programs} test programs; the bound is {TEST_PROGRAMS_MAX}");
    assert!(programs <= TEST_PROGRAMS_MAX, "{programs} programs: put new tests into `tests/it`");
}

/// A machine that can build, made of links and of stand-ins for what is asked for its version.
struct Machine {
    dir: PathBuf,
    environment: Vec<(&'static str, String)>,
}

impl Machine {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("argosy-tidy-{name}-{}", std::process::id()));
        let bin = dir.join("a path with blanks");
        std::fs::create_dir_all(&bin).expect("a directory");
        let tools = "awk bash cat df dirname du grep head mkdir mktemp nproc rm sed sort tail tr";
        for tool in tools.split(' ') {
            let places = ["/bin", "/usr/bin"].map(|place| Path::new(place).join(tool));
            let found = places.iter().find(|path| path.exists()).expect(tool);
            std::os::unix::fs::symlink(found, bin.join(tool)).expect("a link");
        }
        let path = |name: &str| dir.join(name).display().to_string();
        let environment = vec![
            ("PATH", bin.display().to_string()),
            ("HOME", path("home")),
            ("CARGO_TARGET_DIR", path("target dir")),
            ("CARGO_BUILD_JOBS", "2".to_owned()),
        ];
        let machine = Self { dir: dir.clone(), environment };
        machine.says("rustc", "rustc 1.99.0 (0 2027-01-01)");
        machine.says("cargo", "cargo 1.99.0");
        machine.says("cc", "cc 14");
        machine.says("node", "v22.1.0");
        machine.says("npm", "10");
        machine
    }

    /// Puts a program there that prints a line.
    fn says(&self, program: &str, line: &str) {
        self.script(program, &format!("echo '{line}'"));
    }

    fn script(&self, program: &str, body: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.dir.join("a path with blanks").join(program);
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, format!("#!/bin/bash\n{body}\n")).expect("a script");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, mode).expect("a mode");
    }

    fn lacks(&self, program: &str) {
        std::fs::remove_file(self.dir.join("a path with blanks").join(program))
            .expect("it is there");
    }

    fn set(&mut self, name: &'static str, value: &str) {
        self.environment.retain(|(known, _)| *known != name);
        self.environment.push((name, value.to_owned()));
    }

    fn bash(&self, script: &str) -> Output {
        let mut command = Command::new("/bin/bash");
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (*name, value)));
        command.args(["-c", script]).current_dir(repo::root()).output().expect("bash runs")
    }

    /// What the preflight of a goal says; nothing, and success, where all is well.
    fn preflight(&self, goal: &str) -> String {
        let output = self.bash(&format!("exec scripts/preflight {goal}"));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), text.is_empty(), "{text}");
        text
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // What is left behind is in the temporary directory.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn a_machine_that_can_build_hears_nothing() {
    let machine = Machine::new("good");
    for goal in ["up", "build", "test", "check"] {
        assert_eq!(machine.preflight(goal), "", "{goal}");
    }
}

/// Each row: what is wrong, the goal, and what the one sentence and its way out contain.
#[test]
fn what_a_machine_lacks_is_said_in_a_sentence_with_the_way_out() {
    type Break = fn(&mut Machine);
    let rows: &[(&str, Break, &str, [&str; 2])] = &[
        ("no-rust", |m| m.lacks("rustc"), "up", ["Rust is not installed", "rustup.rs"]),
        ("old-rust", |m| m.says("rustc", "rustc 1.63.0 (x)"), "up", ["is 1.63.0", "rustup.rs"]),
        (
            "no-toolchain",
            |m| m.script("rustc", "echo 'error: could not download' >&2; exit 1"),
            "up",
            ["rustc does not run: error: could not download", "rustup toolchain install 1."],
        ),
        ("no-cc", |m| m.lacks("cc"), "build", ["A C compiler is needed", "apt-get install gcc"]),
        ("no-node", |m| m.lacks("node"), "up", ["Node and npm are needed", "DASHBOARD=no"]),
        ("old-node", |m| m.says("node", "v18.19.0"), "test", ["is 18.19.0", "https://nodejs.org"]),
        (
            "full-disk",
            |m| m.script("df", "echo h; echo /dev/x 9 9 204800 9% /"),
            "up",
            ["has 200 MB free", "CARGO_TARGET_DIR=/path/with/room make up"],
        ),
        (
            "little-memory",
            |m| {
                let file = m.dir.join("meminfo");
                std::fs::write(&file, "MemAvailable: 2000000 kB\n").expect("a file");
                m.set("MEMINFO", &file.display().to_string());
            },
            "build",
            ["1953 MB of memory are available", "CARGO_BUILD_JOBS=1 make build"],
        ),
        (
            "no-memory",
            |m| {
                let file = m.dir.join("meminfo");
                std::fs::write(&file, "MemAvailable: 900000 kB\n").expect("a file");
                m.set("MEMINFO", &file.display().to_string());
            },
            "check",
            ["needs 1,500 MB", "make check"],
        ),
        (
            "read-only-home",
            |m| m.set("HOME", "/proc/home"),
            "up",
            ["/proc/home/.cargo cannot be written", "CARGO_HOME=$PWD/target/cargo-home make up"],
        ),
        (
            "read-only-checkout",
            |m| m.set("CARGO_TARGET_DIR", "/proc/target"),
            "up",
            ["/proc/target cannot be written", "CARGO_TARGET_DIR=/path/with/room make up"],
        ),
    ];
    for (name, broken, goal, [sentence, way]) in rows {
        let mut machine = Machine::new(name);
        broken(&mut machine);
        let text = machine.preflight(goal);
        assert!(text.starts_with("error: ") && text.contains(sentence), "{name}: {text}");
        assert!(text.contains(way), "{name}: {text}");
    }
}

#[test]
fn without_node_the_rest_can_be_built() {
    let mut machine = Machine::new("dashboard-no");
    machine.lacks("node");
    machine.lacks("npm");
    machine.set("DASHBOARD", "no");
    assert_eq!(machine.preflight("up"), "");
    // `make test` installs Debian's own.
    machine.set("DASHBOARD", "");
    assert_eq!(machine.preflight("test"), "");
}

#[test]
fn a_build_that_fails_says_why_and_that_what_is_done_is_kept() {
    let check = |name: &str, log: &str, why: &str, way: &str| {
        let machine = Machine::new(name);
        let path = machine.dir.join("log");
        std::fs::write(&path, format!("{log}\n")).expect("a log");
        let script = format!("source scripts/progress; explain 'the build' '{}'", path.display());
        let output = machine.bash(&script);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.first(), Some(&log), "what the tool said comes first");
        assert!(text.contains(&format!("error: the build failed{why}")), "{text}");
        assert!(text.contains(way) && text.contains("what is done is kept"), "{text}");
    };
    check("net", "error: failed to download from `x`", ": the registry did not", "Check the conn");
    check("npm", "npm error code ENOTFOUND", ": the registry did not answer", "Check the conn");
    check("disk", "ld: No space left on device", ": the disk is full", "CARGO_TARGET_DIR=");
    check("oom", "(signal: 9, SIGKILL: kill)", ": the machine ran out of", "CARGO_BUILD_JOBS=1");
    check("ro", "EROFS: read-only file system", ": a directory cannot be", "CARGO_HOME and");
    check("code", "error[E0308]: mismatched types", " (see above)", "Run the same command again");
}
