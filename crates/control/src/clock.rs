//! Times, as they are kept.

use jiff::Timestamp;

/// To the microsecond, as every database has them: what is answered now is what is answered later.
pub(crate) fn as_kept(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
