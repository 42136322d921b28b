//! Three-way merge of texts.

use diffy::{IncompleteHunkStyle, MergeOptions};

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
    if ours == theirs || base == theirs {
        return Merged::Clean(ours.to_vec());
    }
    if base == ours {
        return Merged::Clean(theirs.to_vec());
    }
    if [base, ours, theirs].into_iter().any(crate::diff::is_binary) {
        return Merged::Binary;
    }
    let length = marker_length([base, ours, theirs]);
    let merged = MergeOptions::new()
        .set_conflict_marker_length(length)
        .set_incomplete_hunk_style(IncompleteHunkStyle::Git)
        .merge_bytes(base, ours, theirs);
    match merged {
        Ok(text) => Merged::Clean(text),
        Err(text) => Merged::Conflicted(name_sides(&text, length)),
    }
}

/// Seven, or as many as it takes that no line of the texts could be taken for a marker.
fn marker_length(texts: [&[u8]; 3]) -> usize {
    let run = |line: &[u8]| match line.first() {
        Some(first @ (b'<' | b'>' | b'|' | b'=')) => {
            line.iter().take_while(|byte| *byte == first).count()
        }
        _ => 0,
    };
    let lines = texts
        .into_iter()
        .flat_map(|text| text.split(|byte| *byte == b'\n'));
    lines
        .map(run)
        .max()
        .map_or(7, |longest| if longest < 7 { 7 } else { longest + 1 })
}

/// Puts our words on the markers: who reads them knows no "ours" and "theirs".
fn name_sides(text: &[u8], length: usize) -> Vec<u8> {
    let marker = |sign: char, side: &str| format!("{} {side}\n", sign.to_string().repeat(length));
    let names = [
        (marker('<', "ours"), marker('<', "sandbox")),
        (marker('|', "original"), marker('|', "base")),
        (marker('>', "theirs"), marker('>', "source")),
    ];
    let mut named = Vec::with_capacity(text.len() + 64);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let ours = names.iter().find(|(theirs, _)| theirs.as_bytes() == line);
        named.extend_from_slice(ours.map_or(line, |(_, ours)| ours.as_bytes()));
    }
    named
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edits_in_different_places_fit_together() {
        let merged = merge(b"a\nb\nc\nd\ne\n", b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n");
        assert_eq!(merged, Merged::Clean(b"A\nb\nc\nd\nE\n".to_vec()));
    }

    #[test]
    fn edits_of_one_line_conflict_with_both_sides_named() {
        let Merged::Conflicted(text) = merge(b"x\n", b"ours\n", b"theirs\n") else {
            panic!("no conflict")
        };
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("<<<<<<< sandbox\nours\n"), "{text}");
        assert!(
            text.ends_with("=======\ntheirs\n>>>>>>> source\n"),
            "{text}"
        );
    }

    #[test]
    fn markers_are_told_from_lines_that_look_like_them() {
        let odd: &[u8] = b"<<<<<<< ours\nx\n";
        let Merged::Conflicted(text) = merge(odd, b"<<<<<<< ours\ny\n", b"<<<<<<< ours\nz\n")
        else {
            panic!("no conflict")
        };
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.starts_with("<<<<<<< ours\n<<<<<<<< sandbox\ny\n"),
            "{text}"
        );
    }

    #[test]
    fn what_is_not_text_is_not_merged() {
        assert_eq!(merge(b"\0", b"\0a", b"\0b"), Merged::Binary);
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec("[abc]{0,2}\n?", 0..8)
            .prop_map(|lines| lines.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn an_edit_of_one_side_alone_is_taken(base in text(), edit in text()) {
            prop_assert_eq!(merge(&base, &edit, &base), Merged::Clean(edit.clone()));
            prop_assert_eq!(merge(&base, &base, &edit), Merged::Clean(edit.clone()));
            prop_assert_eq!(merge(&base, &edit, &edit), Merged::Clean(edit));
        }

        #[test]
        fn a_clean_merge_does_not_depend_on_who_is_first(base in text(), a in text(), b in text()) {
            if let Merged::Clean(one) = merge(&base, &a, &b) {
                prop_assert_eq!(merge(&base, &b, &a), Merged::Clean(one));
            }
        }
    }
}
