//! What is written about the settings is held to the table of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sandbox_model::Failure;

use super::error::SettingError;
use super::raw::Origin;
use super::setting::{Kind, SETTINGS, Setting};
use super::*;

const HOME: &str = "/home/ada";
const DATA: &str = "/home/ada/.local/share/daedalos/server";

fn document(path: &str) -> String {
    let top = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests"))
        .join("../..");
    let text = std::fs::read_to_string(top.join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What is used with only these variables set, by an ordinary user.
fn settled(variables: &BTreeMap<String, String>) -> Result<Resolved, SettingError> {
    let variable = |name: &str| variables.get(name).map(OsString::from);
    let surroundings = Surroundings {
        variable: &variable,
        home: Ok(PathBuf::from(HOME)),
        is_root: false,
        hostname: "worker-7".to_owned(),
    };
    settle(&Flags::default(), surroundings)
}

/// The variables that a setting is read from.
fn variables(setting: &Setting) -> Vec<String> {
    let files = setting.variables.iter().map(|name| format!("{name}_FILE"));
    let files = files.filter(|_| setting.kind == Kind::Secret);
    let plain = setting.variables.iter().map(|name| (*name).to_owned());
    plain.chain(files).collect()
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

#[test]
fn the_table_of_the_documentation_has_every_setting_as_it_is() {
    let text = document("docs/configuration.md");
    let (_, section) = text.split_once("\n## The server\n").unwrap();
    let is_row = |line: &&str| line.starts_with("| `");
    let rows: Vec<&str> = section.lines().filter(is_row).collect();
    let defaults = settled(&BTreeMap::new()).unwrap().shown;
    let mut expected = Vec::new();
    for setting in SETTINGS {
        let shown = defaults.iter().find(|shown| shown.which == setting.which);
        let default = shown.map_or("none", |shown| &shown.value);
        let default = match setting.which {
            Which::Data => default.replace(HOME, "~"),
            _ => default.replace(DATA, "DATA"),
        };
        let flag = setting
            .flag
            .map_or(String::new(), |flag| format!("`{flag}` "));
        let names = quoted(&variables(setting));
        expected.push(format!(
            "| `{}` | {flag}| {names} | {default}",
            setting.name
        ));
    }
    for (at, start) in expected.iter().enumerate() {
        let row = rows.get(at).copied().unwrap_or_default();
        let rest = row.strip_prefix(start.as_str());
        // A default may be told further, and what the setting is must be.
        let is_told = rest.is_some_and(|rest| {
            let cells: Vec<&str> = rest.split(" | ").collect();
            cells.len() == 2 && cells[1].trim_end_matches(" |").len() > 3
        });
        assert!(
            is_told,
            "docs/configuration.md, row {}: write\n{start} | … |\nnot\n{row}",
            at + 1
        );
    }
    assert_eq!(
        rows.len(),
        expected.len(),
        "rows of settings that are not there"
    );
}

/// The lines of .env.example that set something, as it would be without `#`.
fn example() -> Vec<(String, String)> {
    let text = document(".env.example");
    let is_name = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let lines = text.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix('#')?.split_once('=')?;
        is_name(name).then(|| (name.to_owned(), value.to_owned()))
    });
    lines.collect()
}

#[test]
fn the_example_of_an_environment_has_every_variable_and_no_other() {
    let written: Vec<String> = example().into_iter().map(|(name, _)| name).collect();
    let mut found: BTreeSet<String> = BTreeSet::new();
    for name in &written {
        assert!(found.insert(name.clone()), ".env.example has {name} twice");
    }
    let mut known: BTreeSet<String> = SETTINGS.iter().flat_map(variables).collect();
    known.insert(CONFIG.to_owned());
    known.extend(super::role::VARIABLES.map(str::to_owned));
    let missing: Vec<_> = known.difference(&found).collect();
    let unknown: Vec<_> = found.difference(&known).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        ".env.example lacks {missing:?} and has {unknown:?}, which is read by nobody"
    );
}

#[test]
fn each_value_of_the_example_is_one_that_is_taken() {
    const ROOTS: [&str; 2] = ["SANDBOX_USER", "SANDBOX_SESSION_UIDS"];
    // These name files that need not be there, halves of pairs, or what only root may say.
    let passed = |name: &str| name.ends_with("_FILE") || name == CONFIG || ROOTS.contains(&name);
    for (name, value) in example() {
        if value.is_empty() || passed(&name) {
            continue;
        }
        let given = BTreeMap::from([(name.clone(), value)]);
        settled(&given).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn the_example_of_a_file_is_one_that_is_taken() {
    let text = document("docs/configuration.md");
    let (_, section) = text.split_once("\n## The server\n").unwrap();
    let (_, rest) = section.split_once("```toml\n").unwrap();
    let (file, _) = rest.split_once("\n```").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let secrets = directory.path().join("");
    let file = file.replace("/run/secrets/", secrets.to_str().unwrap());
    for (name, secret) in [
        ("sandbox-key", "a-key-of-sixteen-letters"),
        ("database-url", "postgres://sandbox@db/records"),
        ("server.toml", file.as_str()),
    ] {
        std::fs::write(directory.path().join(name), secret).unwrap();
    }
    let config = directory.path().join("server.toml");
    let given = BTreeMap::from([(CONFIG.to_owned(), config.to_str().unwrap().to_owned())]);
    let resolved = settled(&given).unwrap();
    assert_eq!(
        resolved.settings.database.0,
        "postgres://sandbox@db/records"
    );
    let count = |origin: fn(&Origin) -> bool| {
        resolved
            .shown
            .iter()
            .filter(|shown| origin(&shown.origin))
            .count()
    };
    assert_eq!(count(|origin| matches!(origin, Origin::File(..))), 9);
}

/// One of each, with what the page says of it.
fn problems() -> Vec<SettingError> {
    let missing = || std::io::Error::from_raw_os_error(2);
    let file = || Origin::File(PathBuf::from("/etc/sandbox/server.toml"), 3);
    vec![
        SettingError::Read {
            path: PathBuf::from("/etc/sandbox/server.toml"),
            source: missing(),
        },
        SettingError::Parse {
            path: PathBuf::from("/etc/sandbox/server.toml"),
            line: 3,
            message: "unknown key `sessions.idle`".to_owned(),
        },
        SettingError::Value {
            name: "sessions.idle_timeout",
            origin: file(),
            message: "'soon' is not a duration like 30s, 5m, 6h or 2d, or off".to_owned(),
        },
        SettingError::NotText("LOG_LEVEL".to_owned()),
        SettingError::Twice(
            "SANDBOX_API_KEY".to_owned(),
            "SANDBOX_API_KEY_FILE".to_owned(),
        ),
        SettingError::SecretFile {
            name: "api_key",
            origin: Origin::Environment("SANDBOX_API_KEY_FILE".to_owned()),
            path: PathBuf::from("/run/secrets/sandbox-key"),
            source: missing(),
        },
        SettingError::TwoPlaces(
            Origin::Environment("SANDBOX_OBJECTS".to_owned()),
            Origin::Environment("S3_BUCKET".to_owned()),
        ),
        SettingError::HalfCredentials(
            Origin::Environment("AWS_ACCESS_KEY_ID".to_owned()),
            "AWS_SECRET_ACCESS_KEY",
        ),
        SettingError::Home(SurroundingsError::NoHome),
    ]
}

/// Counts the kinds of them, so that a new one cannot be forgotten above.
fn number(error: &SettingError) -> usize {
    match error {
        SettingError::Read { .. } => 0,
        SettingError::Parse { .. } => 1,
        SettingError::Value { .. } => 2,
        SettingError::NotText(_) => 3,
        SettingError::Twice(..) => 4,
        SettingError::SecretFile { .. } => 5,
        SettingError::TwoPlaces(..) => 6,
        SettingError::HalfCredentials(..) => 7,
        SettingError::Home(_) => 8,
    }
}

#[test]
fn every_problem_with_settings_is_told_with_its_way_out() {
    let page = document("docs/troubleshooting.md");
    let told: Vec<usize> = problems().iter().map(number).collect();
    assert!(told.iter().copied().eq(0..9), "{told:?}");
    for problem in problems() {
        let said = format!("error: {problem}");
        assert!(
            page.contains(&said),
            "docs/troubleshooting.md does not tell of\n{said}"
        );
        if let Some(hint) = problem.hint() {
            assert!(
                page.contains(&hint),
                "docs/troubleshooting.md does not tell of\nhint: {hint}"
            );
        }
    }
}
