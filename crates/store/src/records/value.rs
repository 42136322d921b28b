//! From a record's values to a column's, and back.
//!
//! Whatever one of the databases could not keep as it is (text with a NUL in it, a number beyond
//! 63 bits) is refused here, on all of them alike and before anything is sent.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::StoreError;

/// The most characters of a text that is looked up by.
const MOST_SHORT: usize = 255;

pub(super) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

pub(super) fn maybe_micros(time: Option<Timestamp>) -> Option<i64> {
    time.map(micros)
}

/// Text of any length.
pub(super) fn text(field: &'static str, text: &str) -> Result<String, StoreError> {
    if text.contains('\0') {
        let problem = "has a NUL character in it";
        return Err(StoreError::Unkeepable { field, problem });
    }
    Ok(text.to_owned())
}

pub(super) fn maybe_text(
    field: &'static str,
    value: &Option<String>,
) -> Result<Option<String>, StoreError> {
    value.as_deref().map(|value| text(field, value)).transpose()
}

/// Text that is looked up by, and therefore not long.
pub(super) fn short(field: &'static str, value: &str) -> Result<String, StoreError> {
    if value.chars().count() > MOST_SHORT {
        let problem = "has more than 255 characters";
        return Err(StoreError::Unkeepable { field, problem });
    }
    text(field, value)
}

pub(super) fn maybe_short(
    field: &'static str,
    value: &Option<String>,
) -> Result<Option<String>, StoreError> {
    value
        .as_deref()
        .map(|value| short(field, value))
        .transpose()
}

pub(super) fn number(field: &'static str, value: u64) -> Result<i64, StoreError> {
    let problem = "is more than 63 bits can hold";
    i64::try_from(value).map_err(|_| StoreError::Unkeepable { field, problem })
}

pub(super) fn finite(field: &'static str, value: f64) -> Result<f64, StoreError> {
    let problem = "is not a number";
    match value.is_finite() {
        true => Ok(value),
        false => Err(StoreError::Unkeepable { field, problem }),
    }
}

pub(super) fn json(field: &'static str, value: &impl Serialize) -> Result<String, StoreError> {
    let problem = "cannot be written as JSON";
    serde_json::to_string(value).map_err(|_| StoreError::Unkeepable { field, problem })
}

/// Reads the columns of one record, and names it when one is not readable.
pub(super) struct Reading<'a> {
    pub kind: &'static str,
    pub id: &'a str,
}

impl Reading<'_> {
    fn unreadable(&self, field: &'static str, problem: impl fmt::Display) -> StoreError {
        StoreError::Unreadable {
            kind: self.kind,
            id: self.id.to_owned(),
            field,
            problem: problem.to_string(),
        }
    }

    pub(super) fn parse<T: FromStr>(&self, field: &'static str, text: &str) -> Result<T, StoreError>
    where
        T::Err: fmt::Display,
    {
        text.parse().map_err(|error| self.unreadable(field, error))
    }

    pub(super) fn maybe_parse<T: FromStr>(
        &self,
        field: &'static str,
        text: Option<&str>,
    ) -> Result<Option<T>, StoreError>
    where
        T::Err: fmt::Display,
    {
        text.map(|text| self.parse(field, text)).transpose()
    }

    pub(super) fn time(&self, field: &'static str, micros: i64) -> Result<Timestamp, StoreError> {
        Timestamp::from_microsecond(micros).map_err(|error| self.unreadable(field, error))
    }

    pub(super) fn maybe_time(
        &self,
        field: &'static str,
        micros: Option<i64>,
    ) -> Result<Option<Timestamp>, StoreError> {
        micros.map(|micros| self.time(field, micros)).transpose()
    }

    pub(super) fn number<T: TryFrom<i64>>(
        &self,
        field: &'static str,
        value: i64,
    ) -> Result<T, StoreError> {
        T::try_from(value).map_err(|_| self.unreadable(field, "out of range"))
    }

    pub(super) fn json<T: DeserializeOwned>(
        &self,
        field: &'static str,
        text: &str,
    ) -> Result<T, StoreError> {
        // Only where it went wrong: the text itself may hold somebody's secret.
        let problem = |error: serde_json::Error| format!("line {}", error.line());
        serde_json::from_str(text).map_err(|error| self.unreadable(field, problem(error)))
    }

    pub(super) fn utf8(&self, field: &'static str, bytes: Vec<u8>) -> Result<String, StoreError> {
        String::from_utf8(bytes).map_err(|error| self.unreadable(field, error.utf8_error()))
    }
}
