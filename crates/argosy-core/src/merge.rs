//! JSON Merge Patch, RFC 7396.

use serde_json::{Map, Value, map::Entry};

/// Applies `patch` to `target`: `null` removes, objects merge, anything else replaces.
///
/// Calls itself once a level of `patch`. The door refuses bodies nested deeper than 64, so the
/// stack is safe with anything that came through it.
pub fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, wanted) in patch {
        match wanted {
            Value::Null => _ = target.remove(key),
            Value::Object(members) => match target.entry(key.clone()) {
                Entry::Occupied(mut entry) => {
                    if let Value::Object(existing) = entry.get_mut() {
                        merge(existing, members);
                    } else {
                        entry.insert(made_by(members));
                    }
                }
                Entry::Vacant(entry) => _ = entry.insert(made_by(members)),
            },
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                target.insert(key.clone(), wanted.clone());
            }
        }
    }
}

/// What a patch makes where no object was: itself without its nulls.
fn made_by(patch: &Map<String, Value>) -> Value {
    let mut made = Map::new();
    merge(&mut made, patch);
    Value::Object(made)
}

#[cfg(test)]
mod tests;
