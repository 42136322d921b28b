//! Reads the binary files of git from their beginning on. Everything returns `None` at their end.

/// Returns the next `count` bytes and moves behind them.
pub(super) fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

/// Reads four bytes, the highest first.
pub(super) fn number(bytes: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take(bytes, 4)?.try_into().ok()?))
}

/// Reads a number of seven bits a byte, the highest first, each byte but the first counting one more.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut byte = take(bytes, 1)?[0];
    let mut value = u64::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = take(bytes, 1)?[0];
        value = value.checked_add(1)?.checked_mul(128)? | u64::from(byte & 0x7f);
    }
    Some(value)
}
