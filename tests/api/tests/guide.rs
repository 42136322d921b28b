//! The guides, followed word for word.

use std::path::Path;

use sandbox_api_tests::guide::must_be_true;
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
fn the_guide_to_the_api_is_true() {
    must_be_true("docs/api.md", &server(User::Root));
}

#[test]
fn the_description_that_is_served_is_the_one_that_is_checked_in() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
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
