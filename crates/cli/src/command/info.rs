//! `sandbox info`

use jiff::Timestamp;
use sandbox_isolation::Runs;
use sandbox_isolation::limits::{self, Held};
use sandbox_isolation::network::Refused;
use sandbox_isolation::runs::Process;
use sandbox_model::{BackendKind, ByteSize, Network, SandboxName, Settings};
use sandbox_workspace::drift::{Drift, drift};
use sandbox_workspace::sandbox::HomeUse;
use sandbox_workspace::{Sandbox, undo};
use serde::Serialize;

use crate::ages;
use crate::command::create::shown;
use crate::command::list::count_changes;
use crate::ending::Ending;
use crate::output;
use crate::refusals;
use crate::report::{Problem, plain};
use crate::status::{Status, last_used};
use crate::summary::counted;
use crate::surroundings;

/// Show everything about a sandbox
///
/// Source, backend, age, disk use, changes, what was written to the home inside, what is kept to undo
/// promotes to its source, what changed in the source since it was created, processes, network and
/// refused connections, limits and whether each is enforced here, environment.
///
/// Examples:
///   sandbox info risky
///   sandbox info risky --json | jq .processes
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// Print JSON, with the same fields as the text
    #[arg(long)]
    json: bool,
}

/// Everything about a sandbox; what cannot be found out now is null.
#[derive(Serialize)]
struct Info {
    name: SandboxName,
    source: String,
    source_exists: bool,
    backend: BackendKind,
    created: Timestamp,
    last_used: Timestamp,
    status: Status,
    forked_from: Option<SandboxName>,
    directory: String,
    size: Option<u64>,
    changes: Option<usize>,
    home: Option<HomeUse>,
    undo: Option<Undo>,
    drift: Option<Drift>,
    processes: Vec<Process>,
    settings: Settings,
    limits: Vec<Held>,
    refused: Vec<Refused>,
    environment: Vec<String>,
    notes: Vec<String>,
}

/// What is kept to undo promotes to the source, and for how long.
#[derive(Serialize)]
struct Undo {
    promotes: usize,
    size: u64,
    keep_promotes: usize,
    keep_days: i64,
}

pub(crate) fn info(args: &Args) -> Result<Ending, Problem> {
    let sandbox = surroundings::sandbox(&args.name)?;
    let info = look(&sandbox)?;
    match args.json {
        true => output::print_json(&info)?,
        false => output::print_fields(&fields(&info))?,
    }
    Ok(Ending::DONE)
}

fn look(sandbox: &Sandbox) -> Result<Info, Problem> {
    let processes = Runs::open(&sandbox.runs_dir())
        .processes()
        .unwrap_or_default();
    let settings = sandbox.meta.settings.clone();
    Ok(Info {
        name: sandbox.name().clone(),
        source: shown(sandbox.source()),
        source_exists: sandbox.source().is_dir(),
        backend: sandbox.meta.backend,
        created: sandbox.meta.created,
        last_used: last_used(sandbox),
        status: Status::of(sandbox, &processes, surroundings::config()?.stale_days()),
        forked_from: sandbox.meta.forked_from.clone(),
        directory: shown(&sandbox.dir),
        size: sandbox.disk_use().ok(),
        changes: count_changes(sandbox),
        home: sandbox.home_use().ok(),
        undo: undo_use(sandbox),
        drift: drift(sandbox).ok(),
        limits: limits::holding(&settings.limits),
        refused: refusals::read(sandbox),
        environment: environment(sandbox),
        notes: sandbox
            .notes()
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect(),
        processes,
        settings,
    })
}

fn undo_use(sandbox: &Sandbox) -> Option<Undo> {
    let used = undo::usage_of(&sandbox.root, sandbox.source()).ok()?;
    Some(Undo {
        promotes: used.as_ref().map_or(0, |used| used.promotes),
        size: used.as_ref().map_or(0, |used| used.size),
        keep_promotes: undo::KEEP_COUNT,
        keep_days: undo::KEEP_DAYS,
    })
}

/// Variables that are set inside, whatever the caller's are.
fn environment(sandbox: &Sandbox) -> Vec<String> {
    let mut variables = vec![
        format!("SANDBOX_NAME={}", sandbox.name()),
        format!("SANDBOX_SOURCE={}", shown(sandbox.source())),
        format!("SANDBOX_CREATED={}", sandbox.meta.created),
        "IN_SANDBOX=1".to_owned(),
    ];
    let own = sandbox.meta.settings.env.iter();
    variables.extend(own.map(|variable| plain(&format!("{}={}", variable.name, variable.value))));
    variables
}

/// Labels with their lines.
fn fields(info: &Info) -> Vec<(&'static str, Vec<String>)> {
    let now = Timestamp::now();
    let age = |at: Timestamp| format!("{} ({})", ages::local(at), ages::ago(at, now));
    let unknown = || "unknown".to_owned();
    let gone = if info.source_exists { "" } else { " (gone)" };
    let size = info
        .size
        .map_or_else(unknown, |size| ByteSize(size).to_string());
    vec![
        ("Name", vec![info.name.to_string()]),
        ("Source", vec![format!("{}{gone}", info.source)]),
        ("Backend", vec![info.backend.to_string()]),
        ("Created", vec![age(info.created)]),
        ("Last used", vec![age(info.last_used)]),
        ("Status", vec![info.status.as_str().to_owned()]),
        (
            "Forked from",
            info.forked_from.iter().map(ToString::to_string).collect(),
        ),
        ("Directory", vec![info.directory.clone()]),
        ("Disk use", vec![size]),
        (
            "Changes",
            vec![info.changes.map_or_else(unknown, |count| count.to_string())],
        ),
        ("Home", vec![info.home.map_or_else(unknown, home_line)]),
        (
            "Undo",
            vec![info.undo.as_ref().map_or_else(unknown, undo_line)],
        ),
        (
            "Drift",
            vec![info.drift.as_ref().map_or_else(unknown, drift_line)],
        ),
        ("Processes", process_lines(&info.processes)),
        ("Isolation", isolation_lines(&info.settings)),
        ("Network", network_lines(&info.settings.network)),
        ("Refused", info.refused.iter().map(refused_line).collect()),
        ("Limits", limit_lines(&info.limits)),
        ("Environment", environment_lines(info)),
        ("Notes", info.notes.clone()),
    ]
}

fn home_line(home: HomeUse) -> String {
    let files = usize::try_from(home.files).unwrap_or(usize::MAX);
    let files = counted(files, "file", "files");
    format!("{files} written inside, {}", ByteSize(home.size))
}

fn undo_line(undo: &Undo) -> String {
    format!(
        "{} of the source kept, {}; at most {}, for {} days",
        counted(undo.promotes, "promote", "promotes"),
        ByteSize(undo.size),
        undo.keep_promotes,
        undo.keep_days
    )
}

fn drift_line(drift: &Drift) -> String {
    if drift.count == 0 {
        return "nothing changed in the source since it was created".to_owned();
    }
    let first: Vec<String> = drift.first.iter().map(ToString::to_string).collect();
    let more = if drift.count as usize > first.len() {
        ", …"
    } else {
        ""
    };
    let count = counted(drift.count as usize, "entry", "entries");
    format!(
        "{count} changed in the source since it was created: {}{more}",
        first.join(", ")
    )
}

fn process_lines(processes: &[Process]) -> Vec<String> {
    if processes.is_empty() {
        return vec!["none".to_owned()];
    }
    let line = |process: &Process| {
        let memory = ByteSize(process.memory);
        format!(
            "{} {} {memory} {}",
            process.pid,
            process.state,
            plain(&process.command)
        )
    };
    processes.iter().map(line).collect()
}

fn isolation_lines(settings: &Settings) -> Vec<String> {
    use sandbox_model::Wall;
    let mut lines = vec![match settings.wall {
        Wall::Namespaces => "namespaces, seccomp, Landlock".to_owned(),
        Wall::Landlock => "Landlock and seccomp only (weaker, as asked)".to_owned(),
    }];
    lines.extend(settings.expose.iter().map(|exposure| {
        let how = if exposure.writable {
            "writable"
        } else {
            "read-only"
        };
        format!("exposes {} ({how})", shown(&exposure.path))
    }));
    lines.extend(
        settings
            .hide
            .iter()
            .map(|path| format!("hides {}", shown(path))),
    );
    lines
}

fn network_lines(network: &Network) -> Vec<String> {
    let Network::Isolated {
        ports,
        hosts,
        publish,
    } = network
    else {
        return vec!["the host's".to_owned()];
    };
    let mut lines = vec!["isolated".to_owned()];
    lines.extend(
        ports
            .iter()
            .map(|port| format!("reaches the host's port {port}")),
    );
    lines.extend(hosts.iter().map(|host| format!("reaches {host}")));
    lines.extend(publish.iter().map(|port| {
        format!(
            "the host's port {} leads to port {} inside",
            port.host, port.inside
        )
    }));
    lines
}

fn refused_line(refused: &Refused) -> String {
    let times = match refused.count {
        1 => String::new(),
        count => format!(" ({count} times)"),
    };
    format!(
        "{}: {}{times}",
        plain(&refused.target),
        plain(&refused.reason)
    )
}

fn limit_lines(limits: &[Held]) -> Vec<String> {
    if limits.is_empty() {
        return vec!["none".to_owned()];
    }
    let line = |held: &Held| match &held.by {
        Ok(by) => format!("{} {}, enforced by {by}", held.limit, held.value),
        Err(reason) => format!(
            "{} {}, NOT enforceable here: {reason}",
            held.limit, held.value
        ),
    };
    limits.iter().map(line).collect()
}

fn environment_lines(info: &Info) -> Vec<String> {
    let mut lines = vec![match info.settings.clean_env {
        true => "only essential variables of the caller's".to_owned(),
        false => "the caller's, less secrets and sockets".to_owned(),
    }];
    lines.extend(info.environment.iter().cloned());
    lines
}
