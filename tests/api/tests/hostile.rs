//! Code that means harm: what it may do to itself, and what it may not do to anybody else.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use sandbox_api_tests::process::{started_with, status, unlikely};
use sandbox_api_tests::{Options, Server, Storage, User, eventually, id_of};
use sandbox_linux::clone::{Namespaces, unshare};
use sandbox_tests::as_both;
use serde_json::{Value, json};

fn serve(user: User) -> Server {
    Options::on(Storage::SqliteAndFiles).by(user).start()
}

/// How much memory of its own a process has, in bytes; nothing if it runs another program than the server.
fn memory(server: &Server, pid: Pid) -> u64 {
    let program = fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero()));
    let is_ours = program.is_ok_and(|program| program.starts_with(server.base()));
    let kilobytes =
        status(pid, "RssAnon").and_then(|line| line.trim_end_matches(" kB").parse::<u64>().ok());
    if is_ours {
        kilobytes.unwrap_or(0) << 10
    } else {
        0
    }
}

as_both! {
    fn a_fork_bomb_ends_in_time_and_hurts_nobody(user) {
        let server = serve(user);
        let (session, other) = (server.session(), server.session());
        let bomb = json!({ "language": "shell", "code": "b() { b | b & b | b; }; b; sleep 1000", "timeout": 2 });
        let execution = server.submit(&session, bomb);
        server.until(&execution, "running");
        loop {
            assert_eq!(server.shell(&other, "echo well"), "well");
            let status = server.get(&format!("/executions/{execution}/status")).json(200);
            if status["status"] != "running" {
                break;
            }
        }
        let result = server.get(&format!("/executions/{execution}/result")).json(200);
        assert_ne!(result["status"], "success", "{result:#}");
        assert_eq!(server.shell(&session, "echo well"), "well");
        // As many as it may have, and no more.
        let code = "import os, signal
def handler(event):
    started = []
    try:
        while len(started) < 3000:
            pid = os.fork()
            if pid == 0:
                signal.pause()
            started.append(pid)
    except OSError:
        pass
    return len(started)";
        let started = server.run(&session, "python", code)["return_value"].as_u64().unwrap();
        let most = server.get(&format!("/sessions/{session}")).json(200)["resources"]["max_processes"].as_u64().unwrap();
        assert!((most / 2..most).contains(&started), "{started} of {most}");
    }

    fn what_daemonises_ends_with_its_execution(user) {
        let server = serve(user);
        let session = server.session();
        let word = unlikely(86_400, 1);
        let code = format!(
            "import os, sys, time
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir('/')
        # It holds standard output, and lets nobody know.
        os.write(write, b'x')
        os.execvp('sleep', ['sleep', '{word}'])
    os._exit(0)
os.read(read, 1)
print('left it behind')"
        );
        let begin = Instant::now();
        let result = server.run_with(&session, json!({ "language": "python", "code": code, "timeout": 60 }));
        assert_eq!((&result["status"], &result["stdout"]), (&json!("success"), &json!("left it behind\n")), "{result:#}");
        assert!(begin.elapsed() < Duration::from_secs(20));
        eventually("the end of a daemon", || started_with(&word).is_empty().then_some(()));
        let word = unlikely(86_400, 2);
        server.shell(&session, &format!("nohup setsid sleep {word} > /dev/null 2>&1 < /dev/null & disown"));
        eventually("the end of a daemon", || started_with(&word).is_empty().then_some(()));
    }

    fn gigabytes_of_output_stay_in_nobodys_memory(user) {
        const MUCH: u64 = 32 << 20;
        let server = serve(user);
        let session = server.session();
        // What it takes for a megabyte that is kept.
        let kept = json!({ "language": "shell", "code": "head -c 4M /dev/zero", "timeout": 120 });
        server.run_with(&session, kept);
        let before = memory(&server, server.pid());
        let code = "head -c 1G /dev/zero & head -c 1G /dev/zero >&2; wait; echo > done";
        let execution = server.submit(&session, json!({ "language": "shell", "code": code, "timeout": 120 }));
        eventually("the end of it", || {
            for process in server.processes() {
                let allowed = if process == server.pid() { before + MUCH } else { MUCH };
                let found = memory(&server, process);
                assert!(found < allowed, "{process:?} has {found} bytes; the server had {before}");
            }
            let status = server.get(&format!("/executions/{execution}/status")).json(200);
            (status["status"] == "completed").then_some(())
        });
        let result = server.get(&format!("/executions/{execution}/result")).json(200);
        assert_eq!((&result["stdout_truncated"], &result["stderr_truncated"]), (&json!(true), &json!(true)));
        server.get(&format!("/sessions/{session}/files/done")).expect(200);
    }

    fn what_fills_the_disk_is_ended_and_told_and_may_be_removed(user) {
        let server = serve(user);
        let session = server.session_with(json!({ "resources": { "disk": "1Gi" } }));
        // One file cannot even be made.
        let result = server.run(&session, "shell", "fallocate -l 2G large");
        assert_eq!((&result["status"], &result["error_code"]), (&json!("failed"), &json!("Sandbox.DiskFull")), "{result:#}");
        let code = "for i in $(seq 20); do fallocate -l 200M .$i; done; sleep 1000";
        let fields = json!({ "language": "shell", "code": code, "timeout": 60, "retry": true });
        let result = server.run_with(&session, fields);
        assert_eq!((&result["status"], &result["error_code"]), (&json!("failed"), &json!("Sandbox.DiskFull")), "{result:#}");
        let error = result["error"].as_str().unwrap();
        assert!(error.contains("resources.disk"), "{error}");
        // As it is told later.
        let execution = result["execution_id"].as_str().unwrap();
        let later = server.get(&format!("/executions/{execution}/result")).json(200);
        assert_eq!(later["error_code"], "Sandbox.DiskFull", "{later:#}");
        let listed = server.get(&format!("/sessions/{session}/files?limit=200")).json(200);
        for entry in listed["files"].as_array().unwrap() {
            let path = entry["name"].as_str().unwrap();
            server.delete(&format!("/sessions/{session}/files/{path}")).expect(204);
        }
        assert_eq!(server.shell(&session, "fallocate -l 200M .fits && sleep 0.5 && stat -c %s .fits"), "209715200");
        // It was not run again.
        let all = server.get(&format!("/sessions/{session}/executions")).json(200);
        assert_eq!(all["total"], 3, "{all:#}");
    }

    fn executions_beyond_the_limit_of_processes_fail_and_say_so(user) {
        let server = serve(user);
        let session = server.session_with(json!({ "resources": { "max_processes": 32 } }));
        let fields = json!({ "language": "shell", "code": "until [ -e go ]; do sleep 0.1; done", "timeout": 60, "retry": true });
        let executions: Vec<_> = (0..120).map(|_| server.submit(&session, fields.clone())).collect();
        server.upload(&session, "go", b"").json(200);
        let mut refused = 0;
        for execution in &executions {
            let result = eventually("its result", || {
                let found = server.get(&format!("/executions/{execution}/result"));
                (found.status == 200).then(|| found.json(200))
            });
            if result["status"] == "success" {
                continue;
            }
            let told = (&result["status"], &result["error_code"]);
            assert_eq!(told, (&json!("failed"), &json!("Sandbox.ProcessLimit")), "{result:#}");
            assert!(result["error"].as_str().unwrap().contains("resources.max_processes"), "{result:#}");
            refused += 1;
        }
        assert!((1..120).contains(&refused), "{refused}");
        // Nothing of it is left.
        assert_eq!(server.shell(&session, "echo well | cat"), "well");
        let all = server.get(&format!("/sessions/{session}/executions")).json(200);
        assert_eq!(all["total"], 121, "{all:#}");
    }

    fn nothing_secret_is_found_and_nobody_powerful_is_reached(user) {
        let token = "70".repeat(32);
        let server = Options::on(Storage::SqliteAndFiles).by(user).env("INTERNAL_API_TOKEN", &*token).start();
        let hers = "5ec2e7".repeat(10) + "5ec2";
        let other = server.session_with(json!({ "env_vars": { "HERS": hers } }));
        server.upload(&other, "hers", hers.as_bytes()).json(200);
        let guest = json!({ "language": "shell", "code": "echo > begun; sleep 600", "timeout": 600 });
        let beside = server.submit(&other, guest.clone());
        server.until_file(&other, "begun");
        let mine = "0e".repeat(32);
        let session = server.session_with(json!({ "env_vars": { "MINE": mine } }));
        let also = server.submit(&session, guest);
        server.until_file(&session, "begun");
        let listener = std::os::unix::net::UnixListener::bind(server.base().join("socket")).unwrap();
        let data = server.data();
        let paths = ["admin.key", "internal.token", "links.key", "lock", "sessions", "objects", ""];
        let event = json!({
            "sockets": [server.base().join("socket"), "/run/dbus/system_bus_socket", "/var/run/docker.sock", "/run/systemd/private"],
            "paths": paths.map(|name| data.join(name)),
        });
        let fields = json!({ "language": "python", "code": include_str!("hostile/hunt.py"), "event": event, "timeout": 60 });
        let result = server.run_with(&session, fields);
        assert_eq!(result["status"], "success", "{result:#}");
        let found = &result["return_value"];
        // It knows how to look: it found what is its own.
        assert_eq!(found["secrets"], json!([mine]), "{found:#}");
        assert_eq!((&found["seen"], &found["reached"], &found["sockets"]), (&json!([]), &json!([]), &json!([])), "{found:#}");
        for (pid, power) in found["powerful"].as_object().unwrap() {
            assert!(power.as_object().unwrap().values().all(|can| can == false), "{pid}: {found:#}");
        }
        // Its own init and itself: neither the executor nor who runs beside it.
        let processes = found["processes"].as_array().unwrap();
        assert!(processes.len() <= 2 && !found["processes"].to_string().contains("sleep"), "{found:#}");
        // Nor what the server was started with.
        assert!(!found["processes"].to_string().contains("--data"), "{found:#}");
        assert_eq!(found["ids"], json!([1000, 1000, []]), "{found:#}");
        drop(listener);
        for execution in [beside, also] {
            server.post(&format!("/executions/{execution}/cancel"), &json!({})).json(200);
        }
    }

    fn on_the_machine_code_is_nobody_who_counts(user) {
        let server = serve(user);
        let session = server.session();
        let word = unlikely(86_400, 3);
        let execution = server.submit(&session, json!({ "language": "shell", "code": format!("sleep {word}"), "timeout": 600 }));
        let pid = eventually("the code's process", || started_with(&word).pop());
        let field = |name: &str| {
            let line = status(pid, name).unwrap();
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let (uid, gid) = match user {
            // Somebody whom nobody else is: neither the one who starts sessions nor another session.
            User::Root => {
                let own: u32 = field("Uid")[0].parse().unwrap();
                let supervisor: u32 = status(server.supervisor(), "Uid").unwrap().split_whitespace().next().unwrap().parse().unwrap();
                assert!(supervisor >= 1_900_000_000 && (supervisor + 1..supervisor + 65_536).contains(&own), "{supervisor} {own}");
                (own, own)
            }
            User::Tester => user.ids(),
        };
        assert_eq!(field("Uid"), [&*uid.to_string(); 4]);
        assert_eq!(field("Gid"), [&*gid.to_string(); 4]);
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(field(set), ["0000000000000000"], "{set}");
        }
        assert_eq!((field("NoNewPrivs"), field("Seccomp")), (vec!["1".to_owned()], vec!["2".to_owned()]));
        server.post(&format!("/executions/{execution}/cancel"), &json!({})).json(200);
    }

    fn nothing_but_files_is_kept_from_one_execution_to_the_next(user) {
        let server = serve(user);
        let session = server.session();
        let leave = server.run(&session, "python", include_str!("hostile/leave.py"));
        assert_eq!(leave["status"], "success", "{leave:#}");
        let left = leave["return_value"].as_object().unwrap();
        assert!(left.len() > 8, "{leave:#}");
        let look = format!("{}\nhandler = look\n", include_str!("hostile/leave.py"));
        let look = server.run(&session, "python", &look);
        assert_eq!(look["return_value"], json!([]), "{leave:#} {look:#}");
        // Nor is it seen by another session.
        let other = server.session();
        let look = format!("{}\nhandler = look\n", include_str!("hostile/leave.py"));
        assert_eq!(server.run(&other, "python", &look)["return_value"], json!([]));
    }

    fn queued_descriptors_stop_neither_the_server_nor_others(user) {
        let server = serve(user);
        let (session, other) = (server.session(), server.session());
        let code = include_str!("hostile/queue.py");
        let execution = server.submit(&session, json!({ "language": "python", "code": code, "timeout": 600 }));
        server.until_file(&session, "queued");
        let queued: u64 = server.shell(&session, "cat queued").parse().unwrap();
        // It may queue some, which is how it is known that it tried.
        assert!((500..6000).contains(&queued), "{queued}");
        assert_eq!(server.shell(&other, "echo well"), "well");
        // A new one, a copy of one, and what is different in one each pass descriptors on.
        let new = server.session_with(json!({ "pool": "never" }));
        assert_eq!(server.shell(&new, "echo well > well; cat well"), "well");
        let copy = id_of(&server.post(&format!("/sessions/{new}/fork"), &json!({})).json(201));
        assert_eq!(server.shell(&copy, "cat well"), "well");
        server.get(&format!("/sessions/{new}/changes")).json(200);
        server.upload(&session, "more", b"more").json(200);
        assert_eq!(server.shell(&session, "cat more"), "more");
        let status = server.get(&format!("/executions/{execution}/status")).json(200);
        assert_eq!(status["status"], "running", "{status:#}");
        server.post(&format!("/executions/{execution}/cancel"), &json!({})).json(200);
    }

    fn a_session_reaches_nothing_of_another(user) {
        let server = serve(user);
        let (hers, his) = (server.session(), server.session());
        server.upload(&hers, "diary", b"dear diary").json(200);
        let find = "find / -name diary -not -path '/proc/*' 2>/dev/null; true";
        assert_eq!(server.shell(&hers, find), "/workspace/diary");
        assert_eq!(server.shell(&his, find), "");
        let layers = format!("{}/sessions/{hers}", server.data().display());
        let code = format!("ls {layers} {layers}/upper /workspace/../{hers} /workspace/../../*/{hers} 2>/dev/null; echo x > {layers}/upper/diary; true");
        assert_eq!(server.shell(&his, &code), "");
        assert_eq!(server.get(&format!("/sessions/{hers}/files/diary")).expect(200).text(), "dear diary");
    }
}

#[test]
fn what_eats_memory_is_ended_and_told_and_nobody_else_is_hurt() {
    let server = serve(User::Root);
    let session = server.session_with(json!({ "resources": { "memory": "256Mi" } }));
    let path = format!("/sessions/{session}");
    assert_eq!(
        server.get(&path).json(200)["limits_enforced"]["memory"],
        true
    );
    let code = "until [ -e go ]; do sleep 0.05; done; echo still";
    let waits = json!({ "language": "shell", "code": code, "timeout": 300 });
    let waiting = server.submit(&session, waits);
    let eats = |language: &str, code: &str| {
        let fields = json!({ "language": language, "code": code, "timeout": 120 });
        let result = server.run_with(&session, fields);
        assert_eq!(result["status"], "failed", "{code}: {result:#}");
        let error = result["error"].as_str().unwrap_or_default();
        assert!(error.contains("memory is used up"), "{code}: {result:#}");
        let peak = result["metrics"]["peak_memory_mb"].as_f64().unwrap();
        assert!(peak < 300.0, "{result:#}");
        assert_eq!(server.shell(&session, "echo well"), "well");
    };
    eats("python", "x = []\nwhile True: x.append(bytearray(1 << 20))");
    eats(
        "javascript",
        "const x = []; while (true) x.push(Buffer.alloc(1 << 20, 1));",
    );
    eats(
        "shell",
        "head -c 400M /dev/zero | tail -c 400M > /dev/null; exit ${PIPESTATUS[1]}",
    );
    server.upload(&session, "go", b"").json(200);
    server.until(&waiting, "completed");
    // Files in memory are of nobody: it may be anybody of the session who is killed for them.
    eats("shell", "head -c 400M /dev/zero > /dev/shm/large");
    // What ends so by itself is not told so.
    let result = server.run(&session, "shell", "kill -9 $$");
    let told = (&result["exit_code"], &result["error"]);
    assert_eq!(told, (&json!(137), &Value::Null));
}

#[test]
fn a_limit_that_cannot_be_enforced_is_refused_where_it_is_asked_for() {
    let server = serve(User::Tester);
    let usual = server
        .get(&format!("/sessions/{}", server.session()))
        .json(200);
    let asked = json!({ "template_id": "python-basic", "resources": { "memory": "256Mi" } });
    let answer = server.post("/sessions", &asked);
    match usual["limits_enforced"]["memory"] == true {
        true => drop(answer.json(201)),
        false => drop(answer.invalid("resources.memory")),
    }
}

fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status();
    assert!(status.unwrap().success(), "ip {words}");
}

/// The world in miniature: from here on, this thread and what it starts are on one end of a wire, with a public
/// and a private address; on the other end somebody with the same says hello to everybody, for as long as
/// what is returned is there.
fn small_world() -> World {
    unshare(Namespaces::NEWNET).unwrap();
    let script = "read go; ip addr add 11.0.0.2/24 dev far; ip addr add 10.99.0.2/24 dev far
        ip link set far up; ip link set lo up; cd \"$1\"; echo hello > hello
        exec python3 -m http.server 80";
    let place = tempfile::tempdir().unwrap();
    let mut far = Command::new("unshare");
    far.args(["--net", "sh", "-c", script, "far"])
        .arg(place.path());
    let far = far
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut far = far.spawn().unwrap();
    let other = format!("/proc/{}/ns/net", far.id());
    let own = fs::read_link("/proc/thread-self/ns/net").unwrap();
    eventually("the other end's namespace", || {
        (fs::read_link(&other).ok()? != own).then_some(())
    });
    ip(&format!(
        "link add near type veth peer name far netns {}",
        far.id()
    ));
    for words in [
        "addr add 11.0.0.1/24 dev near",
        "addr add 10.99.0.1/24 dev near",
        "link set near up",
        "link set lo up",
    ] {
        ip(words);
    }
    std::io::Write::write_all(far.stdin.as_mut().unwrap(), b"go\n").unwrap();
    let answers = || TcpStream::connect("11.0.0.2:80").is_ok().then_some(());
    eventually("the other end", answers);
    World { far, _place: place }
}

struct World {
    far: Child,
    _place: tempfile::TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.far.kill();
        let _ = self.far.wait();
    }
}

/// What Python's own client gets, which goes by the variables; and what one gets that does not.
fn fetched(server: &Server, session: &str, url: &str) -> (String, String) {
    let code = "import os, urllib.request as r
def fetch(url):
    try:
        return r.urlopen(url, timeout=5).read().decode().strip()
    except OSError as error:
        return str(error)
def handler(url):
    os.environ.pop('no_proxy', None), os.environ.pop('NO_PROXY', None)
    proxied = fetch(url)
    r.install_opener(r.build_opener(r.ProxyHandler({})))
    return [proxied, fetch(url)]";
    let fields = json!({ "language": "python", "code": code, "event": url, "timeout": 60 });
    let result = server.run_with(session, fields);
    let both = |place: usize| {
        result["return_value"][place]
            .as_str()
            .unwrap_or_else(|| panic!("{result:#}"))
            .to_owned()
    };
    (both(0), both(1))
}

fn only_the_public_is_reached(user: User) {
    let _world = small_world();
    let server = serve(user);
    let port = server.address().port();
    let other = server.session_with(json!({ "network": { "enabled": true } }));
    let serves = "echo > begun; exec python3 -m http.server 8888 --bind 0.0.0.0";
    let serving = server.submit(
        &other,
        json!({ "language": "shell", "code": serves, "timeout": 600 }),
    );
    server.until_file(&other, "begun");

    let closed = server.session();
    let open = server.session_with(json!({ "network": { "enabled": true } }));
    let (proxied, direct) = fetched(&server, &open, "http://11.0.0.2/hello");
    assert_eq!(proxied, "hello");
    assert!(direct.contains("error"), "{direct}");
    let public = "http://11.0.0.2/hello".to_owned();
    let never = [
        // The server itself, by each address that it has.
        format!("http://127.0.0.1:{port}/health"),
        format!("http://localhost:{port}/health"),
        format!("http://[::1]:{port}/health"),
        format!("http://11.0.0.1:{port}/health"),
        format!("http://0.0.0.0:{port}/health"),
        // Somebody on its network, and the one who hands out a cloud's secrets.
        "http://10.99.0.2/hello".to_owned(),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "http://[fe80::1]/".to_owned(),
        "http://[::ffff:10.99.0.2]/hello".to_owned(),
        // Another session.
        "http://127.0.0.1:8888/".to_owned(),
    ];
    for url in &never {
        let (proxied, direct) = fetched(&server, &open, url);
        assert!(proxied.contains("403"), "{url}: {proxied}");
        assert!(direct.contains("error"), "{url}: {direct}");
    }
    for url in never.iter().chain([&public]) {
        let (proxied, direct) = fetched(&server, &closed, url);
        assert!(
            proxied.contains("error") && direct.contains("error"),
            "{url}: {proxied}, {direct}"
        );
    }
    server
        .post(&format!("/executions/{serving}/cancel"), &json!({}))
        .json(200);
}

as_both! {
    fn only_what_is_public_is_reached_and_only_where_that_is_asked_for(user) {
        only_the_public_is_reached(user);
    }
}
