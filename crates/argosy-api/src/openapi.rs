//! The OpenAPI 3.1 document, made from the route table and the wire types.

use crate::audit::{AuditList, AuditVerification, Catalog, DeadLetterList, ServiceInfo};
use crate::command::{Command, CommandBatch, CommandBatchCreate, CommandCreate, CommandList};
use crate::error::{CODES, Problem};
use crate::fleet::{FleetEvent, FleetGpuList, Me};
use crate::instance::{
    Instance, InstanceAdopt, InstanceList, InstanceTerminate, Orphan, OrphanList,
};
use crate::instance::{
    PoolExplanation, PoolHistory, PoolResume, ProviderList, SimulateRequest, Simulation,
};
use crate::node::{EVENT_TYPES, FindingList, Ledger, MetricsHistory, Node, NodeList, SYSTEMS, Why};
use crate::policy::{BacktestReport, BacktestRequest, ExplainRequest, Explanation};
use crate::policy::{Policy, PolicyList, PolicyPut};
use crate::recovery::RecoveryList;
use crate::resource::{ForceDelete, Resource, ResourceCreate, ResourceList, ResourcePatch};
use crate::resource::{WatchEvent, WatchKind};
use crate::route::{Access, Operation, Parameter, Place, ROUTES, Route, Scope};
use crate::safety::{Brakes, Pause, Released, SafetyReason};
use crate::status::{AdapterStatus, StatusHistory, StatusList, StatusReport};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// The document.
pub fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES.iter() {
        let path = paths.entry(route.path.clone()).or_insert_with(|| json!({}));
        set(path, &route.method.to_ascii_lowercase(), operation(route));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Argosy",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Clusters and node pools of GPU machines: declare them, watch them become \
                            ready, and read what every adapter says about them. Their nodes: see which \
                            are sick and why, and take them out of service and back. Their machines: what is \
                            bought and returned, where and for how much.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "responses": { "Problem": problem_response() },
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut responses = Map::new();
    for answer in &route.answers {
        let mut response = json!({ "description": answer.description });
        set(&mut response, "headers", headers(answer.headers));
        if !answer.content.is_empty() {
            let content = answer
                .content
                .iter()
                .map(|(media, schema)| ((*media).to_owned(), media_type(media, *schema)))
                .collect::<Map<_, _>>();
            set(&mut response, "content", Value::Object(content));
        }
        match (route.operation, answer.status) {
            (Operation::Create(scope), 201) => set(&mut response, "links", links(scope)),
            (Operation::CreateCommand, 201) => {
                let id = json!({ "command_id": "$response.body#/id" });
                set(&mut response, "links", links_to(&["getCommand"], &id));
            }
            (Operation::AdoptInstance, 201) => {
                let id = json!({ "instance_id": "$response.body#/id" });
                set(&mut response, "links", links_to(&["getInstance", "terminateInstance"], &id));
            }
            (Operation::PutPolicy, 200) => {
                let name = json!({ "policy": "$response.body#/name" });
                set(&mut response, "links", links_to(&["getPolicy", "deletePolicy"], &name));
            }
            _ => {}
        }
        responses.insert(answer.status.to_string(), response);
    }
    for status in route.errors() {
        let response = json!({ "$ref": "#/components/responses/Problem" });
        responses.entry(status.to_string()).or_insert(response);
    }
    // Said by the listener, before there is a request to speak of.
    responses.insert("431".to_owned(), json!({ "description": "Path or headers are too long." }));
    let mut operation = json!({
        "operationId": route.id,
        "tags": [route.tag],
        "summary": route.summary,
        "parameters": route.parameters.iter().map(parameter).collect::<Vec<_>>(),
        "responses": responses,
    });
    if let Some(cli) = &route.cli {
        set(&mut operation, "x-argosy-command", json!(format!("argosy {cli}")));
    }
    if let Some(body) = route.body {
        let content = body
            .media
            .iter()
            .map(|media| ((*media).to_owned(), media_type(media, Some(body.schema))))
            .collect::<Map<_, _>>();
        set(&mut operation, "requestBody", json!({ "required": true, "content": content }));
    }
    if route.access != Access::Public {
        // Whether credentials are needed is a setting of the server.
        set(&mut operation, "security", json!([{ "bearer": [] }, {}]));
    }
    operation
}

/// What can be done with a resource that was just created, by operation.
fn links(created: Scope) -> Value {
    let item = format!("{{{}}}", created.item());
    let parameters = match created {
        Scope::Clusters => json!({ "cluster_id": "$response.body#/id" }),
        Scope::ClusterNodePools => json!({
            "cluster_id": "$response.body#/cluster_id",
            "nodepool_id": "$response.body#/uid",
        }),
        Scope::NodePools => json!({ "nodepool_id": "$response.body#/uid" }),
    };
    let routes = ROUTES
        .iter()
        .filter(|route| route.path.starts_with(&created.path()) && route.path.contains(&item))
        .filter(|route| created != Scope::Clusters || !route.path.contains("{nodepool_id}"));
    let ids: Vec<&str> = routes.map(|route| route.id.as_str()).collect();
    links_to(&ids, &parameters)
}

fn links_to(ids: &[&str], parameters: &Value) -> Value {
    let link =
        |id: &&str| ((*id).to_owned(), json!({ "operationId": id, "parameters": parameters }));
    ids.iter().map(link).collect::<Map<_, _>>().into()
}

fn media_type(media: &str, schema: Option<&str>) -> Value {
    match schema {
        Some(schema) => json!({ "schema": { "$ref": format!("#/components/schemas/{schema}") } }),
        None if media == "application/json" => json!({ "schema": { "type": "object" } }),
        None => json!({ "schema": { "type": "string" } }),
    }
}

fn parameter(parameter: &Parameter) -> Value {
    let place = match parameter.place {
        Place::Path => "path",
        Place::Query => "query",
        Place::Header => "header",
    };
    json!({
        "name": parameter.name,
        "in": place,
        "required": parameter.required,
        "description": parameter.description,
        "schema": parameter.schema,
    })
}

fn headers(more: &[&str]) -> Value {
    let known = [
        ("X-Request-ID", "The id of the request.", json!({ "type": "string", "format": "uuid" })),
        ("ETag", "The revision, in quotes.", json!({ "type": "string" })),
        ("Location", "Where it is.", json!({ "type": "string" })),
        ("Dry-Run", "`true` if nothing was written.", json!({ "type": "string" })),
        (
            "Idempotency-Replayed",
            "`true` if an earlier request with the same key did it.",
            json!({ "type": "string" }),
        ),
    ];
    known
        .into_iter()
        .filter(|(name, ..)| *name == "X-Request-ID" || more.contains(name))
        .map(|(name, description, schema)| {
            (name.to_owned(), json!({ "description": description, "schema": schema }))
        })
        .collect::<Map<_, _>>()
        .into()
}

fn problem_response() -> Value {
    json!({
        "description": "It was not carried out; the body says why and what to do.",
        "headers": headers(&[]),
        "content": {
            "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } },
        },
    })
}

/// Every wire type by name.
fn schemas() -> Value {
    let mut schemas = Map::new();
    add::<Resource>(&mut schemas);
    add::<ResourceList>(&mut schemas);
    add::<ResourceCreate>(&mut schemas);
    add::<ResourcePatch>(&mut schemas);
    add::<ForceDelete>(&mut schemas);
    add::<WatchEvent>(&mut schemas);
    add::<WatchKind>(&mut schemas);
    add::<StatusList>(&mut schemas);
    add::<AdapterStatus>(&mut schemas);
    add::<StatusReport>(&mut schemas);
    add::<StatusHistory>(&mut schemas);
    add::<AuditList>(&mut schemas);
    add::<DeadLetterList>(&mut schemas);
    add::<AuditVerification>(&mut schemas);
    add::<Catalog>(&mut schemas);
    add::<ServiceInfo>(&mut schemas);
    add::<Node>(&mut schemas);
    add::<NodeList>(&mut schemas);
    add::<FindingList>(&mut schemas);
    add::<Ledger>(&mut schemas);
    add::<Why>(&mut schemas);
    add::<MetricsHistory>(&mut schemas);
    add::<Me>(&mut schemas);
    add::<FleetGpuList>(&mut schemas);
    add::<FleetEvent>(&mut schemas);
    add::<Command>(&mut schemas);
    add::<CommandList>(&mut schemas);
    add::<CommandCreate>(&mut schemas);
    add::<CommandBatchCreate>(&mut schemas);
    add::<CommandBatch>(&mut schemas);
    add::<Policy>(&mut schemas);
    add::<PolicyList>(&mut schemas);
    add::<PolicyPut>(&mut schemas);
    add::<ExplainRequest>(&mut schemas);
    add::<Explanation>(&mut schemas);
    add::<BacktestRequest>(&mut schemas);
    add::<BacktestReport>(&mut schemas);
    add::<Brakes>(&mut schemas);
    add::<Pause>(&mut schemas);
    add::<Released>(&mut schemas);
    add::<SafetyReason>(&mut schemas);
    add::<RecoveryList>(&mut schemas);
    add::<Instance>(&mut schemas);
    add::<InstanceList>(&mut schemas);
    add::<InstanceTerminate>(&mut schemas);
    add::<PoolResume>(&mut schemas);
    add::<InstanceAdopt>(&mut schemas);
    add::<Orphan>(&mut schemas);
    add::<OrphanList>(&mut schemas);
    add::<ProviderList>(&mut schemas);
    add::<PoolExplanation>(&mut schemas);
    add::<PoolHistory>(&mut schemas);
    add::<SimulateRequest>(&mut schemas);
    add::<Simulation>(&mut schemas);
    add::<Problem>(&mut schemas);
    let mut schemas = Value::Object(schemas);
    refine(&mut schemas);
    schemas
}

fn add<T: ToSchema>(schemas: &mut Map<String, Value>) {
    let mut parts = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut parts);
    for (name, schema) in parts {
        schemas.insert(name, serde_json::to_value(schema).unwrap_or_default());
    }
}

/// Says what the derived schemas cannot.
fn refine(schemas: &mut Value) {
    let labels = json!({
        "type": "object",
        "maxProperties": 64,
        "propertyNames": {
            "maxLength": 63,
            "pattern": "^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$",
        },
        "additionalProperties": {
            "type": "string",
            "maxLength": 63,
            "pattern": "^([a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?)?$",
        },
    });
    let mut patch_labels = labels.clone();
    set_at(&mut patch_labels, "/additionalProperties", "type", json!(["string", "null"]));
    set_at(schemas, "/ResourcePatch/properties", "labels", patch_labels);
    set_at(schemas, "/ResourcePatch", "minProperties", json!(1));
    set_at(schemas, "/ResourcePatch", "additionalProperties", json!(false));
    set_at(schemas, "/ResourceCreate/properties", "labels", labels);

    let codes: Vec<&str> = CODES.iter().map(|code| code.code).collect();
    set_at(schemas, "/Problem/properties/code", "enum", json!(codes));
    // `value` is whatever was sent.
    set_at(schemas, "/FieldProblem/properties", "value", json!({}));

    let mandatory: Vec<Value> = ["Available", "Applied", "Health"]
        .iter()
        .map(|kind| {
            json!({ "contains": { "properties": { "type": { "const": kind } }, "required": ["type"] } })
        })
        .collect();
    set_at(schemas, "/StatusReport/properties/conditions", "allOf", json!(mandatory));

    // What a GET shows depends on `fields`.
    for (name, noun) in [("Resource", "resource"), ("Node", "node"), ("Instance", "instance")] {
        let id = json!({ "id": { "type": "string" } });
        let view = json!({
            "description": format!("One {noun}, or what `fields` left of it."),
            "anyOf": [
                { "$ref": format!("#/components/schemas/{name}") },
                { "type": "object", "required": ["id"], "properties": id },
            ],
        });
        set(schemas, &format!("{name}View"), view);
        let item = json!({ "$ref": format!("#/components/schemas/{name}View") });
        set_at(schemas, &format!("/{name}List/properties/items"), "items", item);
    }
    let parameters = json!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": { "type": "string", "maxLength": 1024 },
    });
    for body in ["CommandCreate", "CommandBatchCreate"] {
        set_at(schemas, &format!("/{body}/properties"), "parameters", parameters.clone());
    }
    // Whatever the node sent back.
    set_at(schemas, "/Command/properties", "result", json!({}));
    let metrics = json!({
        "type": "object",
        "additionalProperties": { "type": ["boolean", "number", "string"] },
    });
    set_at(schemas, "/NodeEvent/properties", "metrics", metrics);
    for (member, what, words) in [
        ("event_type", "What kind of event.", EVENT_TYPES),
        ("system", "Which part of the GPU.", SYSTEMS),
    ] {
        let schema = json!({ "description": what, "type": "string", "enum": words });
        set_at(schemas, "/NodeEvent/properties", member, schema);
    }
    for body in [
        "CommandCreate",
        "CommandBatchCreate",
        "ExplainRequest",
        "BacktestRequest",
        "SafetyReason",
        "Rule",
        "InstanceTerminate",
        "PoolResume",
        "InstanceAdopt",
        "PoolSample",
        "SimulateRequest",
    ] {
        set_at(schemas, &format!("/{body}"), "additionalProperties", json!(false));
    }

    let event = json!({
        "description": "One event of a watch. `id` is where to go on; it comes only when everything \
                        up to it was told.",
        "type": "object",
        "properties": {
            "event": { "$ref": "#/components/schemas/WatchKind" },
            "id": { "type": "string", "pattern": "^[0-9]+$" },
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": { "$ref": "#/components/schemas/WatchEvent" },
            },
            "retry": { "type": "integer" },
        },
    });
    set(schemas, "ServerSentEvent", event);
    let fleet = json!({
        "description": "One event of the fleet's stream. There is one at every tick, also if nothing \
                        changed: silence means that the connection is lost.",
        "type": "object",
        "properties": {
            "event": { "type": "string", "enum": ["SNAPSHOT", "SAMPLES", "BYE"] },
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": { "$ref": "#/components/schemas/FleetEvent" },
            },
            "retry": { "type": "integer" },
        },
    });
    set(schemas, "FleetServerSentEvent", fleet);
    // What is not there is absent, and never null.
    let measured = json!([
        { "$ref": "#/components/schemas/GpuMeasures" },
        { "not": { "required": ["at"] } },
    ]);
    set_at(schemas, "/NodeGpus/allOf/0", "oneOf", measured);

    let create = schemas.pointer("/ResourceCreate").cloned().unwrap_or_default();
    for (name, kind) in [("ClusterCreate", "Cluster"), ("NodePoolCreate", "NodePool")] {
        let mut body = create.clone();
        set_at(&mut body, "/properties/kind", "enum", json!([kind]));
        if kind == "NodePool" {
            let count = json!({ "nodeCount": { "type": "integer", "minimum": 1, "maximum": 100 } });
            set_at(&mut body, "/properties/spec", "properties", count);
        }
        set(schemas, name, body);
    }
    if let Value::Object(schemas) = schemas {
        schemas.remove("ResourceCreate");
    }
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(object) = object {
        object.insert(key.to_owned(), value);
    }
}

fn set_at(object: &mut Value, pointer: &str, key: &str, value: Value) {
    if let Some(object) = object.pointer_mut(pointer) {
        set(object, key, value);
    }
}

/// The document as it is committed.
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(&document()).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
