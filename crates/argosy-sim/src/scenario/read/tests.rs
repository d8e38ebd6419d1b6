use super::{TEXT_LEN_MAX, read};
use crate::scenario::shipped;
use proptest::prelude::*;

/// A scenario that is one, to which lines are added.
const WELL: &str = "name: x\nduration: 1h\nfleet:\n  nodes: [{id: a}, {id: b, zone: east}]\n";

/// Every complaint about a text, one in a line.
fn complaints(text: &str) -> String {
    match read(text, "f.yaml") {
        Ok(_) => "none".to_owned(),
        Err(errors) => {
            assert!(!errors.is_empty(), "{text}");
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        }
    }
}

/// What is complained about when lines are added to one that is well.
fn check(more: &str, expected: &str) {
    let found = complaints(&format!("{WELL}{more}\n"));
    assert_eq!(found, expected, "{more}");
}

#[test]
fn a_complaint_names_file_line_column_key_and_the_way_out() {
    check("", "none");
    check("durration: 3h", "f.yaml:5:1: durration: unknown key; did you mean `duration`?");
    check(
        "trouble: {profle: llama3}",
        "f.yaml:5:11: trouble.profle: unknown key; did you mean `profile`?",
    );
    check(
        "trouble:\n  profile: lama3",
        "f.yaml:6:12: trouble.profile: there is no profile `lama3`; did you mean `llama3`?",
    );
    check("every_beat: yes", "f.yaml:5:13: every_beat: a text where `true` or `false` is expected");
    check("seed: many", "f.yaml:5:7: seed: a text where a whole number is expected");
    check("processes: [1]", "f.yaml:5:12: processes: a list where a whole number is expected");
}

#[test]
fn what_cannot_be_is_refused_with_the_limit() {
    let outside = "is outside of what is possible; write something from";
    check("processes: 10", &format!("f.yaml:5:12: processes: 10 {outside} 1 to 9"));
    check(
        "settle: 90000d",
        "f.yaml:5:9: settle: `90000d` is no length of time; write a number and a unit, like 500ms, 90s, 10m, 24h or 54d",
    );
    check("settle: 0s", &format!("f.yaml:5:9: settle: 0s {outside} 1s to 3660d"));
    check(
        "trouble: {link: {loss: 1.5}}",
        &format!("f.yaml:5:24: trouble.link.loss: 1.5 {outside} 0 to 1"),
    );
    check(
        "trouble: {link: {loss: -0.1}}",
        &format!("f.yaml:5:24: trouble.link.loss: -0.1 {outside} 0 to 1"),
    );
    check(
        "trouble: {cloud: {reclaimed_per_day: -1}}",
        &format!("f.yaml:5:38: trouble.cloud.reclaimed_per_day: -1 {outside} 0 to 864000"),
    );
    check(
        "trouble: {hardware: [{name: x, per_day: -2, effects: [silent]}]}",
        &format!("f.yaml:5:41: trouble.hardware[0].per_day: -2 {outside} 0 to 864000"),
    );
    let fleet = "name: x\nduration: 1h\nfleet: {generate: {count: 1000000000}}\n";
    assert_eq!(
        complaints(fleet),
        "f.yaml:1:1: there is no machine in it; write `fleet` for machines that are there, or `clusters` with pools that buy some\nf.yaml:3:27: fleet.generate.count: 1000000000 is outside of what is possible; write something from 1 to 2000000"
    );
    // What would come after the end never comes.
    check(
        "script: [{at: 61m, log: x}]",
        &format!("f.yaml:5:15: script[0].at: 61m {outside} 0s to 1h"),
    );
    check(
        "trouble: {outages: [{at: 2h, lasts: 1m, on: all}]}",
        &format!("f.yaml:5:26: trouble.outages[0].at: 2h {outside} 0s to 1h"),
    );
    check(
        "workload: {jobs: [{name: x, gpus: 17}]}",
        "f.yaml:5:35: workload.jobs[0].gpus: the job needs 17 GPUs, and all machines together have 16; make the fleet larger or the job smaller",
    );
}

#[test]
fn names_that_lead_nowhere_are_refused_with_the_nearest() {
    check(
        "script: [{at: 1m, command: drain, on: c}]",
        "f.yaml:5:39: script[0].on: there is no node `c`; did you mean `a`?",
    );
    check(
        "script: [{at: 1m, fault: silent, on: {zone: est}}]",
        "f.yaml:5:38: script[0].on: there is no zone `est`; did you mean `east`?",
    );
    check(
        "script: [{at: 1m, command: uncordn, on: a}]",
        "f.yaml:5:28: script[0].command: there is no word `uncordn`; did you mean `uncordon`?",
    );
    check(
        "assertions: [{pool_ready: train}]",
        "f.yaml:5:27: assertions[0].pool_ready: there is no pool `train`; the scenario has no pool by name",
    );
    check(
        "assertions: [{node_status: {node: b, is: happy}}]",
        "f.yaml:5:42: assertions[0].node_status.is: there is no word `happy`; there are: active, cordoned, draining, unhealthy, terminated, unknown",
    );
}

#[test]
fn what_cannot_happen_to_a_machine_is_refused() {
    let line = |effect: &str| format!("script: [{{at: 1m, fault: \"{effect}\", on: a}}]");
    for effect in [
        "xid:79",
        "xid:79 gpu:3",
        "silent",
        "partition:5m",
        "clock:-90s",
        "line:anything at all",
        "hang",
    ] {
        check(&line(effect), "none");
    }
    let start = |effect: &str| {
        format!("f.yaml:5:26: script[0].fault: `{effect}` cannot happen to a machine; ")
    };
    for (effect, why) in [
        ("xid", "`xid` needs `code`, for example `xid:79 gpu:3`"),
        ("xid:many", "`many` is no code"),
        ("xdi:79", "did you mean `xid`?"),
        ("slient", "did you mean `silent`?"),
        ("nothing-like-it", "there are: silent, reboot,"),
        ("partition", "a partition has a length, like `partition:5m`"),
        ("partition:0s", "a partition has a length, like `partition:5m`"),
        ("silent:5m", "`silent` takes no value"),
        ("clock:soon", "a clock is off by something"),
    ] {
        let found = complaints(&format!("{WELL}{}\n", line(effect)));
        let expected = format!("{}{why}", start(effect));
        assert!(found.starts_with(&expected), "{found}\nis not\n{expected}");
    }
}

#[test]
fn all_complaints_come_at_once_in_the_order_of_the_file() {
    let text = "name: \"\"\nduration: 0s\nfleet:\n  nodes:\n    - {id: a}\n    - {id: a}\n    - {id: \"b c\"}\n    - {}\n\
                trouble: {scale: -1}\nscript:\n  - {at: 1m}\n  - {at: 1m, log: x, pause: true}\nnonsense: 1\n";
    let found = complaints(text);
    let starts = [
        "f.yaml:1:7: name: it is empty",
        "f.yaml:2:11: duration: 0s is outside of what is possible",
        "f.yaml:6:12: fleet.nodes[1].id: `a` is there twice",
        "f.yaml:7:12: fleet.nodes[2].id: node_id may hold",
        "f.yaml:8:7: fleet.nodes[3]: `id` is missing; for example `id: node-1`",
        "f.yaml:9:18: trouble.scale: -1 is outside",
        "f.yaml:11:5: script[0]: it says nothing; write exactly one of:",
        "f.yaml:12:5: script[1]: it says more than one thing; write exactly one of:",
        "f.yaml:13:1: nonsense: unknown key; there are: name",
    ];
    assert_eq!(found.lines().count(), starts.len(), "{found}");
    for (line, start) in found.lines().zip(starts) {
        assert!(line.starts_with(start), "{line}\ndoes not start with\n{start}");
    }
}

#[test]
fn what_a_pool_asks_for_is_judged_as_the_server_would() {
    let text = "name: x\nduration: 1h\nclusters:\n  - name: c\n    spec: {provider: gcp, region: us-east1}\n    pools:\n      - name: p\n        spec: {nodeCount: 4000, machineTyp: h100-8x}\n";
    let found = complaints(text);
    assert!(found.contains("f.yaml:8:27: clusters[0].pools[0].spec.nodeCount:"), "{found}");
    assert!(found.contains("clusters[0].pools[0].spec.machineTyp"), "{found}");
    let wrong_region =
        text.replace("us-east1", "atlantis").replace("4000, machineTyp", "4, machineType");
    assert!(
        complaints(&wrong_region).contains("f.yaml:5:35: clusters[0].spec.region:"),
        "{}",
        complaints(&wrong_region)
    );
}

#[test]
fn control_characters_are_refused_and_never_printed() {
    let found = complaints(
        "name: \"a\\u001b[31mb\"\nduration: 1h\nfleet: {nodes: [{id: a}]}\n\"k\\u0007\": 1\n",
    );
    assert!(found.contains("name: it has the control character \\u{1b}"), "{found}");
    assert!(!found.contains(['\u{1b}', '\u{7}']), "{found:?}");
}

#[test]
fn what_is_no_yaml_is_refused_with_its_place() {
    for (text, start) in [
        ("", "f.yaml: it is empty"),
        ("# nothing\n", "f.yaml: it is empty"),
        ("name: x\n  y: [", "f.yaml:2:"),
        ("name: x\nname: y\n", "f.yaml:2:"),
        ("just a text", "f.yaml:1:1: a text where a table is expected"),
        ("[1, 2]", "f.yaml:1:1: a list where a table is expected"),
        ("a: &a [*a]", "f.yaml:1:"),
        ("a: .nan", "f.yaml:1:"),
    ] {
        assert!(complaints(text).starts_with(start), "{text}: {}", complaints(text));
    }
}

#[test]
fn anchors_and_merged_keys_are_read() {
    let text = "name: x\nduration: 1h\nfleet:\n  nodes:\n    - &n {id: a, zone: z, gpus: 4}\n    - {<<: *n, id: b}\n";
    let (scenario, _) = read(text, "f.yaml").unwrap_or_else(|errors| panic!("{errors:#?}"));
    let nodes: Vec<String> = scenario
        .fleet
        .nodes
        .iter()
        .map(|of| format!("{} {} {}", of.id, of.zone, of.gpus))
        .collect();
    assert_eq!(nodes, ["a z 4", "b z 4"]);
}

#[test]
fn neither_long_texts_nor_bombs_take_long() {
    let long = format!("name: x\nduration: 1h\ndescription: {}\n", "y".repeat(10 << 20));
    assert!(
        complaints(&long).starts_with(&format!(
            "f.yaml: it is {} bytes long; at most {TEXT_LEN_MAX}",
            long.len()
        ))
    );
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", below.trim_end_matches(", ")));
    }
    assert!(complaints(&bomb).starts_with("f.yaml:"), "{}", complaints(&bomb));
    let deep = format!("a: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(complaints(&deep).starts_with("f.yaml:"));
    // However much is wrong, a screen of it is enough.
    let many: String = (0..5_000).map(|number| format!("k{number}: 1\n")).collect();
    assert_eq!(complaints(&many).lines().count(), 100);
}

proptest! {
    /// No text makes it panic, and none is refused without a reason.
    #[test]
    fn any_text_is_read_or_complained_about(text in "\\PC{0,200}") {
        complaints(&text);
    }

    /// Texts that are nearly scenarios get further than noise does.
    #[test]
    fn a_scenario_with_a_piece_cut_out_or_put_in_is_read_or_complained_about(
        which in 0_usize..100, from in any::<prop::sample::Index>(), length in 0_usize..12,
        put in prop::sample::select(vec!["", "-", ": ", "{", "]", "null", "-1", "1e999", "9223372036854775808", "\t", "\n", "&a ", "*a", "!!int ", "'", "~", "0x10", "あ", "\u{0}"]),
    ) {
        let small: Vec<_> = shipped::list().iter().filter(|of| !of.text.contains("generate")).collect();
        let text = small[which % small.len()].text;
        let from = text.char_indices().nth(from.index(text.chars().count())).map_or(0, |(at, _)| at);
        let to = text.len().min(from + length);
        prop_assume!(text.is_char_boundary(to));
        complaints(&format!("{}{put}{}", &text[..from], &text[to..]));
    }
}
