//! Getting and listing with much in the database, against little in it, on each of the three.
//!
//! A server has a hundred thousand sessions with ten executions each, its peer two hundred; both run on
//! the same database program, and are asked the same in turns. Identifiers are spread over all there
//! are. Pages have ten entries on both sides, so that what differs is how much is behind them. Of the gets
//! and of the lists, the one that comes out worst is told.
//!
//! The rows are planted by the database itself, with the script by which the store's own tests see that
//! every query walks an index.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sandbox_test_servers::Database;

use crate::client::Client;
use crate::report::Row;
use crate::server::{Server, text};
use crate::stage::{Filesystem, Stage, StageError};
use crate::timing::{Attempt, interleave};

const ROUNDS: usize = 100;

/// How many sessions there are, here and there.
const MANY: usize = 100_000;
const FEW: usize = 200;

const CROWD: &str = include_str!("../../../crates/store/tests/records/crowd.sql");

/// After the numbers that everything is made of.
const NUMBERS: &str = "    ORDER BY 1;\n";

/// What is asked, with `{session}` and `{execution}` for one of them.
const GETS: [&str; 4] = [
    "/sessions/{session}",
    "/executions/{execution}",
    "/executions/{execution}/status",
    "/executions/{execution}/result",
];
const LISTS: [&str; 6] = [
    "/sessions?limit=10",
    "/sessions?limit=10&status=terminated",
    "/sessions?limit=10&status=terminated&template_id=template-3",
    "/sessions?limit=10&agent_id=agent-4",
    "/sessions/{session}/executions?limit=5",
    "/sessions/{session}/executions?limit=5&status=completed",
];

/// How deep a page is that is asked for by its cursor, as far as there is so much.
const DEEP: usize = 50;

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let place = stage.place(Filesystem::Host, "stored")?;
    let stage = &*stage;
    let mut rows = Vec::new();
    for program in [Program::Sqlite, Program::Postgres, Program::Mariadb] {
        let dir = place.dir.join(program.name());
        stage.make_dir(&dir)?;
        let running = program.start();
        let many = Side::of(stage, &dir.join("many"), program, running.as_ref(), MANY)?;
        let few = Side::of(stage, &dir.join("few"), program, running.as_ref(), FEW)?;
        stage.settle();
        rows.push(worst("get", program, &GETS, &many, &few)?);
        rows.push(worst("list", program, &LISTS, &many, &few)?);
        rows.push(deep(program, &many, &few)?);
        drop((many, few));
        stage.remove(&dir)?;
    }
    Ok(rows)
}

/// A database program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Sqlite,
    Postgres,
    Mariadb,
}

/// A server, and how many sessions it has.
struct Side {
    server: Server,
    sessions: usize,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Sqlite => "sqlite",
            Program::Postgres => "postgres",
            Program::Mariadb => "mariadb",
        }
    }

    /// Where it is a program of its own.
    fn start(self) -> Option<Database> {
        match self {
            Program::Sqlite => None,
            Program::Postgres => Some(Database::postgres()),
            Program::Mariadb => Some(Database::mariadb()),
        }
    }

    /// What plants so many sessions in it.
    fn script(self, sessions: usize) -> String {
        let fewer = format!("{NUMBERS}DELETE FROM numbers WHERE i >= {sessions};\n");
        let crowd = CROWD.replacen(NUMBERS, &fewer, 1).replace("{each}", "10");
        let (before, bytes, after) = match self {
            Program::Sqlite => ("BEGIN;\n", "blob", "COMMIT;\n"),
            Program::Postgres => ("", "bytea", "ANALYZE;\n"),
            Program::Mariadb => (
                "SET SESSION sql_mode = CONCAT(@@sql_mode, ',PIPES_AS_CONCAT');\n\
                 SET GLOBAL innodb_buffer_pool_size = 512 * 1024 * 1024;\n",
                "binary",
                "ANALYZE TABLE templates, sessions, executions, results, artifacts, counts;\n",
            ),
        };
        format!("{before}{}{after}", crowd.replace("{bytes}", bytes))
    }
}

impl Side {
    /// A server on a database with so many sessions, its data in `dir`.
    fn of(
        stage: &Stage,
        dir: &Path,
        program: Program,
        running: Option<&Database>,
        sessions: usize,
    ) -> Result<Side, StageError> {
        eprintln!("  planting {sessions} sessions in {}", program.name());
        stage.make_dir(dir)?;
        let file = dir.join("database");
        let url = match running {
            Some(database) => database.fresh_database(),
            None => format!("sqlite:{}", file.display()),
        };
        // The tables are made by whoever uses them.
        drop(Server::start(stage, &dir.join("first"), Some(&url), &[])?);
        let script = program.script(sessions);
        match running {
            Some(database) => {
                let name = url.rsplit('/').next().unwrap_or_default();
                database.query(name, &script);
            }
            None => plant(stage, &file, &script)?,
        }
        Ok(Side {
            server: Server::start(stage, &dir.join("server"), Some(&url), &[])?,
            sessions,
        })
    }

    fn client(&self) -> Result<Client, StageError> {
        self.server.client()
    }

    /// The path with one of the sessions in it, another one in each round.
    fn path(&self, path: &str, round: usize) -> String {
        let number = round.wrapping_mul(7_919) % self.sessions;
        path.replace(
            "{session}",
            &format!("sess_{}", 1_000_000_000_000_000 + number),
        )
        .replace(
            "{execution}",
            &format!("exec_20231114_{}", 10_000_001 + number * 10),
        )
    }

    /// What asks for a path again and again.
    fn asking<'a>(&'a self, path: &'a str) -> Result<Attempt<'a>, StageError> {
        let mut client = self.client()?;
        Ok(Box::new(move |round| {
            let path = self.path(path, round);
            let begun = Instant::now();
            client.get(&path)?;
            Ok(begun.elapsed())
        }))
    }

    /// The path of a page that comes after many others.
    fn deep_page(&self) -> Result<String, StageError> {
        let mut client = self.client()?;
        let mut path = "/sessions?limit=200".to_owned();
        for _ in 0..DEEP {
            let cursor = text(&client.get(&path)?, "next_cursor");
            if cursor.is_empty() {
                break;
            }
            path = format!("/sessions?limit=200&cursor={cursor}");
        }
        Ok(path.replace("limit=200", "limit=10"))
    }
}

/// `sqlite3` reads the script.
fn plant(stage: &Stage, file: &Path, script: &str) -> Result<(), StageError> {
    let input = file.with_extension("sql");
    std::fs::write(&input, script).map_err(StageError::io(&input))?;
    let read = format!(".read {}", input.display());
    let mut command = Command::new("sqlite3");
    command
        .arg("-bail")
        .arg(file)
        .arg(read)
        .stdin(Stdio::null());
    stage.run(&mut command)?;
    // What the program made is the user's.
    stage.give(file)
}

/// Of some paths the one that has the largest ratio.
fn worst(
    what: &str,
    program: Program,
    paths: &'static [&'static str],
    many: &Side,
    few: &Side,
) -> Result<Row, StageError> {
    let mut found: Option<(f64, &str, [Duration; 2])> = None;
    for path in paths {
        let [slow, quick] = compare(many.asking(path)?, few.asking(path)?)?;
        let ratio = slow.as_secs_f64() / quick.as_secs_f64();
        if found.is_none_or(|(most, ..)| ratio > most) {
            found = Some((ratio, path, [slow, quick]));
        }
    }
    let (_, path, [slow, quick]) = found.unwrap_or_default();
    let what = format!("{what}, {}: {path}", program.name());
    Ok(Row::ratio(&what, slow, ("nearly empty", quick), 2.0))
}

fn deep(program: Program, many: &Side, few: &Side) -> Result<Row, StageError> {
    let (there, here) = (many.deep_page()?, few.deep_page()?);
    let [slow, quick] = compare(many.asking(&there)?, few.asking(&here)?)?;
    let what = format!("list, {}: page 1,000, by its cursor", program.name());
    Ok(Row::ratio(&what, slow, ("nearly empty", quick), 2.0))
}

fn compare(one: Attempt<'_>, other: Attempt<'_>) -> Result<[Duration; 2], StageError> {
    match interleave(ROUNDS, vec![one, other])?[..] {
        [one, other] => Ok([one, other]),
        _ => unreachable!("a median for each attempt"),
    }
}
