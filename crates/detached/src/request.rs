//! What comes with a request: its name, and its body.

use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use sandbox_executor::Request as Execution;
use sandbox_model::execution::Language;
use sandbox_model::request::{
    MOST_CODE_BYTES, MOST_EVENT_BYTES, MOST_EVENT_DEPTH, TIMEOUTS, depth,
};
use sandbox_model::{ExecutionId, RequestId};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::Refused;
use crate::control_plane::REQUEST_ID;
use crate::random;

/// The longest body that is read as a whole: an event of a megabyte, code, and what JSON adds to them.
const LONGEST: usize = 4 << 20;

/// How long such a body may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is asked for by `POST /execute`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Execute {
    execution_id: ExecutionId,
    code: String,
    language: Language,
    #[serde(default = "nothing", alias = "event_data")]
    event: Value,
    #[serde(default = "usual")]
    timeout: u32,
}

fn nothing() -> Value {
    json!({})
}

fn usual() -> u32 {
    30
}

/// The name of a request: the asker's, if it is well formed, else one made here.
pub(crate) fn name(headers: &HeaderMap) -> RequestId {
    let given = headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok());
    match given.and_then(|text| text.parse().ok()) {
        Some(id) => id,
        None => RequestId::random(random::numbers()),
    }
}

/// Reads what is to be run.
pub(crate) async fn execution(headers: &HeaderMap, body: Incoming) -> Result<Execution, Refused> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let essence = kind
        .unwrap_or("application/json")
        .split(';')
        .next()
        .unwrap_or_default();
    if !essence.trim().eq_ignore_ascii_case("application/json") {
        return Err(Refused::invalid("Content-Type: is not application/json"));
    }
    let reading = Limited::new(body, LONGEST).collect();
    let read = tokio::time::timeout(PATIENCE, reading).await;
    let read = read.map_err(|_| Refused::invalid("the body: does not come"))?;
    let bytes = read.map_err(|error| match error.is::<LengthLimitError>() {
        true => Refused::too_large(format!("the body: is larger than {LONGEST} bytes")),
        false => Refused::invalid("the body: ended early"),
    })?;
    parse(&bytes.to_bytes())
}

fn parse(bytes: &[u8]) -> Result<Execution, Refused> {
    let Execute {
        execution_id,
        code,
        language,
        event,
        timeout,
    } = serde_json::from_slice(bytes)
        .map_err(|error| Refused::invalid(format!("the body: {error}")))?;
    if code.len() > MOST_CODE_BYTES {
        return Err(Refused::too_large(format!(
            "code: is larger than {MOST_CODE_BYTES} bytes"
        )));
    }
    if code.contains('\0') {
        return Err(Refused::invalid("code: holds a null character"));
    }
    if event.to_string().len() > MOST_EVENT_BYTES {
        return Err(Refused::too_large(format!(
            "event: is larger than {MOST_EVENT_BYTES} bytes"
        )));
    }
    if depth(&event) > MOST_EVENT_DEPTH {
        return Err(Refused::invalid(format!(
            "event: is nested more than {MOST_EVENT_DEPTH} levels deep"
        )));
    }
    if !TIMEOUTS.contains(&timeout) {
        return Err(Refused::invalid(format!(
            "timeout: is not between {} and {}",
            TIMEOUTS.start(),
            TIMEOUTS.end()
        )));
    }
    Ok(Execution {
        execution_id,
        code,
        language,
        event,
        timeout_seconds: timeout,
        stream: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(more: Value) -> Vec<u8> {
        let mut body =
            json!({ "execution_id": "exec_20261116_aaaaaaaa", "code": "x", "language": "shell" });
        for (name, value) in more.as_object().expect("fields") {
            body[name] = value.clone();
        }
        body.to_string().into_bytes()
    }

    #[test]
    fn what_is_not_said_is_usual_and_names_of_old_are_taken() {
        let read = parse(&body(json!({}))).expect("a request");
        assert_eq!((read.timeout_seconds, read.event), (30, json!({})));
        let read = parse(&body(json!({ "event_data": null, "timeout": 3600 }))).expect("a request");
        assert_eq!((read.timeout_seconds, read.event), (3600, Value::Null));
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for wrong in [
            json!({ "execution_id": "exec_1" }),
            json!({ "execution_id": "../../etc" }),
            json!({ "language": "ruby" }),
            json!({ "timeout": 0 }),
            json!({ "timeout": 3601 }),
            json!({ "code": "a\0b" }),
            json!({ "code": "x".repeat(MOST_CODE_BYTES + 1) }),
            json!({ "event": "x".repeat(MOST_EVENT_BYTES) }),
            json!({ "unknown": 1 }),
        ] {
            assert!(parse(&body(wrong.clone())).is_err(), "{wrong}");
        }
        assert!(parse(b"").is_err() && parse(b"[]").is_err());
    }

    #[test]
    fn an_event_that_the_line_cannot_carry_is_refused() {
        let nested = |levels: usize| {
            let deep = (1..levels).fold(json!([1]), |inner, level| match level % 2 {
                0 => json!([0, inner]),
                _ => json!({ "a": inner, "b": [] }),
            });
            parse(&body(json!({ "event": deep })))
        };
        assert!(nested(MOST_EVENT_DEPTH).is_ok());
        assert!(nested(MOST_EVENT_DEPTH + 1).is_err() && nested(126).is_err());
    }
}
