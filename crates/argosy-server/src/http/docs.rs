//! The reference page: the OpenAPI document for people, as one page without scripts.

use super::{Answer, page};
use argosy_api::error::CODES;
use argosy_api::openapi;
use argosy_api::route::{Access, Parameter, Place, ROUTES, Route};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::sync::LazyLock;

const STYLE: &str = include_str!("docs.css");

static PAGE: LazyLock<String> = LazyLock::new(render);

/// Nothing but this one style sheet may have any effect, whatever a text on a page says.
pub(super) static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!("default-src 'none'; style-src 'sha256-{}'", STANDARD.encode(Sha256::digest(STYLE)))
});

pub(super) fn page() -> Answer {
    page::html(&PAGE, &POLICY)
}

/// A page of ours with this title and body.
pub(super) fn frame(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style></head>\
         {body}</html>\n"
    )
}

fn render() -> String {
    let document = openapi::document();
    let (mut nav, mut main) = (String::new(), String::new());
    let mut tag = "";
    // What people come for first; what the service says of itself last.
    let (service, api): (Vec<_>, Vec<_>) = ROUTES.iter().partition(|route| route.tag == "Service");
    for route in api.into_iter().chain(service) {
        if route.tag != tag {
            let close = if tag.is_empty() { "" } else { "</ul>" };
            tag = route.tag;
            let anchor = tag.to_ascii_lowercase().replace(' ', "-");
            let _ = write!(nav, "{close}<h2><a href=\"#{anchor}\">{tag}</a></h2><ul>");
            let _ = write!(main, "<h2 id=\"{anchor}\">{tag}</h2>");
        }
        let _ = write!(
            nav,
            "<li><a href=\"#{}\" title=\"{}\"><span class=\"method {}\">{}</span> {}</a></li>",
            route.id,
            escape(&route.summary),
            route.method.to_ascii_lowercase(),
            route.method,
            escape(&short(&route.path)),
        );
        main.push_str(&operation(route));
    }
    let body = format!(
        "<body class=\"reference\"><nav><strong><a href=\"/\">Argosy</a> API</strong>{nav}</ul>\
         <h2><a href=\"#schemas\">Schemas</a></h2><h2><a href=\"#errors\">Errors</a></h2></nav>\
         <main><h1>Argosy API</h1>{INTRODUCTION}{main}{}{}</main></body>",
        schemas(&document),
        errors(),
    );
    frame("Argosy API", &body)
}

/// A path as far as it tells the entries of one section apart.
fn short(path: &str) -> String {
    path.replace("/api/hyperfleet/v1", "")
        .replace("/api/argosy/v1", "")
        .replace("/clusters/{cluster_id}/nodepools", "…/nodepools")
        .replace("{cluster_id}", "{id}")
        .replace("{nodepool_id}", "{id}")
        .replace("{node_id}", "{id}")
        .replace("{command_id}", "{id}")
}

const INTRODUCTION: &str = "<p>Declare clusters and node pools, watch them become ready, and read \
    what every adapter says about them. See which nodes are sick and why, and take them out of service \
    and back. The same reference for programs: \
    <a href=\"/api/hyperfleet/v1/openapi\">OpenAPI 3.1</a>.</p>\
    <p>In a cluster's path its id or its name may stand; in a node pool's, its name or its \
    <code>uid</code>. Every answer has an <code>X-Request-ID</code>. A single resource has an \
    <code>ETag</code>: send it back in <code>If-Match</code>, and a change that somebody else made in \
    between is not lost. Any list and any resource can be watched with <code>?watch=true</code>.</p>\
    <pre>curl -X POST http://127.0.0.1:8080/api/hyperfleet/v1/clusters \\\n  \
    -H 'Content-Type: application/json' \\\n  \
    -d '{\"name\":\"my-cluster\",\"spec\":{\"provider\":\"gcp\",\"region\":\"us-east1\"}}'</pre>";

fn operation(route: &Route) -> String {
    let mut html = format!(
        "<article id=\"{0}\"><h3><span class=\"method {1}\">{2}</span> <a href=\"#{0}\"><code>{3}</code>\
         </a></h3><p>{4}</p>",
        route.id,
        route.method.to_ascii_lowercase(),
        route.method,
        escape(&route.path),
        escape(&route.summary),
    );
    let who = match route.access {
        Access::Public => "Anybody may ask.",
        Access::Read => "For whoever may read.",
        Access::Write => "For operators and administrators.",
        Access::Report => "For adapters and administrators.",
        Access::Force | Access::Administer => "For administrators.",
    };
    let cli = route
        .cli
        .as_ref()
        .map_or_else(String::new, |cli| format!(" Command: <code>argosy {cli}</code>."));
    let _ = write!(html, "<p class=\"note\">{who}{cli}</p>");
    if !route.parameters.is_empty() {
        html.push_str("<details><summary>Parameters</summary><table>");
        html.extend(route.parameters.iter().map(parameter));
        html.push_str("</table></details>");
    }
    if let Some(body) = route.body {
        let _ = write!(
            html,
            "<p>Body: {}, at most {} KiB.</p>",
            link(body.schema),
            body.len_max / 1024
        );
    }
    html.push_str("<table class=\"answers\">");
    for answer in &route.answers {
        let schemas: Vec<String> = answer
            .content
            .iter()
            .map(|(media, schema)| schema.map_or_else(|| (*media).to_owned(), link))
            .collect();
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            answer.status,
            prose(answer.description),
            schemas.join(", ")
        );
    }
    let errors: Vec<String> = route.errors().iter().map(u16::to_string).collect();
    if !errors.is_empty() {
        let _ = write!(
            html,
            "<tr><td>{}</td><td>It was not carried out.</td><td>{}</td></tr>",
            errors.join(", "),
            link("Problem")
        );
    }
    let _ = writeln!(html, "</table>{}</article>", example(route));
    html
}

fn parameter(parameter: &Parameter) -> String {
    let place = match parameter.place {
        Place::Path => "path",
        Place::Query => "query",
        Place::Header => "header",
    };
    format!(
        "<tr><td><code>{}</code></td><td>{place}{}</td><td>{}</td><td>{}</td></tr>",
        parameter.name,
        if parameter.required && parameter.place != Place::Path { ", required" } else { "" },
        kind(&parameter.schema),
        prose(parameter.description),
    )
}

fn example(route: &Route) -> String {
    let method =
        if route.method == "GET" { String::new() } else { format!("-X {} ", route.method) };
    let path = route
        .path
        .replace("{cluster_id}", "my-cluster")
        .replace("{nodepool_id}", "workers")
        .replace("{node_id}", "gpu-17")
        .replace("{policy}", "h100")
        .replace("{pool}", "h100")
        .replace("{scope}", "fleet");
    // What must be there is in the example.
    let query = if route.query().any(|known| known.required) { "?reason=checked" } else { "" };
    let body = match route.body.map(|body| body.schema) {
        Some("ClusterCreate") => {
            r#"{"name":"my-cluster","spec":{"provider":"gcp","region":"us-east1"},"labels":{"team":"ml"}}"#
        }
        Some("NodePoolCreate") => {
            r#"{"name":"workers","spec":{"nodeCount":5,"machineType":"n1-standard-4"}}"#
        }
        Some("ResourcePatch") => r#"{"spec":{"nodeCount":8}}"#,
        Some("ForceDelete") => r#"{"reason":"the provider account is closed"}"#,
        Some("StatusReport") => {
            r#"{"adapter":"dns","observed_generation":1,"conditions":[{"type":"Available","status":"True"},{"type":"Applied","status":"True"},{"type":"Health","status":"True"}]}"#
        }
        Some("CommandCreate") => {
            r#"{"type":"DRAIN","reason":"a fan is loud","drain_for_seconds":1800}"#
        }
        Some("CommandBatchCreate") => {
            r#"{"nodes":["gpu-17","gpu-18"],"type":"DRAIN","reason":"power work in rack r7"}"#
        }
        Some("PolicyPut") => {
            r#"{"pools":["h100"],"rules":[{"name":"hot","condition":"event.event_type == \"thermal\"","result":"degraded"}]}"#
        }
        Some("ExplainRequest") => {
            r#"{"node_id":"gpu-17","event":{"event_type":"xid","gpu_index":3,"metrics":{"xid_code":79}}}"#
        }
        Some("BacktestRequest") => {
            r#"{"policy":{"rules":[{"name":"xid","condition":"event.event_type == \"xid\"","result":"unhealthy"}]}}"#
        }
        Some("PoolResume") => r#"{"reason":"the new image has no driver","rollback":true}"#,
        Some("SafetyReason") => r#"{"reason":"the switch is being replaced"}"#,
        _ => "",
    };
    let body = if body.is_empty() {
        String::new()
    } else {
        format!(" \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'")
    };
    escape_pre(&format!("curl {method}http://127.0.0.1:8080{path}{query}{body}"))
}

fn escape_pre(text: &str) -> String {
    format!("<pre>{}</pre>", escape(text))
}

fn schemas(document: &Value) -> String {
    let mut html = String::from("<h2 id=\"schemas\">Schemas</h2>");
    let all = document.pointer("/components/schemas").and_then(Value::as_object);
    for (name, schema) in all.into_iter().flatten() {
        let text = |value: &Value| value.as_str().map_or_else(String::new, prose);
        let about = schema.get("description").map_or_else(String::new, text);
        let _ = write!(html, "<article id=\"schema-{name}\"><h3>{name}</h3><p>{about}</p><table>");
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map_or_else(Vec::new, |names| names.iter().filter_map(Value::as_str).collect());
        let members = schema.get("properties").and_then(Value::as_object);
        for (member, schema) in members.into_iter().flatten() {
            let must = if required.contains(&member.as_str()) { "required" } else { "" };
            let about = schema.get("description").map_or_else(String::new, text);
            let _ = write!(
                html,
                "<tr><td><code>{}</code></td><td>{}</td><td>{must}</td><td>{about}</td></tr>",
                escape(member),
                kind(schema)
            );
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            let _ = write!(html, "<tr><td>{}</td></tr>", escape(&words.join(", ")));
        }
        html.push_str("</table></article>\n");
    }
    html
}

fn errors() -> String {
    let mut html = String::from(
        "<h2 id=\"errors\">Errors</h2><p>Every error is an <code>application/problem+json</code> \
         body: <a href=\"#schema-Problem\">Problem</a>.</p><table><tr><th>code</th><th>status</th>\
         <th>when</th><th>what to do</th></tr>",
    );
    for code in CODES {
        let _ = write!(
            html,
            "<tr id=\"{}\"><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
            code.code,
            code.code,
            code.status,
            prose(code.when),
            prose(code.hint),
        );
    }
    html.push_str("</table>");
    html
}

/// A schema in a few words.
fn kind(schema: &Value) -> String {
    let reference = schema.get("$ref").and_then(Value::as_str);
    if let Some(name) = reference.and_then(|target| target.rsplit('/').next()) {
        return link(name);
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return escape(&words.join(" | "));
    }
    let mut text = match schema.get("type") {
        Some(Value::String(word)) if word == "array" => {
            return format!("array of {}", schema.get("items").map_or_else(String::new, kind));
        }
        Some(Value::String(word)) => word.clone(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    };
    let number = |key| schema.get(key).and_then(Value::as_u64);
    match (number("minimum"), number("maximum")) {
        (Some(min), Some(max)) => text.push_str(&format!(" {min}..{max}")),
        (Some(min), None) if 0 < min => text.push_str(&format!(" ≥ {min}")),
        _ => {}
    }
    if let Some(format) = schema.get("format").and_then(Value::as_str).filter(|_| text == "string")
    {
        text = format.to_owned();
    }
    text
}

fn link(schema: &str) -> String {
    format!("<a href=\"#schema-{schema}\">{schema}</a>")
}

/// A sentence, with what stands between backticks as code.
fn prose(text: &str) -> String {
    let mut html = String::new();
    for (index, part) in escape(text).split('`').enumerate() {
        match index % 2 {
            0 => html.push_str(part),
            _ => html.extend(["<code>", part, "</code>"]),
        }
    }
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests;
