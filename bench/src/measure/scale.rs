//! Many sessions: a thousand that run, then ten thousand that nobody uses.
//!
//! A running one has its executor up, and was asked to run something and answered. What it takes is the
//! proportional set size of its processes, the executor and what waits in it; what the kernel has for it
//! besides, namespaces and mounts and groups, is told beside it as the memory that the machine has less.
//! One that nobody used for a minute has no processes any more, and gets them when it is used again: how
//! long that takes, one at a time, is measured from the client, and all of them are asked once. That begins when the
//! machine is idle, too: what ten thousand sessions gave up, the kernel clears away in its own time.
//!
//! Making a session, without the pool, is timed with none there, with a thousand and with ten thousand.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;
use crate::processes::{Process, Weight, available, busy};
use crate::report::Row;
use crate::server::Server;
use crate::stage::{Filesystem, Stage, StageError};
use crate::timing::{median, pause, percentile};

const RUNNING: usize = 1_000;
const IDLE: usize = 10_000;

/// How many creates are timed.
const CREATES: usize = 60;

/// How many sessions are woken one at a time.
const WOKEN: usize = 300;

/// How many clients make and ask sessions where that is not timed.
const CLIENTS: usize = 4;

/// How long sessions may take to give up their processes.
const PATIENCE: Duration = Duration::from_secs(180);

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let place = stage.place(Filesystem::Host, "scale")?;
    let server = Server::start(stage, &place.dir.join("server"), None, &[])?;
    pause(Duration::from_secs(2));
    let none = Crowd::of(&server);
    let alone = create(&server)?;

    eprintln!("  making {RUNNING} sessions");
    let mut sessions = make(&server, RUNNING)?;
    eprintln!("  asking each of them");
    ask_all(&server, &sessions)?;
    let running = Crowd::of(&server);
    let among_running = create(&server)?;

    eprintln!("  making {} more", IDLE - RUNNING);
    sessions.extend(make(&server, IDLE - RUNNING)?);
    eprintln!("  waiting until nobody has used them for a minute");
    await_idle(&server)?;
    eprintln!("  waiting until the kernel has cleared away what they gave up");
    await_quiet()?;
    let idle = Crowd::of(&server);
    let among_idle = create(&server)?;
    eprintln!("  asking {WOKEN} of them, one at a time");
    let (slow, quick) = sessions.split_at(WOKEN);
    let (mut client, mut woken) = (server.client()?, Vec::new());
    for session in slow {
        let begun = Instant::now();
        client.run(session, &shell())?;
        woken.push(begun.elapsed());
    }
    eprintln!("  asking the others");
    ask_all(&server, quick)?;

    let each = |what: u64, number: usize| what / number as u64;
    let count = running.executors - none.executors;
    if count < RUNNING {
        return Err(StageError::Output {
            command: format!("{RUNNING} sessions that run"),
            output: format!("{count} executors"),
        });
    }
    let within = Duration::from_millis(20);
    Ok(vec![
        Row::memory(
            "memory of each of 1,000 running sessions",
            each(running.inside.memory - none.inside.memory, count),
            None,
            2 << 10,
        ),
        Row::count(
            "tasks of each of them",
            (running.inside.tasks - none.inside.tasks) as f64 / count as f64,
            3.0,
        ),
        Row::memory(
            "what the machine has less for each of them",
            each(none.available.saturating_sub(running.available), count),
            None,
            2 << 10,
        )
        .for_information(),
        Row::memory(
            "memory of each of 10,000 idle sessions",
            each(idle.all.memory.saturating_sub(none.all.memory), IDLE),
            None,
            2 << 10,
        ),
        Row::memory(
            "what the machine has less for each of them",
            each(none.available.saturating_sub(idle.available), IDLE),
            None,
            2 << 10,
        )
        .for_information(),
        Row::ratio("create, 1,000 running", among_running, ("none", alone), 2.0),
        Row::ratio("create, 10,000 idle", among_idle, ("none", alone), 2.0),
        Row::at_most(
            "an idle session answers, p95",
            percentile(woken.clone(), 95),
            within,
        ),
        Row::at_most(
            "an idle session answers, p50",
            median(woken.clone()),
            within,
        )
        .for_information(),
        Row::at_most(
            "an idle session answers, at worst",
            percentile(woken, 100),
            within,
        )
        .for_information(),
    ])
}

/// What there is at one time.
struct Crowd {
    executors: usize,
    /// What they take, with what waits in them.
    inside: Weight,
    /// What everything takes, the server included.
    all: Weight,
    available: u64,
}

impl Crowd {
    fn of(server: &Server) -> Crowd {
        let available = available();
        let executors = server.executors();
        Crowd {
            executors: executors.len(),
            inside: Weight::of(executors.into_iter().flat_map(Process::tree)),
            all: Weight::of(server.process().tree()),
            available,
        }
    }
}

fn shell() -> Value {
    json!({ "language": "shell", "code": "true" })
}

/// How long it takes to make a session; each is ended again. By a client of its own: a connection on which nothing is
/// asked for long is closed.
fn create(server: &Server) -> Result<Duration, StageError> {
    let (mut client, mut samples) = (server.client()?, Vec::new());
    for _ in 0..CREATES {
        let begun = Instant::now();
        let session = client.session("never")?;
        samples.push(begun.elapsed());
        client.end(&session)?;
    }
    Ok(median(samples))
}

fn make(server: &Server, number: usize) -> Result<Vec<String>, StageError> {
    let made = Mutex::new(Vec::new());
    in_turns(server, (0..number).collect(), |client, _| {
        let session = client.session("never")?;
        made.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(session);
        Ok(())
    })?;
    Ok(made.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn ask_all(server: &Server, sessions: &[String]) -> Result<(), StageError> {
    in_turns(server, sessions.iter().collect(), |client, session| {
        client.run(session, &shell()).map(drop)
    })
}

/// Has something done for each of many by a few clients; stops at the first that fails.
fn in_turns<T: Send>(
    server: &Server,
    all: VecDeque<T>,
    work: impl Fn(&mut Client, T) -> Result<(), StageError> + Sync,
) -> Result<(), StageError> {
    let left = Mutex::new(all);
    let next = || {
        left.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    let turn = || -> Result<(), StageError> {
        let mut client = server.client()?;
        while let Some(one) = next() {
            work(&mut client, one)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(turn)).collect();
        let mut ends = clients.into_iter().map(|client| client.join());
        ends.try_for_each(|end| end.unwrap_or(Ok(())))
    })
}

/// Until hardly more is raised than the pool has.
fn await_idle(server: &Server) -> Result<(), StageError> {
    const POOL: usize = 10;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let raised = server.executors().len();
        if raised <= POOL {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(StageError::Output {
                command: "sessions that nobody uses".to_owned(),
                output: format!("{raised} of them have processes still"),
            });
        }
        pause(Duration::from_secs(1));
    }
}

/// Until hardly anything runs on this machine.
fn await_quiet() -> Result<(), StageError> {
    /// Which part of its processors may.
    const HARDLY: f64 = 0.1;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let busy = busy(Duration::from_secs(3));
        if busy <= HARDLY {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(StageError::Output {
                command: "a machine on which nothing runs".to_owned(),
                output: format!("{:.0} % of its processors are busy still", busy * 100.0),
            });
        }
    }
}
