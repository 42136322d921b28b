//! What a conversation with an executor takes: time and memory. As root, in a release build:
//! `cargo run --release -p sandbox-runtime --example conversation -- DIRECTORY USER-ID`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandbox_executor::protocol::Ask;
use sandbox_executor::{Happening, Request};
use sandbox_linux::identity::Ids;
use sandbox_model::execution::Language;
use sandbox_runtime::{Line, Local, Nursery, SessionSpec, Workspace};

const TIMES: usize = 100;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().unwrap());
    let user: u32 = arguments.next().unwrap().parse().unwrap();
    let ids = Ids { user, group: user };
    let nursery = Nursery::start(&directory, Some(ids)).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (local, _ends) = Local::new(nursery).unwrap();
        measure(&directory, &local).await;
    });
}

async fn measure(directory: &Path, local: &Local) {
    let line = raise(local, 'a').await;
    tell("idle, nothing run", memory(directory, 'a').await);
    let shell = request(Language::Shell, "true");
    let python = request(Language::Python, "def handler(event):\n    return event");
    let prints = request(Language::Shell, "echo hello");
    round_trips("ping", async || drop(line.ask(Ask::Ping).await.unwrap())).await;
    round_trips("shell true", async || run(&line, &shell).await).await;
    let streaming = |request: &Request| Request {
        stream: true,
        ..request.clone()
    };
    round_trips("shell true, streamed", async || {
        run(&line, &streaming(&shell)).await
    })
    .await;
    round_trips("shell echo", async || run(&line, &prints).await).await;
    round_trips("shell echo, streamed", async || {
        run(&line, &streaming(&prints)).await
    })
    .await;
    round_trips("python handler", async || run(&line, &python).await).await;
    round_trips("python handler, streamed", async || {
        run(&line, &streaming(&python)).await
    })
    .await;
    tell(
        "idle, with a warm interpreter",
        memory(directory, 'a').await,
    );
    let file = request(Language::Shell, "echo > file; rm file; echo > file");
    round_trips("shell, one artifact", async || run(&line, &file).await).await;
    for directories in [100, 1_000, 5_000] {
        let make = format!("mkdir -p $(seq -f d%.0f/x {directories})");
        run(&line, &request(Language::Shell, &make)).await;
        let what = format!("shell true, {} directories", 2 * directories);
        round_trips(&what, async || run(&line, &shell).await).await;
    }
    tell(
        "idle, with that many directories",
        memory(directory, 'a').await,
    );
    let large = request(
        Language::Shell,
        "head -c 2M /dev/zero; head -c 2M /dev/zero >&2",
    );
    run(&line, &streaming(&large)).await;
    tell("idle, after 2 MiB of output", memory(directory, 'a').await);
}

async fn raise(local: &Local, letter: char) -> Line {
    let spec = SessionSpec {
        session_id: id(letter).parse().unwrap(),
        workspace: Workspace::Empty,
        env_vars: BTreeMap::new(),
    };
    local.discard(&spec.session_id).await.unwrap();
    local.raise(spec).await.unwrap()
}

fn id(letter: char) -> String {
    format!("sess_{}", letter.to_string().repeat(16))
}

fn request(language: Language, code: &str) -> Request {
    Request {
        execution_id: "exec_20261116_abcdefgh".parse().unwrap(),
        code: code.to_owned(),
        language,
        event: serde_json::json!({ "a": 1 }),
        timeout_seconds: 30,
        stream: false,
    }
}

async fn run(line: &Line, request: &Request) {
    let mut course = line.begin(request.clone()).await.unwrap();
    while let Some(happening) = course.next().await {
        if let Happening::Outcome(outcome) = happening.unwrap() {
            assert_eq!(outcome.result.exit_code, 0, "{outcome:?}");
        }
    }
}

async fn round_trips(what: &str, body: impl AsyncFn()) {
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let begin = Instant::now();
        body().await;
        times.push(begin.elapsed());
        // Not more often than somebody would ask: what is made ahead has to be made.
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    times.sort();
    let (half, most) = (times[TIMES / 2], times[TIMES * 95 / 100]);
    println!("{what}: p50 {half:?}, p95 {most:?}");
}

/// What the session's executor has, when it has come to rest.
async fn memory(directory: &Path, letter: char) -> BTreeMap<String, u64> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let runs = directory.join(format!("sandboxes/{}/runs", id(letter)));
    let names = std::fs::read_dir(runs).unwrap();
    let pid = names.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<i32>().ok());
    let pid = { pid }.next().unwrap();
    let below: u64 = below(pid).into_iter().map(|pid| of(pid)["Pss"]).sum();
    let mut memory = of(pid);
    memory.insert("Below".to_owned(), below);
    memory
}

/// What one process has.
fn of(pid: i32) -> BTreeMap<String, u64> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    let line = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let size = rest.trim().strip_suffix(" kB")?.parse().ok()?;
        Some((name.to_owned(), size))
    };
    let text = read("smaps_rollup") + &read("status");
    text.lines().filter_map(line).collect()
}

/// Its children, and theirs.
fn below(pid: i32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
    children
        .flat_map(|child| [vec![child], below(child)].concat())
        .collect()
}

fn tell(what: &str, memory: BTreeMap<String, u64>) {
    let size = |name: &str| memory.get(name).copied().unwrap_or(0);
    let own = size("Private_Clean") + size("Private_Dirty");
    println!(
        "{what}: {own} KiB of its own, {} KiB with its share, {} KiB in all, {} KiB at most; {} KiB in what waits",
        size("Pss"),
        size("Rss"),
        size("VmHWM"),
        size("Below"),
    );
}
