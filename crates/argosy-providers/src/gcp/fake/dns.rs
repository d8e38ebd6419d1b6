//! Cloud DNS: managed zones and their records.

use super::{Asked, Inner, error};
use crate::standin::Reply;
use http::{Method, StatusCode};
use serde_json::{Value, json};

impl Inner {
    pub(super) fn serve_dns(&mut self, asked: &Asked) -> Reply {
        let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["managedZones"] if asked.method == Method::GET => {
                let wanted = asked.query("dnsName");
                let zones: Vec<Value> = self
                    .dns_zones
                    .iter()
                    .filter(|(_, domain)| wanted.is_empty() || *domain == wanted)
                    .map(|(name, domain)| {
                        json!({ "name": name, "dnsName": domain, "visibility": "public" })
                    })
                    .collect();
                Reply::Json(StatusCode::OK, json!({ "managedZones": zones }))
            }
            ["managedZones", zone, ..] if !self.dns_zones.contains_key(*zone) => {
                let message =
                    format!("The 'parameters.managedZone' resource named '{zone}' does not exist.");
                error(StatusCode::NOT_FOUND, "notFound", &message)
            }
            ["managedZones", zone, "rrsets"] if asked.method == Method::GET => {
                let name = asked.query("name");
                let records = self.records.iter();
                let found: Vec<&Value> = records
                    .filter(|((it, named, _), _)| it == zone && (name.is_empty() || named == name))
                    .map(|(_, record)| record)
                    .collect();
                Reply::Json(StatusCode::OK, json!({ "rrsets": found }))
            }
            ["managedZones", zone, "rrsets"] if asked.method == Method::POST => {
                let text =
                    |member: &str| asked.body.get(member).and_then(Value::as_str).unwrap_or("");
                let key = ((*zone).to_owned(), text("name").to_owned(), text("type").to_owned());
                if self.records.contains_key(&key) {
                    let message = format!(
                        "The resource 'entity.rrset' named '{} ({})' already exists",
                        key.1, key.2
                    );
                    return error(StatusCode::CONFLICT, "alreadyExists", &message);
                }
                self.records.insert(key, asked.body.clone());
                Reply::Json(StatusCode::OK, asked.body.clone())
            }
            ["managedZones", zone, "rrsets", name, kind] => {
                let key = ((*zone).to_owned(), (*name).to_owned(), (*kind).to_owned());
                if !self.records.contains_key(&key) {
                    let message = format!(
                        "The 'parameters.name' resource named '{name}' ({kind}) does not exist."
                    );
                    return error(StatusCode::NOT_FOUND, "notFound", &message);
                }
                if asked.method == Method::DELETE {
                    self.records.remove(&key);
                    return Reply::Json(StatusCode::OK, json!({}));
                }
                self.records.insert(key, asked.body.clone());
                Reply::Json(StatusCode::OK, asked.body.clone())
            }
            _ => error(StatusCode::NOT_FOUND, "notFound", "Not Found"),
        }
    }
}
