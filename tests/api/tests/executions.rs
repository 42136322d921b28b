//! Executions: code that is run, and what becomes of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use sandbox_api_tests::process::{started_with, unlikely};
use sandbox_api_tests::{Event, Form, Server, eventually, is_time, like, on_every_storage};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const RESULT: [&str; 17] = [
    "artifacts",
    "artifacts_truncated",
    "completed_at",
    "error",
    "error_code",
    "execution_id",
    "execution_time",
    "exit_code",
    "metrics",
    "return_value",
    "session_id",
    "started_at",
    "status",
    "stderr",
    "stderr_truncated",
    "stdout",
    "stdout_truncated",
];

const STATUS: [&str; 16] = [
    "completed_at",
    "crashed_at",
    "created_at",
    "error",
    "execution_id",
    "language",
    "last_heartbeat_at",
    "parent_execution_id",
    "progress",
    "retry",
    "retry_count",
    "session_id",
    "started_at",
    "status",
    "timeout",
    "timeout_at",
];

fn names(object: &Value) -> BTreeSet<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What an execution was heard to print on a stream.
fn heard(events: &[Event], name: &str) -> Vec<u8> {
    let pieces = events.iter().filter(|event| event.name == name);
    pieces
        .flat_map(|event| {
            BASE64_STANDARD
                .decode(event.data["base64"].as_str().unwrap())
                .unwrap()
        })
        .collect()
}

/// Nothing that was started with this word goes on.
#[track_caller]
fn must_be_gone(word: &str) {
    eventually("it is gone", || started_with(word).is_empty().then_some(()));
}

#[track_caller]
fn streamed(server: &Server, session: &str, fields: &Value) -> Vec<Event> {
    let call = server.posting(&format!("/sessions/{session}/execute"), fields);
    call.header("Accept", "text/event-stream")
        .open()
        .events()
        .collect()
}

on_every_storage! {
    fn a_handler_is_given_the_event_and_its_answer_comes_back(server: &Server) {
        let id = server.session();
        let event = json!({ "a": 1, "text": "ü\n\"\u{0}\u{1f600}", "list": [null, true, -1.5e300], "deep": { "er": {} } });
        for (language, code) in [
            ("python", "def handler(event):\n    print('hello')\n    return {'got': event}"),
            ("python", "import asyncio\nasync def handler(event):\n    await asyncio.sleep(0)\n    print('hello')\n    return {'got': event}"),
            ("javascript", "function handler(event) { console.log('hello'); return { got: event } }"),
            ("javascript", "async function handler(event) { await null; console.log('hello'); return { got: event } }"),
            ("javascript", "const handler = (event) => { console.log('hello'); return { got: event } }"),
        ] {
            let result = server.run_with(&id, json!({ "language": language, "code": code, "event": event }));
            assert_eq!(result["status"], "success", "{result:#}");
            assert_eq!(result["return_value"], json!({ "got": event }));
            assert_eq!((&result["stdout"], &result["stderr"]), (&json!("hello\n"), &json!("")));
            assert_eq!(result["exit_code"], 0);
        }
        for event in [json!(null), json!(0), json!("text"), json!([]), json!(false)] {
            let code = "def handler(event):\n    return event";
            let result = server.run_with(&id, json!({ "language": "python", "code": code, "event": event }));
            assert_eq!(result["return_value"], event);
        }
    }

    fn a_result_has_every_field_and_stays_the_same(server: &Server) {
        let id = server.session();
        let code = "import time\nopen('made.txt', 'w').write('x' * 1000)\nx = bytearray(30_000_000)\n\
            end = time.process_time() + 0.05\nwhile time.process_time() < end: pass\n\
            def handler(event):\n    return 42";
        let asked = json!({ "language": "python", "code": code, "event_data": { "k": "v" }, "timeout": 20 });
        let result = server.run_with(&id, asked);
        assert_eq!(names(&result), RESULT.into());
        assert!(like(Form::Execution, &result["execution_id"]), "{result:#}");
        let execution = result["execution_id"].as_str().unwrap();
        for (field, value) in [
            ("session_id", json!(id)),
            ("status", json!("success")),
            ("stdout_truncated", json!(false)),
            ("stderr_truncated", json!(false)),
            ("artifacts_truncated", json!(false)),
            ("exit_code", json!(0)),
            ("return_value", json!(42)),
            ("error", Value::Null),
        ] {
            assert_eq!(result[field], value, "{field}");
        }
        let metrics = &result["metrics"];
        let expected = ["cpu_time_ms", "duration_ms", "io_read_bytes", "io_write_bytes", "peak_memory_mb"];
        assert_eq!(names(metrics), expected.into());
        let measured = |name: &str| metrics[name].as_f64().unwrap();
        assert!(measured("cpu_time_ms") >= 50.0, "{metrics}");
        assert!(measured("duration_ms") >= measured("cpu_time_ms") * 0.5, "{metrics}");
        assert!((28.0..200.0).contains(&measured("peak_memory_mb")), "{metrics}");
        let took = result["execution_time"].as_f64().unwrap() * 1000.0;
        assert!((took - measured("duration_ms")).abs() < 1.0, "{took} {metrics}");
        assert!(is_time(&result["started_at"]) && is_time(&result["completed_at"]));

        assert_eq!(server.get(&format!("/executions/{execution}/result")).json(200), result);
        let status = server.get(&format!("/executions/{execution}/status")).json(200);
        assert_eq!(names(&status), STATUS.into());
        for (field, value) in [
            ("execution_id", json!(execution)),
            ("session_id", json!(id)),
            ("status", json!("completed")),
            ("language", json!("python")),
            ("timeout", json!(20)),
            ("retry", json!(false)),
            ("retry_count", json!(0)),
            ("parent_execution_id", Value::Null),
            ("crashed_at", Value::Null),
            ("timeout_at", Value::Null),
            ("error", Value::Null),
            ("started_at", result["started_at"].clone()),
            ("completed_at", result["completed_at"].clone()),
        ] {
            assert_eq!(status[field], value, "{field}");
        }
        let mut whole = server.get(&format!("/executions/{execution}")).json(200);
        assert_eq!((&whole["code"], &whole["event"]), (&json!(code), &json!({ "k": "v" })));
        assert_eq!(whole["result"], result);
        let object = whole.as_object_mut().unwrap();
        object.remove("result");
        object.remove("code");
        object.remove("event");
        assert_eq!(whole, status);
    }

    fn an_execution_is_submitted_and_found_later(server: &Server) {
        let id = server.session();
        let code = "echo out; until [ -e go ]; do sleep 0.01; done";
        let answer = server.post(&format!("/sessions/{id}/execute"), &json!({ "language": "shell", "code": code }));
        let answer = answer.json(200);
        assert_eq!(names(&answer), ["execution_id", "status", "submitted_at"].into());
        assert_eq!(answer["status"], "submitted");
        assert!(like(Form::Execution, &answer["execution_id"]) && is_time(&answer["submitted_at"]));
        let execution = answer["execution_id"].as_str().unwrap();
        let error = server.get(&format!("/executions/{execution}/result")).error(409, "Sandbox.StateConflict");
        assert!(error["solution"].as_str().unwrap().contains("wait"), "{error}");
        let status = server.get(&format!("/executions/{execution}/status")).json(200);
        assert!(["pending", "running"].contains(&status["status"].as_str().unwrap()), "{status:#}");
        server.until(execution, "running");
        let running = server.get(&format!("/executions/{execution}")).json(200);
        assert_eq!((&running["code"], &running["result"]), (&json!(code), &Value::Null));
        server.upload(&id, "go", b"").json(200);
        server.until(execution, "completed");
        let result = server.get(&format!("/executions/{execution}/result")).json(200);
        assert_eq!((&result["status"], &result["stdout"]), (&json!("success"), &json!("out\n")));
    }

    fn code_without_a_handler_just_runs(server: &Server) {
        let id = server.session();
        for (language, code) in [("python", "print('ran')"), ("javascript", "console.log('ran')"), ("shell", "echo ran")] {
            let result = server.run(&id, language, code);
            assert_eq!(result["status"], "success", "{result:#}");
            assert_eq!((&result["stdout"], &result["return_value"]), (&json!("ran\n"), &Value::Null));
        }
        for (language, code, exit_code) in [
            ("python", "import sys; sys.exit(3)", 3),
            ("javascript", "process.exit(4)", 4),
            ("shell", "exit 5", 5),
        ] {
            let result = server.run(&id, language, code);
            assert_eq!((&result["status"], &result["exit_code"]), (&json!("failed"), &json!(exit_code)));
        }
    }

    fn what_fails_says_why(server: &Server) {
        let id = server.session();
        for (language, code, said) in [
            ("python", "def handler(event):\n    return 1 / 0", "ZeroDivisionError"),
            ("python", "def handler(event)\n    return", "SyntaxError"),
            ("python", "import nothing_of_that_name", "ModuleNotFoundError"),
            ("python", "async def handler(event):\n    raise ValueError('the reason')", "the reason"),
            ("python", "def handler(event):\n    return object()", "TypeError"),
            ("javascript", "function handler(event) { throw new Error('the reason') }", "the reason"),
            ("javascript", "async function handler(event) { throw new RangeError('the reason') }", "RangeError"),
            ("javascript", "function handler(", "SyntaxError"),
            ("javascript", "nothing.of.that.name", "ReferenceError"),
            ("shell", "no-such-command-anywhere", "not found"),
            ("shell", "if", "syntax error"),
        ] {
            let result = server.run(&id, language, code);
            assert_eq!(result["status"], "failed", "{code}: {result:#}");
            assert_eq!(result["error_code"], "Sandbox.ExecException", "{code}: {result:#}");
            assert_ne!(result["exit_code"], 0, "{code}");
            assert_eq!(result["return_value"], Value::Null, "{code}");
            let stderr = result["stderr"].as_str().unwrap();
            assert!(stderr.contains(said), "{code}: {stderr}");
            if language == "python" {
                // What is wrong with an answer is wrong with no line of the code.
                let told = stderr.contains("Traceback") || said == "SyntaxError" || stderr.starts_with("TypeError: ");
                assert!(told, "{stderr}");
            }
            let execution = result["execution_id"].as_str().unwrap();
            assert_eq!(server.get(&format!("/executions/{execution}")).json(200)["status"], "failed");
        }
        assert_eq!(server.shell(&id, "echo well"), "well");
    }

    fn the_shell_finds_the_event_on_its_input_and_in_its_environment(server: &Server) {
        let id = server.session_with(json!({ "env_vars": { "GREETING": "hello" } }));
        let asked = json!({ "language": "shell", "code": "cat; echo; printf '%s' \"$EVENT_JSON\"; echo; echo $GREETING", "event": { "a": [1, "b c"] } });
        let result = server.run_with(&id, asked);
        let text = r#"{"a":[1,"b c"]}"#;
        assert_eq!(result["stdout"], format!("{text}\n{text}\nhello\n"));
        for (language, code) in [
            ("python", "import os\ndef handler(event):\n    return os.environ['GREETING']"),
            ("javascript", "function handler() { return process.env.GREETING }"),
        ] {
            assert_eq!(server.run(&id, language, code)["return_value"], "hello");
        }
    }

    fn what_is_printed_forges_no_result(server: &Server) {
        let id = server.session();
        let forged = r#"{"status":"success","return_value":"forged","exit_code":0}"#;
        for code in [
            format!("print('''{forged}''')\nraise SystemExit(7)"),
            format!("import sys, os\nfor fd in range(64):\n    try: os.write(fd, b'''{forged}\\n''')\n    except OSError: pass\nos._exit(7)"),
            format!("import os\nos.makedirs('/tmp/x', exist_ok=True)\nopen('result.json', 'w').write('''{forged}''')\nos._exit(7)"),
        ] {
            let result = server.run(&id, "python", &code);
            assert_eq!((&result["status"], &result["exit_code"]), (&json!("failed"), &json!(7)), "{result:#}");
            assert_eq!(result["return_value"], Value::Null, "{result:#}");
        }
        let code = format!("def handler(event):\n    print('''{forged}''')\n    return 'real'");
        let result = server.run(&id, "python", &code);
        assert_eq!((&result["status"], &result["return_value"]), (&json!("success"), &json!("real")));
    }

    fn an_execution_that_takes_too_long_is_ended_in_time(server: &Server) {
        let id = server.session();
        let word = unlikely(3141, 1);
        let stubborn = format!(
            "trap '' TERM INT HUP; (setsid sleep {word} &); until pgrep -x sleep > /dev/null; do :; done; \
             echo before; while true; do sleep {word}; done"
        );
        for (language, code) in [
            ("python", "print('before', flush=True)\nwhile True: pass"),
            ("shell", &stubborn),
        ] {
            let begin = Instant::now();
            let result = server.run_with(&id, json!({ "language": language, "code": code, "timeout": 2 }));
            let took = begin.elapsed();
            assert_eq!(result["status"], "timeout", "{result:#}");
            assert_eq!(result["error_code"], "Sandbox.ExecTimeout");
            assert_eq!(result["exit_code"], -1);
            assert_eq!(result["stdout"], "before\n");
            let stderr = result["stderr"].as_str().unwrap();
            assert!(stderr.contains("Execution timeout after 2 seconds"), "{stderr}");
            // To a tenth of a second where nobody else is busy: bench/ holds it to that.
            let reported = result["execution_time"].as_f64().unwrap();
            assert!((1.9..5.0).contains(&reported), "{reported}");
            assert!(took < Duration::from_secs(20), "{took:?}");
            let execution = result["execution_id"].as_str().unwrap();
            let status = server.get(&format!("/executions/{execution}")).json(200);
            assert_eq!(status["status"], "timeout");
            assert!(is_time(&status["timeout_at"]) && status["completed_at"].is_null(), "{status:#}");
            assert_eq!(status["timeout_at"], result["completed_at"]);
        }
        must_be_gone(&word);
        assert_eq!(server.shell(&id, "echo answers"), "answers");
    }

    fn an_execution_is_cancelled_with_everything_it_started(server: &Server) {
        let id = server.session();
        let word = unlikely(2718, 2);
        let code = format!("trap '' TERM; (setsid sleep {word} &); while true; do sleep {word}; done");
        let execution = server.submit(&id, json!({ "language": "shell", "code": code, "timeout": 600 }));
        eventually("both sleep", || (started_with(&word).len() == 2).then_some(()));
        let begin = Instant::now();
        let cancelled = server.post(&format!("/executions/{execution}/cancel"), &json!({})).json(200);
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
        assert_eq!(cancelled["status"], "cancelled");
        must_be_gone(&word);
        let result = server.get(&format!("/executions/{execution}/result")).json(200);
        assert_eq!((&result["status"], &result["exit_code"]), (&json!("cancelled"), &json!(-1)));
        assert_eq!(result["error_code"], Value::Null);
        let error = server.post(&format!("/executions/{execution}/cancel"), &json!({})).error(409, "Sandbox.StateConflict");
        assert!(error.to_string().contains("cancelled"), "{error}");
        assert_eq!(server.shell(&id, "echo answers"), "answers");
    }

    fn what_is_printed_is_heard_as_it_comes(server: &Server) {
        let id = server.session();
        let code = "echo first; echo oops >&2; until [ -e go ]; do sleep 0.01; done; printf '\\377\\000last'; exit 3";
        let asked = json!({ "language": "shell", "code": code });
        let call = server.posting(&format!("/sessions/{id}/execute"), &asked);
        let mut events = call.header("Accept", "text/event-stream").open().events();
        let mut seen = vec![events.next().unwrap()];
        assert_eq!(seen[0].name, "submitted");
        let execution = seen[0].data["execution_id"].as_str().unwrap().to_owned();
        while heard(&seen, "stdout") != b"first\n" || heard(&seen, "stderr") != b"oops\n" {
            seen.push(events.next().unwrap());
        }
        // It is still running: what was heard was heard meanwhile.
        server.upload(&id, "go", b"").json(200);
        seen.extend(events);
        assert_eq!(heard(&seen, "stdout"), b"first\n\xff\0last");
        let last = seen.last().unwrap();
        assert_eq!(last.name, "result");
        assert_eq!((&last.data["status"], &last.data["exit_code"]), (&json!("failed"), &json!(3)));
        assert_eq!(last.data, server.get(&format!("/executions/{execution}/result")).json(200));
    }

    fn a_listener_who_leaves_stops_nothing(server: &Server) {
        let id = server.session();
        let code = "echo here; until [ -e go ]; do sleep 0.01; done; echo done > told";
        let asked = json!({ "language": "shell", "code": code });
        let call = server.posting(&format!("/sessions/{id}/execute"), &asked);
        let mut events = call.header("Accept", "text/event-stream").open().events();
        let execution = events.next().unwrap().data["execution_id"].as_str().unwrap().to_owned();
        drop(events);
        server.upload(&id, "go", b"").json(200);
        server.until(&execution, "completed");
        assert_eq!(server.get(&format!("/sessions/{id}/files/told")).expect(200).text(), "done\n");
    }

    fn bytes_that_are_no_text_are_printed_all_the_same(server: &Server) {
        let id = server.session();
        let code = "import sys\nsys.stdout.buffer.write(b'a\\xff\\x00\\xf0\\x9f\\x98z' + '\u{fc}\u{1f600}'.encode())";
        let result = server.run(&id, "python", code);
        assert_eq!(result["status"], "success", "{result:#}");
        let printed = result["stdout"].as_str().unwrap();
        assert!(printed.starts_with('a') && printed.ends_with("z\u{fc}\u{1f600}"), "{printed:?}");
        assert!(printed.contains('\u{fffd}'), "{printed:?}");
        // As it was, for whoever listens.
        let events = streamed(server, &id, &json!({ "language": "python", "code": code }));
        assert_eq!(heard(&events, "stdout"), [b"a\xff\0\xf0\x9f\x98z", "\u{fc}\u{1f600}".as_bytes()].concat());
    }

    fn of_too_much_output_the_first_megabyte_is_kept(server: &Server) {
        let id = server.session();
        let code = "head -c 300000000 /dev/zero | tr '\\0' 'x'; echo end; echo short >&2";
        let result = server.run(&id, "shell", code);
        assert_eq!(result["status"], "success");
        assert_eq!((&result["stdout_truncated"], &result["stderr_truncated"]), (&json!(true), &json!(false)));
        let printed = result["stdout"].as_str().unwrap();
        assert!(printed.len() >= 1 << 20 && printed.len() < (1 << 20) + 200, "{}", printed.len());
        assert!(printed.starts_with(&"x".repeat(1000)));
        assert_eq!(result["stderr"], "short\n");
        let execution = result["execution_id"].as_str().unwrap();
        assert_eq!(server.get(&format!("/executions/{execution}/result")).json(200), result);
        let exact = server.run(&id, "shell", "head -c 1048576 /dev/zero | tr '\\0' 'x'");
        assert_eq!((&exact["stdout_truncated"], exact["stdout"].as_str().unwrap().len()), (&json!(false), 1 << 20));
    }

    fn files_that_are_made_are_artifacts(server: &Server) {
        let id = server.session_with(json!({ "source": { "files": { "old.txt": "old", "sub/old.txt": "old" } } }));
        let content = "\u{fc} and \u{1f600}".repeat(1000);
        server.upload(&id, "uploaded.txt", b"before").json(200);
        let result = server.run_with(&id, json!({
            "language": "python",
            "code": "import os\ndef handler(event):\n    os.makedirs('out/deep')\n    open('out/deep/data.csv', 'w').write(event)\n    \
                open('plot.png', 'wb').write(b'\\x89PNG\\r\\n')\n    open('empty', 'w')\n    \
                open('.hidden', 'w').write('x')\n    os.makedirs('.cache/x')\n    open('.cache/x/f', 'w').write('x')\n    \
                open('old.txt', 'a').write('more')\n    open('name with \"quotes\" \\u00fc', 'w').write('x')\n    \
                open('/tmp/elsewhere', 'w').write('x')\n    os.symlink('/etc/passwd', 'link')\n    os.mkfifo('pipe')",
            "event": content,
        }));
        assert_eq!(result["status"], "success", "{result:#}");
        let mut artifacts = result["artifacts"].as_array().unwrap().clone();
        artifacts.sort_by_key(|artifact| artifact["path"].as_str().unwrap().to_owned());
        let paths: Vec<_> = artifacts.iter().map(|artifact| artifact["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["empty", "name with \"quotes\" ü", "out/deep/data.csv", "plot.png"]);
        for artifact in &artifacts {
            let expected = ["artifact_id", "artifact_type", "created_at", "mime_type", "name", "path", "sha256", "size"];
            assert_eq!(names(artifact), expected.into());
            assert!(like(Form::Artifact, &artifact["artifact_id"]), "{artifact}");
            assert_eq!(artifact["artifact_type"], "artifact");
            assert!(is_time(&artifact["created_at"]));
        }
        let data = &artifacts[2];
        assert_eq!((&data["name"], &data["size"]), (&json!("data.csv"), &json!(content.len())));
        assert_eq!(data["sha256"], hexadecimal(&Sha256::digest(content.as_bytes())));
        assert_eq!((&data["mime_type"], &artifacts[3]["mime_type"]), (&json!("text/csv"), &json!("image/png")));
        assert_eq!(artifacts[0]["sha256"], hexadecimal(&Sha256::digest(b"")));
        let downloaded = server.get(&format!("/sessions/{id}/files/out/deep/data.csv")).expect(200);
        assert_eq!(downloaded.body, content.as_bytes());
        // The next one did not make them.
        assert_eq!(server.run(&id, "shell", "cat plot.png > /dev/null")["artifacts"], json!([]));
        let execution = result["execution_id"].as_str().unwrap();
        assert_eq!(server.get(&format!("/executions/{execution}/result")).json(200), result);
    }

    fn of_too_many_artifacts_it_is_told_that_there_are_more(server: &Server) {
        let id = server.session();
        let result = server.run(&id, "shell", "mkdir made; cd made; seq 1001 | xargs touch");
        assert_eq!(result["status"], "success", "{result:#}");
        let told = (result["artifacts"].as_array().unwrap().len(), &result["artifacts_truncated"]);
        assert_eq!(told, (1000, &json!(true)));
        let execution = result["execution_id"].as_str().unwrap();
        assert_eq!(server.get(&format!("/executions/{execution}/result")).json(200), result);
        let result = server.run(&id, "shell", "touch one-more");
        assert_eq!((&result["artifacts"][0]["path"], &result["artifacts_truncated"]), (&json!("one-more"), &json!(false)));
    }

    fn code_and_event_and_timeout_have_bounds(server: &Server) {
        let id = server.session();
        let with = |fields: Value| {
            let mut asked = json!({ "language": "shell", "code": "true" });
            asked.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            server.post(&format!("/sessions/{id}/execute?wait=true"), &asked)
        };
        let code = |length: usize| format!("true #{}", "x".repeat(length - 6));
        with(json!({ "code": code(100 << 10) })).json(200);
        with(json!({ "code": code((100 << 10) + 1) })).invalid("code");
        with(json!({ "code": "" })).invalid("code");
        with(json!({ "code": " \n" })).invalid("code");
        with(json!({ "code": 1 })).invalid("code");
        with(json!({ "event": "x".repeat((1 << 20) - 2) })).json(200);
        with(json!({ "event": "x".repeat((1 << 20) - 1) })).invalid("event");
        // As deep as its reader goes, and a little less, with what is around it.
        let nested = |depth: usize| (0..depth).fold(json!(0), |inner, _| json!([{ "a": inner }]));
        let depth = "def handler(event):\n    depth = 0\n    while event:\n        event = event[0]['a']\n        depth += 2\n    return depth";
        let deepest = with(json!({ "event": nested(50), "language": "python", "code": depth })).json(200);
        assert_eq!(deepest["return_value"], 100, "{deepest:#}");
        for too_deep in [json!([nested(50)]), nested(62), json!([nested(62)]), nested(63)] {
            let error = with(json!({ "event": too_deep })).invalid("event");
            assert!(error.to_string().contains("nested deeper than 100 levels"), "{error}");
        }
        with(json!({ "timeout": 1 })).json(200);
        with(json!({ "timeout": 3600 })).json(200);
        for timeout in [json!(0), json!(3601), json!(-1), json!(1.5), json!("1")] {
            with(json!({ "timeout": timeout })).invalid("timeout");
        }
        with(json!({ "language": "cobol" })).invalid("language");
        with(json!({ "language": "Python" })).invalid("language");
        with(json!({ "retry": "yes" })).invalid("retry");
        with(json!({ "colour": "red" })).invalid("colour");
        server.post(&format!("/sessions/{id}/execute"), &json!({ "code": "true" })).invalid("language");
        server.post(&format!("/sessions/{id}/execute"), &json!({ "language": "shell" })).invalid("code");
        server.post(&format!("/sessions/{id}/execute?wait=perhaps"), &json!({ "language": "shell", "code": "true" })).invalid("wait");
        assert_eq!(server.get(&format!("/sessions/{id}/executions")).json(200)["total"], 5);
    }

    fn what_is_not_an_execution_is_not_found(server: &Server) {
        for id in ["exec_20260101_00000000", "exec_2026_x", "sess_0000000000000000", "..", "'", "%00"] {
            for (method, rest) in [("GET", ""), ("GET", "/status"), ("GET", "/result"), ("POST", "/cancel")] {
                let answer = server.call(method, &format!("/api/v1/executions/{id}{rest}")).send();
                answer.error(404, "Sandbox.ExecutionNotFound");
            }
        }
    }

    fn the_executions_of_a_session_are_listed_newest_first(server: &Server) {
        let id = server.session();
        let mut ids: Vec<String> = ["true", "exit 1", "true", "true"].iter()
            .map(|code| server.run(&id, "shell", code)["execution_id"].as_str().unwrap().to_owned())
            .collect();
        let failed = ids[1].clone();
        ids.reverse();
        let other = server.session();
        server.shell(&other, "true");
        let listed = |page: &Value| -> Vec<String> {
            page["executions"].as_array().unwrap().iter()
                .map(|execution| execution["execution_id"].as_str().unwrap().to_owned()).collect()
        };
        let list = |query: &str| server.get(&format!("/sessions/{id}/executions?{query}")).json(200);
        let all = list("");
        assert_eq!(names(&all), ["executions", "next_cursor", "total"].into());
        assert_eq!((listed(&all), &all["total"]), (ids.clone(), &json!(4)));
        assert_eq!(names(&all["executions"][0]), STATUS.into());
        assert_eq!(listed(&list("status=failed")), [failed]);
        assert_eq!(list("status=completed")["total"], 3);
        assert_eq!(listed(&list("limit=2&offset=1")), ids[1..3]);
        let first = list("limit=3");
        assert_eq!(listed(&first), ids[..3]);
        let second = list(&format!("limit=3&cursor={}", first["next_cursor"].as_str().unwrap()));
        assert_eq!((listed(&second), &second["next_cursor"]), (ids[3..].to_vec(), &Value::Null));
        for (query, field) in [("status=perfect", "status"), ("limit=0", "limit"), ("limit=201", "limit"), ("cursor=!", "cursor")] {
            server.get(&format!("/sessions/{id}/executions?{query}")).invalid(field);
        }
    }

    fn an_execution_is_done_once_for_an_idempotency_key(server: &Server) {
        let id = server.session();
        let asked = json!({ "language": "shell", "code": "echo ran >> log; wc -l < log" });
        let path = format!("/sessions/{id}/execute?wait=true");
        let with = |key: &str, body: &Value| server.posting(&path, body).header("Idempotency-Key", key).send();
        let first = with("once", &asked).json(200);
        assert_eq!(first["stdout"], "1\n");
        assert_eq!(with("once", &asked).json(200), first);
        assert_eq!(server.shell(&id, "wc -l < log"), "1");
        with("once", &json!({ "language": "shell", "code": "true" })).error(409, "Sandbox.StateConflict");
        assert_eq!(with("twice", &asked).json(200)["stdout"], "2\n");
        // A key is a session's: another one has its own.
        let other = server.session();
        let path = format!("/sessions/{other}/execute?wait=true");
        let elsewhere = server.posting(&path, &asked).header("Idempotency-Key", "once").send().json(200);
        assert_eq!(elsewhere["stdout"], "1\n");
        // What is refused is not remembered: the key is free for what is right.
        with("corrected", &json!({ "language": "shell", "code": "echo \0" })).invalid("code");
        with("corrected", &asked).json(200);
    }

    fn a_key_leads_to_one_execution_however_it_is_answered(server: &Server) {
        let id = server.session();
        let path = format!("/sessions/{id}/execute");
        let asked = json!({ "language": "shell", "code": "echo ran >> log; echo out; echo err >&2; exit 3" });
        let with = |key: &str, query: &str, body: &Value| {
            server.posting(&format!("{path}{query}"), body).header("Idempotency-Key", key)
        };
        let plain = |key: &str| with(key, "", &asked).send().json(200);
        let waiting = |key: &str| with(key, "?wait=true", &asked).send().json(200);
        let streaming = |key: &str| {
            let stream = with(key, "", &asked).header("Accept", "text/event-stream").open();
            stream.events().collect::<Vec<_>>()
        };
        let again = |events: &[Event], result: &Value| {
            let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
            assert_eq!(names, ["submitted", "stdout", "stderr", "result"]);
            assert_eq!(events[0].data, json!({ "execution_id": result["execution_id"] }));
            assert_eq!((heard(events, "stdout"), heard(events, "stderr")), (b"out\n".to_vec(), b"err\n".to_vec()));
            assert_eq!(events[3].data, *result);
        };
        // Whichever answer is asked for first, the others are of the same execution.
        let submitted = plain("plain");
        let result = waiting("plain");
        assert_eq!((&result["execution_id"], &result["exit_code"]), (&submitted["execution_id"], &json!(3)));
        again(&streaming("plain"), &result);
        assert_eq!(plain("plain"), submitted);
        let result = waiting("waiting");
        assert_eq!(plain("waiting")["execution_id"], result["execution_id"]);
        again(&streaming("waiting"), &result);
        let events = streaming("streaming");
        let result = events.last().unwrap().data.clone();
        assert_eq!(waiting("streaming"), result);
        again(&streaming("streaming"), &result);
        assert_eq!(server.shell(&id, "wc -l < log"), "3");

        let streamed = |key: &str, body: &Value| with(key, "", body).header("Accept", "text/event-stream").send();
        streamed("plain", &json!({ "language": "shell", "code": "true" })).error(409, "Sandbox.StateConflict");
        for key in ["", " ", "ä", &"k".repeat(129)] {
            streamed(key, &asked).invalid("Idempotency-Key");
        }
        assert_eq!(server.get(&format!("/sessions/{id}/executions")).json(200)["total"], 4);
    }

    fn who_asks_again_while_it_runs_hears_of_the_same_end(server: &Server) {
        let id = server.session();
        let slow = json!({ "language": "shell", "code": "echo ran >> log; echo > begun; until [ -e go ]; do sleep 0.01; done; echo done" });
        let with = |query: &str| {
            let path = format!("/sessions/{id}/execute{query}");
            server.posting(&path, &slow).header("Idempotency-Key", "slow")
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| with("?wait=true").send());
            server.until_file(&id, "begun");
            let submitted = with("").send().json(200);
            let mut events = with("").header("Accept", "text/event-stream").open().events();
            assert_eq!(events.next().unwrap().data["execution_id"], submitted["execution_id"]);
            let second = scope.spawn(|| with("?wait=true").send());
            server.upload(&id, "go", b"").json(200);
            let first = first.join().unwrap().json(200);
            assert_eq!((&first["execution_id"], &first["stdout"]), (&submitted["execution_id"], &json!("done\n")));
            assert_eq!(second.join().unwrap().json(200), first);
            let rest: Vec<_> = events.collect();
            assert_eq!((heard(&rest, "stdout"), &rest.last().unwrap().data), (b"done\n".to_vec(), &first));
        });
        assert_eq!(server.shell(&id, "wc -l < log"), "1");
    }

    fn executions_of_a_session_run_beside_each_other(server: &Server) {
        let id = server.session();
        std::thread::scope(|scope| {
            for number in 0..4 {
                let (server, id) = (&server, &id);
                scope.spawn(move || {
                    // None ends before all are there.
                    let meet = "until [ -e 0 ] && [ -e 1 ] && [ -e 2 ] && [ -e 3 ]; do sleep 0.01; done";
                    let code = format!("echo > {number}; {meet}; echo {number}");
                    assert_eq!(server.shell(id, &code), number.to_string());
                });
            }
        });
    }

    fn a_session_that_ends_ends_what_runs_in_it(server: &Server) {
        let id = server.session();
        let execution = server.submit(&id, json!({ "language": "shell", "code": "echo > begun; sleep 60", "timeout": 60 }));
        server.until_file(&id, "begun");
        server.delete(&format!("/sessions/{id}")).json(200);
        let crashed = server.until(&execution, "crashed");
        assert!(crashed["error"].as_str().is_some_and(|error| !error.is_empty()), "{crashed:#}");
        assert!(is_time(&crashed["crashed_at"]));
        let result = server.get(&format!("/executions/{execution}/result")).json(200);
        assert_eq!((&result["status"], &result["exit_code"]), (&json!("crashed"), &json!(-1)));
        assert_eq!(result["error_code"], Value::Null);
    }

    fn nothing_is_left_from_one_execution_to_the_next_but_files(server: &Server) {
        let id = server.session();
        server.run(&id, "python", "import os, builtins\nos.environ['LEFT'] = 'x'\nbuiltins.left = 1\nopen('/tmp/left', 'w').write('x')\nopen('kept', 'w').write('x')\nos.chdir('/tmp')");
        let seen = server.run(&id, "python", "import os, builtins\ndef handler(event):\n    return [os.environ.get('LEFT'), hasattr(builtins, 'left'), os.path.exists('/tmp/left'), os.path.exists('kept'), os.getcwd()]");
        assert_eq!(seen["return_value"], json!([null, false, false, true, "/workspace"]));
    }
}
