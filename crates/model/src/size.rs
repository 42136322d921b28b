//! Amounts of bytes as people write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A number of bytes: `4096`, `64K`, `512M`, `2G`, `1.5GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteSize(pub u64);

/// A size that does not parse.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("'{0}' is not a size; write bytes or a number with K, M, G or T, such as 512M")]
pub struct SizeError(pub String);

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || SizeError(text.to_owned());
        let digits = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let shift = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(error()),
        };
        let unit = 1u64 << shift;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole: u64 = whole.parse().map_err(|_| error())?;
        let mut bytes = whole.checked_mul(unit).ok_or_else(error)?;
        if number.contains('.') {
            if fraction.is_empty() || fraction.len() > 9 {
                return Err(error());
            }
            let numerator: u64 = fraction.parse().map_err(|_| error())?;
            let scale = 10u128.pow(u32::try_from(fraction.len()).map_err(|_| error())?);
            let part = u128::from(numerator) * u128::from(unit) / scale;
            bytes = bytes
                .checked_add(u64::try_from(part).map_err(|_| error())?)
                .ok_or_else(error)?;
        }
        if bytes == 0 {
            return Err(error());
        }
        Ok(ByteSize(bytes))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let step = if self.0 < 1024 {
            0
        } else {
            (63 - self.0.leading_zeros()) as usize / 10
        };
        if step == 0 {
            return f.pad(&format!("{} B", self.0));
        }
        let tenths = u128::from(self.0) * 10 / (1u128 << (10 * step));
        f.pad(&format!("{}.{} {}", tenths / 10, tenths % 10, units[step]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, bytes) in [
            ("1", 1),
            ("64K", 65_536),
            ("512M", 536_870_912),
            ("2g", 2_147_483_648),
            ("1.5GiB", 1_610_612_736),
            ("10kb", 10_240),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "0",
            "-1",
            "M",
            "1.M",
            "9999999999999T",
            "1X",
            "1 000",
            "0.0K",
        ] {
            assert_eq!(
                text.parse::<ByteSize>(),
                Err(SizeError(text.into())),
                "{text}"
            );
        }
    }

    #[test]
    fn sizes_print_short() {
        assert_eq!(ByteSize(0).to_string(), "0 B");
        assert_eq!(ByteSize(1023).to_string(), "1023 B");
        assert_eq!(ByteSize(1536).to_string(), "1.5 KiB");
        assert_eq!(ByteSize(u64::MAX).to_string(), "15.9 EiB");
    }
}
