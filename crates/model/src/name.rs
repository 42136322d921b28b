//! Names of sandboxes.
//!
//! A name is a directory's name below the sandbox root, an argument on a command line and part of
//! a prompt, so it is kept to what is plain in all three.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest name.
pub const MAX_LEN: usize = 64;

/// A sandbox's name: letters, digits, `.`, `_` and `-`, starting with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxName(String);

/// Why a text is not a sandbox's name.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NameError {
    /// Nothing there.
    #[error("a sandbox name cannot be empty")]
    Empty,
    /// Longer than [`MAX_LEN`].
    #[error("a sandbox name has at most {MAX_LEN} characters")]
    TooLong,
    /// It starts with something that reads as a flag or a hidden file.
    #[error("a sandbox name starts with a letter or a digit")]
    Start,
    /// It holds a character that is not allowed.
    #[error("a sandbox name holds only letters, digits, '.', '_' and '-'")]
    Character,
}

impl SandboxName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A memorable name from random bits: `calm-otter-42`.
    pub fn memorable(random: u64) -> Self {
        let pick = |list: &[&'static str], bits: u64| list[(bits % list.len() as u64) as usize];
        let adjective = pick(ADJECTIVES, random);
        let noun = pick(NOUNS, random >> 16);
        SandboxName(format!("{adjective}-{noun}-{}", (random >> 32) % 100))
    }

    /// The name in `known` that was most likely meant by `typed`, if any is near enough.
    pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        let limit = (typed.len() / 3).max(2);
        known
            .into_iter()
            .map(|name| (edit_distance(typed, name), name))
            .filter(|(distance, name)| *distance <= limit || name.starts_with(typed))
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, name)| name)
    }
}

impl FromStr for SandboxName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let first = text.bytes().next().ok_or(NameError::Empty)?;
        if text.len() > MAX_LEN {
            return Err(NameError::TooLong);
        }
        if !text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        {
            return Err(NameError::Character);
        }
        if !first.is_ascii_alphanumeric() {
            return Err(NameError::Start);
        }
        Ok(SandboxName(text.to_owned()))
    }
}

impl TryFrom<String> for SandboxName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SandboxName> for String {
    fn from(name: SandboxName) -> String {
        name.0
    }
}

impl AsRef<str> for SandboxName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Levenshtein's distance, in bytes: names are ASCII.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

const ADJECTIVES: &[&str] = &[
    "amber", "bold", "brave", "bright", "brisk", "calm", "clever", "cool", "crisp", "daring",
    "deep", "eager", "early", "fast", "fresh", "gentle", "glad", "happy", "honest", "humble",
    "keen", "kind", "lively", "lucky", "mellow", "merry", "mild", "neat", "noble", "patient",
    "plain", "proud", "quick", "quiet", "rapid", "ready", "sharp", "silent", "simple", "sleek",
    "smooth", "steady", "still", "sunny", "swift", "tidy", "warm", "wise",
];

const NOUNS: &[&str] = &[
    "ant", "badger", "bear", "bee", "birch", "cedar", "crane", "deer", "dove", "eagle", "elk",
    "fern", "finch", "fox", "hare", "hawk", "heron", "ibis", "ivy", "jay", "kite", "lark", "lynx",
    "maple", "mole", "moth", "newt", "oak", "otter", "owl", "pine", "puffin", "quail", "ray",
    "raven", "reed", "robin", "seal", "sparrow", "stoat", "stork", "swan", "tern", "trout", "vole",
    "willow", "wolf", "wren",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_hell_are_refused() {
        for (text, error) in [
            ("", NameError::Empty),
            ("../etc", NameError::Character),
            ("a/b", NameError::Character),
            ("-rf", NameError::Start),
            (".", NameError::Start),
            ("..", NameError::Start),
            (".hidden", NameError::Start),
            ("a b", NameError::Character),
            ("a\nb", NameError::Character),
            ("café", NameError::Character),
            ("a\0b", NameError::Character),
        ] {
            assert_eq!(text.parse::<SandboxName>(), Err(error), "{text:?}");
        }
        assert_eq!(
            "a".repeat(65).parse::<SandboxName>(),
            Err(NameError::TooLong)
        );
        assert!("a".repeat(64).parse::<SandboxName>().is_ok());
    }

    #[test]
    fn memorable_names_are_names() {
        for seed in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
            let name = SandboxName::memorable(seed);
            assert_eq!(name.as_str().parse(), Ok(name.clone()));
        }
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        let known = ["calm-otter-42", "risky-refactor", "try-1"];
        assert_eq!(
            SandboxName::nearest("risky-refacto", known),
            Some("risky-refactor")
        );
        assert_eq!(SandboxName::nearest("calm", known), Some("calm-otter-42"));
        assert_eq!(SandboxName::nearest("zzz", known), None);
    }
}
