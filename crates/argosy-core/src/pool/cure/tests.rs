use super::*;
use crate::fixture::at;
use crate::pool::fixture::{ABILITIES, finding, one};

/// A pool in which everything may be tried.
fn ladder() -> PoolSpec {
    let cures = vec![Cure::Diagnose, Cure::Reboot, Cure::Replace];
    PoolSpec { cures, ..PoolSpec::default() }
}

/// What is done about a node with these findings and this past, by the words of both.
#[track_caller]
fn check(findings: &[(&str, &str)], past: &[(Cure, i64, &str)], expected: &str) {
    let mut sick = one("b", 1, None, "sick", 100_000);
    let node = sick.node.as_mut().unwrap();
    node.findings = findings.iter().map(|(key, message)| finding(key, "GPU-b", message)).collect();
    sick.instance.tried = past
        .iter()
        .map(|(cure, seconds, outcome)| Tried {
            cure: *cure,
            at: at(*seconds),
            because: String::new(),
            outcome: (*outcome).to_owned(),
        })
        .collect();
    let member = Member {
        instance: &sick.instance,
        node: sick.node.as_ref(),
        heard: true,
        utilization: None,
        lost_for: None,
        notice: None,
        commanded: false,
        reported_at: None,
        stopped: None,
        protected: None,
    };
    let treatment = treat(&member, &ladder(), Some(&ABILITIES), at(0));
    assert_eq!(
        format!("{treatment:?}").split('(').next().unwrap(),
        expected,
        "{findings:?} {past:?}"
    );
}

const LINK: (&str, &str) = ("nvlink/0/GPU-b", "a link is slow");
const MEMORY: (&str, &str) = ("xid/48/GPU-b", "double bit error");

#[test]
fn the_ladder_goes_by_what_was_found() {
    check(&[LINK], &[], "Diagnose");
    check(&[MEMORY], &[], "Reboot");
    check(&[LINK, MEMORY], &[], "Reboot");
    check(
        &[(
            "xid/154/GPU-b",
            "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
        )],
        &[],
        "Reboot",
    );
    check(
        &[("driver_error/0/GPU-b", "the driver asks for recovery of GPU 3: gpu-reset")],
        &[],
        "Reboot",
    );
    // The driver asks for what a reboot does not give.
    check(
        &[("driver_error/0/GPU-b", "the driver asks for recovery of GPU 3: recover-imex")],
        &[],
        "Diagnose",
    );
    check(&[], &[], "Replace");
}

#[test]
fn what_was_tried_is_not_tried_again_until_the_node_was_well_for_an_hour() {
    use Cure::{Diagnose, Reboot};
    check(&[LINK], &[(Diagnose, -100, "")], "Wait");
    check(&[LINK], &[(Diagnose, -100, "passed")], "Replace");
    check(&[LINK], &[(Diagnose, -1801, "")], "Replace");
    check(&[MEMORY], &[(Reboot, -100, "")], "Wait");
    check(&[MEMORY], &[(Reboot, -901, "")], "Replace");
    // It fell ill ten minutes ago: a cure of half an hour before that is for the same illness.
    check(&[LINK], &[(Diagnose, -2400, "passed")], "Replace");
    check(&[LINK], &[(Diagnose, -4300, "passed")], "Diagnose");
    // Two reboots a day, however well they went.
    check(&[MEMORY], &[(Reboot, -80_000, "well"), (Reboot, -40_000, "well")], "Replace");
    check(&[MEMORY], &[(Reboot, -90_000, "well"), (Reboot, -40_000, "well")], "Reboot");
}
