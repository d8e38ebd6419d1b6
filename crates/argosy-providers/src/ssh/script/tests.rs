use super::*;
use crate::boot::AgentToken;
use argosy_core::machine::{Order, Tags};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::process::Command;
use uuid::Uuid;

#[test]
fn every_script_can_be_read_by_a_shell_whatever_is_in_it() {
    let hostile = "a'b\"c`d`$(e)\n\\ }; EOF";
    let layout = Layout::below("some root's");
    let purchase = Purchase {
        instance: InstanceId::parse("workers-1").unwrap(),
        token: Uuid::nil(),
        tags: Tags::default(),
        order: Order {
            provider: hostile.to_owned(),
            region: hostile.to_owned(),
            zone: hostile.to_owned(),
            machine_type: hostile.to_owned(),
            spot: false,
            image: String::new(),
            price_per_hour: None,
        },
        number: 1,
        pool: hostile.to_owned(),
        tenant: hostile.to_owned(),
        labels: BTreeMap::from([(hostile.to_owned(), hostile.to_owned())]),
    };
    let sha256 = Sha256::of(b"");
    let boot = Boot {
        server: "https://argosy.example".to_owned(),
        agent: AgentSource::Url { url: format!("https://a/{hostile}"), sha256: sha256.clone() },
        token: Some(AgentToken::new("it's").unwrap()),
        ca_pem: Some(hostile.to_owned()),
        extra_args: vec![hostile.to_owned()],
        setup_commands: vec!["echo {{.Pool}}".to_owned()],
    };
    let filed = Boot { agent: AgentSource::File("x".into()), ..boot.clone() };
    let wanted = Claim::new(&purchase, hostile, Timestamp::UNIX_EPOCH);
    for script in [
        survey(&layout),
        has_agent(&layout, &sha256),
        stage(&layout, &sha256),
        claim(&boot, None, &purchase, &wanted, &layout),
        claim(&filed, Some(&sha256), &purchase, &wanted, &layout),
        call_off(&wanted, &layout),
        release(&purchase.instance, &layout),
        reboot(&purchase.instance, &layout),
        console(&purchase.instance, &layout),
    ] {
        let whole = format!("{{\n{script}\n}}\n");
        let read = Command::new("/bin/sh").args(["-n", "-c", &whole]).output().unwrap();
        let complaint = String::from_utf8_lossy(&read.stderr).into_owned();
        assert!(read.status.success() && complaint.is_empty(), "{complaint}\n{script}");
    }
}
