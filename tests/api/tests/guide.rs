//! The guides, followed word for word.

use std::path::Path;

use sandbox_api_tests::guide::{must_be_true, section_must_be_true};
use sandbox_api_tests::{Options, Server, Storage, User};
use serde_json::Value;

fn server(user: User) -> Server {
    Options::on(Storage::SqliteAndFiles).by(user).start()
}

#[test]
fn the_quick_start_leads_to_a_result() {
    must_be_true("docs/quickstart.md", &server(User::Root));
}

#[test]
fn the_quick_start_leads_to_a_result_without_root() {
    must_be_true("docs/quickstart.md", &server(User::Tester));
}

#[test]
fn the_first_page_shows_the_server_as_it_is() {
    let heading = "## A server for agents";
    section_must_be_true("README.md", heading, &server(User::Tester));
}

#[test]
fn the_guide_to_the_api_is_true() {
    must_be_true("docs/api.md", &server(User::Root));
}

#[test]
fn the_description_that_is_served_is_the_one_that_is_checked_in() {
    let top = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests"))
        .join("../..");
    let text = std::fs::read_to_string(top.join("openapi/sandbox.json")).expect("the file");
    let mut checked_in: Value = serde_json::from_str(&text).expect("JSON");
    // Where a server is, only it knows.
    checked_in
        .as_object_mut()
        .expect("a document")
        .remove("servers");
    let server = server(User::Root);
    let served = server
        .stranger("GET", "/api/v1/openapi.json")
        .send()
        .json(200);
    assert!(
        served == checked_in,
        "they differ; see crates/cli/src/generated.rs"
    );
}

/// The tests that a line of the audit names: `FILE`: `name`, `name`; `FILE`: …
fn named(line: &str) -> Vec<(&str, &str)> {
    let mut file = "";
    let mut tests = Vec::new();
    let quoted = line.split('`').skip(1).step_by(2);
    for word in quoted {
        match word.ends_with(".rs") {
            true => file = word,
            false => tests.push((file, word)),
        }
    }
    tests
}

#[test]
fn every_test_that_the_audit_names_exists() {
    let top = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests"))
        .join("../..");
    let page = std::fs::read_to_string(top.join("docs/security-audit.md")).expect("the page");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = rows.filter(|row| !row.starts_with("requirement |") && !row.starts_with("---"));
    let (mut count, mut lacking) = (0, Vec::new());
    for row in rows {
        let (requirement, cell) = row.rsplit_once(" | ").expect("two cells");
        let tests = named(cell);
        if tests.is_empty() {
            lacking.push(format!("{requirement}: no test is named"));
        }
        for (file, test) in tests {
            let text = std::fs::read_to_string(top.join(file)).unwrap_or_default();
            let is_there = text.contains(&format!("fn {test}("));
            if !is_there {
                lacking.push(format!("{requirement}: there is no {test} in {file}"));
            }
            count += 1;
        }
    }
    assert!(
        lacking.is_empty(),
        "docs/security-audit.md\n{}",
        lacking.join("\n")
    );
    assert!(count > 50, "only {count} tests were found");
}
