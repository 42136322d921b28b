//! What a control plane is told that does not always answer, and in which words.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod stage;

use rustix::process::{Signal, kill_process};
use sandbox_api_tests::{User, is_time};
use serde_json::json;
use stage::{ControlPlane, Executor, Options, SESSION, TOKEN, id};

#[test]
fn what_is_not_taken_is_told_again_in_the_same_words_until_it_is() {
    let control_plane = ControlPlane::answering(|path, before| match path.rsplit('/').next() {
        Some("result") if before < 2 => [500, 503][before],
        _ => 201,
    });
    let executor = Options::told(control_plane.address).start();
    let call = executor
        .call("POST", "/execute")
        .header("X-Request-Id", "request-of-the-test");
    let body =
        json!({ "execution_id": id(1), "language": "shell", "code": "date +%N; echo x > made" });
    let accepted = call.json(&body).send();
    assert_eq!(accepted.header("x-request-id"), Some("request-of-the-test"));
    accepted.json(202);
    control_plane.result(&id(1));
    executor.until_spooled(&format!("{}.told", id(1)));
    let told = control_plane.told_of("result");
    assert_eq!(
        told.iter().map(|told| told.answered).collect::<Vec<_>>(),
        [500, 503, 201]
    );
    assert!(
        told.iter().all(|each| each.text == told[0].text),
        "{told:#?}"
    );
    for each in &told {
        assert_eq!(each.path, format!("/internal/executions/{}/result", id(1)));
        assert_eq!(
            each.header("idempotency-key"),
            Some(&*format!("{}_result", id(1)))
        );
    }
    let all = control_plane.told();
    for each in &all {
        assert_eq!(
            each.header("authorization"),
            Some(&*format!("Bearer {TOKEN}")),
            "{each:?}"
        );
        if each.what() != "container_ready" {
            assert_eq!(
                each.header("x-request-id"),
                Some("request-of-the-test"),
                "{each:?}"
            );
        }
    }
    let words: Vec<_> = all
        .iter()
        .map(|told| told.what())
        .filter(|what| *what != "result")
        .collect();
    assert_eq!(words[..2], ["container_ready", "status"]);
    let made = &control_plane.told_of("artifacts")[0].body["artifacts"][0];
    assert_eq!((&made["path"], &made["size"]), (&json!("made"), &json!(2)));
}

#[test]
fn it_says_where_it_is_until_somebody_hears_it() {
    let control_plane = ControlPlane::answering(|_, before| if before < 2 { 502 } else { 201 });
    let options = Options::told(control_plane.address);
    let _executor = options
        .with(&["--container", "box-7", "--url", "http://box-7:8080"])
        .start();
    let ready = control_plane.until("container_ready", |told| told.answered == 201);
    assert_eq!(
        ready.path,
        format!("/internal/sessions/{SESSION}/container_ready")
    );
    assert_eq!(
        (&ready.body["container_id"], &ready.body["executor_url"]),
        (&json!("box-7"), &json!("http://box-7:8080"))
    );
    assert!(is_time(&ready.body["ready_at"]), "{ready:?}");
    assert_eq!(control_plane.told_of("container_ready").len(), 3);
}

#[test]
fn what_is_refused_for_good_is_logged_and_told_no_more() {
    for status in [400, 404, 409] {
        let control_plane =
            ControlPlane::answering(move |path, _| match path.ends_with("/result") {
                true => status,
                false => 201,
            });
        let mut executor = Options::told(control_plane.address).start();
        executor.execute(&id(1), "shell", "true").json(202);
        executor.until_spooled(&format!("{}.told", id(1)));
        executor.until_said(&format!("refuses the result of {}: {status}", id(1)));
        executor.kill();
        executor.start();
        executor.execute(&id(2), "shell", "true").json(202);
        executor.until_spooled(&format!("{}.told", id(2)));
        let of_first = |told: &stage::Told| told.path.contains(&id(1));
        assert_eq!(
            control_plane
                .told_of("result")
                .iter()
                .filter(|told| of_first(told))
                .count(),
            1
        );
        assert!(!executor.log().contains(TOKEN));
    }
}

#[test]
fn what_somebody_on_the_way_says_is_not_the_control_planes_last_word() {
    let control_plane = ControlPlane::behind(|_, before| if before == 0 { 404 } else { 201 });
    let executor = Options::told(control_plane.address).start();
    control_plane.until("container_ready", |told| told.answered == 201);
    let code = "echo begun > begun; until [ -e go ]; do sleep 0.02; done; echo done";
    executor.execute(&id(1), "shell", code).json(202);
    // Neither that it runs nor that it goes on was heard at first; it goes on.
    control_plane.until("status", |told| told.answered == 404);
    control_plane.until("heartbeat", |told| told.answered == 404);
    control_plane.until("heartbeat", |told| told.answered == 201);
    std::fs::write(executor.workspace().join("go"), "go").unwrap();
    assert_eq!(control_plane.result(&id(1))["stdout"], "done\n");
    executor.until_spooled(&format!("{}.told", id(1)));
    assert_eq!(control_plane.told_of("result")[0].answered, 404);
}

#[test]
fn a_result_waits_where_the_token_is_not_known() {
    let first = id(1);
    let control_plane = ControlPlane::answering(move |path, before| {
        let is_it = path.contains(&first) && path.ends_with("/result");
        if is_it && before == 0 { 401 } else { 201 }
    });
    let executor = Options::told(control_plane.address).start();
    executor.execute(&id(1), "shell", "echo kept").json(202);
    executor.until_said(&format!("the result of {} waits: 401", id(1)));
    executor.until_said("\"wait_seconds\":\"60\"");
    assert_eq!(executor.spooled(), [format!("{}.report", id(1))]);
    // With the next one, it is tried again.
    executor.execute(&id(2), "shell", "true").json(202);
    assert_eq!(control_plane.result(&id(1))["stdout"], "kept\n");
    executor.until_spooled(&format!("{}.told", id(1)));
}

#[test]
fn those_for_which_the_token_is_not_known_do_not_hold_up_the_others() {
    // A port that nobody listens on.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let mut executor = Options::told(nobody).start();
    for number in 1..4 {
        executor
            .execute(&id(number), "shell", &format!("echo {number}"))
            .json(202);
        executor.until_spooled(&format!("{}.report", id(number)));
    }
    executor.kill();
    let strange = [id(1), id(2)];
    let control_plane = ControlPlane::answering(move |path, _| {
        match strange.iter().any(|strange| path.contains(strange)) {
            true => 401,
            false => 201,
        }
    });
    executor.options.control = control_plane.address;
    executor.start();
    // The others come first, and would wait for a minute each.
    assert_eq!(control_plane.result(&id(3))["stdout"], "3\n");
}

#[test]
fn a_sigterm_does_not_wait_for_who_does_not_know_the_token() {
    let control_plane = ControlPlane::answering(|path, _| match path.ends_with("/result") {
        true => 401,
        false => 201,
    });
    let mut executor = Options::told(control_plane.address)
        .with(&["--grace", "600"])
        .start();
    for number in 1..4 {
        let code = format!("echo begun > begun{number}; sleep 611");
        executor.execute(&id(number), "shell", &code).json(202);
        executor.until_file(&format!("begun{number}"));
    }
    assert_eq!(executor.terminate().code(), Some(0), "{}", executor.log());
    executor.until_said("3 results were not told; they are kept");
    // Each was brought once.
    for number in 1..4 {
        let path = format!("/internal/executions/{}/result", id(number));
        control_plane.until("result", |told| told.path == path);
    }
    assert_eq!(
        control_plane.told().last().unwrap().what(),
        "container_exited"
    );
}

#[test]
fn one_that_is_stuck_does_not_hold_up_the_others() {
    let stuck = id(1);
    let control_plane = ControlPlane::answering(move |path, _| match path.contains(&stuck) {
        true => 500,
        false => 201,
    });
    let executor = Options::told(control_plane.address).start();
    executor.execute(&id(1), "shell", "true").json(202);
    executor.until_spooled(&format!("{}.report", id(1)));
    for number in 2..6 {
        executor
            .execute(&id(number), "shell", &format!("echo {number}"))
            .json(202);
    }
    for number in 2..6 {
        assert_eq!(
            control_plane.result(&id(number))["stdout"],
            format!("{number}\n")
        );
    }
    let pending = || executor.call("GET", "/health").send().json(200)["results_pending"].clone();
    stage::until(|| (pending() == 1).then_some(()), || pending().to_string());
}

#[test]
fn every_ending_is_told_as_what_it_is() {
    let control_plane = ControlPlane::start();
    let executor = Options::told(control_plane.address).start();
    executor.execute(&id(1), "shell", "exit 3").json(202);
    let body = json!({ "execution_id": id(2), "language": "shell", "code": "echo x; sleep 605", "timeout": 1 });
    executor.execute_with(body).json(202);
    executor
        .execute(&id(3), "shell", "echo begun > begun; sleep 606")
        .json(202);
    executor.until_file("begun");
    executor
        .call("POST", &format!("/executions/{}/cancel", id(3)))
        .send()
        .json(202);
    executor
        .execute(
            &id(4),
            "javascript",
            "exports.handler = (event) => [event, 1]",
        )
        .json(202);
    let failed = control_plane.result(&id(1));
    assert_eq!(
        (&failed["status"], &failed["exit_code"]),
        (&json!("failed"), &json!(3))
    );
    let late = control_plane.result(&id(2));
    assert_eq!(
        (&late["status"], &late["exit_code"]),
        (&json!("timeout"), &json!(-1))
    );
    assert_eq!(late["stderr"], "Execution timeout after 1 seconds\n");
    let cancelled = control_plane.result(&id(3));
    assert_eq!(
        (&cancelled["status"], &cancelled["exit_code"]),
        (&json!("cancelled"), &json!(-1))
    );
    let returned = control_plane.result(&id(4));
    assert_eq!(
        (&returned["status"], &returned["return_value"]),
        (&json!("success"), &json!([{}, 1]))
    );
}

#[test]
fn a_sigterm_is_told_after_everything_else() {
    let control_plane = ControlPlane::start();
    let mut executor = Options::told(control_plane.address)
        .with(&["--grace", "30"])
        .start();
    for number in 1..4 {
        let code = format!("echo begun > begun{number}; sleep 607");
        executor.execute(&id(number), "shell", &code).json(202);
        executor.until_file(&format!("begun{number}"));
    }
    let status = executor.terminate();
    assert_eq!(status.code(), Some(0), "{}", executor.log());
    let told = control_plane.told();
    let last = told.last().unwrap();
    assert_eq!(
        last.path,
        format!("/internal/sessions/{SESSION}/container_exited")
    );
    assert_eq!(
        (&last.body["exit_code"], &last.body["exit_reason"]),
        (&json!(0), &json!("sigterm"))
    );
    assert!(is_time(&last.body["exited_at"]));
    for number in 1..4 {
        assert_eq!(control_plane.result(&id(number))["status"], "crashed");
    }
}

#[test]
fn as_the_first_process_of_a_container_it_ends_when_it_is_told_to() {
    for walls in [
        &[][..],
        &["--isolation", "landlock", "--network", "container"],
    ] {
        let control_plane = ControlPlane::start();
        let options = Options::told(control_plane.address).by(User::Root);
        let mut executor = Executor::made(options.with(walls).with(&["--grace", "30"]));
        let container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
        executor.start_as(executor.command_after(&container));
        executor
            .execute(
                &id(1),
                "shell",
                "(setsid sleep 609 &); echo x > begun; sleep 609",
            )
            .json(202);
        executor.until_file("begun");
        let outside = executor.pid().as_raw_nonzero().get();
        let [first] = executor.children(outside)[..] else {
            panic!("{:?}", executor.processes());
        };
        // Here the kernel drops a signal that nobody asked for.
        kill_process(first, Signal::TERM).unwrap();
        assert_eq!(executor.wait().code(), Some(0), "{}", executor.log());
        assert_eq!(control_plane.result(&id(1))["status"], "crashed");
        assert_eq!(
            control_plane.told().last().unwrap().what(),
            "container_exited"
        );
    }
}

#[test]
fn a_sigterm_that_nobody_hears_leaves_the_results_where_they_are() {
    let control_plane = ControlPlane::answering(|path, _| match path.ends_with("/result") {
        true => 500,
        false => 201,
    });
    let mut executor = Options::told(control_plane.address)
        .with(&["--grace", "1"])
        .start();
    executor.execute(&id(1), "shell", "echo kept").json(202);
    executor.until_spooled(&format!("{}.report", id(1)));
    assert_eq!(executor.terminate().code(), Some(0));
    executor.until_said("1 results were not told; they are kept");
    assert_eq!(executor.spooled(), [format!("{}.report", id(1))]);
    let other = ControlPlane::start();
    executor.options.control = other.address;
    executor.start();
    assert_eq!(other.result(&id(1))["stdout"], "kept\n");
}

#[test]
fn a_control_plane_that_comes_late_misses_nothing() {
    // A port that nobody listens on yet.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let mut executor = Options::told(nobody).by(User::Root).start();
    for number in 1..4 {
        executor
            .execute(&id(number), "shell", &format!("echo {number}"))
            .json(202);
    }
    for number in 1..4 {
        executor.until_spooled(&format!("{}.report", id(number)));
    }
    executor.kill();
    let control_plane = ControlPlane::start();
    executor.options.control = control_plane.address;
    executor.start();
    for number in 1..4 {
        assert_eq!(
            control_plane.result(&id(number))["stdout"],
            format!("{number}\n")
        );
    }
}

#[test]
fn output_without_end_is_cut_and_costs_no_memory() {
    let control_plane = ControlPlane::start();
    let executor = Options::told(control_plane.address).start();
    executor.execute(&id(1), "shell", "true").json(202);
    control_plane.result(&id(1));
    let before = executor.memory();
    let body = json!({
        "execution_id": id(2), "language": "shell", "timeout": 600,
        "code": "head -c 3G /dev/zero; head -c 1G /dev/zero >&2; echo begun > begun; sleep 600",
    });
    executor.execute_with(body).json(202);
    let most = most_memory_until(&executor, || executor.workspace().join("begun").exists());
    // Two streams of a megabyte are kept, and not much else; a test binary is not as small as the one that is
    // delivered, so it is held to what it takes more.
    assert!(most < before + (8 << 20), "{before} and then {most}");
    executor
        .call("POST", &format!("/executions/{}/cancel", id(2)))
        .send()
        .json(202);
    let result = control_plane.result(&id(2));
    assert_eq!(
        (&result["stdout_truncated"], &result["stderr_truncated"]),
        (&json!(true), &json!(true))
    );
    // All of it is told, and a null character takes six bytes of JSON.
    let told = control_plane.told_of("result");
    let text = &told.last().unwrap().text;
    assert!(
        text.len() > 12 << 20 && text.len() < 13 << 20,
        "{}",
        text.len()
    );
}

fn most_memory_until(executor: &Executor, mut is_over: impl FnMut() -> bool) -> u64 {
    let mut most = 0;
    stage::until(
        || {
            most = most.max(executor.memory());
            is_over().then_some(())
        },
        || executor.log(),
    );
    most
}
