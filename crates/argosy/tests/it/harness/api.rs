//! JSON over the real HTTP, and the words to check it with.

use super::{PATIENCE, await_until, text};
use argosy_api::client::{Client, Collection};
use argosy_api::resource::WatchKind;
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// A server and who we are to it.
#[derive(Clone)]
pub(crate) struct Api {
    http: reqwest::Client,
    address: String,
    token: Option<String>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    /// The body, which must be JSON.
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.text);
        parsed.unwrap_or_else(|error| panic!("{} {error}: {}", self.status, self.text))
    }

    /// The body, if the status is the expected one.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    #[track_caller]
    pub(crate) fn expect_status(&self, status: u16) {
        assert_eq!(self.status, status, "{}", self.text);
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_else(|| panic!("no header {name} in {:?}", self.headers))
    }

    /// A refusal: its status, an RFC 9457 body, and that the body has these members.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, members: &Value) -> Value {
        let body = self.expect(status);
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(body["status"], json!(status), "{body:#}");
        for member in ["type", "title", "detail", "code", "timestamp", "instance"] {
            assert!(body[member].is_string(), "no {member} in {body:#}");
        }
        subset(&body, members);
        body
    }
}

/// Every member of `expected` is in `actual`, with that value; lists have the same length.
#[track_caller]
pub(crate) fn subset(actual: &Value, expected: &Value) {
    if let Some(difference) = difference("", actual, expected) {
        panic!("{difference}\nin {actual:#}");
    }
}

/// Where `actual` lacks something of `expected`; `None` if nowhere.
pub(crate) fn difference(at: &str, actual: &Value, expected: &Value) -> Option<String> {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            expected.iter().find_map(|(name, expected)| match actual.get(name) {
                Some(actual) => difference(&format!("{at}.{name}"), actual, expected),
                None => Some(format!("{at}.{name} is absent, not {expected}")),
            })
        }
        (Value::Array(actual), Value::Array(expected)) if actual.len() == expected.len() => {
            let mut pairs = actual.iter().zip(expected).enumerate();
            pairs.find_map(|(place, (actual, expected))| {
                difference(&format!("{at}[{place}]"), actual, expected)
            })
        }
        (actual, expected) if actual == expected => None,
        (actual, expected) => Some(format!("{at} is {actual}, not {expected}")),
    }
}

impl Api {
    pub(crate) fn new(address: &str, token: Option<String>) -> Self {
        // No roots: reading the system's costs a test more than all of its requests.
        let http = reqwest::Client::builder().timeout(PATIENCE).tls_certs_only([]).build();
        let http = http.expect("a client");
        Self { http, address: address.to_owned(), token }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The same server, as somebody else.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The same server, without credentials.
    pub(crate) fn without_token(&self) -> Self {
        Self { token: None, ..self.clone() }
    }

    /// The product's own client.
    pub(crate) fn client(&self) -> Client {
        let base = format!("http://{}", self.address);
        Client::new(&base, self.token.clone()).expect("a client")
    }

    /// A request to be completed. A path without a slash in front is one of the API.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/api/hyperfleet/v1/{path}"),
        };
        let request = self.http.request(method, format!("http://{}{path}", self.address));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request; that there is an answer is part of every test.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Reply {
        let answer = request.send().await.expect("an answer");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Reply { status, headers, text: answer.text().await.expect("a whole answer") }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send(self.request(Method::PUT, path).json(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Reply {
        self.send(self.request(Method::PATCH, path).json(body)).await
    }

    /// A body of any bytes, said to be JSON.
    pub(crate) async fn post_bytes(&self, path: &str, body: impl Into<reqwest::Body>) -> Reply {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        self.send(request.body(body)).await
    }

    /// Creates a cluster or a node pool under `path`, as JSON.
    #[track_caller]
    pub(crate) fn create(&self, path: &str, body: &Value) -> impl Future<Output = Value> {
        let reply = self.send(self.request(Method::POST, path).json(body));
        async move { reply.await.expect(201) }
    }

    /// The resource at `path` once it is in that phase, by its watch.
    pub(crate) async fn in_phase(&self, path: &str, phase: &str) -> Value {
        self.once(path, |resource| resource["status"]["phase"] == phase).await
    }

    /// The resource at `path` once something holds for it, by its watch.
    pub(crate) async fn once(&self, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let parts: Vec<&str> = path.split('/').collect();
        let (of, id) = match parts.as_slice() {
            ["clusters", id] => (Collection::Clusters, *id),
            ["clusters", cluster, "nodepools", id] => (Collection::NodePools(cluster), *id),
            ["nodepools", id] => (Collection::AllNodePools, *id),
            other => panic!("not the path of a resource: {other:?}"),
        };
        let mut watch = self.client().watch(of, Some(id), &[], None);
        let mut last = Value::Null;
        let watching = async {
            loop {
                let event = watch.next().await.unwrap_or_else(|error| panic!("{path}: {error}"));
                assert_ne!(event.kind, WatchKind::Deleted, "{path} is gone; it last was {last:#}");
                if let Some(object) = event.object {
                    last = object;
                    if holds(&last) {
                        return;
                    }
                }
            }
        };
        if tokio::time::timeout(PATIENCE, watching).await.is_err() {
            let statuses = self.get(&format!("{path}/statuses")).await.text;
            panic!("it did not happen to {path}: {last:#}\n{statuses}");
        }
        last
    }

    /// `Ready`.
    pub(crate) async fn ready(&self, path: &str) -> Value {
        self.in_phase(path, "Ready").await
    }

    /// The answer of `path` once it is 404.
    pub(crate) async fn gone(&self, path: &str) -> Reply {
        await_until(&format!("{path} is gone"), async || {
            let reply = self.get(path).await;
            (reply.status == 404).then_some(reply)
        })
        .await
    }

    /// The statuses of the resource at `path` once they have all that `expected` has.
    pub(crate) async fn statuses_with(&self, path: &str, expected: Value) -> Value {
        self.statuses_once(path, |statuses| difference("", statuses, &expected)).await
    }

    /// The statuses of the resource at `path` once `lacks` finds nothing to complain about.
    pub(crate) async fn statuses_once(
        &self,
        path: &str,
        lacks: impl Fn(&Value) -> Option<String>,
    ) -> Value {
        let mut last = (Value::Null, String::new());
        let found = await_until_or(async || {
            let statuses = self.get(&format!("{path}/statuses")).await.expect(200);
            match lacks(&statuses) {
                None => Some(statuses),
                Some(difference) => {
                    last = (statuses, difference);
                    None
                }
            }
        });
        match found.await {
            Some(found) => found,
            None => panic!("{}\nin {:#}", last.1, last.0),
        }
    }

    /// The conditions of one adapter by type, from its latest report; `None` before the first.
    pub(crate) async fn conditions(&self, path: &str, adapter: &str) -> Option<Value> {
        let statuses = self.get(&format!("{path}/statuses")).await.expect(200);
        conditions(&statuses, adapter)
    }

    /// The conditions of one adapter by type, once they have all that `expected` has.
    pub(crate) async fn conditions_with(
        &self,
        path: &str,
        adapter: &str,
        expected: Value,
    ) -> Value {
        let statuses = self.statuses_once(path, |statuses| {
            let found = conditions(statuses, adapter).unwrap_or_default();
            difference(adapter, &found, &expected)
        });
        let statuses = statuses.await;
        conditions(&statuses, adapter).expect("it was there")
    }

    /// How many resources there are, and the revision of the list.
    pub(crate) async fn count(&self, path: &str) -> (u64, u64) {
        let list = self.get(path).await.expect(200);
        (list["total"].as_u64().expect("total"), list["revision"].as_u64().expect("revision"))
    }
}

/// The conditions of one adapter in an answer of `statuses`, by type.
pub(crate) fn conditions(statuses: &Value, adapter: &str) -> Option<Value> {
    let items = statuses["items"].as_array().expect("items");
    let item = items.iter().find(|item| item["adapter"] == adapter)?;
    let conditions = item["conditions"].as_array().expect("conditions");
    let by_type = conditions.iter().map(|one| (text(one, "/type").to_owned(), one.clone()));
    Some(Value::Object(by_type.collect()))
}

async fn await_until_or<T>(mut condition: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let asking = await_until("the statuses are as expected", async || condition().await);
    tokio::time::timeout(PATIENCE / 2, asking).await.ok()
}
