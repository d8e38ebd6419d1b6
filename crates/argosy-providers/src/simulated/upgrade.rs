//! Files of format 1: there, machines were items of a node pool, without a token, a tag or an agent.
//!
//! Nobody has a record of those, so they are left out, as a cloud leaves out what nobody paid for; their
//! pools buy new ones.

use serde_json::{Value, json};

/// The first line: the whole world.
pub(super) fn whole(text: &[u8]) -> serde_json::Result<Value> {
    let mut world: Value = serde_json::from_slice(text)?;
    if let Some(inventory) = world.get_mut("inventory").and_then(Value::as_object_mut) {
        inventory.values_mut().for_each(drop_machines);
        inventory.retain(|_, items| items.as_array().is_none_or(|items| !items.is_empty()));
    }
    if let Some(members) = world.as_object_mut() {
        members.insert("version".to_owned(), json!(super::World::VERSION));
        members.insert("machines".to_owned(), json!([]));
    }
    Ok(world)
}

/// A line that was added.
pub(super) fn line(text: &[u8]) -> serde_json::Result<Vec<u8>> {
    let mut line: Value = serde_json::from_slice(text)?;
    line.get_mut("items").into_iter().for_each(drop_machines);
    serde_json::to_vec(&line)
}

fn drop_machines(items: &mut Value) {
    if let Some(items) = items.as_array_mut() {
        items.retain(|item| item.get("kind").is_none_or(|kind| kind != "machine"));
    }
}
