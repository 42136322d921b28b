//! What is told to whoever runs it: one JSON object a line on standard error, as in the server's log.
//!
//! An identifier is in the message, for people, and in a field, for machines. Nothing that is told here holds
//! a secret or what code printed.

use std::fmt::Display;
use std::io::Write;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Fields beside the message.
pub(crate) type Fields<'f> = &'f [(&'static str, &'f dyn Display)];

/// Something that happens.
pub(crate) fn info(message: impl Display, fields: Fields<'_>) {
    write("INFO", &message, fields);
}

/// Something that should not.
pub(crate) fn warn(message: impl Display, fields: Fields<'_>) {
    write("WARN", &message, fields);
}

/// Something that must not.
pub(crate) fn error(message: impl Display, fields: Fields<'_>) {
    write("ERROR", &message, fields);
}

fn write(level: &str, message: &dyn Display, fields: Fields<'_>) {
    let mut line = Map::new();
    line.insert("timestamp".to_owned(), Timestamp::now().to_string().into());
    line.insert("level".to_owned(), level.into());
    line.insert("message".to_owned(), message.to_string().into());
    for (name, value) in fields {
        line.insert((*name).to_owned(), value.to_string().into());
    }
    let line = format!("{}\n", Value::Object(line));
    // In one piece. There is nobody to tell where it fails.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
