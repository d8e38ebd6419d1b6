use super::*;

fn claim(number: u128) -> Claim {
    Claim {
        version: 1,
        instance: InstanceId::parse(&format!("workers-{number}")).unwrap(),
        token: Uuid::from_u128(number),
        tags: Tags { token: Some(Uuid::from_u128(number)), ..Tags::default() },
        pool: "workers".to_owned(),
        machine_type: "h100".to_owned(),
        server: "https://argosy.example".to_owned(),
        since: Timestamp::UNIX_EPOCH,
    }
}

/// The survey of some lines, as one line of text.
fn check(lines: &str, expected: &str) {
    let text = format!("argosy-survey 1\n{lines}end\n");
    let survey = Survey::parse(&text).unwrap();
    let tenancy = match &survey.tenancy {
        Tenancy::Free => "free".to_owned(),
        Tenancy::Claimed(claim) => claim.instance.to_string(),
        Tenancy::Unreadable => "unreadable".to_owned(),
        Tenancy::Foreign => "foreign".to_owned(),
    };
    let machines = survey.machines();
    let shown = machines.iter().map(|(claim, state)| format!(" {}:{state:?}", claim.instance));
    assert_eq!(format!("{tenancy}{}", shown.collect::<String>()), expected, "{lines}");
}

#[test]
fn a_survey_says_whose_a_host_is_and_what_its_agent_does() {
    let json = |number| serde_json::to_string(&claim(number)).unwrap();
    check("active inactive\n", "free");
    check(&format!("claim {}\nactive active\n", json(1)), "workers-1 workers-1:Running");
    check(&format!("claim {}\nactive failed\n", json(1)), "workers-1 workers-1:Stopped");
    check(
        &format!("claim {}\ninstalling\nactive unknown\n", json(1)),
        "workers-1 workers-1:Starting",
    );
    check(
        &format!("claim {}\nunit\nactive deactivating\n", json(1)),
        "workers-1 workers-1:Stopping",
    );
    check("claim \nactive active\n", "unreadable");
    check("claim {\"version\":9}\n", "unreadable");
    check("unit\nactive active\n", "foreign");
    check(&format!("released 60 {}\n", json(2)), "free workers-2:Gone");
    check(&format!("released 7200 {}\n", json(2)), "free");
    check("released x y\nsomething new\n", "free");
}

#[test]
fn a_survey_that_breaks_off_is_none() {
    for text in [
        "",
        "argosy-survey 1\n",
        "argosy-survey 1\nclaim {",
        "sh: not found\nend\n",
        "motd\nargosy-survey 1\nend\n",
    ] {
        assert_eq!(Survey::parse(text), None, "{text}");
    }
}

#[test]
fn a_machine_is_named_for_its_host_and_its_instance() {
    let id = machine_id("rack7/gpu-1", &claim(1).instance);
    assert_eq!(parts(&id), Some(("rack7/gpu-1", claim(1).instance)));
    assert_eq!(parts(&MachineId::new("gpu-1")), None);
    assert_eq!(parts(&MachineId::new("gpu-1/No Id")), None);
}
