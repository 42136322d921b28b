//! What code that is run cannot do to whoever runs it, and to the next.
//!
//! Each promise is kept by every kind of wall, started by root and by an ordinary user.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod stage;

use std::sync::atomic::{AtomicU32, Ordering};

use sandbox_api_tests::User;
use sandbox_api_tests::process::{started_with, unlikely};
use serde_json::{Value, json};
use stage::{ControlPlane, Executor, Options, TOKEN, id, until};

const NAMESPACES: &[&str] = &[];
const LANDLOCK: &[&str] = &["--isolation", "landlock", "--network", "container"];

/// One promise, for every wall and user.
macro_rules! behind_every_wall {
    ($($(#[$meta:meta])* fn $promise:ident($stage:ident) $body:block)+) => {$(
        $(#[$meta])*
        mod $promise {
            use super::*;

            fn holds($stage: Stage) $body

            #[test]
            fn by_namespaces_as_root() {
                holds(Stage::start(NAMESPACES, User::Root));
            }

            #[test]
            fn by_namespaces_as_tester() {
                holds(Stage::start(NAMESPACES, User::Tester));
            }

            #[test]
            fn by_landlock_as_root() {
                holds(Stage::start(LANDLOCK, User::Root));
            }

            #[test]
            fn by_landlock_as_tester() {
                holds(Stage::start(LANDLOCK, User::Tester));
            }
        }
    )+};
}

struct Stage {
    control_plane: ControlPlane,
    executor: Executor,
    runs: std::cell::Cell<u32>,
}

impl Stage {
    fn start(arguments: &[&str], user: User) -> Stage {
        let control_plane = ControlPlane::start();
        let options = Options::told(control_plane.address).by(user);
        let executor = options.with(arguments).start();
        Stage {
            control_plane,
            executor,
            runs: std::cell::Cell::new(0),
        }
    }

    /// Has code run to its end: the result.
    #[track_caller]
    fn run(&self, language: &str, code: &str) -> Value {
        let id = self.begin(language, code);
        self.control_plane.result(&id)
    }

    #[track_caller]
    fn begin(&self, language: &str, code: &str) -> String {
        self.runs.set(self.runs.get() + 1);
        let id = id(self.runs.get());
        let body =
            json!({ "execution_id": id, "language": language, "code": code, "timeout": 120 });
        self.executor.execute_with(body).json(202);
        id
    }

    /// What a shell printed that must end well.
    #[track_caller]
    fn shell(&self, code: &str) -> String {
        let result = self.run("shell", code);
        assert_eq!(result["status"], "success", "{result:#}");
        result["stdout"].as_str().unwrap().to_owned()
    }
}

/// Reads everything that it may, and says what of it is somebody's secret.
const HUNT: &str = r#"
import os, sys
wanted = [word.encode() for word in EVENT]
found, looked = [], 0
def look(path, how='rb', most=1 << 22):
    global looked
    try:
        with open(path, how) as file:
            looked += 1
            data = file.read(most)
    except Exception:
        return
    for word in wanted:
        if word in data:
            found.append((path, word.decode()))
own = str(os.getpid())
for pid in filter(str.isdigit, os.listdir('/proc')):
    if pid == own: continue
    for name in ['environ', 'cmdline', 'auxv', 'maps', 'mem', 'stack', 'syscall']:
        look(f'/proc/{pid}/{name}')
    try:
        regions = open(f'/proc/{pid}/maps').read().splitlines()
        memory = open(f'/proc/{pid}/mem', 'rb', 0)
        for region in regions:
            start, end = (int(part, 16) for part in region.split()[0].split('-'))
            try:
                memory.seek(start)
                data = memory.read(end - start)
            except Exception:
                continue
            for word in wanted:
                if word in data: found.append((f'/proc/{pid}/mem', word.decode()))
    except Exception:
        pass
    for kind in ['fd', 'map_files', 'root', 'cwd']:
        base = f'/proc/{pid}/{kind}'
        try:
            names = os.listdir(base)
        except Exception:
            continue
        for name in names:
            look(f'{base}/{name}')
def is_open(number):
    try:
        os.fstat(number)
        return True
    except OSError:
        return False
# One is its own: the way by which its result goes.
beside = [number for number in range(3, 1024) if is_open(number)]
if len(beside) != 1: found.append(('descriptors', str(beside)))
for name, value in os.environ.items():
    for word in wanted:
        if word.decode() in name + value: found.append(('environment', name))
for path in PATHS:
    look(path)
    try:
        for root, _, names in os.walk(path):
            found.append(('directory', root))
            for name in names: look(os.path.join(root, name))
    except Exception:
        pass
"#;

behind_every_wall! {
    fn code_finds_no_secret_of_the_executor(stage) {
        // A result of before, of the same session, is not for code to read either.
        let executor = &stage.executor;
        let spool = executor.state().join("spool");
        std::fs::write(spool.join("kept"), "a-result-that-was-kept").unwrap();
        let secrets = json!([TOKEN, "its-environment-is-nobodys", "a-result-that-was-kept"]);
        let state = executor.state();
        let paths = json!([state, spool, "/proc/1/environ", "/proc/self/environ"]);
        let hunt = HUNT.replace("EVENT", &secrets.to_string()).replace("PATHS", &paths.to_string());
        let code = format!("{hunt}\nprint(looked)\ndef handler(event):\n    return found\n");
        let result = stage.run("python", &code);
        assert_eq!(result["status"], "success", "{result:#}");
        assert_eq!(result["return_value"], json!([]), "{result:#}");
        // It did look.
        assert!(result["stdout"].as_str().unwrap().trim().parse::<u32>().unwrap() > 0, "{result:#}");
    }

    fn code_cannot_end_or_stop_the_executor(stage) {
        let pids = stage.executor.processes();
        let all: Vec<_> = pids.iter().map(ToString::to_string).collect();
        let script = format!(
            "for pid in 1 {} $PPID; do [ $pid = $$ ] && continue; kill -9 $pid 2>/dev/null; kill -STOP $pid 2>/dev/null; done; \
             python3 - {} <<'E'\nimport resource, sys\nfor pid in sys.argv[1:]:\n    try: resource.prlimit(int(pid), resource.RLIMIT_CPU, (0, 0))\n    except Exception: pass\nE\necho done",
            all.join(" "), all.join(" "),
        );
        assert_eq!(stage.shell(&script), "done\n");
        assert_eq!(stage.shell("echo again"), "again\n");
        assert!(stage.executor.processes().contains(&stage.executor.pid().as_raw_nonzero().get()));
    }

    fn code_writes_in_its_workspace_and_its_temporary_files_alone(stage) {
        let state = stage.executor.state();
        let base = stage.executor.base().to_owned();
        let script = format!(
            "echo x > here && echo x > \"${{TMPDIR:-/tmp}}/x\" && echo both; \
             for place in / /etc /usr /var /home /root /srv {} {}/spool {} /sys /proc/sys/kernel; do \
             (echo x > $place/planted) 2>/dev/null && echo $place; done; true",
            state.display(), state.display(), base.display(),
        );
        assert_eq!(stage.shell(&script), "both\n");
        assert!(!base.join("planted").exists() && !state.join("spool/planted").exists());
    }

    fn nothing_of_one_execution_is_left_to_the_next(stage) {
        let word = fresh();
        let leave = format!(
            "t=${{TMPDIR:-/tmp}}; echo secret > $t/left; mkdir $t/closed; echo x > $t/closed/y; chmod 0 $t/closed; \
             (setsid sleep {word} &) ; nohup sleep {word} >/dev/null 2>&1 & disown; echo left"
        );
        assert_eq!(stage.shell(&leave), "left\n");
        let look = format!(
            "ls -A ${{TMPDIR:-/tmp}}; for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null | \
             grep -q '^sleep {word}' && echo alive; done; true"
        );
        assert_eq!(stage.shell(&look), "");
        must_be_gone(&word);
    }

    fn what_forks_without_end_ends_with_its_time(stage) {
        let word = fresh();
        let bomb = format!("f() {{ sleep {word} & f & f; }}; ulimit -u 300 2>/dev/null; f 2>/dev/null; sleep {word}");
        let id = stage.begin("shell", &bomb);
        must_be_there(&word, 1);
        stage.executor.call("POST", &format!("/executions/{id}/cancel")).send().json(202);
        assert_eq!(stage.control_plane.result(&id)["status"], "cancelled");
        must_be_gone(&word);
        assert_eq!(stage.shell("echo again"), "again\n");
    }

    fn two_at_once_do_not_see_each_other(stage) {
        let word = fresh();
        let first = format!("echo secret > ${{TMPDIR:-/tmp}}/mine; echo $$ > pid; sleep {word}");
        let first = stage.begin("shell", &first);
        let pid = stage.executor.until_file("pid");
        must_be_there(&word, 1);
        // By number, where numbers are the same for both, and by name: the brackets keep whoever looks from finding itself.
        let look = format!(
            "kill -9 {} 2>/dev/null && echo killed; cat /proc/{}/environ 2>/dev/null | grep -a PATH; \
             ls ${{TMPDIR:-/tmp}}; find / -name mine -path '*-*' 2>/dev/null; pkill -9 -f '[s]leep {word}'; true",
            if pid.trim() == "2" { "999999" } else { pid.trim() },
            if pid.trim() == "2" { "999999" } else { pid.trim() },
        );
        assert_eq!(stage.shell(&look), "");
        assert_eq!(started_with(&word).len(), 1);
        stage.executor.call("POST", &format!("/executions/{first}/cancel")).send().json(202);
        assert_eq!(stage.control_plane.result(&first)["status"], "cancelled");
    }

    fn code_is_nobody_special(stage) {
        let who = stage.shell("id -u; grep -c '^CapEff:.*0000000000000000$' /proc/self/status; grep NoNewPrivs /proc/self/status; grep ^Seccomp: /proc/self/status");
        let lines: Vec<_> = who.lines().collect();
        assert_ne!(lines[0], "0");
        assert_eq!(lines[1..], ["1", "NoNewPrivs:\t1", "Seccomp:\t2"]);
    }

    fn everything_ends_when_the_door_is_killed(stage) {
        let mut stage = stage;
        let word = fresh();
        stage.begin("shell", &format!("(setsid sleep {word} &); sleep {word}"));
        must_be_there(&word, 2);
        stage.executor.kill();
        must_be_gone(&word);
        stage.executor.start();
        assert_eq!(stage.control_plane.result(&id(1))["status"], "crashed");
    }
}

/// A number of seconds to sleep that nobody else sleeps, here or in a test beside this one.
fn fresh() -> String {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    unlikely(6081, GIVEN.fetch_add(1, Ordering::Relaxed))
}

/// Waits until at least so many sleep for `word`.
#[track_caller]
fn must_be_there(word: &str, count: usize) {
    until(
        || (started_with(word).len() >= count).then_some(()),
        || format!("{:?} sleep for {word}", started_with(word)),
    );
}

#[track_caller]
fn must_be_gone(word: &str) {
    until(
        || started_with(word).is_empty().then_some(()),
        || format!("{:?} sleep for {word}", started_with(word)),
    );
}

#[test]
fn with_namespaces_code_has_no_network_unless_it_is_given_the_containers() {
    let connect = |stage: &Stage| {
        let address = stage.control_plane.address;
        let code = format!(
            "import socket\ndef handler(event):\n    try:\n        \
             socket.create_connection(('127.0.0.1', {}), 5).close()\n        return True\n    \
             except OSError:\n        return False\n",
            address.port()
        );
        stage.run("python", &code)["return_value"].clone()
    };
    assert_eq!(
        connect(&Stage::start(NAMESPACES, User::Tester)),
        json!(false)
    );
    let given = Stage::start(&["--network", "container"], User::Tester);
    assert_eq!(connect(&given), json!(true));
    let health = given.executor.call("GET", "/health").send().json(200);
    assert_eq!(health["isolation"]["network"], "the container's");
}

#[test]
fn the_weaker_wall_says_that_it_is_weaker() {
    let stage = Stage::start(LANDLOCK, User::Tester);
    let health = stage.executor.call("GET", "/health").send().json(200);
    let walls = &health["isolation"];
    assert_eq!(walls["executor"], "Landlock and seccomp, non-dumpable");
    assert_eq!(
        walls["between_executions"],
        "processes killed, temporary files removed"
    );
    assert_eq!(walls["between_sessions"], "the container");
    assert_eq!(walls["network"], "the container's");
}

#[test]
fn temporary_files_of_one_that_was_killed_are_removed_by_the_next() {
    let stage = Stage::start(LANDLOCK, User::Tester);
    let id = stage.begin(
        "shell",
        "echo x > $TMPDIR/left; echo $TMPDIR > where; sleep 6085",
    );
    let left = stage.executor.until_file("where");
    stage
        .executor
        .call("POST", &format!("/executions/{id}/cancel"))
        .send()
        .json(202);
    stage.control_plane.result(&id);
    stage.shell("true");
    until(
        || (!std::path::Path::new(left.trim()).exists()).then_some(()),
        || left.clone(),
    );
}
