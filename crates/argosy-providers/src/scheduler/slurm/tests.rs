use super::*;
use argosy_core::label::Labels;
use serde_json::json;

fn machine(hostname: &str, label: &str) -> Machine {
    let labels = json!({ "slurm": label });
    let labels = Labels::parse(labels.as_object().unwrap()).unwrap();
    Machine { id: "id-7".to_owned(), hostname: hostname.to_owned(), labels, known_as: None }
}

#[test]
fn a_machine_has_one_name_in_slurm() {
    let check = |label: Option<&str>, machine: Machine, expected: Result<&str, &str>| {
        let settings =
            SlurmSettings { name_label: label.map(ToOwned::to_owned), ..SlurmSettings::default() };
        let found = SlurmScheduler::new(settings).unwrap().node(&machine);
        let found = found.map_err(|error| match error {
            SchedulerError::Later(message) => format!("later: {message}"),
            SchedulerError::Refused(message) => format!("refused: {message}"),
            SchedulerError::UnknownNode(message) => format!("unknown: {message}"),
        });
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{machine:?}");
    };
    check(None, machine("gpu-7", ""), Ok("gpu-7"));
    check(None, machine("gpu-7.cluster.local", "x"), Ok("gpu-7"));
    check(Some("slurm"), machine("gpu-7", "rack1.n_7"), Ok("rack1.n_7"));
    check(None, machine("", ""), Err("unknown: node `id-7` has not said its hostname"));
    check(
        Some("slurm"),
        machine("gpu-7", ""),
        Err("unknown: node `id-7` has no label `slurm` with its name in Slurm"),
    );
    check(
        Some("other"),
        machine("gpu-7", "n7"),
        Err("unknown: node `id-7` has no label `other` with its name in Slurm"),
    );
    for many in [
        "ALL",
        "all",
        "n[1-99]",
        "n1,n2",
        "-o",
        "--help",
        "n1 n2",
        "n1\nState=DOWN",
        "ü",
        "DEFAULT",
    ] {
        let message =
            format!("refused: `{}` cannot be the name of one node in Slurm", one_line(many, 99));
        check(None, machine(many, ""), Err(&message));
    }
    let long = "x".repeat(254);
    let message =
        format!("refused: `{}` cannot be the name of one node in Slurm", one_line(&long, NAME_MAX));
    check(None, machine(&long, ""), Err(&message));
}

#[test]
fn a_reason_is_cleaned_of_what_slurm_would_misread() {
    for (reason, expected) in [
        ("xid 79 on GPU 3", "xid 79 on GPU 3"),
        ("a \"quoted\" word", "a quoted word"),
        ("it's `here` \\ there", "it s here there"),
        ("two\nlines\tand\u{0}nul", "two lines and nul"),
        ("", "no reason was given"),
        (" \n\"", "no reason was given"),
    ] {
        assert_eq!(cleaned(reason), expected);
    }
    assert_eq!(cleaned(&"x".repeat(100_000)).len(), REASON_MAX);
}

#[test]
fn what_slurm_complains_of_is_what_can_be_done() {
    let explain = |stderr: &str| {
        let said = Said { well: false, stdout: String::new(), stderr: stderr.to_owned() };
        match said.or_explain("n1").unwrap_err() {
            SchedulerError::Later(_) => "later",
            SchedulerError::Refused(_) => "refused",
            SchedulerError::UnknownNode(_) => "unknown",
        }
    };
    for (stderr, expected) in [
        ("slurm_update error: Invalid node name specified\n", "unknown"),
        ("Node n1 not found\n", "unknown"),
        ("Node n11 not found\n", "later"),
        ("slurm_update error: Invalid user id\n", "refused"),
        ("slurm_update error: Access/permission denied\n", "refused"),
        ("slurm_update error: Invalid node state specified\n", "refused"),
        ("slurm_load_node error: Unable to contact slurm controller (connect failure)\n", "later"),
        ("slurm_load_node error: Protocol authentication error\n", "later"),
        ("scontrol: fatal: Unable to process configuration file\n", "later"),
        ("", "later"),
    ] {
        assert_eq!(explain(stderr), expected, "{stderr}");
    }
}

#[test]
fn a_path_that_depends_on_where_we_are_is_refused() {
    let settings = |path: &str| SlurmSettings { scontrol: path.into(), ..SlurmSettings::default() };
    for path in ["bin/scontrol", "./bin/scontrol", "../scontrol"] {
        let refused = SlurmScheduler::new(settings(path)).unwrap_err();
        assert_eq!(refused.key, "scontrol", "{path}");
    }
    for path in ["scontrol", "/opt/slurm/bin/scontrol"] {
        SlurmScheduler::new(settings(path)).unwrap();
    }
}
