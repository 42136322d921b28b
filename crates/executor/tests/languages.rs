//! What code of each language is given, and what is taken from it.
#![allow(clippy::unwrap_used)]

mod session;

use sandbox_executor::{Ending, Request};
use sandbox_model::execution::Language::{self, Javascript, Python, Shell};
use serde_json::json;
use session::{in_session, request, returned, run};

const WITH_HANDLERS: [(Language, &str); 2] = [
    (Python, "def handler(event):\n    return event"),
    (Javascript, "function handler(event) { return event; }"),
];

#[test]
fn a_handler_gets_the_event_and_returns_a_value() {
    let events = [
        json!(null),
        json!([1, -2.5, true, false, null, "é\u{1f600}\n\"\\\u{0}"]),
        json!({ "a": { "b": [{}], "": [] }, "'": "\u{2028}" }),
    ];
    in_session(async |executor| {
        for (language, code) in WITH_HANDLERS {
            for event in &events {
                let asked = Request {
                    event: event.clone(),
                    ..request(language, code)
                };
                let outcome = executor.execute(&asked).await;
                assert_eq!(outcome.ending, Ending::Finished, "{outcome:?}");
                assert_eq!(outcome.result.exit_code, 0);
                assert_eq!(returned(&outcome), *event);
                assert_eq!(outcome.result.stdout, "");
            }
        }
    });
}

#[test]
fn a_handler_may_take_its_time() {
    let python =
        "import asyncio\nasync def handler(event):\n    await asyncio.sleep(0)\n    return 7";
    let javascript = "const handler = async (event) => { await null; return 7; };";
    in_session(async |executor| {
        for (language, code) in [(Python, python), (Javascript, javascript)] {
            let outcome = run(executor, language, code).await;
            assert_eq!(returned(&outcome), json!(7));
        }
    });
}

#[test]
fn without_a_handler_it_is_a_script() {
    in_session(async |executor| {
        let python = "if __name__ == '__main__':\n    print('hello')";
        let shell = "echo hello";
        let javascript = "console.log('hello')";
        for (language, code) in [(Python, python), (Shell, shell), (Javascript, javascript)] {
            let outcome = run(executor, language, code).await;
            assert_eq!(outcome.result.stdout, "hello\n", "{outcome:?}");
            assert_eq!(outcome.result.return_value, None);
        }
    });
}

#[test]
fn a_shell_finds_the_event_in_a_variable_and_on_its_input() {
    in_session(async |executor| {
        let code = "echo \"$EVENT_JSON\"; cat; echo; echo $0 $#";
        let asked = Request {
            event: json!({ "n": 1 }),
            ..request(Shell, code)
        };
        let outcome = executor.execute(&asked).await;
        assert_eq!(outcome.result.stdout, "{\"n\":1}\n{\"n\":1}\nbash 0\n");
        // As long as a variable may be, beside code and other variables that are; then too long for one.
        let others = [("OTHERS".to_owned(), "o".repeat(16_000))];
        executor.configure(&others.into()).unwrap();
        let most = 120 << 10;
        for (length, told) in [(most, most), (most + 1, 0), (900_000, 0)] {
            let code = "echo ${#EVENT_JSON} ${#OTHERS}; wc -c; exit\n";
            let code = [code, &"#".repeat((100 << 10) - code.len())].concat();
            let asked = Request {
                event: json!("x".repeat(length - 2)),
                ..request(Shell, &code)
            };
            let outcome = executor.execute(&asked).await;
            let expected = format!("{told} 16000\n{length}\n");
            assert_eq!(outcome.result.stdout, expected, "{outcome:?}");
        }
    });
}

#[test]
fn an_error_is_told_as_the_language_tells_it() {
    in_session(async |executor| {
        let outcome = run(executor, Python, "def handler(event):\n    return 1 / 0").await;
        assert_eq!(outcome.result.exit_code, 1);
        assert_eq!(outcome.ending, Ending::Finished);
        let stderr = &outcome.result.stderr;
        let expected = "Traceback (most recent call last):\n  File \"<execution>\", line 2, in handler\n    \
                        return 1 / 0\n";
        assert!(stderr.starts_with(expected), "{stderr}");
        assert!(
            stderr.ends_with("\nZeroDivisionError: division by zero\n"),
            "{stderr}"
        );
        let outcome = run(executor, Python, "def handler(:").await;
        assert!(outcome.result.stderr.contains("SyntaxError"), "{outcome:?}");
        let outcome = run(
            executor,
            Javascript,
            "function handler() { throw new Error('no') }",
        )
        .await;
        assert_ne!(outcome.result.exit_code, 0);
        assert!(outcome.result.stderr.contains("Error: no"), "{outcome:?}");
        let outcome = run(executor, Shell, "nonsense").await;
        assert_eq!(outcome.result.exit_code, 127);
        let outcome = run(executor, Python, "import sys; sys.exit(9)").await;
        assert_eq!(outcome.result.exit_code, 9);
    });
}

#[test]
fn what_cannot_be_json_is_an_error_and_no_value() {
    in_session(async |executor| {
        for code in [
            "return object()",
            "return float('nan')",
            "return {1: object()}",
        ] {
            let code = format!("def handler(event):\n    {code}");
            let outcome = run(executor, Python, &code).await;
            assert_ne!(outcome.result.exit_code, 0, "{code}");
            assert_eq!(outcome.result.return_value, None);
            // Nothing of how it was tried.
            assert_eq!(outcome.result.stderr.lines().count(), 1, "{outcome:?}");
        }
        let outcome = run(
            executor,
            Python,
            "def handler(event):\n    return {1: (2, 3)}",
        )
        .await;
        assert_eq!(returned(&outcome), json!({ "1": [2, 3] }));
        for code in [
            "const handler = () => () => 1",
            "const handler = () => Symbol('s')",
            "const handler = () => ({ toJSON: () => undefined })",
            "function* handler() { yield () => 1; return 2 }",
            "const handler = () => 1n",
        ] {
            let outcome = run(executor, Javascript, code).await;
            assert_eq!(outcome.result.exit_code, 1, "{code}");
            assert_eq!(outcome.result.return_value, None);
            let stderr = &outcome.result.stderr;
            assert!(stderr.contains("TypeError: "), "{code}: {stderr}");
        }
        for code in [
            "function handler() {}",
            "function* handler() { yield undefined }",
        ] {
            let outcome = run(executor, Javascript, code).await;
            assert_eq!(returned(&outcome), json!(null), "{code}");
        }
    });
}

#[test]
fn what_is_returned_has_a_most_and_more_is_told_at_once() {
    let returning = |length: usize| {
        // And its quotes.
        let length = length - 2;
        [
            (
                Python,
                format!("def handler(event):\n    return 'x' * {length}"),
            ),
            (
                Python,
                format!("def handler(event):\n    yield 1\n    yield 'x' * {length}\n    return 2"),
            ),
            (
                Javascript,
                format!("function handler() {{ return 'x'.repeat({length}) }}"),
            ),
            (
                Javascript,
                format!("function* handler() {{ yield 'x'.repeat({length}); return 2 }}"),
            ),
        ]
    };
    in_session(async |executor| {
        for (language, code) in returning(1 << 20) {
            let outcome = run(executor, language, &code).await;
            assert_eq!(outcome.result.exit_code, 0, "{code}: {outcome:?}");
            let expected = [json!("x".repeat((1 << 20) - 2)), json!(2)];
            assert!(expected.contains(&returned(&outcome)), "{code}");
        }
        for (language, code) in returning((1 << 20) + 1) {
            let outcome = run(executor, language, &code).await;
            assert_eq!(outcome.ending, Ending::Finished, "{code}");
            assert_eq!(outcome.result.exit_code, 1, "{code}");
            assert_eq!(outcome.result.return_value, None, "{code}");
            let stderr = &outcome.result.stderr;
            assert!(stderr.contains("1 MiB of JSON at most"), "{stderr}");
        }
        let (language, code) = &returning(2 << 20)[0];
        let outcome = run(executor, *language, code).await;
        let told = "ValueError: what a handler returns or yields may be 1 MiB of JSON at most\n";
        assert_eq!(outcome.result.stderr, told);
    });
}

#[test]
fn nonsense_instead_of_a_result_holds_nobody_up() {
    in_session(async |executor| {
        for nonsense in ["b'\\xff' * (4 << 20)", "bytes(4 << 20)"] {
            let code = format!(
                "import os, stat\nfor fd in map(int, os.listdir('/proc/self/fd')):\n    try:\n        \
                 if stat.S_ISSOCK(os.fstat(fd).st_mode): os.write(fd, {nonsense})\n    \
                 except OSError as error: print(type(error).__name__)"
            );
            let outcome = run(executor, Python, &code).await;
            assert_eq!(outcome.ending, Ending::Finished, "{outcome:?}");
            assert_eq!(outcome.result.return_value, None);
        }
    });
}

#[test]
fn what_is_printed_is_never_taken_for_a_result() {
    in_session(async |executor| {
        let forged = "\\x00\\x00\\x00\\x03666";
        let code = format!(
            "import sys\ndef handler(event):\n    sys.stdout.write('{forged}')\n    \
             sys.stderr.write('{forged}')\n    return 'real'"
        );
        let outcome = run(executor, Python, &code).await;
        assert_eq!(returned(&outcome), json!("real"));
        let outcome = run(executor, Shell, "printf '\\0\\0\\0\\003666'").await;
        assert_eq!(outcome.result.return_value, None);
    });
}

#[test]
fn nothing_of_one_execution_is_left_in_the_next() {
    in_session(async |executor| {
        let code = "import builtins, sys, os\nseen = getattr(builtins, 'mark', None)\n\
                    builtins.mark = 1\nos.environ['MARK'] = '1'\nsys.modules['mark'] = sys\n\
                    open('/tmp/mark', 'w')\nglobals()['mark'] = 1\n\
                    def handler(event):\n    return seen";
        for _ in 0..3 {
            let outcome = run(executor, Python, code).await;
            assert_eq!(returned(&outcome), json!(null));
            let look = "import os\ndef handler(event):\n    \
                        return ['mark' in globals(), 'MARK' in os.environ, os.path.exists('/tmp/mark')]";
            let outcome = run(executor, Python, look).await;
            assert_eq!(returned(&outcome), json!([false, false, false]));
        }
    });
}

#[test]
fn code_does_not_see_how_it_is_run() {
    in_session(async |executor| {
        let code = "import os, sys\ndef handler(event):\n    \
                    return [sorted(os.environ), sorted(k for k in globals() if not k.startswith('__')), \
                    sys.path[0], os.getcwd()]";
        let outcome = run(executor, Python, code).await;
        let expected = json!([
            [
                "HOME",
                "LANG",
                "NODE_PATH",
                "NPM_CONFIG_PREFIX",
                "PATH",
                "PIP_BREAK_SYSTEM_PACKAGES",
                "PYTHONDONTWRITEBYTECODE",
                "PYTHONUSERBASE",
                "USER"
            ],
            ["handler", "os", "sys"],
            "",
            "/workspace"
        ]);
        assert_eq!(returned(&outcome), expected);
        // Those it starts do not get the channel.
        let code = "import subprocess\ndef handler(event):\n    \
                    return subprocess.run(['ls', '/proc/self/fd'], capture_output=True, text=True).stdout";
        let outcome = run(executor, Python, code).await;
        assert_eq!(returned(&outcome), json!("0\n1\n2\n3\n"));
    });
}

#[test]
fn strings_arrive_as_they_are() {
    let texts = [
        "",
        "plain",
        "\"quoted\" \\ and\nlines\r\n\ttabs",
        "\u{0}\u{1f}\u{7f}\u{80}\u{2028}\u{feff}",
        "é\u{1f600}",
    ];
    in_session(async |executor| {
        for (language, code) in WITH_HANDLERS {
            for text in texts {
                let event = json!({ text: [text, { "inside": text }] });
                let asked = Request {
                    event: event.clone(),
                    ..request(language, code)
                };
                assert_eq!(returned(&executor.execute(&asked).await), event);
            }
        }
        let outcome = run(
            executor,
            Python,
            "def handler(event):\n    return '\\ud800'",
        )
        .await;
        let told = outcome.result.return_value.as_deref();
        assert_eq!(told, Some("\"\\ud800\""));
    });
}

#[test]
fn code_waits_for_nothing_that_could_be_there_before() {
    in_session(async |executor| {
        // What the interpreter made before counts no longer, and what it makes for compiling is much.
        let code = "import gc, sys\ndef handler(event):\n    yield {'text': ['a', 1.5, None]}\n    \
                    return [len(gc.get_objects()) < 300, '_json' in sys.modules, 'json' in sys.modules]";
        let outcome = run(executor, Python, code).await;
        assert_eq!(returned(&outcome), json!([true, false, false]));
    });
}

#[test]
fn modules_in_the_workspace_can_be_imported() {
    in_session(async |executor| {
        run(
            executor,
            Shell,
            "echo 'value = 5' > mine.py; echo 'import nonsense' > json.py",
        )
        .await;
        let outcome = run(
            executor,
            Python,
            "import mine\ndef handler(event):\n    return mine.value",
        )
        .await;
        assert_eq!(returned(&outcome), json!(5));
        run(
            executor,
            Shell,
            "mkdir -p node_modules/mine; echo 'module.exports = 6' > node_modules/mine/index.js",
        )
        .await;
        let outcome = run(
            executor,
            Javascript,
            "module.exports.handler = () => require('mine')",
        )
        .await;
        assert_eq!(returned(&outcome), json!(6));
    });
}

#[test]
fn what_python_does_at_its_end_is_done() {
    let cases = [
        (
            "a file in a variable",
            "kept = open('out', 'w')\nkept.write('here')",
        ),
        (
            "one in a cycle",
            "ring = [open('out', 'w')]\nring.append(ring)\nring[0].write('here')",
        ),
        (
            "one that a module has",
            "import os\nos.kept = open('out', 'w')\nos.kept.write('here')",
        ),
        (
            "one that ends with something",
            "import gzip, os\nwith open('out', 'w') as plain:\n    plain.write('here')\n\
             os.kept = gzip.open('packed', 'w')\nos.kept.write(b'here')",
        ),
        (
            "an object",
            "class Last:\n    def __del__(self):\n        open('out', 'w').write('here')\nlast = Last()",
        ),
        (
            "a function for the end",
            "import atexit\n@atexit.register\ndef last():\n    open('out', 'w').write('here')",
        ),
        (
            "a thread",
            "import threading, time\ndef last():\n    time.sleep(0.2)\n    \
             open('out', 'w').write('here')\nthreading.Thread(target=last).start()",
        ),
        (
            "a library's buffer",
            "import ctypes, os\nos.dup2(os.open('out', os.O_WRONLY | os.O_CREAT), 1)\n\
             ctypes.CDLL(None).printf(b'here')",
        ),
    ];
    in_session(async |executor| {
        for (what, code) in cases {
            for code in [
                code.to_owned(),
                format!("{code}\ndef handler(event):\n    pass"),
            ] {
                let outcome = run(executor, Python, &code).await;
                assert_eq!(outcome.result.exit_code, 0, "{what}: {outcome:?}");
                let check =
                    "cat out; rm out; test ! -e packed || { gzip --test packed; rm packed; }";
                let seen = run(executor, Shell, check).await;
                assert_eq!(seen.result.stdout, "here", "{what}: {seen:?}");
                assert_eq!(seen.result.stderr, "", "{what}");
            }
        }
    });
}

#[test]
fn a_returned_value_outlives_what_the_handler_left_running() {
    let cases = [
        (
            Javascript,
            "setInterval(() => {}, 1000); exports.handler = () => 7",
        ),
        (
            Javascript,
            "exports.handler = async () => { require('net').createServer().listen(0); return 7 }",
        ),
        (
            Python,
            "import threading\ndef handler(event):\n    \
             threading.Thread(target=threading.Event().wait).start()\n    return 7",
        ),
        (
            Python,
            "import atexit, time\natexit.register(time.sleep, 1000)\ndef handler(event):\n    return 7",
        ),
    ];
    in_session(async |executor| {
        for (language, code) in cases {
            // Longer and shorter than what it left running may take.
            for timeout_seconds in [60, 2] {
                let asked = Request {
                    timeout_seconds,
                    ..request(language, code)
                };
                let outcome = executor.execute(&asked).await;
                assert_eq!(outcome.ending, Ending::Finished, "{code}: {outcome:?}");
                assert_eq!(outcome.result.exit_code, 0, "{code}: {outcome:?}");
                assert_eq!(returned(&outcome), json!(7), "{code}");
                assert!(outcome.result.execution_time < 20.0, "{outcome:?}");
                let stderr = &outcome.result.stderr;
                assert!(stderr.starts_with("The handler returned, "), "{stderr}");
            }
        }
        // Without a handler nothing has returned.
        let asked = Request {
            timeout_seconds: 1,
            ..request(Javascript, "setInterval(() => {}, 1000)")
        };
        let outcome = executor.execute(&asked).await;
        assert_eq!(outcome.ending, Ending::TimedOut, "{outcome:?}");
    });
}

#[test]
fn a_module_edited_within_a_second_is_imported_as_it_is() {
    in_session(async |executor| {
        let import = "import mine\ndef handler(event):\n    return mine.value";
        for value in 1..5 {
            // The same second and the same size, as compiled modules tell time.
            let edit = format!("echo 'value = {value}' > mine.py; touch -d '2020-01-01' mine.py");
            run(executor, Shell, &edit).await;
            assert_eq!(returned(&run(executor, Python, import).await), json!(value));
            let again = format!("{edit}; python3 -c 'import mine; print(mine.value)'");
            let outcome = run(executor, Shell, &again).await;
            assert_eq!(outcome.result.stdout, format!("{value}\n"));
        }
    });
}

#[test]
fn what_python_cannot_end_well_is_told() {
    in_session(async |executor| {
        // Nothing can be written to it: the interpreter has a status for that.
        let outcome = run(
            executor,
            Python,
            "import sys\nsys.stdout = open('/dev/full', 'w')\nprint(1)",
        )
        .await;
        assert_eq!(outcome.result.exit_code, 120, "{outcome:?}");
        assert!(
            outcome.result.stderr.contains("No space left"),
            "{outcome:?}"
        );
    });
}
