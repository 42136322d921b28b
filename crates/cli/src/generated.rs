//! Files in the repository that are made from the program: tested current, rewritten on demand.

use std::path::Path;

/// `path` (from the repository's top) holds exactly `text`. With `SANDBOX_REGENERATE=1` it is written.
pub(crate) fn must_be_current(path: &str, text: &str) {
    let path = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests"))
        .join("../..")
        .join(path);
    if std::env::var_os("SANDBOX_REGENERATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "{} is out of date; run `SANDBOX_REGENERATE=1 cargo test -p sandbox-cli --lib current`",
        path.display()
    );
}

#[test]
fn the_description_of_the_api_is_current() {
    must_be_current("openapi/sandbox.json", &sandbox_server::document_text());
}
