//! How much of an execution an executor reports at most, and its control plane takes; and how it names itself.
//!
//! Both sides go by these numbers, so that nothing that may be reported is refused for its length.

/// The header in which an executor names its session: with that, its token is known to be good before anything is
/// looked up.
pub const SESSION_HEADER: &str = "x-session-id";

/// The most files of one execution.
pub const MOST_ARTIFACTS: usize = 1000;

/// The longest result, as JSON. A megabyte of each stream is kept, and a control character takes six bytes of JSON;
/// a megabyte may be returned; everything else is small.
pub const MOST_RESULT_BYTES: usize = 14 << 20;

/// The longest text of a stream. Of the megabyte that is kept, a byte that is no text is replaced by a character of
/// three; and the last line may be the executor's own.
pub const MOST_PRINTED_BYTES: usize = (3 << 20) + (1 << 10);

/// The longest value that is returned, as JSON.
pub const MOST_RETURNED_BYTES: usize = 1 << 20;

/// The longest word on an execution's progress, as JSON.
pub const MOST_PROGRESS_BYTES: usize = 4 << 10;

/// The longest reason why one did not complete.
pub const MOST_ERROR_BYTES: usize = 8 << 10;
