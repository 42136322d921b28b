//! Guides whose examples are run.
//!
//! A guide is a page of the documentation. Its blocks of `bash`, and the commands after `$` in its blocks of
//! `console`, are run one after the other in one shell, as a reader would who pastes them; what the page shows
//! of their output must be what they print. That is what stands below a command in a block of `console`, and
//! for a block of `bash` the block of `json` or `text` that follows it at once.
//!
//! Identifiers, times and fractions differ from run to run, and are compared by their shape. `…` stands for
//! whatever is there in a line; alone on a line, for any number of lines.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Server, eventually};

/// Where the pages say that the server is, and its data.
const ADDRESS: &str = "127.0.0.1:8000";
const DATA: &str = "/home/ada/.local/share/daedalos/server";

/// What starts a server: it is running already, and what it said is what is compared.
const SERVES: [&str; 2] = ["sandbox serve", "make run"];

/// How long all examples of a page may take together, in seconds.
const PATIENCE: &str = "240";

/// Something that a reader does.
#[derive(Debug)]
struct Step {
    /// Where it is on the page.
    line: usize,
    command: String,
    /// What is shown of its output, if anything is.
    shown: Option<String>,
}

/// Everything on the page must be as it says, on this server. `page` is a path from the repository's top.
#[track_caller]
pub fn must_be_true(page: &str, server: &Server) {
    follow(page, steps(&text_of(page)), server);
}

/// The same, of what is below this heading alone.
#[track_caller]
pub fn section_must_be_true(page: &str, heading: &str, server: &Server) {
    let text = text_of(page);
    let begin = text.find(&format!("\n{heading}\n")).expect("the heading");
    let begin = begin + heading.len() + 1;
    let end = text[begin..]
        .find("\n## ")
        .map_or(text.len(), |end| begin + end);
    // Lines above it are counted, so that a step is found where it is.
    let above = "\n".repeat(text[..begin].matches('\n').count());
    follow(
        page,
        steps(&format!("{above}{}", &text[begin..end])),
        server,
    );
}

fn top() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("../..")
}

fn text_of(page: &str) -> String {
    fs::read_to_string(top().join(page)).expect("the page")
}

#[track_caller]
fn follow(page: &str, steps: Vec<Step>, server: &Server) {
    assert!(!steps.is_empty(), "{page} has no examples");
    let outcomes = Reader::new(server).follow(&steps);
    let mut wrong = String::new();
    for (step, outcome) in steps.iter().zip(outcomes) {
        let shown = step.shown.as_deref().unwrap_or_default();
        let is_shown = step.shown.is_none() || is_like(shown, &outcome.printed);
        if !is_shown || outcome.status != 0 {
            let Step { line, command, .. } = step;
            let Outcome { printed, status } = outcome;
            let _ = write!(
                wrong,
                "\n{page}:{line}: {command}\n--- shown\n{shown}\n--- printed, status {status}\n{printed}\n"
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// What a step printed, and its exit status; none of a step that was not reached.
#[derive(Debug)]
struct Outcome {
    printed: String,
    status: i32,
}

/// Somebody who follows a page.
struct Reader<'a> {
    server: &'a Server,
    home: PathBuf,
    place: PathBuf,
}

impl Reader<'_> {
    /// With a home in which the server's data is where it is by default, and a checkout to stand in.
    fn new(server: &Server) -> Reader<'_> {
        let home = server.base().join("reader");
        let place = home.join("sandbox");
        let parent = home.join(".local/share/daedalos");
        for directory in [&place, &parent] {
            fs::create_dir_all(directory).expect("a home");
        }
        let link =
            |from: PathBuf, to: PathBuf| std::os::unix::fs::symlink(from, to).expect("a link");
        link(server.data(), parent.join("server"));
        let examples = fs::canonicalize(top().join("examples")).expect("the examples");
        link(examples, place.join("examples"));
        Reader {
            server,
            home,
            place,
        }
    }

    fn follow(&self, steps: &[Step]) -> Vec<Outcome> {
        let address = self.server.address().to_string();
        let mark = "-----8<-----";
        let mut script = String::from("exec 2>&1\n");
        for step in steps {
            let command = match SERVES.contains(&step.command.trim()) {
                true => ":".to_owned(),
                false => step.command.replace(ADDRESS, &address),
            };
            let _ = writeln!(script, "{command}\nprintf '\\n{mark}%s\\n' $?");
        }
        let binary = self.server.command();
        let binary = Path::new(binary.get_program())
            .parent()
            .expect("its directory");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", binary.display());
        let output = Command::new("timeout")
            .args(["--kill-after=5", PATIENCE, "bash", "-c", &script])
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.home)
            .env("LANG", "C.UTF-8")
            // Where clients look that are not told: the port of the pages is not ours.
            .env("SANDBOX_SERVER", format!("http://{address}"))
            .current_dir(&self.place)
            .output()
            .expect("a shell");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let printed = printed.replace(&address, ADDRESS);
        let mut rest = printed.as_str();
        let next = |step: &Step| {
            let (own, after) = rest.split_once(mark).unwrap_or((rest, "-1\n"));
            let (status, after) = after.split_once('\n').unwrap_or((after, ""));
            rest = after;
            let printed = match SERVES.contains(&step.command.trim()) {
                true => self.banner(),
                false => own.trim_end().to_owned(),
            };
            Outcome {
                printed,
                status: status.parse().unwrap_or(-1),
            }
        };
        steps.iter().map(next).collect()
    }

    /// What the server said to people when it began to listen.
    fn banner(&self) -> String {
        const LINES: usize = 6;
        let lines = eventually("what a server says when it listens", || {
            let log = self.server.log();
            let lines = log.lines().filter(|line| !line.starts_with('{'));
            let lines: Vec<String> = lines.map(str::to_owned).collect();
            (lines.len() >= LINES).then_some(lines)
        });
        let data = self.server.data().display().to_string();
        let address = self.server.address().to_string();
        let said = lines.join("\n").replace(&data, DATA);
        said.replace(&address, ADDRESS)
    }
}

/// The steps of a page.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines().enumerate();
    // Whether the last thing on the page was a block of `bash`, whose output may follow.
    let mut is_open = false;
    while let Some((number, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            is_open &= line.trim().is_empty();
            continue;
        };
        let block = lines.by_ref().take_while(|(_, line)| *line != "```");
        let block: Vec<&str> = block.map(|(_, line)| line).collect();
        match kind {
            "bash" => steps.push(Step {
                line: number + 2,
                command: block.join("\n"),
                shown: None,
            }),
            "console" => steps.extend(typed(number + 2, &block)),
            "json" | "text" if is_open => {
                let last = steps.last_mut().expect("a block of bash");
                last.shown = Some(block.join("\n"));
            }
            _ => {}
        }
        is_open = kind == "bash";
    }
    steps
}

/// The steps of a block of `console`: what is typed after `$`, and after `>` as its continuation.
fn typed(first: usize, block: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (line, text) in (first..).zip(block) {
        if let Some(command) = text.strip_prefix("$ ") {
            steps.push(Step {
                line,
                command: command.to_owned(),
                shown: Some(String::new()),
            });
            continue;
        }
        let Some(step) = steps.last_mut() else {
            panic!("line {line}: nothing was typed before it");
        };
        let shown = step.shown.get_or_insert_default();
        match text.strip_prefix("> ") {
            Some(more) if shown.is_empty() => {
                let _ = write!(step.command, "\n{more}");
            }
            _ => {
                let _ = writeln!(shown, "{text}");
            }
        }
    }
    steps
}

/// Was this printed?
fn is_like(shown: &str, printed: &str) -> bool {
    let lines = |text: &str| {
        let lines = text.trim_end().lines().map(|line| shape(line.trim_end()));
        lines.collect::<Vec<_>>()
    };
    lines_match(&lines(shown), &lines(printed))
}

fn lines_match(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == "…" => {
            (0..=printed.len()).any(|passed| lines_match(rest, &printed[passed..]))
        }
        Some((first, rest)) => match printed.split_first() {
            Some((line, below)) => line_matches(first, line) && lines_match(rest, below),
            None => false,
        },
    }
}

fn line_matches(shown: &str, printed: &str) -> bool {
    match shown.split_once('…') {
        None => shown == printed,
        Some((before, after)) => {
            let Some(rest) = printed.strip_prefix(before) else {
                return false;
            };
            let places = rest.char_indices().map(|(at, _)| at);
            let mut ends = places.chain([rest.len()]);
            ends.any(|at| line_matches(after, &rest[at..]))
        }
    }
}

/// A line in which what differs from run to run is told by its shape.
fn shape(line: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    let mut told = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_part(c) != is_part(first));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        match is_part(first) {
            true => told.push_str(&shape_of(word)),
            false => told.push_str(word),
        }
        rest = after;
    }
    told
}

fn shape_of(word: &str) -> String {
    const NAMED: [&str; 6] = ["sess_", "exec_", "art_", "key_", "req_", "sbx_"];
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(kind) = NAMED.iter().find(|kind| word.starts_with(**kind)) {
        return format!("{kind}*");
    }
    if word.len() >= 20 && word.ends_with('Z') && word.as_bytes()[10] == b'T' {
        return "TIME".to_owned();
    }
    if word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return "SHA256".to_owned();
    }
    match word.split_once('.') {
        Some((whole, part)) if digits(whole) && digits(part) => "0.0".to_owned(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_a_reader_would() {
        let page = "\
# Page

```bash
one
two
```

```json
{}
```

```text
not its output
```

```console
$ three \\
> more
printed
$ four
```

```sh
never run
```
";
        let steps = steps(page);
        let found: Vec<_> = steps
            .iter()
            .map(|step| (step.line, step.command.as_str(), step.shown.as_deref()))
            .collect();
        let expected = [
            (4, "one\ntwo", Some("{}")),
            (17, "three \\\nmore", Some("printed\n")),
            (20, "four", Some("")),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_differs_from_run_to_run_is_compared_by_its_shape() {
        let shown = r#"{"session_id": "sess_4k2jx9q0w7m3n5pd", "took": 0.25, "at": "2026-11-16T09:30:00Z"}"#;
        let printed = r#"{"session_id": "sess_aaaaaaaaaaaaaaaa", "took": 11.125, "at": "2027-01-02T03:04:05.678Z"}"#;
        assert!(is_like(shown, printed));
        assert!(!is_like("sess_4k2jx9q0w7m3n5pd", "exec_20261116_8f3kq2zd"));
        assert!(!is_like("exit_code: 0", "exit_code: 1"));
        assert!(!is_like("127.0.0.1:8000", "127.0.0.1:8001"));
    }

    #[test]
    fn an_ellipsis_stands_for_what_is_there() {
        assert!(is_like("a … c … e", "a b c d e"));
        assert!(!is_like("a … c", "a b"));
        assert!(is_like("{\n…\n}", "{\n  1\n  2\n}"));
        assert!(is_like("{\n…\n}", "{\n}"));
        assert!(!is_like("{\n…\n]", "{\n  1\n}"));
    }
}
