use super::*;

#[test]
fn keys_stored_before_there_were_commands_are_still_read() {
    let id = "01990000-0000-7000-8000-000000000001";
    for (member, made) in [
        ("resource", Made::Resource(ResourceId::parse(id).unwrap())),
        ("command", Made::Command(CommandId::parse(id).unwrap())),
    ] {
        let stored = format!(
            r#"{{"version":1,"value":{{"id":"4/3/acme/ann/k","digest":"d","{member}":"{id}","expires":"2026-01-01T00:00:00Z"}}}}"#
        );
        let key = Key::new(IdempotencyKey::KIND, "4/3/acme/ann/k");
        let Ok(Decoded::IdempotencyKey(found)) = decode(&key, &stored) else { panic!("{stored}") };
        assert_eq!(found.made, made);
        assert_eq!(&*write(&*found), stored, "and written as ever");
    }
}
