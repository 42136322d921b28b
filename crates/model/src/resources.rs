//! What a session may use, and what may be asked for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::size::ByteSize;

/// Processors, in thousandths: `0.5` to `4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cpu(pub u32);

/// An amount of memory or disk, as Kubernetes writes it: `512Mi`, `1Gi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Quantity(pub u64);

/// What a session may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Processors.
    pub cpu: Cpu,
    /// Memory.
    pub memory: Quantity,
    /// Disk.
    pub disk: Quantity,
    /// Processes and threads at once.
    pub max_processes: u32,
}

/// Something that was asked for and cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ResourceError {
    /// It does not parse.
    #[error("'{text}' is not {what}; write it as {example}")]
    Unreadable {
        /// What was read.
        text: String,
        /// What it should have been.
        what: &'static str,
        /// Such as.
        example: &'static str,
    },
    /// It is less or more than there may be.
    #[error("{field} {value} is not between {least} and {most}")]
    OutOfRange {
        /// Which one.
        field: &'static str,
        /// What was asked for.
        value: String,
        /// The least there may be.
        least: String,
        /// The most there may be.
        most: String,
    },
}

const MEBI: u64 = 1 << 20;
const GIBI: u64 = 1 << 30;

impl Resources {
    /// Is every one of them within what may be asked for?
    pub fn check(&self) -> Result<(), ResourceError> {
        within("cpu", self.cpu, Cpu(500), Cpu(4000))?;
        let (least, most) = (Quantity(256 * MEBI), Quantity(8 * GIBI));
        within("memory", self.memory, least, most)?;
        within("disk", self.disk, Quantity(GIBI), Quantity(50 * GIBI))?;
        within("max_processes", self.max_processes, 32, 1024)
    }
}

fn within<T: PartialOrd + fmt::Display>(
    field: &'static str,
    value: T,
    least: T,
    most: T,
) -> Result<(), ResourceError> {
    if value < least || value > most {
        return Err(ResourceError::OutOfRange {
            field,
            value: value.to_string(),
            least: least.to_string(),
            most: most.to_string(),
        });
    }
    Ok(())
}

impl FromStr for Cpu {
    type Err = ResourceError;

    fn from_str(text: &str) -> Result<Cpu, ResourceError> {
        let unreadable = || ResourceError::Unreadable {
            text: text.to_owned(),
            what: "a number of processors",
            example: "0.5 or 2",
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > 3 || whole.len() > 6 {
            return Err(unreadable());
        }
        let thousandths: u32 = format!("{fraction:0<3}")
            .parse()
            .map_err(|_| unreadable())?;
        let whole: u32 = whole.parse().map_err(|_| unreadable())?;
        Ok(Cpu(whole * 1000 + thousandths))
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / 1000, self.0 % 1000);
        if fraction == 0 {
            return f.pad(&whole.to_string());
        }
        let fraction = format!("{fraction:03}");
        f.pad(&format!("{whole}.{}", fraction.trim_end_matches('0')))
    }
}

impl FromStr for Quantity {
    type Err = ResourceError;

    fn from_str(text: &str) -> Result<Quantity, ResourceError> {
        let unreadable = |_| ResourceError::Unreadable {
            text: text.to_owned(),
            what: "an amount of bytes",
            example: "512Mi or 1Gi",
        };
        let ByteSize(bytes) = with_byte_unit(text).parse().map_err(unreadable)?;
        Ok(Quantity(bytes))
    }
}

/// Kubernetes leaves the B away.
fn with_byte_unit(text: &str) -> String {
    match text.strip_suffix('i') {
        Some(_) => format!("{text}B"),
        None => text.to_owned(),
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (1u64 << 40, "Ti"),
            (GIBI, "Gi"),
            (MEBI, "Mi"),
            (1 << 10, "Ki"),
        ];
        let fits = |(unit, _): &&(u64, &str)| self.0 >= *unit && self.0.is_multiple_of(*unit);
        match units.iter().find(fits) {
            Some((unit, name)) => f.pad(&format!("{}{name}", self.0 / unit)),
            None => f.pad(&self.0.to_string()),
        }
    }
}

macro_rules! as_text {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = ResourceError;

            fn try_from(text: String) -> Result<$name, ResourceError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }
    };
}

as_text!(Cpu);
as_text!(Quantity);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(cpu in 0u32..10_000, bytes in 1u64..1 << 50) {
            prop_assert_eq!(Cpu(cpu).to_string().parse(), Ok(Cpu(cpu)));
            prop_assert_eq!(Quantity(bytes).to_string().parse(), Ok(Quantity(bytes)));
        }
    }

    #[test]
    fn amounts_read_as_people_write_them() {
        assert_eq!("0.5".parse(), Ok(Cpu(500)));
        assert_eq!("2".parse(), Ok(Cpu(2000)));
        assert_eq!("512Mi".parse(), Ok(Quantity(512 * MEBI)));
        assert_eq!("1Gi".parse(), Ok(Quantity(GIBI)));
        assert_eq!(Quantity(1536 * MEBI).to_string(), "1536Mi");
        for text in ["", "-1", "1e3", "one", "0.1234", ".5", "5.", "1 "] {
            assert!(text.parse::<Cpu>().is_err(), "{text}");
        }
        for text in ["", "-1", "Mi", "1Xi", "0"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }

    #[test]
    fn more_or_less_than_may_be_asked_for_is_refused_by_name() {
        let fine = Resources {
            cpu: Cpu(1000),
            memory: Quantity(512 * MEBI),
            disk: Quantity(GIBI),
            max_processes: 128,
        };
        assert_eq!(fine.check(), Ok(()));
        let cases = [
            (
                Resources {
                    cpu: Cpu(499),
                    ..fine
                },
                "cpu 0.499 is not between 0.5 and 4",
            ),
            (
                Resources {
                    memory: Quantity(9 * GIBI),
                    ..fine
                },
                "memory 9Gi is not between 256Mi and 8Gi",
            ),
            (
                Resources {
                    disk: Quantity(MEBI),
                    ..fine
                },
                "disk 1Mi is not between 1Gi and 50Gi",
            ),
            (
                Resources {
                    max_processes: 1025,
                    ..fine
                },
                "max_processes 1025 is not between 32 and 1024",
            ),
        ];
        for (resources, text) in cases {
            assert_eq!(resources.check().unwrap_err().to_string(), text);
        }
    }
}
