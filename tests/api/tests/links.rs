//! Links by which anybody has a large file: for an hour, and no longer.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use sandbox_api_tests::{Options, Server, Storage, encoded, on_every_storage};
use sha2::{Digest as _, Sha256};

/// From which size on a file comes by a link.
const LARGE: usize = 10 << 20;

/// Until when a link is good, by what it says itself.
fn end(link: &str) -> Timestamp {
    let (_, query) = link.split_once('?').unwrap();
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(found, _)| *found == name)?;
        Some(value)
    };
    let seconds = |text: &str| text.parse::<i64>().unwrap();
    if let Some(expires) = value("expires") {
        return Timestamp::from_second(seconds(expires)).unwrap();
    }
    let signed = value("X-Amz-Date").unwrap();
    let signed = DateTime::strptime("%Y%m%dT%H%M%SZ", signed).unwrap();
    let signed = TimeZone::UTC.to_timestamp(signed).unwrap();
    signed + SignedDuration::from_secs(seconds(value("X-Amz-Expires").unwrap()))
}

/// Names of which clients write some letters otherwise than others do.
const NAMES: [&str; 5] = [
    "report-2026_final~1.csv",
    "with space + plus & more.bin",
    "100% (real), isn't it: a;b=c@d!$*.bin",
    "a%2Db%20c%2Fd.bin",
    "ünï-cödé/文件 1.bin",
];

const CLIENTS: [&str; 6] = ["requests", "aiohttp", "httpx", "urllib", "curl", "fetch"];

/// What a client that people use gets from these URLs: of each the status, the name that the answer gives the file,
/// and the SHA-256 of its content.
fn fetched(server: &Server, client: &str, urls: &[String]) -> Vec<String> {
    let scripts = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests") + "/clients";
    if client == "curl" {
        return urls.iter().map(|url| by_curl(server, url)).collect();
    }
    let mut command = match client {
        "fetch" => Command::new("node"),
        _ => Command::new("/usr/bin/python3"),
    };
    match client {
        "fetch" => command.arg(format!("{scripts}/download.mjs")),
        _ => command.args([&format!("{scripts}/download.py"), client]),
    };
    let output = command
        .args(urls)
        .env("SANDBOX_API_KEY", server.admin())
        .env("NO_PROXY", "*")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{client}: {said}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(str::to_owned).collect()
}

fn by_curl(server: &Server, url: &str) -> String {
    let content = tempfile::NamedTempFile::new().unwrap();
    let output = Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--location",
            "--noproxy",
            "*",
            "--output",
        ])
        .arg(content.path())
        .arg("--write-out")
        .arg("%{http_code} %header{content-disposition}")
        .arg("--header")
        .arg(format!("Authorization: Bearer {}", server.admin()))
        .arg(url)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "curl: {said}");
    let head = String::from_utf8(output.stdout).unwrap();
    let (status, disposition) = head.split_once(' ').unwrap();
    let name = disposition.rsplit("''").next().unwrap();
    let digest = digest(&std::fs::read(content.path()).unwrap());
    format!("{status} {name} {digest}")
}

fn digest(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

on_every_storage! {
    fn every_client_follows_a_link(server: &Server) {
        let id = server.session();
        let content = |number: usize| vec![b'a' + number as u8; LARGE + number];
        let mut urls = Vec::new();
        for (number, name) in NAMES.into_iter().enumerate() {
            server.upload(&id, name, &content(number)).json(200);
            let path = format!("/api/v1/sessions/{id}/files/{}", encoded(name));
            urls.push(format!("http://{}{path}", server.address()));
        }
        for client in CLIENTS {
            let found = fetched(server, client, &urls);
            let expected: Vec<String> = NAMES
                .into_iter()
                .enumerate()
                .map(|(number, name)| {
                    let last = encoded(name.rsplit('/').next().unwrap()).replace('~', "%7E");
                    format!("200 {last} {}", digest(&content(number)))
                })
                .collect();
            assert_eq!(found, expected, "{client}");
        }
    }

    fn a_link_is_good_for_an_hour(server: &Server) {
        let id = server.session();
        server.upload(&id, "large", &vec![b'x'; LARGE]).json(200);
        let hour = SignedDuration::from_hours(1);
        // A link says it in whole seconds.
        let begin = Timestamp::now() + hour - SignedDuration::from_secs(1);
        let answer = server.get(&format!("/sessions/{id}/files/large")).expect(307);
        let end = end(answer.header("location").unwrap());
        assert!((begin..=Timestamp::now() + hour).contains(&end), "{end}");
    }
}

#[test]
fn a_link_that_is_not_valid_says_how_to_get_another() {
    let server = Options::on(Storage::SqliteAndFiles).start();
    let id = server.session();
    server.upload(&id, "large", &vec![b'x'; LARGE]).json(200);
    let answer = server
        .get(&format!("/sessions/{id}/files/large"))
        .expect(307);
    let link = answer.header("location").unwrap();
    server.stranger("GET", link).send().expect(200);
    let (path, _) = link.split_once('?').unwrap();
    let changed = [
        path.to_owned(),
        link.replace("/large?", "/other?"),
        link.replace("expires=", "expires=9"),
        format!("{link}&more=1"),
    ];
    for link in changed {
        let error = server
            .stranger("GET", &link)
            .send()
            .error(403, "Sandbox.Forbidden");
        let said = error.to_string();
        assert!(!said.contains("key") && !said.contains("scope"), "{said}");
        let text = |field: &str| error[field].as_str().unwrap().to_owned();
        assert_eq!(text("description"), "the download link is not valid");
        assert!(text("solution").contains("/files/"), "{said}");
    }
}
