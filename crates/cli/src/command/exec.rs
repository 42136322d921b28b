//! `sandbox exec`
//!
//! With a sandbox's name it is `sandbox run`, and never gets here: which of the two is meant is decided
//! before the arguments are parsed (`arguments`, and `quick` for the latency of `run`). What is here runs
//! code in a session of a server.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use clap::ValueEnum;
use sandbox_model::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::client::{
    Client, ClientError, Event, Events, Interruptions, Next, Request, ServerOptions, Stream,
};
use crate::command::execution::Outcome;
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, Refusal};

/// Run a command in a sandbox, or code in a session of a server
///
/// With a sandbox's NAME this is `sandbox run`, with its options: see there. With a SESSION (sess_
/// and 16 letters and digits), the code runs in that session on the server. What it prints comes as
/// it is printed, and its exit status is ours; 124 means that it was not done in time, 125 that it
/// crashed or was cancelled. What a Python or JavaScript handler returns is shown on stderr, and is
/// in what --json prints. When we are interrupted while it prints, the code is ended, too.
///
/// One argument is the code; several are a command of the shell with its arguments, after '--' where
/// they look like options of ours.
///
/// Examples:
///   sandbox exec risky cargo test
///   sandbox exec sess_0123456789abcdef 'echo hello | wc -c'
///   sandbox exec sess_0123456789abcdef -- ls -l /workspace
///   sandbox exec sess_0123456789abcdef --language python 'print(6 * 7)'
///   sandbox exec sess_0123456789abcdef --file handler.py --event '{"a": 1}' --json
///   sandbox exec sess_0123456789abcdef --timeout 3600 --detach ./train
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(
    verbatim_doc_comment,
    override_usage = "sandbox exec [OPTIONS] <SESSION> <CODE>...\n       sandbox exec [OPTIONS] <NAME> [--] <CMD>..."
)]
pub(crate) struct Args {
    /// The session; or a sandbox's name, then a command and its arguments
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// The code; '-' reads it from stdin
    #[arg(value_name = "CODE", required_unless_present = "file")]
    code: Vec<String>,

    /// What it is written in [shell, or what the name of FILE says]
    #[arg(long, short, value_name = "LANGUAGE")]
    language: Option<Language>,

    /// Read the code from this file
    #[arg(long, short, value_name = "FILE", conflicts_with = "code")]
    file: Option<PathBuf>,

    /// What it is given, as JSON; @FILE reads it from there, @- from stdin
    #[arg(long, short, value_name = "JSON")]
    event: Option<String>,

    /// How long it may take, 1 to 3600 seconds [30]
    #[arg(long, short, value_name = "SECONDS")]
    timeout: Option<u32>,

    /// Run it again when it crashes, three times at most
    #[arg(long)]
    retry: bool,

    /// Do not wait for it: print the execution's identifier
    #[arg(long, short)]
    detach: bool,

    /// What makes this safe to send again; one is made up without it
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,

    /// Print JSON: the result, or with --detach {"execution_id", "status", "submitted_at"}
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerOptions,
}

/// What code is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Language {
    Python,
    Javascript,
    Shell,
}

/// What is sent.
#[derive(Debug, Serialize)]
struct Body {
    code: String,
    language: Language,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Box<RawValue>>,
    retry: bool,
}

pub(crate) fn exec(args: &Args) -> Result<Ending, Problem> {
    let body = args.body()?;
    let client = args.server.connect()?;
    let request = Request::post(&["sessions", args.session.as_str(), "execute"]).json(&body);
    match (args.detach, args.json) {
        (true, json) => detach(&client, request, args, json),
        (false, true) => wait(&client, request, args),
        (false, false) => follow(&client, request, args),
    }
}

impl Args {
    fn body(&self) -> Result<Body, Problem> {
        let from_stdin = |text: &str| text == "-";
        let code_on_stdin = matches!(self.code.as_slice(), [one] if from_stdin(one))
            || self.file.as_deref() == Some(Path::new("-"));
        if code_on_stdin && self.event.as_deref() == Some("@-") {
            return Err(Refusal::new("stdin cannot be both the code and the event").into());
        }
        let language = self
            .language
            .unwrap_or_else(|| language_of(self.file.as_deref()));
        Ok(Body {
            code: self.code(language)?,
            language,
            timeout: self.timeout,
            event: self.event.as_deref().map(event).transpose()?,
            retry: self.retry,
        })
    }

    fn code(&self, language: Language) -> Result<String, Refusal> {
        if let Some(file) = &self.file {
            return text(file);
        }
        match (self.code.as_slice(), language) {
            ([one], _) if one == "-" => text(Path::new("-")),
            ([one], _) => Ok(one.clone()),
            (words, Language::Shell) => Ok(shell_line(words)),
            _ => Err(Refusal::new("the code is more than one argument")
                .hint("put it into quotes, or into a file for --file")),
        }
    }
}

/// What the name of a file says of what is in it.
fn language_of(file: Option<&Path>) -> Language {
    match file.and_then(Path::extension).and_then(OsStr::to_str) {
        Some("py") => Language::Python,
        Some("js" | "mjs" | "cjs") => Language::Javascript,
        _ => Language::Shell,
    }
}

/// The text of a file, or of stdin.
fn text(file: &Path) -> Result<String, Refusal> {
    let read = match file == Path::new("-") {
        true => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
        false => fs::read_to_string(file),
    };
    read.map_err(|error| Refusal::io(format!("cannot read {}", file.display()), error))
}

/// The event as it was written, which must be JSON.
fn event(given: &str) -> Result<Box<RawValue>, Refusal> {
    let json = match given.strip_prefix('@') {
        Some(file) => text(Path::new(file))?,
        None => given.to_owned(),
    };
    RawValue::from_string(json).map_err(|error| {
        Refusal::new("the event is not JSON")
            .caused_by(error)
            .hint("write it as '{\"name\": \"value\"}', or name a file with @FILE")
    })
}

/// Words as a line that means just them to a shell.
fn shell_line(words: &[String]) -> String {
    let quoted = |word: &String| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:,@%^=".contains(&byte);
        match !word.is_empty() && word.bytes().all(plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    };
    let quoted: Vec<String> = words.iter().map(quoted).collect();
    quoted.join(" ")
}

fn detach(client: &Client, request: Request, args: &Args, json: bool) -> Result<Ending, Problem> {
    let request = request.idempotent(args.idempotency_key.as_deref());
    let answer = client.send(&request)?;
    if json {
        output::print_line(answer.json()?)?;
        return Ok(Ending::DONE);
    }
    let Submitted { execution_id } = answer.read()?;
    output::print_line(&execution_id)?;
    narration::say(format_args!(
        "See what becomes of it with: sandbox execution result {execution_id} --wait"
    ));
    Ok(Ending::DONE)
}

fn wait(client: &Client, request: Request, args: &Args) -> Result<Ending, Problem> {
    let request = request
        .query("wait", Some(true))
        .idempotent(args.idempotency_key.as_deref());
    let answer = client.send(&request)?;
    let outcome: Outcome = answer.read()?;
    output::print_line(answer.json()?)?;
    Ok(outcome.ending())
}

#[derive(Debug, Deserialize)]
struct Submitted {
    execution_id: String,
}

/// Passes on what the code prints as it comes, and ends as it does. When we are to end before it, so is it.
fn follow(client: &Client, request: Request, args: &Args) -> Result<Ending, Problem> {
    let request = request
        .header("accept", Some("text/event-stream"))
        .idempotent(args.idempotency_key.as_deref());
    let stream = client.open(&request)?;
    let mut interruptions = client
        .interruptions()
        .map_err(|error| Refusal::io("cannot watch for signals", error))?;
    let mut execution = None;
    let ended = pass_on(client, stream, &mut interruptions, &mut execution);
    let given_up = matches!(&ended, Ok(Ending::Signal(_)) | Err(Problem::ClosedPipe));
    match (ended, execution) {
        (ended, Some(id)) if given_up => {
            cancel(client, &id, &mut interruptions);
            ended
        }
        (Err(Problem::Failure(failure)), Some(id)) => {
            crate::report::tell(&Problem::Failure(failure));
            Err(
                Refusal::new(format!("what became of execution {id} is not known here"))
                    .hint(format!(
                        "it may go on: sandbox execution result {id} --wait"
                    ))
                    .into(),
            )
        }
        (ended, _) => ended,
    }
}

/// Prints until the result is there, and notes which execution it is.
fn pass_on(
    client: &Client,
    mut stream: Stream<'_>,
    interruptions: &mut Interruptions,
    execution: &mut Option<String>,
) -> Result<Ending, Problem> {
    let mut events = Events::default();
    loop {
        let piece = match stream.next_or(interruptions)? {
            Next::Piece(piece) => piece,
            Next::Signal(signal) => return Ok(Ending::Signal(signal)),
            Next::End | Next::Silence => {
                return Err(ClientError::ended(client.server()).into());
            }
        };
        for event in events.feed(&piece) {
            match event.name.as_str() {
                "submitted" => {
                    *execution = Some(understood::<Submitted>(&event)?.execution_id);
                }
                "stdout" => print(&understood::<Printed>(&event)?.bytes()?)?,
                "stderr" => complain(&understood::<Printed>(&event)?.bytes()?),
                "result" => return Ok(understood::<Outcome>(&event)?.conclude()),
                "error" => return Err(Refusal::new("the server lost track of the code").into()),
                // A later server may tell more.
                _ => {}
            }
        }
    }
}

/// What the code printed.
#[derive(Debug, Deserialize)]
struct Printed {
    base64: String,
}

impl Printed {
    fn bytes(&self) -> Result<Vec<u8>, Refusal> {
        let bytes = BASE64_STANDARD.decode(&self.base64);
        bytes.map_err(|error| {
            Refusal::new("cannot understand what the server sends").caused_by(error)
        })
    }
}

fn understood<T: serde::de::DeserializeOwned>(event: &Event) -> Result<T, Refusal> {
    serde_json::from_slice(&event.data).map_err(|error| {
        Refusal::new(format!("cannot understand the event '{}'", event.name)).caused_by(error)
    })
}

fn print(bytes: &[u8]) -> Result<(), Problem> {
    let mut out = output::Output::open();
    out.write_all(bytes)
        .map_err(|error| out.blame(error, "cannot write the output"))?;
    Ok(out.finish()?)
}

fn complain(bytes: &[u8]) {
    let _ = io::stderr().lock().write_all(bytes);
}

/// Ends the execution. Somebody who is impatient need not wait for it.
fn cancel(client: &Client, id: &str, interruptions: &mut Interruptions) {
    let request = Request::post(&["executions", id, "cancel"]);
    match client.send_unless(&request, interruptions) {
        // One that ended meanwhile cannot be cancelled, and need not be.
        Some(Err(error)) if !error.is_refusal(409) => {
            narration::warn(format_args!("execution {id} may go on: {error}"));
        }
        None => narration::warn(format_args!("execution {id} may go on")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_words_mean_themselves_to_a_shell() {
        let line = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            shell_line(&words)
        };
        assert_eq!(line(&["ls", "-l", "/a b"]), "ls -l '/a b'");
        assert_eq!(
            line(&["echo", "it's", "$HOME", ""]),
            r"echo 'it'\''s' '$HOME' ''"
        );
        assert_eq!(line(&["~", "*", "a;b"]), "'~' '*' 'a;b'");
    }

    #[test]
    fn the_name_of_a_file_says_what_is_in_it() {
        let of = |file: &str| language_of(Some(Path::new(file)));
        assert_eq!(of("a/handler.py"), Language::Python);
        assert_eq!(of("x.mjs"), Language::Javascript);
        assert_eq!(of("x.sh"), Language::Shell);
        assert_eq!(of("-"), Language::Shell);
        assert_eq!(language_of(None), Language::Shell);
    }

    #[test]
    fn an_event_is_passed_on_as_it_was_written() {
        let given = r#"{"n": 1e400, "b": 1.10, "a": [ ]}"#;
        assert_eq!(event(given).unwrap().get(), given);
        for wrong in ["", "{", "a", "@/nowhere"] {
            assert!(event(wrong).is_err(), "{wrong}");
        }
    }
}
