//! Networks, subnetworks and firewalls.

use super::{Asked, Inner, PROJECT, Then, error, link};
use crate::standin::Reply;
use http::{Method, StatusCode};
use serde_json::{Value, json};

impl Inner {
    pub(super) fn serve_network(&mut self, asked: &Asked) -> Reply {
        let path = asked.path.join("/");
        let scope = match asked.path.first().map(String::as_str) {
            Some("regions") => asked.path.iter().take(2).cloned().collect::<Vec<_>>().join("/"),
            Some(_) | None => "global".to_owned(),
        };
        if asked.method == Method::POST {
            return self.insert_thing(&path, &scope, &asked.body);
        }
        let Some(thing) = self.things.get(&path) else {
            let message = format!("The resource 'projects/{PROJECT}/{path}' was not found");
            return error(StatusCode::NOT_FOUND, "notFound", &message);
        };
        if asked.method == Method::GET {
            let mut shown = thing.clone();
            if let Some(members) = shown.as_object_mut() {
                let inside = self.inside(&path).into_iter();
                let subnetworks: Vec<String> =
                    inside.filter(|it| it.contains("/subnetworks/")).map(|it| link(&it)).collect();
                members.insert("subnetworks".to_owned(), json!(subnetworks));
            }
            return Reply::Json(StatusCode::OK, shown);
        }
        if let Some(user) = self.inside(&path).first() {
            let message = format!(
                "The network resource 'projects/{PROJECT}/{path}' is already being used by \
                 'projects/{PROJECT}/{user}'"
            );
            return error(StatusCode::BAD_REQUEST, "resourceInUseByAnotherResource", &message);
        }
        self.begin(&scope, "delete", &path, None, Then::Forget(path.clone())).1
    }

    fn insert_thing(&mut self, path: &str, scope: &str, body: &Value) -> Reply {
        let name = body.get("name").and_then(Value::as_str).unwrap_or_default();
        let path = format!("{path}/{name}");
        if self.things.contains_key(&path) {
            let message = format!("The resource 'projects/{PROJECT}/{path}' already exists");
            return error(StatusCode::CONFLICT, "alreadyExists", &message);
        }
        let network = body.get("network").and_then(Value::as_str);
        let network = network.and_then(|it| it.strip_prefix(&format!("projects/{PROJECT}/")));
        if let Some(missing) = network.filter(|it| !self.things.contains_key(*it)) {
            let message = format!("The resource 'projects/{PROJECT}/{missing}' was not found");
            return error(StatusCode::NOT_FOUND, "notFound", &message);
        }
        self.things.insert(path.clone(), body.clone());
        self.begin(scope, "insert", &path, None, Then::Nothing).1
    }

    /// What is in a network.
    fn inside(&self, network: &str) -> Vec<String> {
        let of = |thing: &Value| {
            let named = thing.get("network").and_then(Value::as_str);
            named.is_some_and(|it| it.ends_with(network))
        };
        self.things.iter().filter(|(_, thing)| of(thing)).map(|(path, _)| path.clone()).collect()
    }
}
