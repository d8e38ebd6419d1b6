use super::{RecoveryAction, RecoveryChange};
use crate::health::Severity;
use proptest::prelude::*;

#[test]
fn numbers_are_those_of_nvml() {
    for (number, word) in [
        (0, Some("none")),
        (1, Some("gpu-reset")),
        (2, Some("node-reboot")),
        (3, Some("drain-p2p")),
        (4, Some("drain-and-reset")),
        (5, Some("recover-imex")),
        (6, Some("bus-reset")),
        (7, Some("system-reboot")),
        (8, None),
        (u32::MAX, None),
    ] {
        let action = RecoveryAction::from_number(number);
        assert_eq!(action.map(RecoveryAction::as_str), word, "{number}");
        assert_eq!(action.map(RecoveryAction::number), word.map(|_| number));
    }
}

#[test]
fn words_of_every_source_are_known() {
    for (words, number) in [
        ("None", Some(0)),
        ("GPU Reset Required", Some(1)),
        ("Reset", Some(1)),
        ("PF FLR", Some(1)),
        ("NVML_GPU_RECOVERY_ACTION_GPU_RESET", Some(1)),
        ("Node Reboot Required", Some(2)),
        ("Reboot", Some(2)),
        ("OS Reboot", Some(2)),
        ("Drain P2P", Some(3)),
        ("Drain and Reset", Some(4)),
        ("GPU_RECOVERY_ACTION_DRAIN_AND_RESET", Some(4)),
        ("RECOVER_IMEX_DOMAIN", Some(5)),
        ("Bus  Reset", Some(6)),
        ("system-reboot", Some(7)),
        ("", None),
        ("required", None),
        ("something new", None),
    ] {
        let action = RecoveryAction::from_words(words);
        assert_eq!(action.map(RecoveryAction::number), number, "{words}");
    }
    for action in RecoveryAction::ALL {
        assert_eq!(RecoveryAction::from_words(action.as_str()), Some(action));
        let json = serde_json::to_string(&action).unwrap();
        assert_eq!(json, format!("\"{}\"", action.as_str()), "stored as the word that rules see");
    }
}

#[test]
fn whatever_asks_for_no_new_work_is_unhealthy() {
    for action in RecoveryAction::ALL {
        let expected = match action.as_str() {
            "none" => Severity::Healthy,
            "recover-imex" => Severity::Degraded,
            _ => Severity::Unhealthy,
        };
        assert_eq!(action.severity(), expected, "{action:?}");
    }
}

#[test]
fn a_change_is_read_by_its_number_and_else_by_its_words() {
    let check = |text: &str, expected: Option<(Option<u32>, Option<u32>)>| {
        let change = RecoveryChange::parse(text);
        let numbers = |change: RecoveryChange| {
            (change.from.map(RecoveryAction::number), change.to.map(RecoveryAction::number))
        };
        assert_eq!(change.map(numbers), expected, "{text}");
    };
    let start = "GPU recovery action changed from";
    check(&format!("{start} 0x0 (None) to 0x1 (GPU Reset Required)"), Some((Some(0), Some(1))));
    check(&format!("{start} 0x0 (None) to 0x2 (OS Reboot)"), Some((Some(0), Some(2))));
    check(&format!("{start} 0x4 (Drain and Reset) to 0x0 (None)."), Some((Some(4), Some(0))));
    check(&format!("{start} 0x0 (None) to 0x1 (words nobody knows)"), Some((Some(0), Some(1))));
    check(&format!("{start} 0x0 (None) to 0x9 (None)"), Some((Some(0), None)));
    check(&format!("{start} None to Node Reboot Required"), Some((Some(0), Some(2))));
    check(&format!("{start} (None) to (Drain P2P)"), Some((Some(0), Some(3))));
    check(&format!("{start} 0x0 (None)"), None);
    check("GPU has fallen off the bus.", None);
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in ".*", from in ".*", to in ".*") {
        RecoveryAction::from_words(&text);
        let change = format!("recovery action changed from {from} to {to}");
        prop_assert!(RecoveryChange::parse(&change).is_some());
        RecoveryChange::parse(&text);
    }
}
