//! How much may be asked of an execution at most.
//!
//! The control plane and executors go by these numbers, so that nothing that the one takes is refused by the other.

use std::ops::RangeInclusive;

use serde_json::Value;

/// The longest code.
pub const MOST_CODE_BYTES: usize = 100 << 10;

/// The longest event, as JSON.
pub const MOST_EVENT_BYTES: usize = 1 << 20;

/// How deep an event may be nested. Whoever reads it on its way takes 127 levels, of which a few are around it.
pub const MOST_EVENT_DEPTH: usize = 100;

/// How long one may take, in seconds.
pub const TIMEOUTS: RangeInclusive<u32> = 1..=3600;

/// How many levels of arrays and objects there are. Those that could be read are few.
pub fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn levels_are_those_of_arrays_and_objects() {
        assert_eq!(depth(&json!("x")), 0);
        assert_eq!(depth(&json!([])), 1);
        assert_eq!(depth(&json!([1, { "a": 2 }])), 2);
        assert_eq!(depth(&json!({ "a": [], "b": [[1]] })), 3);
    }
}
