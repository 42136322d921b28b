//! What checkpoints are called.

use std::fmt;
use std::str::FromStr;

use sandbox_model::SandboxName;
use serde::Serialize;
use thiserror::Error;

/// A checkpoint's label: spelled like a sandbox's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Label(SandboxName);

/// A text that is no label.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "a snapshot's label has at most 64 letters, digits, '.', '_' and '-', and starts with a letter or a digit"
)]
pub struct LabelError;

impl Label {
    /// The label as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// A number as a label.
    pub(super) fn number(number: u32) -> Label {
        // Digits are a name.
        #[allow(clippy::expect_used, reason = "a decimal number has only digits")]
        Label(number.to_string().parse().expect("digits are a name"))
    }
}

impl FromStr for Label {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Label).map_err(|_| LabelError)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
