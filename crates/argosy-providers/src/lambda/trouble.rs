//! What Lambda's errors mean.

use crate::rest::{Effect, Rest, Said, plain};
use argosy_core::machine::Trouble;
use serde_json::Value;

/// What a refused call means.
pub(super) fn said(rest: &Rest, said: &Said, effect: Effect) -> Trouble {
    let error = said.body.get("error").unwrap_or(&Value::Null);
    let text = |member: &str| error.get(member).and_then(Value::as_str).unwrap_or_default();
    let code = text("code");
    let message = match (text("message"), text("suggestion")) {
        (message, "") => plain(message),
        (message, suggestion) => plain(&format!("{message} {suggestion}")),
    };
    let fields = said.body.get("field_errors").and_then(Value::as_object);
    let field = fields.and_then(|fields| fields.keys().next());
    match code {
        "global/invalid-api-key" | "global/account-inactive" | "global/account-deactivated" => {
            Trouble::Credentials(message)
        }
        "global/quota-exceeded" => {
            // Lambda does not say of what, nor how much is left.
            let resource = "instances".to_owned();
            Trouble::Quota { resource, each: 1, available: 0, message }
        }
        code if code.ends_with("/insufficient-capacity") => {
            Trouble::Capacity { code: plain(code), message }
        }
        "global/object-does-not-exist" => Trouble::NotFound(message),
        "global/invalid-address" | "global/payment-method-required" => {
            Trouble::Denied { permission: String::new(), message }
        }
        // It refuses by the file system, the SSH key or another member: never by chance.
        code if code == "global/invalid-parameters" || code.contains("launch/file-system") => {
            let field = field.map(|field| member(field)).unwrap_or_default().to_owned();
            Trouble::Invalid { field, message }
        }
        _ => rest.common(said, effect, &message),
    }
}

/// Which member of the pool's spec a member of Lambda's is.
fn member(field: &str) -> &'static str {
    match field {
        "instance_type_name" => "machineType",
        "region_name" => "region",
        "image" => "image",
        "ssh_key_names" => "sshKey",
        "file_system_names" => "fileSystems",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
