//! `sandbox health`

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::client::{Client, ClientError, Request, ServerOptions};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, plain};
use crate::table::Table;

/// Show how a server and its parts are
///
/// Ends with status 1 when the server cannot do its work, as well as when nobody answers. No key is
/// needed, and none is sent.
///
/// Examples:
///   sandbox health
///   until sandbox health --ready; do sleep 1; done
///   sandbox health --metrics | grep sessions
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Only whether it takes requests
    #[arg(long)]
    ready: bool,

    /// What it measured, as Prometheus reads it
    #[arg(long, conflicts_with_all = ["ready", "json"])]
    metrics: bool,

    /// Print JSON: {"status", "version", "uptime_seconds", "components"}, or with --ready {"ready"}
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerOptions,
}

#[derive(Debug, Deserialize)]
struct Health {
    status: String,
    version: String,
    uptime_seconds: f64,
    components: BTreeMap<String, Component>,
}

#[derive(Debug, Deserialize)]
struct Component {
    status: String,
    latency_ms: f64,
    error: Option<String>,
}

/// The status with which a server that is well, and one that is not, answers.
const WELL: u16 = 200;
const UNWELL: u16 = 503;

pub(crate) fn health(args: &Args) -> Result<Ending, Problem> {
    let client = args.server.connect_as_stranger()?;
    if args.metrics {
        let answer = client.send(&Request::at_root("metrics"))?;
        output::print_line(answer.body.trim_ascii_end())?;
        return Ok(Ending::DONE);
    }
    match args.ready {
        true => ready(&client, args.json),
        false => parts(&client, args.json),
    }
}

fn ready(client: &Client, json: bool) -> Result<Ending, Problem> {
    #[derive(Serialize)]
    struct Ready {
        ready: bool,
    }
    let ready = match client.ask(&Request::at_root("ready"))?.status {
        WELL => true,
        UNWELL => false,
        status => return Err(stranger(client, status).into()),
    };
    match (json, ready) {
        (true, _) => output::print_json(&Ready { ready })?,
        (false, true) => narration::say(format_args!("{} is ready.", client.server())),
        (false, false) => narration::say(format_args!("{} is not ready.", client.server())),
    }
    Ok(Ending::Status(u8::from(!ready)))
}

fn parts(client: &Client, json: bool) -> Result<Ending, Problem> {
    let answer = client.ask(&Request::at_root("health"))?;
    if !matches!(answer.status, WELL | UNWELL) {
        return Err(stranger(client, answer.status).into());
    }
    let health: Health = answer.read()?;
    match json {
        true => output::print_line(answer.json()?)?,
        false => print(&health)?,
    }
    Ok(Ending::Status(u8::from(answer.status != WELL)))
}

fn print(health: &Health) -> Result<(), Problem> {
    let mut table = Table::new(&["PART", "STATUS", "LATENCY", "PROBLEM"]);
    for (name, part) in &health.components {
        table.row(vec![
            plain(name),
            plain(&part.status),
            format!("{:.1} ms", part.latency_ms),
            part.error.as_deref().map_or_else(String::new, plain),
        ]);
    }
    output::print_table(&table)?;
    narration::say(format_args!(
        "{}, version {}, up for {} s",
        plain(&health.status),
        plain(&health.version),
        health.uptime_seconds as u64
    ));
    Ok(())
}

fn stranger(client: &Client, status: u16) -> ClientError {
    ClientError::Stranger {
        server: client.server(),
        status,
    }
}
