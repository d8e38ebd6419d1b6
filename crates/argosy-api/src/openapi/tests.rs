use super::*;

#[test]
fn the_generated_document_is_current() {
    crate::golden("openapi/argosy.json", &text());
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    let mut open = vec![&document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(target)) = object.get("$ref") {
                    let pointer = target.trim_start_matches('#');
                    assert!(document.pointer(pointer).is_some(), "{target}");
                }
                open.extend(object.values());
            }
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

#[test]
fn every_refinement_found_its_place() {
    let document = document();
    let rows = [
        "/components/schemas/ResourcePatch/minProperties",
        "/components/schemas/ResourcePatch/properties/labels/maxProperties",
        "/components/schemas/ClusterCreate/properties/labels/maxProperties",
        "/components/schemas/ClusterCreate/properties/kind/enum",
        "/components/schemas/NodePoolCreate/properties/spec/properties/nodeCount/minimum",
        "/components/schemas/ResourceList/properties/items/items/$ref",
        "/components/schemas/NodeList/properties/items/items/$ref",
        "/components/schemas/NodeEvent/properties/metrics/additionalProperties",
        "/components/schemas/CommandCreate/properties/parameters/maxProperties",
        "/components/schemas/CommandCreate/properties/type/$ref",
        "/components/schemas/SafetyReason/additionalProperties",
        "/components/schemas/Problem/properties/code/enum",
        "/components/schemas/StatusReport/properties/conditions/allOf",
    ];
    for row in rows {
        assert!(document.pointer(row).is_some(), "{row}");
    }
}
