//! `sandbox key`

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use jiff::Timestamp;
use sandbox_model::KeyId;
use serde::{Deserialize, Serialize};

use crate::ages;
use crate::client::{Client, Paging, Request, ServerOptions, listing};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, Refusal, plain};
use crate::table::Table;

/// Make, list and revoke a server's API keys
///
/// Only a key with the scope admin may do so.
///
/// Examples:
///   sandbox key create ci --scope operate --output ci.key
///   sandbox key list
///   sandbox key revoke key_0123456789abcdef
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    server: ServerOptions,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
#[cfg_attr(test, derive(PartialEq))]
enum Verb {
    Create(CreateArgs),
    #[command(visible_alias = "ls")]
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// Make a key
///
/// The key itself is printed on stdout. The server does not keep it and never shows it again.
///
/// Examples:
///   sandbox key create dashboard --scope read
///   sandbox key create ci --scope operate --output ci.key
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
struct CreateArgs {
    /// What people call it
    #[arg(value_name = "NAME")]
    label: String,

    /// What it allows; each allows what the one before it does
    #[arg(long, value_name = "SCOPE")]
    scope: Scope,

    /// Write the key to this new file, which only you can read, and not to stdout
    #[arg(long, short, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,

    /// Print JSON: {"key_id", "name", "scope", "created_at", "revoked_at", "secret"}
    #[arg(long)]
    json: bool,
}

/// What a key allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Scope {
    /// To look
    Read,
    /// To make, use and end sessions
    Operate,
    /// Everything
    Admin,
}

/// List keys, newest first, revoked ones too
///
/// Examples:
///   sandbox key list
///   sandbox key list --json | jq -r '.keys[] | select(.revoked_at == null).name'
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
struct ListArgs {
    #[command(flatten)]
    paging: Paging,

    /// Print JSON: {"keys": [{"key_id", "name", "scope", "created_at", "revoked_at"}], "total", "next_cursor"}
    #[arg(long)]
    json: bool,
}

/// Make a key open nothing from now on
///
/// Examples:
///   sandbox key revoke key_0123456789abcdef
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
struct RevokeArgs {
    /// The key's identifier
    #[arg(value_name = "KEY")]
    key: KeyId,

    /// Print JSON: {"key_id"}
    #[arg(long)]
    json: bool,
}

/// What is shown of a key.
#[derive(Debug, Deserialize)]
struct Key {
    key_id: String,
    name: String,
    scope: String,
    created_at: Timestamp,
    revoked_at: Option<Timestamp>,
}

pub(crate) fn key(args: &Args) -> Result<Ending, Problem> {
    let client = args.server.connect()?;
    match &args.verb {
        Verb::Create(args) => create(&client, args),
        Verb::List(args) => list(&client, args),
        Verb::Revoke(args) => revoke(&client, args),
    }
}

fn create(client: &Client, args: &CreateArgs) -> Result<Ending, Problem> {
    #[derive(Serialize)]
    struct Body<'a> {
        name: &'a str,
        scope: Scope,
    }
    #[derive(Deserialize)]
    struct Made {
        key_id: String,
        secret: String,
    }
    // First, because what the server makes is lost when there is nowhere to write it.
    let mut file = args.output.as_deref().map(new_file).transpose()?;
    let body = Body {
        name: &args.label,
        scope: args.scope,
    };
    let answer = client.send(&Request::post(&["api-keys"]).json(&body));
    let answer = answer.inspect_err(|_| {
        if let Some(path) = &args.output {
            let _ = std::fs::remove_file(path);
        }
    })?;
    if args.json {
        output::print_line(answer.json()?)?;
        return Ok(Ending::DONE);
    }
    let made: Made = answer.read()?;
    match (&mut file, &args.output) {
        (Some(file), Some(path)) => writeln!(file, "{}", made.secret)
            .and_then(|()| file.sync_all())
            .map_err(|error| Refusal::io(format!("cannot write {}", path.display()), error))?,
        _ => output::print_line(&made.secret)?,
    }
    narration::say(format_args!(
        "Created key {}. Revoke it with: sandbox key revoke {}",
        plain(&made.key_id),
        plain(&made.key_id)
    ));
    Ok(Ending::DONE)
}

fn new_file(path: &Path) -> Result<std::fs::File, Refusal> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(path);
    opened.map_err(|error| Refusal::io(format!("cannot create {}", path.display()), error))
}

fn list(client: &Client, args: &ListArgs) -> Result<Ending, Problem> {
    let found = listing(client, &Request::get(&["api-keys"]), "keys", &args.paging)?;
    if args.json {
        output::print_line(found.into_json()?)?;
        return Ok(Ending::DONE);
    }
    let keys: Vec<Key> = found.read()?;
    if keys.is_empty() {
        narration::say(format_args!("No keys but the admin's own."));
        return Ok(Ending::DONE);
    }
    let mut table = Table::new(&["KEY", "NAME", "SCOPE", "CREATED", "REVOKED"]);
    let now = Timestamp::now();
    for key in &keys {
        table.row(vec![
            plain(&key.key_id),
            plain(&key.name),
            plain(&key.scope),
            ages::ago(key.created_at, now),
            key.revoked_at
                .map_or_else(|| "-".to_owned(), |at| ages::ago(at, now)),
        ]);
    }
    output::print_table(&table)?;
    if let Some(rest) = found.rest() {
        narration::say(format_args!("{rest}"));
    }
    Ok(Ending::DONE)
}

fn revoke(client: &Client, args: &RevokeArgs) -> Result<Ending, Problem> {
    #[derive(Serialize)]
    struct Revoked<'a> {
        key_id: &'a str,
    }
    let key_id = args.key.as_str();
    client.send(&Request::delete(&["api-keys", key_id]))?;
    match args.json {
        true => output::print_json(&Revoked { key_id })?,
        false => narration::say(format_args!("Revoked key {key_id}.")),
    }
    Ok(Ending::DONE)
}
