//! `sandbox node`

use jiff::Timestamp;
use sandbox_model::{ByteSize, NodeId};
use serde::Deserialize;

use crate::ages;
use crate::client::{Client, Paging, Request, ServerOptions, listing};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, plain};
use crate::table::Table;

/// Look at the machines that sessions run on, and take one out of service
///
/// Examples:
///   sandbox node list
///   sandbox node drain worker-1
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
    #[command(visible_alias = "ls")]
    List(ListArgs),
    Drain(DrainArgs),
}

/// List nodes, by name
///
/// CPU, MEMORY and DISK are what sessions were promised, of what there is.
///
/// Examples:
///   sandbox node list
///   sandbox node list --json | jq '.nodes[].labels'
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
struct ListArgs {
    #[command(flatten)]
    paging: Paging,

    /// Print JSON: {"nodes": [node], "total", "next_cursor"}
    #[arg(long)]
    json: bool,
}

/// Let a node take no new sessions; those it has go on
///
/// Examples:
///   sandbox node drain worker-1
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
struct DrainArgs {
    /// The node
    #[arg(value_name = "NODE")]
    node: NodeId,

    /// Print JSON: the node, as the API has it
    #[arg(long)]
    json: bool,
}

/// What is shown of a node.
#[derive(Debug, Deserialize)]
struct Node {
    node_id: String,
    hostname: String,
    runtime_type: String,
    status: String,
    total_resources: Capacity,
    allocated_resources: Capacity,
    last_heartbeat_at: Timestamp,
}

#[derive(Debug, Deserialize)]
struct Capacity {
    cpu: f64,
    memory_bytes: u64,
    disk_bytes: u64,
}

pub(crate) fn node(args: &Args) -> Result<Ending, Problem> {
    let client = args.server.connect()?;
    match &args.verb {
        Verb::List(args) => list(&client, args),
        Verb::Drain(args) => drain(&client, args),
    }
}

fn list(client: &Client, args: &ListArgs) -> Result<Ending, Problem> {
    let found = listing(client, &Request::get(&["nodes"]), "nodes", &args.paging)?;
    if args.json {
        output::print_line(found.into_json()?)?;
        return Ok(Ending::DONE);
    }
    let nodes: Vec<Node> = found.read()?;
    let headings = [
        "NODE",
        "HOST",
        "RUNTIME",
        "STATUS",
        "CPU",
        "MEMORY",
        "DISK",
        "HEARTBEAT",
    ];
    let mut table = Table::new(&headings);
    let now = Timestamp::now();
    for node in &nodes {
        let (used, all) = (&node.allocated_resources, &node.total_resources);
        let bytes = |used: u64, all: u64| format!("{} of {}", ByteSize(used), ByteSize(all));
        table.row(vec![
            plain(&node.node_id),
            plain(&node.hostname),
            plain(&node.runtime_type),
            plain(&node.status),
            format!("{} of {}", used.cpu, all.cpu),
            bytes(used.memory_bytes, all.memory_bytes),
            bytes(used.disk_bytes, all.disk_bytes),
            ages::ago(node.last_heartbeat_at, now),
        ]);
    }
    output::print_table(&table)?;
    if let Some(rest) = found.rest() {
        narration::say(format_args!("{rest}"));
    }
    Ok(Ending::DONE)
}

fn drain(client: &Client, args: &DrainArgs) -> Result<Ending, Problem> {
    let node = args.node.as_str();
    let answer = client.send(&Request::post(&["nodes", node, "drain"]))?;
    match args.json {
        true => output::print_line(answer.json()?)?,
        false => narration::say(format_args!("Node {node} takes no new sessions.")),
    }
    Ok(Ending::DONE)
}
