//! Identifiers of what the control plane keeps.
//!
//! Each has its own type and its own shape, so that one can be told from another in a log and none can
//! be passed for another in code. They are made from random bytes that the caller brings.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use thiserror::Error;

const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// A text that is not an identifier of the kind that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is not {kind}; those look like {shape}")]
pub struct IdError {
    text: String,
    kind: &'static str,
    shape: &'static str,
}

/// Letters and digits, one for each random number.
fn letters(random: &[u16]) -> String {
    // 65536 is not a multiple of 36; the bias is below a thousandth.
    let pick = |number: &u16| char::from(ALPHABET[usize::from(*number) % ALPHABET.len()]);
    random.iter().map(pick).collect()
}

fn is_letters(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $shape:literal, $is_valid:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                $name::try_from(text.to_owned())
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                let is_valid: fn(&str) -> bool = $is_valid;
                match is_valid(&text) {
                    true => Ok($name(text)),
                    false => Err(IdError {
                        text,
                        kind: $kind,
                        shape: $shape,
                    }),
                }
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
    };
}

/// `prefix` and that many letters and digits.
fn is_prefixed(text: &str, prefix: &str, length: usize) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|rest| is_letters(rest, length))
}

id!(
    /// A session's.
    SessionId,
    "a session's identifier",
    "sess_ and 16 letters and digits",
    |text| is_prefixed(text, "sess_", 16)
);
id!(
    /// An execution's.
    ExecutionId,
    "an execution's identifier",
    "exec_, the day as eight digits, _ and 8 letters and digits",
    is_execution
);
id!(
    /// An artifact's.
    ArtifactId,
    "an artifact's identifier",
    "art_ and 16 letters and digits",
    |text| is_prefixed(text, "art_", 16)
);
id!(
    /// A template's: chosen by whoever makes it.
    TemplateId,
    "a template's identifier",
    "python-basic: 1 to 64 letters, digits, '.', '_' and '-', starting with a letter or digit",
    is_chosen
);
id!(
    /// A node's: chosen by whoever runs it.
    NodeId,
    "a node's identifier",
    "worker-1: 1 to 64 letters, digits, '.', '_' and '-', starting with a letter or digit",
    is_chosen
);
id!(
    /// An API key's; the key itself is a secret and not kept.
    KeyId,
    "a key's identifier",
    "key_ and 16 letters and digits",
    |text| is_prefixed(text, "key_", 16)
);
id!(
    /// Of what waits in the warm pool.
    PoolEntryId,
    "a pool entry's identifier",
    "pool_ and 16 letters and digits",
    |text| is_prefixed(text, "pool_", 16)
);
id!(
    /// A request's, chosen by the client or made.
    RequestId,
    "a request's identifier",
    "8 to 64 letters, digits, '.', '_' and '-'",
    |text| text.len() >= 8 && is_chosen(text)
);

fn is_execution(text: &str) -> bool {
    let Some((day, rest)) = text
        .strip_prefix("exec_")
        .and_then(|rest| rest.split_once('_'))
    else {
        return false;
    };
    day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit()) && is_letters(rest, 8)
}

fn is_chosen(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&text.len())
        && text.bytes().all(plain)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
}

impl SessionId {
    /// One made from random numbers.
    pub fn random(random: [u16; 16]) -> SessionId {
        SessionId(format!("sess_{}", letters(&random)))
    }
}

impl ExecutionId {
    /// One made on `day` from random numbers.
    pub fn random(day: Date, random: [u16; 8]) -> ExecutionId {
        let (year, month, day) = (day.year(), day.month(), day.day());
        ExecutionId(format!(
            "exec_{year:04}{month:02}{day:02}_{}",
            letters(&random)
        ))
    }
}

impl ArtifactId {
    /// One made from random numbers.
    pub fn random(random: [u16; 16]) -> ArtifactId {
        ArtifactId(format!("art_{}", letters(&random)))
    }
}

impl KeyId {
    /// One made from random numbers.
    pub fn random(random: [u16; 16]) -> KeyId {
        KeyId(format!("key_{}", letters(&random)))
    }
}

impl PoolEntryId {
    /// One made from random numbers.
    pub fn random(random: [u16; 16]) -> PoolEntryId {
        PoolEntryId(format!("pool_{}", letters(&random)))
    }
}

impl RequestId {
    /// One made from random numbers.
    pub fn random(random: [u16; 16]) -> RequestId {
        RequestId(format!("req_{}", letters(&random)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_made_is_accepted(random: [u16; 16], eight: [u16; 8], days in 0..30_000i32) {
            let day = jiff::civil::date(1970, 1, 1)
                .checked_add(jiff::Span::new().days(days))
                .unwrap();
            let session = SessionId::random(random);
            prop_assert_eq!(session.as_str().parse::<SessionId>(), Ok(session.clone()));
            let execution = ExecutionId::random(day, eight);
            prop_assert_eq!(execution.as_str().parse::<ExecutionId>(), Ok(execution.clone()));
            let artifact = ArtifactId::random(random);
            prop_assert_eq!(artifact.as_str().parse::<ArtifactId>(), Ok(artifact.clone()));
            let request = RequestId::random(random);
            prop_assert_eq!(request.as_str().parse::<RequestId>(), Ok(request.clone()));
            let waiting = PoolEntryId::random(random);
            prop_assert_eq!(waiting.as_str().parse::<PoolEntryId>(), Ok(waiting.clone()));
            // None passes for another.
            prop_assert!(session.as_str().parse::<ExecutionId>().is_err());
            prop_assert!(artifact.as_str().parse::<SessionId>().is_err());
        }
    }

    #[test]
    fn what_looks_alike_is_refused() {
        for text in [
            "",
            "sess_",
            "sess_ABCDEFGHIJKLMNOP",
            "sess_abcdefghijklmno",
            "sess_abcdefghijklmnopq",
            "sess_abcdefghijklmno/",
            " sess_abcdefghijklmnop",
        ] {
            assert!(text.parse::<SessionId>().is_err(), "{text}");
        }
        for text in [
            "exec_2026110_abcdefgh",
            "exec_20261101_abcdefg",
            "exec_20261101abcdefgh",
        ] {
            assert!(text.parse::<ExecutionId>().is_err(), "{text}");
        }
        for text in ["", "-a", ".hidden", "a b", "a/b", "ä", &"a".repeat(65)] {
            assert!(text.parse::<TemplateId>().is_err(), "{text}");
        }
        assert!("short".parse::<RequestId>().is_err());
    }

    #[test]
    fn an_error_says_what_was_expected() {
        let error = "nonsense".parse::<SessionId>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'nonsense' is not a session's identifier; those look like sess_ and 16 letters and digits"
        );
    }
}
