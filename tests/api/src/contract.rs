//! Every answer is one that the API's description tells of.
//!
//! Whatever a test asks, its answer is held to openapi/sandbox.json: the route must have its status, and its
//! body must be as that says, every field described. So the description cannot promise less than there is,
//! or something else.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

use crate::{Answer, is_time};

static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    let path = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")
        + "/../../openapi/sandbox.json";
    let text = std::fs::read_to_string(path).expect("the description");
    serde_json::from_str(&text).expect("JSON")
});

/// Fails when the answer to `METHOD TARGET` is not one that the description tells of. What has no route is not its
/// affair.
#[track_caller]
pub(crate) fn must_be_kept(method: &str, target: &str, answer: &Answer) {
    let path = target.split('?').next().unwrap_or_default();
    // There somebody else's server answers.
    if path.contains("/ports/") {
        return;
    }
    let Some(operation) = operation(method, path) else {
        return;
    };
    let Answer { status, .. } = answer;
    let response = resolved(&operation["responses"][status.to_string()]);
    assert!(
        !response.is_null(),
        "{method} {target}: {status} is not described: {}",
        answer.text()
    );
    let kind = answer.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let content = &response["content"];
    if content.is_null() {
        assert!(
            answer.body.is_empty(),
            "{method} {target}: {status} has a body: {}",
            answer.text()
        );
        return;
    }
    let schema = &content[kind]["schema"];
    assert!(
        !schema.is_null(),
        "{method} {target}: {status} is not described as {kind}"
    );
    if kind == "application/json" {
        let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
        if let Err(problem) = fits(schema, &body, "") {
            panic!("{method} {target}: {status}: {problem}\n{body:#}");
        }
    }
}

/// What is said of a route, the more literal one where there are two.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let paths = DESCRIPTION["paths"].as_object()?;
    let asked: Vec<&str> = path.split('/').collect();
    let method = method.to_ascii_lowercase();
    let fitting = paths
        .iter()
        .filter(|(template, item)| item.get(&method).is_some() && leads(template, &asked));
    let (_, item) = fitting.min_by_key(|(template, _)| template.matches('{').count())?;
    item.get(&method)
}

fn leads(template: &str, asked: &[&str]) -> bool {
    let parts: Vec<&str> = template.split('/').collect();
    let is_one =
        |(part, asked): (&&str, &&str)| part.starts_with('{') && !asked.is_empty() || part == asked;
    match parts.last() {
        // A path in a workspace has slashes.
        Some(&"{path}") => asked.len() >= parts.len() && parts.iter().zip(asked).all(is_one),
        _ => asked.len() == parts.len() && parts.iter().zip(asked).all(is_one),
    }
}

fn resolved(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            let found = DESCRIPTION.pointer(reference.trim_start_matches('#'));
            resolved(found.unwrap_or_else(|| panic!("{reference}")))
        }
        None => value,
    }
}

/// Is `value`, which is `at` some place, as the schema says?
fn fits(schema: &'static Value, value: &Value, at: &str) -> Result<(), String> {
    let schema = resolved(schema);
    if let Some(either) = schema["oneOf"].as_array() {
        let fitting = either.iter().any(|one| fits(one, value, at).is_ok());
        return fitting
            .then_some(())
            .ok_or_else(|| format!("{at}: is none of those it may be"));
    }
    if let Some(words) = schema["enum"].as_array() {
        return words
            .contains(value)
            .then_some(())
            .ok_or_else(|| format!("{at}: {value} is none of {words:?}"));
    }
    if !is_of_type(&schema["type"], value) {
        return Err(format!("{at}: {value} is not {}", schema["type"]));
    }
    if schema["format"] == "date-time" && !value.is_null() && !is_time(value) {
        return Err(format!("{at}: {value} is no time"));
    }
    if let Some(items) = value.as_array() {
        let of = &schema["items"];
        return items
            .iter()
            .enumerate()
            .try_for_each(|(number, item)| fits(of, item, &format!("{at}[{number}]")));
    }
    match value.as_object() {
        Some(_) => fields_fit(schema, value, at),
        None => Ok(()),
    }
}

fn is_of_type(kind: &Value, value: &Value) -> bool {
    let is = |kind: &Value| match kind.as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("null") => value.is_null(),
        _ => false,
    };
    match kind {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(is),
        kind => is(kind),
    }
}

fn fields_fit(schema: &'static Value, value: &Value, at: &str) -> Result<(), String> {
    let parts: Vec<&'static Value> = schema["allOf"]
        .as_array()
        .into_iter()
        .flatten()
        .map(resolved)
        .chain([schema])
        .collect();
    let described = |name: &str| {
        parts
            .iter()
            .map(|part| &part["properties"][name])
            .find(|of| !of.is_null())
    };
    let required: BTreeSet<&str> = parts
        .iter()
        .flat_map(|part| part["required"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    if let Some(missing) = required.iter().find(|name| value.get(**name).is_none()) {
        return Err(format!("{at}: has no {missing}"));
    }
    // What is described by nothing but being an object may be any.
    let others = &schema["additionalProperties"];
    let is_open = parts.iter().all(|part| part["properties"].is_null()) && others.is_null();
    for (name, value) in value.as_object().into_iter().flatten() {
        let place = format!("{at}.{name}");
        match described(name) {
            Some(of) => fits(of, value, &place)?,
            None if others.is_object() => fits(others, value, &place)?,
            None if is_open => {}
            None => return Err(format!("{place}: is not described")),
        }
    }
    Ok(())
}
