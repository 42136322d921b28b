//! `sandbox session create`

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use sandbox_model::TemplateId;
use serde::Serialize;

use super::view::Session;
use crate::ages;
use crate::client::{Client, Request};
use crate::command::resources::Resources;
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, Refusal};
use crate::surroundings;

/// Make a session
///
/// It is running when this returns; its identifier is printed on stdout. It ends when it expires or
/// nothing is done with it for long; what was written is downloadable for a day after that.
///
/// A variable whose value is nobody's business is given by its name alone, and taken from your own
/// environment: arguments can be read by everybody on the machine.
///
/// Examples:
///   sandbox session create python-basic
///   sandbox session create python-basic --timeout 3600 --memory 1Gi --env TOKEN
///   sandbox session create nodejs-basic --allow registry.npmjs.org:443
///   sandbox session create python-basic --file src/main.py=main.py
///   sandbox session create python-basic --mode persistent --agent ada
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// What it is made from; `sandbox template list` shows what there is
    #[arg(value_name = "TEMPLATE")]
    template: TemplateId,

    /// How long it lives, 60 to 3600 seconds [300]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,

    /// Whether the workspace is reattached by the next session of the same agent
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,

    /// Whose it is; a persistent one needs it
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Set a variable for its code; without a value, to the value it has here
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    env: Vec<String>,

    /// Set the variables in a file, a NAME=VALUE on each line
    #[arg(long, value_name = "FILE")]
    env_file: Vec<PathBuf>,

    /// Let its code reach the network: every public address, where no --allow says otherwise
    #[arg(long)]
    network: bool,

    /// Let its code reach this host and port; implies --network
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    allow: Vec<String>,

    /// Start from a copy of this directory of the server's, below a root that its configuration names
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    source: Option<String>,

    /// Start with this text file of yours at PATH in the workspace; again for more
    #[arg(long, value_name = "PATH=FILE")]
    file: Vec<String>,

    /// Whether it is to come from the warm pool
    #[arg(long, value_name = "CHOICE")]
    pool: Option<Pool>,

    /// What makes this safe to send again; one is made up without it
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,

    /// Print JSON: the session, as the API has it
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    resources: Resources,
}

/// How long a session and its workspace live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// It ends when it is idle or expires
    Ephemeral,
    /// The next session of the same agent finds its workspace
    Persistent,
}

/// Whether a session is to come from the warm pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Pool {
    /// If there is one
    Prefer,
    /// Or not at all
    Require,
    /// Not even if there is one
    Never,
}

/// What is sent.
#[derive(Debug, Serialize)]
struct Body<'a> {
    template_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
    resources: &'a Resources,
    env_vars: BTreeMap<String, String>,
    network: Network<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Source<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<Pool>,
}

#[derive(Debug, Serialize)]
struct Network<'a> {
    enabled: bool,
    allow: &'a [String],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Source<'a> {
    Directory(&'a str),
    Files(BTreeMap<&'a str, String>),
}

pub(super) fn create(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let request = Request::post(&["sessions"])
        .json(&args.body()?)
        .idempotent(args.idempotency_key.as_deref());
    let answer = client.send(&request)?;
    if args.json {
        output::print_line(answer.json()?)?;
        return Ok(Ending::DONE);
    }
    let session: Session = answer.read()?;
    tell(&session)?;
    let id = &session.session_id;
    narration::say(format_args!(
        "Run something in it with: sandbox exec {id} 'echo hello'"
    ));
    Ok(Ending::DONE)
}

/// Prints the identifier of a session that was made, and says until when it lives.
pub(super) fn tell(session: &Session) -> Result<(), Problem> {
    output::print_line(&session.session_id)?;
    narration::say(format_args!(
        "Created session {} of {}, until {}.",
        session.session_id,
        session.template_id,
        ages::local(session.expires_at)
    ));
    Ok(())
}

impl Args {
    fn body(&self) -> Result<Body<'_>, Problem> {
        Ok(Body {
            template_id: self.template.as_str(),
            timeout: self.timeout,
            mode: self.mode,
            agent_id: self.agent.as_deref(),
            resources: &self.resources,
            env_vars: self.variables()?,
            network: Network {
                enabled: self.network || !self.allow.is_empty(),
                allow: &self.allow,
            },
            source: self.origin()?,
            pool: self.pool,
        })
    }

    /// Files first: what is said on the command line goes over them.
    fn variables(&self) -> Result<BTreeMap<String, String>, Problem> {
        let mut variables = BTreeMap::new();
        for path in &self.env_file {
            variables.extend(variables_in(path)?);
        }
        for text in &self.env {
            variables.extend([variable(text)?]);
        }
        Ok(variables)
    }

    fn origin(&self) -> Result<Option<Source<'_>>, Problem> {
        if let Some(directory) = &self.source {
            return Ok(Some(Source::Directory(directory)));
        }
        if self.file.is_empty() {
            return Ok(None);
        }
        let mut files = BTreeMap::new();
        for pair in &self.file {
            let (path, file) = pair.split_once('=').ok_or_else(|| {
                Refusal::new(format!("'{pair}' is not PATH=FILE"))
                    .hint("write it as --file main.py=./main.py")
            })?;
            let text = fs::read_to_string(file)
                .map_err(|error| Refusal::io(format!("cannot read {file} as text"), error))?;
            files.insert(path, text);
        }
        Ok(Some(Source::Files(files)))
    }
}

/// `NAME=VALUE`, or `NAME` and the value that it has here.
fn variable(text: &str) -> Result<(String, String), Refusal> {
    if let Some((name, value)) = text.split_once('=') {
        return Ok((name.to_owned(), value.to_owned()));
    }
    let value = surroundings::variable(text).ok_or_else(|| {
        Refusal::new(format!("the variable {text} is not set here"))
            .hint("set it, or give its value with --env NAME=VALUE")
    })?;
    let value = value
        .into_string()
        .map_err(|_| Refusal::new(format!("the variable {text} is not UTF-8")))?;
    Ok((text.to_owned(), value))
}

/// A variable on each line; empty ones and those that begin with `#` say nothing.
fn variables_in(path: &Path) -> Result<Vec<(String, String)>, Refusal> {
    let text = fs::read_to_string(path)
        .map_err(|error| Refusal::io(format!("cannot read {}", path.display()), error))?;
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .map(|(at, line)| {
            let (name, value) = line.split_once('=').ok_or_else(|| {
                // The line may be a secret.
                Refusal::new(format!("{}:{}: no NAME=VALUE", path.display(), at + 1))
            })?;
            Ok((name.trim().to_owned(), value.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_come_from_files_and_the_command_line() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("env");
        fs::write(&file, "# those of all\n\nA=1\nB=x=y \n").unwrap();
        let found = variables_in(&file).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(found, [pair("A", "1"), pair("B", "x=y ")]);
        assert_eq!(variable("C=").unwrap(), pair("C", ""));
        assert_eq!(variable("HOME").unwrap().0, "HOME");
        assert!(variable("SURELY_NOT_SET_ANYWHERE").is_err());
        fs::write(&file, "A=1\nhunter2\n").unwrap();
        let told = variables_in(&file).unwrap_err().to_string();
        assert!(told.ends_with("env:2: no NAME=VALUE"), "{told}");
    }
}
