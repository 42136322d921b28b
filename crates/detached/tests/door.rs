//! What an executor answers to whoever brings its token.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod stage;

use std::net::TcpStream;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use stage::{ControlPlane, Executor, Options, SESSION, id};

fn started() -> (ControlPlane, Executor) {
    let control_plane = ControlPlane::start();
    let executor = Options::told(control_plane.address).start();
    (control_plane, executor)
}

#[test]
fn it_says_which_walls_it_has() {
    let (_control_plane, executor) = started();
    let health = executor.call("GET", "/health").send().json(200);
    assert_eq!(
        (&health["status"], &health["session_id"]),
        (&json!("healthy"), &json!(SESSION))
    );
    let walls = &health["isolation"];
    assert_eq!(walls["executor"], "PID namespace and mounts", "{health}");
    assert_eq!(walls["between_executions"], "fresh namespaces", "{health}");
    assert!(
        walls["network"].as_str().unwrap().starts_with("none"),
        "{health}"
    );
}

#[test]
fn an_executor_that_does_not_answer_is_not_healthy() {
    let (_control_plane, executor) = started();
    let door = executor.pid().as_raw_nonzero().get();
    let [keeper] = executor.children(door)[..] else {
        panic!("{:?}", executor.processes());
    };
    kill_process(keeper, Signal::STOP).unwrap();
    executor
        .call("GET", "/health")
        .send()
        .error(503, "Internal.Unavailable");
    kill_process(keeper, Signal::CONT).unwrap();
    executor.call("GET", "/health").send().json(200);
}

#[test]
fn an_execution_is_accepted_once() {
    let (control_plane, executor) = started();
    executor
        .execute(&id(1), "shell", "echo one >> ran; sleep 608")
        .json(202);
    executor
        .execute(&id(1), "shell", "echo two >> ran")
        .error(409, "Internal.StateConflict");
    executor.until_file("ran");
    executor
        .call("POST", &format!("/executions/{}/cancel", id(1)))
        .send()
        .json(202);
    control_plane.result(&id(1));
    executor
        .execute(&id(1), "shell", "echo three >> ran")
        .error(409, "Internal.StateConflict");
    assert_eq!(executor.until_file("ran"), "one\n");
}

#[test]
fn of_many_at_once_with_one_name_one_is_accepted() {
    let (control_plane, executor) = started();
    let accepted = std::thread::scope(|scope| {
        let ask = || executor.execute(&id(1), "shell", "echo ran >> ran").status;
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        let answers: Vec<_> = asking
            .into_iter()
            .map(|asked| asked.join().unwrap())
            .collect();
        assert!(
            answers.iter().all(|status| [202, 409].contains(status)),
            "{answers:?}"
        );
        answers.iter().filter(|status| **status == 202).count()
    });
    assert_eq!(accepted, 1);
    control_plane.result(&id(1));
    assert_eq!(executor.until_file("ran"), "ran\n");
}

#[test]
fn one_that_is_over_or_never_was_cannot_be_cancelled() {
    let (control_plane, executor) = started();
    executor.execute(&id(1), "shell", "true").json(202);
    control_plane.result(&id(1));
    executor.until_spooled(&format!("{}.told", id(1)));
    let cancel = |id: &str| {
        executor
            .call("POST", &format!("/executions/{id}/cancel"))
            .send()
    };
    cancel(&id(1)).error(409, "Internal.StateConflict");
    cancel(&id(2)).error(404, "Internal.InvalidExecution");
    cancel("nonsense").error(400, "Internal.InvalidParameter");
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    let (_control_plane, executor) = started();
    let usual = json!({ "execution_id": id(1), "language": "shell", "code": "true" });
    let with = |field: &str, value: Value| {
        let mut body = usual.clone();
        body[field] = value;
        executor.execute_with(body)
    };
    for (field, value) in [
        ("execution_id", json!("../../x")),
        ("language", json!("ruby")),
        ("timeout", json!(0)),
        ("timeout", json!(3601)),
        ("code", json!(5)),
        ("more", json!(1)),
    ] {
        with(field, value).error(400, "Internal.InvalidParameter");
    }
    with("code", json!("x".repeat(102_401))).error(400, "Internal.PayloadTooLarge");
    with("event", json!("x".repeat(1 << 20))).error(400, "Internal.PayloadTooLarge");
    with("event", json!("x".repeat(5 << 20))).error(400, "Internal.PayloadTooLarge");
    let raw = |kind: &str, body: &str| executor.call("POST", "/execute").body(kind, body).send();
    raw("application/json", "{").error(400, "Internal.InvalidParameter");
    raw("text/plain", &usual.to_string()).error(400, "Internal.InvalidParameter");
    executor
        .call("GET", "/execute")
        .send()
        .error(405, "Internal.MethodNotAllowed");
    executor
        .call("GET", "/elsewhere")
        .send()
        .error(404, "Internal.NotFound");
    assert!(executor.spooled().is_empty());
}

#[test]
fn files_go_in_and_out_whole() {
    let (control_plane, executor) = started();
    let content: Vec<u8> = (0..3_000_000u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let put = executor
        .call("PUT", "/files/data/in%20here.bin")
        .body("application/octet-stream", &content[..]);
    assert_eq!(put.send().json(201)["size"], 3_000_000);
    executor
        .execute(&id(1), "shell", "cp 'data/in here.bin' out.bin")
        .json(202);
    control_plane.result(&id(1));
    let got = executor.call("GET", "/files/out.bin").send().expect(200);
    assert_eq!(got.header("content-length"), Some("3000000"));
    assert!(got.body == content);
    // What was brought from outside is nothing that code made.
    let made = &control_plane.told_of("artifacts")[0].body["artifacts"];
    assert_eq!(
        (made.as_array().unwrap().len(), &made[0]["path"]),
        (1, &json!("out.bin"))
    );
    let list = |query: &str| {
        executor
            .call("GET", &format!("/files{query}"))
            .send()
            .json(200)
    };
    let names = |page: &Value| -> Vec<String> {
        let entries = page["entries"].as_array().unwrap();
        entries
            .iter()
            .map(|entry| entry["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = list("?limit=1");
    assert_eq!(names(&first), ["data"]);
    let next = first["next"].as_str().unwrap();
    assert_eq!(names(&list(&format!("?limit=1&after={next}"))), ["out.bin"]);
    assert_eq!(names(&list("?path=data")), ["in here.bin"]);
    executor.call("DELETE", "/files/data").send().expect(204);
    executor
        .call("GET", "/files/data/in%20here.bin")
        .send()
        .error(404, "Internal.FileNotFound");
}

#[test]
fn no_path_leads_out_of_the_workspace() {
    let (control_plane, executor) = started();
    let secret = executor.base().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let plant = format!(
        "ln -s {} link; ln -s / root; ln -s /proc/self magic; ln -s .. up; mkfifo pipe",
        secret.display()
    );
    executor.execute(&id(1), "shell", &plant).json(202);
    control_plane.result(&id(1));
    for path in [
        "link",
        "root/etc/passwd",
        "magic/environ",
        "up/secret",
        "../secret",
        "%2e%2e/secret",
        "..%2fsecret",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "a/../../secret",
    ] {
        executor
            .call("GET", &format!("/files/{path}"))
            .send()
            .error(404, "Internal.FileNotFound");
        // A link that is replaced is none any more; what it led to is as it was.
        let put = executor
            .call("PUT", &format!("/files/{path}x/y"))
            .body("text/plain", "planted");
        assert_ne!(put.send().status, 500, "{path}");
    }
    executor
        .call("GET", "/files/pipe")
        .send()
        .error(400, "Internal.InvalidParameter");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret");
    let mut names: Vec<_> = std::fs::read_dir(executor.base())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["sandbox-executor", "secret", "state", "workspace"]);
}

#[test]
fn an_upload_that_breaks_off_leaves_nothing() {
    let (_control_plane, executor) = started();
    let put = executor
        .call("PUT", "/files/half")
        .body("text/plain", vec![b'x'; 1_000_000])
        .cut(500_000);
    drop(put.write().unwrap());
    let names = || -> Vec<_> {
        let entries = std::fs::read_dir(executor.workspace()).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    // It may not have begun, and must have ended.
    executor
        .call("GET", "/files/half")
        .send()
        .error(404, "Internal.FileNotFound");
    stage::until(
        || names().is_empty().then_some(()),
        || format!("{:?}", names()),
    );
    let large = executor
        .call("PUT", "/files/large")
        .body("text/plain", vec![b'x'; (100 << 20) + 1]);
    large.send().error(400, "Internal.PayloadTooLarge");
    stage::until(
        || names().is_empty().then_some(()),
        || format!("{:?}", names()),
    );
}

#[test]
fn those_who_say_nothing_do_not_keep_others_out() {
    let (_control_plane, executor) = started();
    let address = executor.address();
    let silent: Vec<_> = (0..200)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    // They are let go of after ten seconds.
    executor.call("GET", "/health").send().json(200);
    drop(silent);
}

#[test]
fn an_event_that_is_nested_too_deep_is_refused_and_nothing_is_lost() {
    let control_plane = ControlPlane::start();
    let executor = Options::told(control_plane.address).start();
    let execute = |number: u32, levels: usize| {
        let event = (0..levels).fold(json!(1), |inner, _| json!([inner]));
        executor.execute_with(
            json!({ "execution_id": id(number), "language": "python", "event": event,
                "code": "def handler(event):\n    return event\n" }),
        )
    };
    for levels in [101, 110, 120, 126] {
        execute(1, levels).error(400, "Internal.InvalidParameter");
    }
    execute(2, 100).json(202);
    assert_eq!(control_plane.result(&id(2))["status"], "success");
    assert_eq!(executor.spooled().len(), 1);
}
