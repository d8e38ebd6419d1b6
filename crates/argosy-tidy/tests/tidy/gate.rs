//! One way to a termination (F16): nothing but the gate makes a `Doomed`, and nothing but the jobs of the
//! machines' loop hands one to a provider.

use crate::repo::{self, File};
use crate::{assert_none, rust};

/// The one place where a `Doomed` is made.
const GATE: &str = "crates/argosy-core/src/gate.rs";

/// The one place that asks a provider to end a machine.
const CALLER: &str = "crates/argosy-control/src/loops/machines/job.rs";

/// Where the port is, and where a provider may hand a call on to what it wraps.
const PORT: &str = "crates/argosy-control/src/provider.rs";
const PROVIDERS: &str = "crates/argosy-providers/src/";

/// The suite that every provider is tested with ends machines, and nothing but tests compile it.
const CONFORMANCE: &str = "crates/argosy-providers/src/conformance.rs";

fn complaints(file: &File) -> Vec<String> {
    // What is made or called in tests ends nothing; but it cannot make a `Doomed` either: its members are
    // private, and the compiler looks after that.
    if !file.is_rust() || file.is_test() || !file.path.starts_with("crates/") {
        return Vec::new();
    }
    let code = rust::code_only(&file.text);
    let mut found = Vec::new();
    let mut complain = |at: usize, what: &str| {
        found.push(format!("{}:{}: {what}", file.path, rust::line(&code, at)));
    };
    for at in rust::places(&code, "Doomed") {
        let (before, after) = (code.get(..at).unwrap_or_default(), code.get(at + 6..));
        let opens = after.is_some_and(|after| after.trim_start().starts_with('{'));
        let defines = ["struct", "impl"].iter().any(|word| before.trim_end().ends_with(word));
        let returns = before.trim_end().ends_with("->");
        if opens && !defines && !returns && file.path != GATE {
            complain(at, "`Doomed {`: only the gate says who has to go");
        }
        if returns && file.path != GATE {
            complain(at, "`-> Doomed`: only the gate says who has to go");
        }
    }
    for at in rust::places(&code, "terminate") {
        let before = code.get(..at).unwrap_or_default();
        let called = code.get(at + 9..).is_some_and(|after| after.starts_with('('));
        let calls = before.ends_with("Provider::") || before.trim_end().ends_with('.');
        // The service writes down that somebody wants it, and asks nobody.
        let calls = calls && !before.trim_end().ends_with("instances.");
        if called && calls && file.path != CALLER && !file.path.starts_with(PROVIDERS) {
            complain(
                at,
                "`terminate(`: machines are returned by the machines' loop, behind the gate",
            );
        }
    }
    for word in ["gate::release", "gate::reap"] {
        for at in
            rust::places(&code, word).filter(|_| ![CALLER, CONFORMANCE].contains(&&*file.path))
        {
            complain(at, "the gate is asked by the machines' loop, with what is true now");
        }
    }
    if derives_a_way_around(&file.path, &code) {
        complain(0, "a `Doomed` must not be cloned, copied, read from a text or made by default");
    }
    found
}

/// Whether the gate lets its word be made by somebody else: derived, or with a member that is not private.
fn derives_a_way_around(path: &str, code: &str) -> bool {
    if path != GATE {
        return false;
    }
    let Some((before, after)) = code.split_once("pub struct Doomed") else { return true };
    let attributes = before.rsplit("}").next().unwrap_or_default();
    let banned = ["Clone", "Copy", "Deserialize", "Default"];
    let body = after.split('}').next().unwrap_or_default();
    banned.iter().any(|word| rust::places(attributes, word).next().is_some())
        || body.contains("pub ")
}

/// How many calls of a provider's `terminate` there are at the one place that may make them.
fn calls(file: &File) -> usize {
    let code = rust::code_only(&file.text);
    code.matches(".terminate(&doomed)").count()
}

#[test]
fn f16_there_is_one_way_to_a_termination() {
    let files = repo::files();
    assert_none(&files.iter().flat_map(complaints).collect::<Vec<_>>());
    let at = |path: &str| files.iter().find(|file| file.path == path).map(calls);
    assert_eq!(at(CALLER), Some(2), "a machine of a record, and one that nobody knew");
    let port = files.iter().find(|file| file.path == PORT).map_or("", |file| &file.text);
    assert!(port.contains("fn terminate(&self, doomed: &Doomed)"), "the port takes nothing else");
}

#[test]
fn f16_a_second_way_to_a_termination_is_found() {
    let check = |path: &str, text: &str, expected: usize| {
        let found = complaints(&File::new(path, text));
        assert_eq!(found.len(), expected, "{path}: {text}: {found:?}");
    };
    let other = "crates/argosy-control/src/loops/machines.rs";
    let good = "#[derive(Debug)]\npub struct Doomed {\n    machine: MachineId,\n}\n";
    check(GATE, good, 0);
    check(GATE, &good.replace("Debug", "Clone"), 1);
    check(GATE, &good.replace("machine", "pub machine"), 1);
    check(GATE, &format!("{good}fn release() -> Doomed {{ Doomed {{ machine }} }}"), 0);
    check(other, "let doomed = Doomed { machine };", 1);
    check(other, "fn mine() -> Doomed { todo() }", 1);
    check(other, "cloud.terminate(&doomed).await", 1);
    check(other, "Provider::terminate(&*cloud, &x).await", 1);
    check(other, "self.terminate(&doomed).await", 1);
    check(other, "// cloud.terminate(&doomed)", 0);
    check(other, "fn terminate(&self) {}\nlet done = terminate(&bench).await;", 0);
    check(other, "control.instances.terminate(&caller, id, reason).await", 0);
    check(other, "let doomed = gate::release(&record, &guards)?;", 1);
    check(CALLER, "cloud.terminate(&doomed).await", 0);
    check(CALLER, "fn mine() -> Doomed { todo() }", 1);
    check(
        "crates/argosy-providers/src/simulated.rs",
        "async fn terminate(&self, doomed: &Doomed) {}",
        0,
    );
}
