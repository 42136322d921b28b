//! What most tests ask of a server.

use serde_json::{Value, json};

use crate::{Answer, Call, Server, eventually};

impl Server {
    /// `GET` below `/api/v1`.
    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.call("GET", &format!("/api/v1{path}")).send()
    }

    /// `DELETE` below `/api/v1`.
    #[track_caller]
    pub fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", &format!("/api/v1{path}")).send()
    }

    /// `POST` of JSON below `/api/v1`.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.posting(path, body).send()
    }

    /// The same, not sent.
    #[track_caller]
    pub fn posting(&self, path: &str, body: &Value) -> Call {
        self.call("POST", &format!("/api/v1{path}")).json(body)
    }

    /// `PUT` of JSON below `/api/v1`.
    #[track_caller]
    pub fn put(&self, path: &str, body: &Value) -> Answer {
        self.call("PUT", &format!("/api/v1{path}"))
            .json(body)
            .send()
    }

    /// Makes a session for Python: its identifier.
    #[track_caller]
    pub fn session(&self) -> String {
        self.session_with(json!({}))
    }

    /// The same, with these fields.
    #[track_caller]
    pub fn session_with(&self, mut fields: Value) -> String {
        let object = fields.as_object_mut().expect("fields");
        let template = object.entry("template_id");
        template.or_insert_with(|| json!("python-basic"));
        id_of(&self.post("/sessions", &fields).json(201))
    }

    /// Runs code in a session to its end: the result.
    #[track_caller]
    pub fn run(&self, session: &str, language: &str, code: &str) -> Value {
        self.run_with(session, json!({ "language": language, "code": code }))
    }

    /// The same, with these fields.
    #[track_caller]
    pub fn run_with(&self, session: &str, fields: Value) -> Value {
        let path = format!("/sessions/{session}/execute?wait=true");
        self.post(&path, &fields).json(200)
    }

    /// Runs a shell script, which must end well: what it printed.
    #[track_caller]
    pub fn shell(&self, session: &str, script: &str) -> String {
        let result = self.run(session, "shell", script);
        assert_eq!(result["status"], "success", "{result:#}");
        let printed = result["stdout"].as_str().expect("its output");
        printed.trim_end().to_owned()
    }

    /// Has code run, and does not wait: the execution's identifier.
    #[track_caller]
    pub fn submit(&self, session: &str, fields: Value) -> String {
        let path = format!("/sessions/{session}/execute");
        let answer = self.post(&path, &fields).json(200);
        answer["execution_id"].as_str().expect("its id").to_owned()
    }

    /// Waits until an execution has this status.
    #[track_caller]
    pub fn until(&self, execution: &str, status: &str) -> Value {
        eventually(&format!("{execution} {status}"), || {
            let path = format!("/executions/{execution}/status");
            let found = self.get(&path).json(200);
            (found["status"] == status).then_some(found)
        })
    }

    /// Waits until there is a file at this path in a session's workspace: its content. Code that runs tells
    /// by it how far it is.
    #[track_caller]
    pub fn until_file(&self, session: &str, path: &str) -> Vec<u8> {
        eventually(path, || {
            let found = self.get(&format!("/sessions/{session}/files/{path}"));
            (found.status == 200 && !found.body.is_empty()).then_some(found.body)
        })
    }

    /// Puts a file into a session's workspace.
    #[track_caller]
    pub fn upload(&self, session: &str, path: &str, content: &[u8]) -> Answer {
        let target = format!("/api/v1/sessions/{session}/files/upload");
        self.call("POST", &target)
            .form(Some(path), "file", content)
            .send()
    }

    /// A session's events from the beginning on.
    #[track_caller]
    pub fn events(&self, session: &str) -> crate::Events {
        let target = format!("/api/v1/sessions/{session}/events");
        self.call("GET", &target).open().events()
    }
}

/// The session's identifier.
#[track_caller]
pub fn id_of(session: &Value) -> String {
    session["session_id"]
        .as_str()
        .expect("a session")
        .to_owned()
}

/// A path as it is written in a URL, with everything encoded but what may stand there.
pub fn encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    path.bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// Is this a time as RFC 3339 has it, in UTC?
pub fn is_time(value: &Value) -> bool {
    let Some(text) = value.as_str() else {
        return false;
    };
    let shape = |(place, byte): (usize, u8)| match place {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        0..19 => byte.is_ascii_digit(),
        19 => byte == b'.' || byte == b'Z',
        _ => byte.is_ascii_digit() || byte == b'Z',
    };
    text.len() >= 20 && text.ends_with('Z') && text.bytes().enumerate().all(shape)
}

/// What an identifier looks like: `sess_` and so many letters or digits, for example.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// `sess_` and 16 of `[a-z0-9]`.
    Session,
    /// `exec_`, a day, `_` and 8 of `[a-z0-9]`.
    Execution,
    /// `art_` and 16 of `[a-z0-9]`.
    Artifact,
}

/// Does an identifier look as it should?
pub fn like(form: Form, value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    let small = |text: &str, length: usize| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        text.len() == length && text.bytes().all(plain)
    };
    match form {
        Form::Session => text
            .strip_prefix("sess_")
            .is_some_and(|rest| small(rest, 16)),
        Form::Artifact => text
            .strip_prefix("art_")
            .is_some_and(|rest| small(rest, 16)),
        Form::Execution => text
            .strip_prefix("exec_")
            .and_then(|rest| rest.split_once('_'))
            .is_some_and(|(day, rest)| {
                day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit()) && small(rest, 8)
            }),
    }
}
