//! Three-way merge of texts.

/// A merge of two edits of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// Both edits fit together.
    Clean(Vec<u8>),
    /// They overlap; the text holds conflict markers.
    Conflicted(Vec<u8>),
    /// One of the three is not text.
    Binary,
}

/// Merges `ours` (the sandbox) and `theirs` (the source) from `base`.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Merged {
    todo!("{base:?} {ours:?} {theirs:?}")
}
