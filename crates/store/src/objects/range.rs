//! Parts of an object.

use std::ops::Range;

/// Which bytes of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ByteRange {
    /// All of them.
    #[default]
    All,
    /// From this one to the last.
    From(u64),
    /// These, as far as there are.
    Within(Range<u64>),
    /// The last so many, or all if there are fewer.
    Last(u64),
}

impl ByteRange {
    /// The bytes that are meant in an object of `size`; none where it has none of them.
    pub fn of(&self, size: u64) -> Option<Range<u64>> {
        let range = match self {
            ByteRange::All => return Some(0..size),
            ByteRange::From(start) => *start..size,
            ByteRange::Within(range) => range.start..range.end.min(size),
            ByteRange::Last(count) => size.saturating_sub(*count)..size,
        };
        (range.start < range.end).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_mean_what_http_says() {
        assert_eq!(ByteRange::All.of(0), Some(0..0));
        assert_eq!(ByteRange::From(0).of(0), None);
        assert_eq!(ByteRange::From(9).of(10), Some(9..10));
        assert_eq!(ByteRange::From(10).of(10), None);
        assert_eq!(ByteRange::Within(2..99).of(10), Some(2..10));
        assert_eq!(ByteRange::Last(3).of(10), Some(7..10));
        assert_eq!(ByteRange::Last(99).of(10), Some(0..10));
        assert_eq!(ByteRange::Last(0).of(10), None);
    }

    proptest! {
        #[test]
        fn a_range_never_leaves_the_object(start: u64, end: u64, size: u64) {
            let ranges = [ByteRange::From(start), ByteRange::Within(start..end), ByteRange::Last(end)];
            for range in ranges.into_iter().filter_map(|range| range.of(size)) {
                prop_assert!(range.start < range.end && range.end <= size);
            }
        }
    }
}
