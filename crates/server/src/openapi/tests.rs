//! The description is complete: a client can be made from it, and a person can read it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::document;

/// Every operation: its method and path, and what is said of it.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (format!("{method} {path}"), operation))
    });
    all.collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What is lacking is told all at once.
#[track_caller]
fn must_be_empty(lacking: Vec<String>) {
    assert!(lacking.is_empty(), "\n{}", lacking.join("\n"));
}

fn described() -> Value {
    serde_json::to_value(document()).unwrap()
}

/// What a reference leads to.
fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            let found = document.pointer(reference.trim_start_matches('#'));
            resolved(document, found.unwrap_or_else(|| panic!("{reference}")))
        }
        None => value,
    }
}

#[test]
fn every_route_says_what_it_does_and_has_a_name_of_its_own() {
    let document = described();
    let known: BTreeSet<&str> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| text(&tag["name"]))
        .collect();
    let mut lacking = Vec::new();
    let mut names = BTreeMap::new();
    for (route, operation) in operations(&document) {
        for field in ["summary", "description"] {
            if text(&operation[field]).is_empty() {
                lacking.push(format!("{route}: has no {field}"));
            }
        }
        let tags = operation["tags"].as_array().cloned().unwrap_or_default();
        if tags.len() != 1 || !known.contains(text(&tags[0])) {
            lacking.push(format!("{route}: has not one of the tags that there are"));
        }
        let name = text(&operation["operationId"]);
        if let Some(other) = names.insert(name, route.clone()) {
            lacking.push(format!("{route}: is called {name}, as {other} is"));
        }
        if operation["security"].is_null() {
            lacking.push(format!("{route}: does not say which scope it needs"));
        }
    }
    must_be_empty(lacking);
}

#[test]
fn every_parameter_is_described() {
    let document = described();
    let mut lacking = Vec::new();
    for (route, operation) in operations(&document) {
        let parameters = operation["parameters"].as_array();
        for parameter in parameters.into_iter().flatten() {
            let name = text(&parameter["name"]);
            if text(&parameter["description"]).is_empty() {
                lacking.push(format!("{route}: {name} is not described"));
            }
            if parameter["schema"]["type"].is_array() && parameter["in"] != "query" {
                lacking.push(format!("{route}: {name} can be null, which it cannot"));
            }
        }
        let placed = route.matches('{').count();
        let described = parameters
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "path")
            .count();
        if placed != described {
            lacking.push(format!(
                "{route}: has {placed} parameters in its path, and describes {described}"
            ));
        }
    }
    must_be_empty(lacking);
}

#[test]
fn every_answer_is_described_with_its_body() {
    let document = described();
    let mut lacking = Vec::new();
    for (route, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = resolved(&document, response);
            if text(&response["description"]).is_empty() {
                lacking.push(format!("{route}: {status} is not described"));
            }
            let content = response["content"].as_object();
            let is_empty = content.is_none_or(|content| content.is_empty());
            if is_empty != matches!(status.as_str(), "101" | "204" | "307") {
                lacking.push(format!("{route}: {status} has no body, or one too many"));
            }
            let body = &response["content"]["application/json"]["schema"]["$ref"];
            let is_error = status.starts_with(['4', '5']) && route != "get /health";
            if is_error && body != "#/components/schemas/Error" {
                lacking.push(format!("{route}: {status} is no Error"));
            }
        }
    }
    must_be_empty(lacking);
}

#[test]
fn every_route_tells_of_the_failures_that_all_share() {
    let document = described();
    let mut lacking = Vec::new();
    for (route, operation) in operations(&document) {
        let scope = operation["security"][0]["api_key"][0].as_str();
        let expected: &[&str] = match scope {
            None => &["500"],
            Some("read") => &["400", "401", "429", "500", "503"],
            Some(_) => &["400", "401", "403", "429", "500", "503"],
        };
        for status in expected {
            if operation["responses"][status].is_null() {
                lacking.push(format!("{route}: does not tell of {status}"));
            }
        }
    }
    must_be_empty(lacking);
}

#[test]
fn every_route_that_takes_a_body_describes_it() {
    let document = described();
    let without = [
        "post /api/v1/executions/{execution_id}/cancel",
        "post /api/v1/nodes/{node_id}/drain",
        "post /api/v1/sessions/{session_id}/fork",
        "post /api/v1/sessions/{session_id}/pause",
        "post /api/v1/sessions/{session_id}/resume",
    ];
    let mut lacking = Vec::new();
    for (route, operation) in operations(&document) {
        let takes = route.starts_with("post") || route.starts_with("put");
        let is_described = !operation["requestBody"].is_null();
        if takes && !without.contains(&route.as_str()) && !is_described {
            lacking.push(format!("{route}: its body is not described"));
        }
    }
    must_be_empty(lacking);
}

#[test]
fn a_body_is_needed_where_something_in_it_is() {
    let document = described();
    let is_needed = |name: &str| {
        let mut all = operations(&document).into_iter();
        let found = all.find(|(_, operation)| operation["operationId"] == name);
        found.unwrap().1["requestBody"]["required"] == true
    };
    for name in ["create_session", "execute", "create_key", "upload_file"] {
        assert!(is_needed(name), "{name}");
    }
    for name in ["renew_session", "update_template", "promote_session"] {
        assert!(!is_needed(name), "{name}");
    }
}

#[test]
fn every_type_and_every_field_is_described() {
    let document = described();
    let mut lacking = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        if text(&schema["description"]).is_empty() {
            lacking.push(format!("{name}: is not described"));
        }
        let parts = schema["allOf"].as_array();
        let parts = parts.into_iter().flatten().chain([schema]);
        for (field, of) in
            parts.flat_map(|part| part["properties"].as_object().into_iter().flatten())
        {
            // What may be null is one of two, of which the other is described.
            let either = of["oneOf"].as_array().into_iter().flatten();
            let mut said = either.chain([of]).map(|of| text(&of["description"]));
            if said.all(str::is_empty) {
                lacking.push(format!("{name}.{field}: is not described"));
            }
        }
    }
    must_be_empty(lacking);
}

#[test]
fn what_takes_one_of_a_few_words_names_them() {
    let document = described();
    let field = |schema: &str, field: &str| {
        let schema = &document["components"]["schemas"][schema];
        let of = &schema["properties"][field];
        let of = of["allOf"].get(0).unwrap_or(of);
        let words = resolved(&document, of)["enum"].as_array();
        words.map_or(0, Vec::len)
    };
    for (schema, name, words) in [
        ("Session", "status", 7),
        ("Session", "mode", 2),
        ("Session", "runtime_type", 3),
        ("ExecutionSummary", "status", 7),
        ("ExecutionSummary", "language", 3),
        ("ExecutionResult", "status", 5),
        ("ExecuteResponse", "status", 1),
        ("Artifact", "artifact_type", 3),
        ("File", "kind", 4),
        ("Node", "status", 4),
        ("Template", "runtime_type", 3),
        ("ApiKey", "scope", 3),
        ("Health", "status", 3),
        ("Component", "status", 2),
        ("CreateSessionRequest", "pool", 3),
    ] {
        assert_eq!(field(schema, name), words, "{schema}.{name}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(document: &Value, value: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(reference) = value["$ref"].as_str() {
                    let target = document.pointer(reference.trim_start_matches('#'));
                    assert!(target.is_some(), "{reference}");
                }
                fields.values().for_each(|value| walk(document, value));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(document, value)),
            _ => {}
        }
    }
    let document = described();
    walk(&document, &document);
}
