use super::{Action, Catalogue, CatalogueError, Class, FIELD_LEN_MAX, TEXT_LEN_MAX, document};
use crate::health::Severity;
use crate::kernel;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn class_and_action(code: u32) -> String {
    let row = Catalogue::builtin().xid(code).unwrap();
    format!("{} {}", row.class.as_str(), row.action.as_str())
}

#[test]
fn every_xid_and_sxid_is_there_once() {
    let catalogue = Catalogue::builtin();
    let xids: Vec<u32> = catalogue.xids().map(|row| row.code).collect();
    assert_eq!(xids, (1..=173).collect::<Vec<_>>());
    assert_eq!(catalogue.sxids().count(), 398);
    assert!(catalogue.sxids().all(|row| (10_001..=30_006).contains(&row.code)));
    // NVIDIA's 94 rows, of which eight repeat a unit under its older name.
    assert_eq!(catalogue.nvlinks().count(), 86);
    assert_eq!(catalogue.xid(174), None);
    assert_eq!(catalogue.sxid(79), None);
    assert_eq!(catalogue.version(), "2025-10.1");
}

#[test]
fn every_row_speaks_in_whole_sentences() {
    let catalogue = Catalogue::builtin();
    let nvlinks = catalogue.nvlinks().map(|(_, row)| row);
    for row in catalogue.xids().chain(catalogue.sxids()).chain(nvlinks) {
        let start = row.meaning.chars().next();
        assert!(start.is_some_and(char::is_uppercase), "{row:?}");
        assert!(row.meaning.ends_with('.') && !row.meaning.contains(". "), "{row:?}");
        let sources = ["nvidia", "nvsentinel", "gpud", "judgement"];
        assert!(sources.contains(&row.source.as_str()), "{row:?}");
    }
}

/// Codes for which other systems take machines out of service, and NVIDIA says to restart the program,
/// to ignore it, or to look elsewhere.
#[test]
fn what_programs_do_never_condemns_hardware() {
    for code in [13, 31, 32, 43, 45, 63, 68, 69, 92, 94, 100] {
        let row = Catalogue::builtin().xid(code).unwrap();
        assert!(!row.class.condemns(), "Xid {code} is {}", row.class.as_str());
        assert!(row.class.severity() < Severity::Unhealthy, "Xid {code}");
    }
    for row in Catalogue::builtin().xids().filter(|row| row.action == Action::RestartApp) {
        assert_eq!(row.class, Class::App, "Xid {}", row.code);
        assert!(!row.class.condemns());
    }
}

#[test]
fn where_others_disagree_it_is_as_nvidia_says() {
    for (codes, expected) in [
        // Others take the node out of service for these.
        (&[13, 31, 32, 68, 69, 94, 100, 60][..], "app restart-app"),
        (&[38, 43, 44, 63, 92, 121], "info none"),
        (&[45, 154], "follow follow-other"),
        // Others only warn about some of these.
        (
            &[
                46, 48, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158, 167, 169,
                171, 172,
            ],
            "gpu-reset reset-gpu",
        ),
        (&[151], "vm restart-vm"),
        (&[79, 173], "node reboot-node"),
        (&[74, 144, 145, 146, 147, 148, 149, 150], "link check-link"),
        // Named, and not used: others reboot for some of them.
        (&[61, 9, 12, 16, 18, 26, 33, 42, 47, 59, 65, 81, 123], "unknown contact-support"),
        (&[54], "facility check-facility"),
        (&[78], "config check-config"),
        (&[142, 166, 170], "support contact-support"),
        (&[163], "reduced check-facility"),
        (&[165, 168], "reduced contact-support"),
    ] {
        for code in codes {
            assert_eq!(class_and_action(*code), expected, "Xid {code}");
        }
    }
}

#[test]
fn unused_codes_stay_unknown() {
    let unused: Vec<u32> = [
        1..=7,
        9..=10,
        12..=12,
        15..=24,
        26..=30,
        33..=36,
        42..=42,
        47..=47,
        49..=53,
        55..=59,
        61..=61,
        65..=65,
        73..=73,
        81..=81,
        87..=87,
        90..=91,
        111..=118,
        122..=125,
        138..=138,
    ]
    .into_iter()
    .flatten()
    .collect();
    let unknown: Vec<u32> = Catalogue::builtin()
        .xids()
        .filter(|row| row.class == Class::Unknown)
        .map(|row| row.code)
        .collect();
    assert_eq!(unknown, unused);
}

#[test]
fn sxids_are_as_nvsentinel_says() {
    for (codes, expected) in [
        (&[10001, 10005, 11002, 11047, 12029, 20001, 28002, 30006][..], "info none"),
        (&[11001, 12030, 14016, 19004, 23017, 30004], "link check-link"),
        (&[18001, 19021, 25010, 20009, 20012, 27007], "link check-link"),
        (&[10003, 12028, 19084, 22003, 23016, 26007], "gpu-reset reset-fabric"),
        (&[14001, 20034, 24010], "gpu-reset reset-gpu"),
        (&[19036, 20038], "support field-diagnostic"),
        (&[10004, 28001, 28005], "facility check-thermals"),
        (&[11004], "config check-config"),
        (&[12004, 13008, 20011, 21010, 28006], "support contact-support"),
    ] {
        for code in codes {
            let row = Catalogue::builtin().sxid(*code).unwrap();
            let found = format!("{} {}", row.class.as_str(), row.action.as_str());
            assert_eq!(found, expected, "SXid {code}");
        }
    }
}

#[test]
fn a_class_condemns_only_what_is_hardware() {
    for (class, condemns, severity) in [
        (Class::Info, false, Severity::Healthy),
        (Class::App, false, Severity::Healthy),
        (Class::Follow, false, Severity::Healthy),
        (Class::Config, false, Severity::Degraded),
        (Class::Unknown, false, Severity::Degraded),
        (Class::Link, true, Severity::Degraded),
        (Class::Facility, true, Severity::Degraded),
        (Class::Reduced, true, Severity::Degraded),
        (Class::GpuReset, true, Severity::Unhealthy),
        (Class::Vm, true, Severity::Unhealthy),
        (Class::Node, true, Severity::Unhealthy),
        (Class::Support, true, Severity::Unhealthy),
    ] {
        assert_eq!(class.condemns(), condemns, "{class:?}");
        assert_eq!(class.severity(), severity, "{class:?}");
    }
    let never = Class::ALL.iter().filter(|class| !class.condemns());
    assert!(never.into_iter().all(|class| class.severity() < Severity::Unhealthy));
}

#[test]
fn words_are_unique_and_stored_as_they_are() {
    let classes: BTreeSet<&str> = Class::ALL.iter().map(|class| class.as_str()).collect();
    let actions: BTreeSet<&str> = Action::ALL.iter().map(|action| action.as_str()).collect();
    assert_eq!((classes.len(), actions.len()), (Class::ALL.len(), Action::ALL.len()));
    for class in Class::ALL {
        assert_eq!(Class::parse(class.as_str()), Some(*class));
        let json = serde_json::to_string(class).unwrap();
        assert_eq!(json, format!("\"{}\"", class.as_str()));
    }
    for action in Action::ALL {
        assert_eq!(Action::parse(action.as_str()), Some(*action));
    }
    assert_eq!(Class::parse("App"), None);
}

/// What the whole way from the kernel's line to the catalogue's row gives.
#[test]
fn a_line_finds_its_most_exact_row() {
    let check = |line: &str, expected: &str| {
        let fault = kernel::parse(line).unwrap();
        let row = Catalogue::builtin().row(&fault);
        let found = row.map(|row| {
            format!("{} {} {} {}", row.code, row.name, row.class.as_str(), row.action.as_str())
        });
        assert_eq!(found.unwrap_or_default(), expected, "{line}");
    };
    let nvlink = |rest: &str| format!("NVRM: Xid (PCI:0018:01:00): {rest}");
    check(
        "NVRM: Xid (PCI:0000:9b:00): 94, pid=1234, name=python3, Contained: CE User Channel",
        "94 CONTAINED_ERROR app restart-app",
    );
    check(
        "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.",
        "79 GPU_HAS_FALLEN_OFF_THE_BUS node reboot-node",
    );
    check(
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV \
         error (First)",
        "12028 NPORT_EGRESS_PRIVRSPERR gpu-reset reset-fabric",
    );
    check("SXid (PCI:0000:05:00.0): 31000, Fatal, Link 32 something new", "");
    check("NVRM: Xid (PCI:0000:9b:00): 200, something new", "");
    // The reason 37 is that of the far side.
    check(
        &nvlink("149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x0 0x0)"),
        "149 NETIR_LINK_EVT/NETIR_LINK_DOWN gpu-reset reset-gpu",
    );
    check(
        &nvlink("149, NETIR_LINK_DOWN Fatal XC0 i0 Link 00 (0x026001c6 0x00000000)"),
        "149 NETIR_LINK_EVT/NETIR_LINK_DOWN info none",
    );
    check(
        &nvlink("149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00086226 0x00000001 0x0 0x0)"),
        "149 NETIR_BER_EVENT info check-link",
    );
    check(
        &nvlink("149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 0x0 0x0 0x0 0x0)"),
        "149 NETIR/NETIR_INT gpu-reset reset-gpu",
    );
    check(
        &nvlink("145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x1 0x0 0x0 0x4)"),
        "145 RLW_RXPIPE info none",
    );
    check(
        &nvlink("145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001 0x0 0x0)"),
        "145 RLW_REMAP follow follow-other",
    );
    check(
        &nvlink("145, RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040 0x0 0x0)"),
        "145 RLW_REMAP gpu-reset reset-gpu",
    );
    check(
        &nvlink("146, TLW_RX_PIPE1 Fatal XC0 i0 Link 05 (0x0000000b 0x00000004 0x0 0x0)"),
        "146 TLW_RX/TLW_RX_PIPE0/TLW_RX_PIPE1 gpu-reset reset-gpu",
    );
    check(
        &nvlink("150, MSE_WATCHDOG Fatal XC0 i0 Link -1 (0x00000000 0x00000000)"),
        "150 MSE_WATCHDOG gpu-reset reset-gpu",
    );
    // No row has this status, this unit, or this reason: the Xid's own row holds.
    let own = "145 NVLINK_RLW_ERROR link check-link";
    check(&nvlink("145, RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000003)"), own);
    check(&nvlink("145, RLW_NEW Fatal XC0 i0 Link 00 (0x00000004 0x00000001)"), own);
    check(&nvlink("145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00100004 0x00000001)"), own);
    check(&nvlink("145, RLW_REMAP Nonfatal XC0 i0 Link 00"), own);
}

const SMALL: &str = "version,1\nkind,code,name,class,action,source,meaning\n";

#[test]
fn a_catalogue_is_read_whatever_wrote_it() {
    let check = |text: &str| {
        let catalogue = Catalogue::parse(text).unwrap();
        let row = catalogue.xid(7).unwrap();
        assert_eq!(catalogue.version(), "1", "{text}");
        assert_eq!((row.name.as_str(), row.class, row.action), ("A_B", Class::App, Action::None));
        row.meaning.clone()
    };
    assert_eq!(check(&format!("{SMALL}xid,7,A_B,app,none,me,It broke.\n")), "It broke.");
    assert_eq!(check(&format!("{SMALL}xid,7,A_B,app,none,me,")), "");
    let quoted =
        format!("# mine\n\n{SMALL}\n# rows\nxid,7,A_B,app,none,me,\"It \"\"broke\"\", then.\"");
    assert_eq!(check(&quoted), "It \"broke\", then.");
    let spreadsheet = "\u{feff}version,1,,,,,\r\n\"kind\",code,name,class,action,source,meaning\r\n\
                       \"xid\",7,A_B,app,none,me,\"It broke.\"\r\n";
    assert_eq!(check(spreadsheet), "It broke.");
}

#[test]
fn a_mistake_is_refused_with_its_line() {
    let check = |text: &str, line: usize, part: &str| {
        let CatalogueError { line: found, message } = Catalogue::parse(text).unwrap_err();
        assert_eq!(found, line, "{text}: {message}");
        assert!(message.contains(part), "{message} does not say {part}");
    };
    check("", 1, "must name the version");
    check("kind,code", 1, "must name the version");
    check("version", 1, "the version may hold");
    check("version,1,x", 1, "the version may hold");
    check("version,a b", 1, "the version may hold");
    check("version,1", 1, "must name the columns");
    check("version,1\n\nkind,code,name", 3, "kind,code,name,class,action,source,meaning");
    check(SMALL, 2, "is the file cut off?");
    let row = |row: &str| format!("{SMALL}xid,1,A,app,none,me,x\n{row}");
    check(&row("xid,2,A,app,none,me"), 4, "there are 6 fields; 7 are needed");
    check(&row("xid,2,A,app,none,me,It broke, then."), 4, "between double quotes");
    check(&row("xid,2,A,app,none,me,\"It broke"), 4, "a quote is not closed");
    check(&row("xid,2,A,app,none,me,\"It\" broke"), 4, "there must be a comma");
    check(&row("xid,2,A,ap,none,me,x"), 4, "no class `ap`. Did you mean `app`?");
    check(&row("xid,2,A,app,reset,me,x"), 4, "Known are: none, restart-app");
    check(&row("yid,2,A,app,none,me,x"), 4, "Did you mean `xid`?");
    check(&row("xid,0,A,app,none,me,x"), 4, "must be a whole number");
    check(&row("xid,-1,A,app,none,me,x"), 4, "must be a whole number");
    check(&row("xid,4294967296,A,app,none,me,x"), 4, "must be a whole number");
    check(&row("xid,2,a,app,none,me,x"), 4, "upper-case letters");
    check(&row("xid,2,,app,none,me,x"), 4, "upper-case letters");
    check(&row("xid,2,A,app,none,,x"), 4, "where the line comes from");
    check(&row("xid,1,A,app,none,me,x"), 4, "xid 1 is there twice");
    check(&row("sxid,2,A,app,none,me,x\nsxid,2,A,app,none,me,x"), 5, "sxid 2 is there twice");
    let nvlink = "nvlink,149.1/0x0,A/B,link,none,me,x";
    check(&row(&format!("{nvlink}\n{}", nvlink.replace("A/B", "C/B"))), 5, "of B is there twice");
    check(&row(&nvlink.replace("149.1/0x0", "149")), 4, "149.37/0x00000000");
    check(&row(&nvlink.replace("149.1", "149.64")), 4, "up to 63");
    check(&row(&format!("xid,2,A,app,none,me,{}", "x".repeat(FIELD_LEN_MAX + 1))), 4, "bytes long");
    check(&row("xid,2,A,app,none,me,a\u{1b}[2Jb"), 4, "control characters");
    check(&row(&"x".repeat(TEXT_LEN_MAX)), 1, "bytes long");
    assert_eq!(
        Catalogue::parse(&row("xid,2,A,ap,none,me,x")).unwrap_err().to_string().get(..8),
        Some("line 4: ")
    );
}

proptest! {
    #[test]
    fn no_catalogue_is_too_odd(text in ".*", rows in "([a-z0-9,\"./#\\n]|xid|nvlink){0,60}") {
        let _ = Catalogue::parse(&text);
        let _ = Catalogue::parse(&format!("{SMALL}{rows}"));
    }

    #[test]
    fn every_meaning_comes_back(meaning in "[^\\p{C}]{0,80}") {
        let quoted = meaning.replace('"', "\"\"");
        let text = format!("{SMALL}xid,7,A,app,none,me,\"{quoted}\"");
        let catalogue = Catalogue::parse(&text).unwrap();
        prop_assert_eq!(&catalogue.xid(7).unwrap().meaning, &meaning);
    }
}

#[test]
fn the_generated_table_of_codes_is_current() {
    golden("docs/xid.md", &document(Catalogue::builtin()));
}

/// Compares a committed file with what the code prints; `UPDATE=1` rewrites it.
fn golden(path: &str, printed: &str) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, printed).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == printed, "{path} is out of date: run the tests once with UPDATE=1");
}
