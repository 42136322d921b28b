//! What is written about the server is held to what it says.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sandbox_control::ControlError;
use sandbox_model::Failure;
use sandbox_store::{ObjectsError, StoreError};

use crate::{ERROR_CODES, ServeError};

fn top() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("../..")
}

fn document(path: &str) -> String {
    let text = std::fs::read_to_string(top().join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_code_is_told_of_in_the_guides() {
    for page in ["docs/api.md", "docs/troubleshooting.md"] {
        let text = document(page);
        for code in ERROR_CODES {
            assert!(
                text.contains(&format!("`{code}`")),
                "{page} does not tell of {code}"
            );
        }
    }
}

/// One of each that can be made here.
fn problems() -> Vec<ServeError> {
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let (bucket, endpoint) = ("my-bucket".to_owned(), "http://127.0.0.1:9000".to_owned());
    let place = format!("bucket '{bucket}' at {endpoint}");
    let operation = "look into the bucket".to_owned();
    let data = || PathBuf::from("/srv/sandbox");
    vec![
        ServeError::Data {
            path: data(),
            source: io::ErrorKind::PermissionDenied.into(),
        },
        ServeError::Taken(data()),
        ServeError::Closed {
            path: data(),
            user: 59_999,
        },
        ServeError::Open(data()),
        ServeError::Users {
            first: 200_000,
            last: 265_535,
            reason: "'ada' has some of them in /etc/subuid".to_owned(),
        },
        ServeError::OtherNode {
            path: data(),
            kept: "worker-7".to_owned(),
            asked: "worker-8".parse().unwrap(),
        },
        ServeError::Control(ControlError::Held {
            node: "worker-7".parse().unwrap(),
            endpoint: "http://10.0.0.7:8000".to_owned(),
        }),
        ServeError::Bind {
            address: address("127.0.0.1:8000"),
            source: io::ErrorKind::AddrInUse.into(),
        },
        ServeError::Bind {
            address: address("203.0.113.9:8000"),
            source: io::ErrorKind::AddrNotAvailable.into(),
        },
        ServeError::Exposed(address("0.0.0.0:8000")),
        ServeError::Guessable(address("0.0.0.0:8000")),
        ServeError::LogLevel("loud".to_owned()),
        ServeError::Nursery(io::ErrorKind::WouldBlock.into()),
        ServeError::Records(StoreError::BadUrl(
            "the database URL has a parameter that is not known",
        )),
        ServeError::Records(StoreError::Later {
            database: "postgres://db:5432/sandbox".to_owned(),
        }),
        ServeError::Objects(ObjectsError::NoBucket { bucket, endpoint }),
        ServeError::Objects(ObjectsError::Denied {
            place: place.clone(),
            operation: operation.clone(),
            source: "403".into(),
        }),
        ServeError::Objects(ObjectsError::Unavailable {
            place,
            operation,
            source: "nobody".into(),
        }),
        ServeError::Objects(ObjectsError::Open {
            place: "/srv/sandbox/objects".to_owned(),
            source: "nobody".into(),
        }),
        ServeError::Run(io::ErrorKind::Other.into()),
        ServeError::NurseryLost,
    ]
}

/// Which kind it is, so that a new one cannot be forgotten above. What the control plane cannot set right is told
/// as what stood against it.
fn kind(error: &ServeError) -> Option<usize> {
    Some(match error {
        ServeError::Data { .. } => 0,
        ServeError::Taken(_) => 1,
        ServeError::Bind { .. } => 2,
        ServeError::Exposed(_) => 3,
        ServeError::LogLevel(_) => 4,
        ServeError::Nursery(_) => 5,
        ServeError::NurseryLost => 9,
        ServeError::Records(_) => 6,
        ServeError::Objects(_) => 7,
        ServeError::Run(_) => 8,
        ServeError::Closed { .. } => 10,
        ServeError::Guessable(_) => 11,
        ServeError::Open(_) => 12,
        ServeError::OtherNode { .. } => 13,
        ServeError::Users { .. } => 14,
        ServeError::Control(_) => return None,
    })
}

#[test]
fn every_reason_not_to_run_is_told_with_its_way_out() {
    let page = document("docs/troubleshooting.md");
    let kinds: BTreeSet<usize> = problems().iter().filter_map(kind).collect();
    assert!(kinds.into_iter().eq(0..15));
    for problem in problems() {
        let said = format!("error: {problem}\n");
        assert!(
            page.contains(&said),
            "docs/troubleshooting.md does not tell of\n{said}"
        );
        if let Some(hint) = problem.hint() {
            let hint = format!("hint: {hint}\n");
            assert!(
                page.contains(&hint),
                "docs/troubleshooting.md does not tell of\n{hint}"
            );
        }
    }
}

/// The names of what is measured in the files below `directory`.
fn measured(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            measured(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for macros in ["counter!(", "gauge!(", "histogram!("] {
                let named = text.split(macros).skip(1);
                let named = named
                    .filter_map(|after| after.trim_start().strip_prefix('"')?.split('"').next());
                found.extend(
                    named
                        .filter(|name| name.starts_with("sandbox_"))
                        .map(str::to_owned),
                );
            }
        }
    }
}

#[test]
fn everything_that_is_measured_is_told_of() {
    let mut found = BTreeSet::new();
    for directory in [
        "crates/server/src",
        "crates/control/src",
        "crates/runtime/src",
    ] {
        measured(&top().join(directory), &mut found);
    }
    assert!(found.len() > 5, "{found:?}");
    let page = document("docs/deployment.md");
    for name in found {
        assert!(
            page.contains(&format!("`{name}")),
            "docs/deployment.md does not tell of {name}"
        );
    }
}
