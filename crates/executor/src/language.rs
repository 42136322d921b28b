//! How code of each language is run.
//!
//! A shell is given its code as an argument. For the others there is a small program of ours, started by
//! the interpreter, that waits for the code on the channel, runs it, and answers with what its handler
//! returned. It waits, so an interpreter can be started before there is code for it. A handler that is a
//! generator reports its progress by what it yields: nothing has to be imported or planted for that.

use std::ffi::OsString;

use sandbox_model::execution::Language;

use crate::execution::Request;
use crate::lookout::Moment;
use crate::program;

/// The variable that tells the channel's number.
pub(crate) const CHANNEL: &str = "SANDBOX_CHANNEL";

/// The variable that tells an interpreter since when it may have missed what was installed: nanoseconds of the time of
/// filesystems. One that starts with its code misses nothing.
const SINCE: &str = "SANDBOX_SINCE";

/// An event longer than this is on standard input only: Linux takes no longer text than 128 KiB among
/// variables and arguments, and the variable's name is part of it.
const MOST_IN_VARIABLE: usize = 120 << 10;

const PYTHON: &str = include_str!("language/python.py");
const JAVASCRIPT: &str = include_str!("language/javascript.js");

/// A command, and what it is told when it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) command: Vec<OsString>,
    /// Variables beside the session's.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// On the channel.
    pub(crate) message: Option<Vec<u8>>,
    /// On standard input.
    pub(crate) input: Vec<u8>,
}

/// The interpreter that waits for code; none for a shell, which starts with it.
fn interpreter(language: Language) -> Option<Vec<OsString>> {
    let words: &[&str] = match language {
        Language::Python => &["python3", "-u", "-c", PYTHON],
        Language::Javascript => &["node", "-e", JAVASCRIPT],
        Language::Shell => return None,
    };
    Some(words.iter().map(OsString::from).collect())
}

/// How an interpreter is started before there is code for it; none for a shell.
pub(crate) fn ahead(language: Language) -> Option<Start> {
    let since = match language {
        Language::Python => Some((
            SINCE.into(),
            Moment::now().as_nanoseconds().to_string().into(),
        )),
        // What it has not been asked for it has not looked for.
        Language::Javascript | Language::Shell => None,
    };
    Some(Start {
        command: interpreter(language)?,
        env: since.into_iter().collect(),
        message: None,
        input: Vec::new(),
    })
}

/// How `request` is run.
pub(crate) fn start(request: &Request) -> Start {
    let event = request.event.to_string();
    match interpreter(request.language) {
        Some(command) => Start {
            command,
            env: Vec::new(),
            message: Some(program::message(request)),
            input: Vec::new(),
        },
        None => Start {
            command: ["bash", "-c", &request.code].map(OsString::from).to_vec(),
            env: match event.len() <= MOST_IN_VARIABLE {
                true => vec![("EVENT_JSON".into(), event.clone().into())],
                false => Vec::new(),
            },
            message: None,
            input: event.into_bytes(),
        },
    }
}
