//! What an operator reads: the log, the metrics, and whether the server takes requests.
//!
//! The log is one JSON object a line, and whoever has a request's identifier finds there what became of it. The
//! metrics are what Prometheus reads, to the letter, and those that the documents name.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::{Signal, test_kill_process};
use sandbox_api_tests::{Answer, Options, Server, Storage, eventually, is_time};
use sandbox_test_servers::Database;
use serde_json::{Value, json};

fn options() -> Options {
    Options::on(Storage::SqliteAndFiles)
}

/// What it says to people when it listens; the rest is the log.
const BANNER: usize = 6;

/// The log. Everything it says but for the banner must be an object on a line of its own.
#[track_caller]
fn log(server: &Server) -> Vec<Value> {
    let said = server.log();
    let (lines, rest): (Vec<_>, Vec<_>) = said.lines().partition(|line| line.starts_with('{'));
    assert!(rest.len() <= BANNER, "{rest:#?}");
    let read = |line: &str| -> Value {
        let line = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let Value::Object(_) = line else {
            panic!("{line}");
        };
        assert!(is_time(&line["timestamp"]), "{line}");
        let levels = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
        assert!(levels.iter().any(|level| line["level"] == *level), "{line}");
        assert!(line["message"].is_string(), "{line}");
        line
    };
    lines.into_iter().map(read).collect()
}

/// Is this the line that every request has?
fn tells_of_a_request(line: &Value) -> bool {
    line["target"] == "sandbox_server::measuring"
}

/// The lines about the request that was answered so, as soon as there is one of them.
#[track_caller]
fn lines_about(server: &Server, answer: &Answer) -> Vec<Value> {
    let id = answer.header("x-request-id").unwrap();
    eventually("the log tells of it", || {
        let mut lines = log(server);
        lines.retain(|line| line["span"]["request_id"] == id);
        (!lines.is_empty()).then_some(lines)
    })
}

#[test]
fn every_request_has_one_line_with_what_became_of_it() {
    let server = options().start();
    let session = server.session();
    let (one, none) = ("/api/v1/sessions/{session_id}", "none");
    let known = format!("/api/v1/sessions/{session}");
    let unknown = "/api/v1/sessions/sess_0000000000000000";
    let file = "/api/v1/sessions/{session_id}/files/{*path}";
    for (method, path, route, status) in [
        ("GET", "/health", "/health", 200),
        ("GET", &*known, one, 200),
        ("GET", unknown, one, 404),
        ("GET", &format!("{known}/files/a%0A%7B%22b"), file, 404),
        ("GET", "/api/v1/sessions?limit=0", "/api/v1/sessions", 400),
        ("PATCH", &known, one, 405),
        ("GET", "/nowhere", none, 404),
        ("DELETE", &known, one, 200),
    ] {
        let answer = server.call(method, path).send().expect(status);
        let lines = lines_about(&server, &answer);
        let [line] = &lines[..] else {
            panic!("{method} {path}: {lines:#?}");
        };
        assert!(tells_of_a_request(line), "{line}");
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["message"], format!("{method} {route} {status}"));
        assert_eq!(line["method"], method);
        assert_eq!(line["route"], route);
        assert_eq!(line["status"], status);
        assert!(line["duration_ms"].as_f64().unwrap() > 0.0, "{line}");
    }
    // One that has no key has its line, too, and one with a name of its own is found by it.
    let stranger = server.stranger("GET", "/api/v1/sessions");
    let refused = stranger.header("X-Request-Id", "from-the-gateway").send();
    let lines = lines_about(&server, &refused);
    assert_eq!((lines.len(), &lines[0]["status"]), (1, &json!(401)));
    assert_eq!(lines[0]["span"]["request_id"], "from-the-gateway");
    let banner = server.log();
    let banner = banner.lines().filter(|line| !line.starts_with('{'));
    assert_eq!(banner.count(), BANNER);
}

/// The cause of a failure is in the log under the request's identifier, at this level of logging.
fn the_cause_is_logged_at(level: &str) {
    let mut database = Database::postgres();
    let url = database.fresh_database();
    let options = options().env("DATABASE_URL", url);
    let server = options.env("LOG_LEVEL", level).start();
    database.kill();
    let answer = server.get("/sessions");
    answer.clone().error(503, "Sandbox.Unavailable");
    let id = answer.header("x-request-id").unwrap();
    let line = eventually("the log has the cause", || {
        let mut lines = log(&server).into_iter();
        lines.find(|line| line["level"] == "ERROR")
    });
    assert_eq!(line["span"]["request_id"], id, "{line:#}");
    let (told, cause) = (&line["message"], line["error"].as_str().unwrap());
    assert_eq!(told, "the database does not answer");
    // What it is, and why: not only that it failed.
    assert!(cause.contains(": ") && cause.len() > 20, "{cause}");
    database.restart();
    eventually("it is ready again", || {
        let ready = server.stranger("GET", "/ready").send();
        (ready.status == 200).then_some(())
    });
    drop(server);
}

#[test]
fn the_cause_of_a_failure_is_in_the_log_under_the_requests_identifier() {
    the_cause_is_logged_at("info");
}

#[test]
fn the_cause_of_a_failure_has_its_request_though_requests_are_not_logged() {
    the_cause_is_logged_at("warn");
}

/// At this level the log has a line for each request, and one for what the server does by itself.
fn has_lines_at(level: &str, requests: bool, ends: bool) {
    let short = ["--idle-timeout", "1s", "--reap-interval", "1s"];
    let server = options().with(&short).env("LOG_LEVEL", level).start();
    // The end of the first is logged before that of the second is known.
    let [_, second] = [(); 2].map(|()| {
        let session = server.session();
        server.events(&session).until_status("timeout");
        session
    });
    let answer = server.get(&format!("/sessions/{second}")).expect(200);
    if requests {
        lines_about(&server, &answer);
    }
    let lines = log(&server);
    let tells_of_an_end = |line: &Value| line["target"] == "sandbox_control::reaper";
    let found = (
        lines.iter().any(tells_of_a_request),
        lines.iter().any(tells_of_an_end),
    );
    assert_eq!(found, (requests, ends), "{level}: {lines:#?}");
    assert!(requests || ends || lines.is_empty(), "{level}: {lines:#?}");
}

#[test]
fn the_log_has_as_much_as_is_asked_for() {
    std::thread::scope(|scope| {
        for (level, requests, ends) in [
            ("info", true, true),
            ("sandbox_server=warn,info", false, true),
            ("sandbox_control=warn,info", true, false),
            ("warn", false, false),
            ("off", false, false),
        ] {
            scope.spawn(move || has_lines_at(level, requests, ends));
        }
    });
}

#[test]
fn a_server_is_ready_when_it_says_that_it_listens_and_nobody_gets_in_once_it_ends() {
    let mut server = options().with(&["--drain-timeout", "10m"]).start();
    let ready = || server.stranger("GET", "/ready");
    assert_eq!(ready().send().expect(200).text(), "ready\n");
    let session = server.session();
    let code = json!({ "language": "shell", "code": "echo > begun; sleep 600", "timeout": 900 });
    server.submit(&session, code);
    server.until_file(&session, "begun");
    server.signal(Signal::TERM);
    eventually("it lets nobody in", || {
        ready().try_send().is_err().then_some(())
    });
    // It is there all the same, for what runs in it.
    test_kill_process(server.pid()).unwrap();
    server.signal(Signal::TERM);
    let status = server.wait();
    assert!(status.success(), "{status}: {}", server.log());
}

/// A metric's labels and their values.
type Labels = BTreeMap<String, String>;

/// One metric: what Prometheus calls a family.
#[derive(Debug, Default)]
struct Metric {
    kind: String,
    /// By the sample's own name, such as `…_count`.
    samples: BTreeMap<(String, Labels), f64>,
}

/// The metrics in Prometheus's text format. Whatever that does not allow fails.
#[track_caller]
fn parsed(text: &str) -> BTreeMap<String, Metric> {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let (mut current, mut described) = (String::new(), String::new());
    assert!(text.ends_with('\n'), "the last line has no end");
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (word, name) = (words.next().unwrap(), words.next().unwrap_or_default());
            let rest = words.next().unwrap_or_default();
            match word {
                "TYPE" => {
                    assert!(is_name(name), "{line}");
                    assert_eq!(name, described, "nobody says what it is");
                    let kinds = ["counter", "gauge", "histogram", "summary", "untyped"];
                    assert!(kinds.contains(&rest), "{line}");
                    let kind = rest.to_owned();
                    let metric = Metric {
                        kind,
                        ..Metric::default()
                    };
                    assert!(
                        metrics.insert(name.to_owned(), metric).is_none(),
                        "{line}: again"
                    );
                    name.clone_into(&mut current);
                }
                "HELP" => {
                    assert!(is_name(name) && !metrics.contains_key(name), "{line}");
                    assert!(!rest.is_empty(), "{line}");
                    name.clone_into(&mut described);
                }
                _ => {}
            }
        } else if !line.is_empty() {
            let (name, labels, value) =
                sample(line).unwrap_or_else(|| panic!("no sample: {line:?}"));
            let metric = metrics
                .get_mut(&current)
                .unwrap_or_else(|| panic!("{line}: untyped"));
            let suffixes: &[&str] = match &*metric.kind {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            let is_its = |suffix: &&str| name.strip_suffix(*suffix) == Some(&current);
            assert!(suffixes.iter().any(is_its), "{line} is below {current}");
            let again = metric.samples.insert((name, labels), value);
            assert!(again.is_none(), "{line}: again");
        }
    }
    for (name, metric) in &metrics {
        match &*metric.kind {
            "histogram" => must_be_a_histogram(name, metric),
            "counter" => {
                assert!(name.ends_with("_total"), "{name}");
                assert!(
                    metric.samples.values().all(|value| *value >= 0.0),
                    "{metric:?}"
                );
            }
            _ => {}
        }
    }
    metrics
}

/// Its buckets hold ever more, and the last one, which has no end, as much as was counted.
fn must_be_a_histogram(name: &str, metric: &Metric) {
    let mut buckets: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for ((sample, labels), value) in &metric.samples {
        if sample.ends_with("_bucket") {
            let mut labels = labels.clone();
            let end = labels.remove("le").expect("the end of a bucket");
            let end = end.replace("+Inf", "inf").parse().unwrap();
            buckets.entry(labels).or_default().push((end, *value));
        }
    }
    assert!(!buckets.is_empty(), "{name}");
    for (labels, mut buckets) in buckets {
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let grows = buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1);
        assert!(grows && buckets.len() > 2, "{name}: {buckets:?}");
        let (end, most) = *buckets.last().unwrap();
        assert_eq!(end, f64::INFINITY);
        assert_eq!(
            metric.samples[&(format!("{name}_count"), labels.clone())],
            most
        );
        assert!(metric.samples[&(format!("{name}_sum"), labels)] >= 0.0);
    }
}

fn is_name(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || b"_:".contains(&byte);
    let mut bytes = text.bytes();
    bytes.next().is_some_and(letter) && bytes.all(|byte| letter(byte) || byte.is_ascii_digit())
}

/// `name{label="value",…} number`.
fn sample(line: &str) -> Option<(String, Labels, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            let is_new = labels.insert(label.to_owned(), value).is_none();
            if !is_new || !is_name(label) || label.contains(':') {
                return None;
            }
            match after.strip_prefix(',') {
                Some(next) => rest = next,
                None => {
                    rest = after.strip_prefix('}')?;
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ')?;
    let value = value.replace("+Inf", "inf").parse().ok()?;
    is_name(name).then(|| (name.to_owned(), labels, value))
}

/// A value up to its closing quote, and what comes after that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[place + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                plain @ ('\\' | '"') => plain,
                _ => return None,
            }),
            plain => value.push(plain),
        }
    }
    None
}

fn measured(server: &Server) -> BTreeMap<String, Metric> {
    parsed(&server.stranger("GET", "/metrics").send().expect(200).text())
}

/// What a sample has grown to; nothing that was never counted is there.
fn value(metrics: &BTreeMap<String, Metric>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let labels: Labels = labels
        .iter()
        .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
        .collect();
    let key = (name.to_owned(), labels);
    let found = metrics.values().find_map(|metric| metric.samples.get(&key));
    found.copied().unwrap_or(0.0)
}

#[test]
fn what_happens_is_counted_once() {
    let server = options().start();
    let before = measured(&server);
    let [one, other] = [(); 2].map(|()| server.session());
    server.shell(&one, "true");
    server.run(&one, "python", "def handler(event):\n    return 1");
    let failed = server.run(&other, "shell", "exit 3");
    assert_eq!(failed["status"], "failed");
    server.delete(&format!("/sessions/{one}")).json(200);
    // It ended once.
    server.delete(&format!("/sessions/{one}")).json(200);
    server.get("/sessions/sess_0000000000000000").expect(404);
    let after = measured(&server);
    let route = "/api/v1/sessions/{session_id}";
    let request = |method, status| [("method", method), ("route", route), ("status", status)];
    for (name, labels, more) in [
        ("sandbox_sessions_created_total", &[][..], 2.0),
        ("sandbox_sessions_deleted_total", &[], 1.0),
        ("sandbox_sessions_active", &[], 1.0),
        ("sandbox_session_creation_duration_seconds_count", &[], 2.0),
        ("sandbox_submission_duration_seconds_count", &[], 3.0),
        ("sandbox_execution_duration_seconds_count", &[], 3.0),
        ("sandbox_executions_total", &[("status", "completed")], 2.0),
        ("sandbox_executions_total", &[("status", "failed")], 1.0),
        ("sandbox_executions_total", &[("status", "crashed")], 0.0),
        (
            "sandbox_http_requests_total",
            &request("DELETE", "200"),
            2.0,
        ),
        ("sandbox_http_requests_total", &request("GET", "404"), 1.0),
        ("sandbox_http_requests_total", &request("GET", "200"), 0.0),
        (
            "sandbox_http_request_duration_seconds_count",
            &[("route", route)],
            3.0,
        ),
    ] {
        let grown = value(&after, name, labels) - value(&before, name, labels);
        assert_eq!(grown, more, "{name} {labels:?}");
    }
    for what in ["cpu_cores", "memory_bytes", "disk_bytes"] {
        let name = format!("sandbox_node_{what}");
        let [total, used] =
            ["total", "used"].map(|state| value(&after, &name, &[("state", state)]));
        assert!(
            total > 0.0 && (0.0..=total).contains(&used),
            "{name}: {used} of {total}"
        );
    }
}

#[test]
fn the_metrics_are_those_that_the_documents_name() {
    let path = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")
        + "/../../docs/deployment.md";
    let text = std::fs::read_to_string(path).unwrap();
    let table = text.split("| metric | what |").nth(1).unwrap();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    // `name{label,label}` or `name`.
    let named = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let documented: BTreeMap<String, BTreeSet<String>> = named
        .map(|named| {
            let (name, labels) = named.split_once('{').unwrap_or((named, ""));
            let labels = labels.trim_end_matches('}').split(',').map(str::to_owned);
            (
                name.to_owned(),
                labels.filter(|label| !label.is_empty()).collect(),
            )
        })
        .collect();
    assert!(documented.len() > 10, "{documented:?}");

    let server = options().start();
    let session = server.session();
    server.shell(&session, "true");
    server.delete(&format!("/sessions/{session}")).json(200);
    let labels = |metric: Metric| -> BTreeSet<String> {
        let all = metric
            .samples
            .into_keys()
            .flat_map(|(_, labels)| labels.into_keys());
        all.filter(|label| label != "le").collect()
    };
    let metrics = measured(&server).into_iter();
    let found: BTreeMap<_, _> = metrics
        .map(|(name, metric)| (name, labels(metric)))
        .collect();
    assert_eq!(found, documented);
}
