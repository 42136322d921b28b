//! Lines that changed, in hunks with their context.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

/// Unchanged lines shown around a change, as git and diff do.
const CONTEXT: usize = 3;

/// The comparison of two texts.
#[derive(Debug)]
pub struct Comparison<'t> {
    before: Vec<&'t [u8]>,
    after: Vec<&'t [u8]>,
    /// Changed line ranges, in order, apart from each other.
    edits: Vec<Edit>,
}

/// Lines `before` became lines `after`, counted from zero.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    before: Range<usize>,
    after: Range<usize>,
}

/// Neighbouring edits with the lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    edits: Range<usize>,
    before: Range<usize>,
    after: Range<usize>,
}

/// One line of a hunk, its newline included where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'t> {
    /// Unchanged.
    Context(&'t [u8]),
    /// Only before.
    Removed(&'t [u8]),
    /// Only after.
    Added(&'t [u8]),
}

impl<'t> Comparison<'t> {
    /// Compares two texts line by line.
    pub fn new(before: &'t [u8], after: &'t [u8]) -> Comparison<'t> {
        let input = InternedInput::new(before, after);
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        let range = |range: Range<u32>| range.start as usize..range.end as usize;
        let edits = diff
            .hunks()
            .map(|hunk| Edit {
                before: range(hunk.before),
                after: range(hunk.after),
            })
            .collect();
        Comparison {
            before: lines(before),
            after: lines(after),
            edits,
        }
    }

    /// How many lines were added and removed.
    pub fn counts(&self) -> (usize, usize) {
        self.edits.iter().fold((0, 0), |(added, removed), edit| {
            (added + edit.after.len(), removed + edit.before.len())
        })
    }

    /// The hunks: edits nearer to each other than their contexts reach are one.
    pub fn hunks(&self) -> Vec<Hunk> {
        let mut hunks: Vec<Hunk> = Vec::new();
        for (at, edit) in self.edits.iter().enumerate() {
            match hunks.last_mut() {
                Some(last) if edit.before.start <= self.edits[at - 1].before.end + 2 * CONTEXT => {
                    last.edits.end = at + 1;
                }
                _ => hunks.push(Hunk {
                    edits: at..at + 1,
                    before: 0..0,
                    after: 0..0,
                }),
            }
        }
        for hunk in &mut hunks {
            let (first, last) = (
                &self.edits[hunk.edits.start],
                &self.edits[hunk.edits.end - 1],
            );
            let lead = CONTEXT.min(first.before.start);
            let trail = CONTEXT.min(self.before.len() - last.before.end);
            hunk.before = first.before.start - lead..last.before.end + trail;
            hunk.after = first.after.start - lead..last.after.end + trail;
        }
        hunks
    }

    /// The lines of `hunk`, as a unified diff orders them.
    pub fn lines(&self, hunk: &Hunk) -> Vec<Line<'t>> {
        let mut lines = Vec::new();
        let mut at = hunk.before.start;
        for edit in &self.edits[hunk.edits.clone()] {
            lines.extend(
                self.before[at..edit.before.start]
                    .iter()
                    .map(|line| Line::Context(line)),
            );
            lines.extend(
                self.before[edit.before.clone()]
                    .iter()
                    .map(|line| Line::Removed(line)),
            );
            lines.extend(
                self.after[edit.after.clone()]
                    .iter()
                    .map(|line| Line::Added(line)),
            );
            at = edit.before.end;
        }
        lines.extend(
            self.before[at..hunk.before.end]
                .iter()
                .map(|line| Line::Context(line)),
        );
        lines
    }

    /// The text before with only the hunks applied whose number `wanted` takes.
    pub fn apply(&self, wanted: impl Fn(usize) -> bool) -> Vec<u8> {
        let mut text = Vec::new();
        let mut at = 0;
        for (number, hunk) in self.hunks().iter().enumerate() {
            for edit in &self.edits[hunk.edits.clone()] {
                text.extend(self.before[at..edit.before.start].iter().copied().flatten());
                let chosen = if wanted(number) {
                    &self.after[edit.after.clone()]
                } else {
                    &self.before[edit.before.clone()]
                };
                text.extend(chosen.iter().copied().flatten());
                at = edit.before.end;
            }
        }
        text.extend(self.before[at..].iter().copied().flatten());
        text
    }
}

impl Hunk {
    /// The `@@ -1,3 +1,4 @@` that heads it.
    pub fn header(&self) -> String {
        format!("@@ -{} +{} @@", span(&self.before), span(&self.after))
    }
}

/// Lines counted from one; an empty range is named by the line before it.
fn span(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        length => format!("{},{length}", range.start + 1),
    }
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof!["[ab]{0,2}\n", "[a-z]{3}\r?\n"];
        (proptest::collection::vec(line, 0..40), "[ab]{0,2}")
            .prop_map(|(lines, tail)| (lines.concat() + &tail).into_bytes())
    }

    proptest! {
        #[test]
        fn all_hunks_give_the_text_after_and_none_the_text_before(a in text(), b in text()) {
            let comparison = Comparison::new(&a, &b);
            prop_assert_eq!(comparison.apply(|_| true), b.clone());
            prop_assert_eq!(comparison.apply(|_| false), a.clone());
        }

        #[test]
        fn a_hunk_has_as_many_lines_as_its_header_says(a in text(), b in text()) {
            let comparison = Comparison::new(&a, &b);
            for hunk in comparison.hunks() {
                let lines = comparison.lines(&hunk);
                let old = lines.iter().filter(|line| !matches!(line, Line::Added(_))).count();
                let new = lines.iter().filter(|line| !matches!(line, Line::Removed(_))).count();
                prop_assert_eq!(old, hunk.before.len());
                prop_assert_eq!(new, hunk.after.len());
            }
        }
    }

    #[test]
    fn distant_edits_are_two_hunks_and_near_ones_are_one() {
        let before: String = (0..30).map(|n| format!("{n}\n")).collect();
        let edited = |numbers: &[usize]| -> String {
            (0..30)
                .map(|n| {
                    if numbers.contains(&n) {
                        "x\n".into()
                    } else {
                        format!("{n}\n")
                    }
                })
                .collect()
        };
        let near = edited(&[5, 10]);
        assert_eq!(
            Comparison::new(before.as_bytes(), near.as_bytes())
                .hunks()
                .len(),
            1
        );
        let far = edited(&[5, 20]);
        let far = Comparison::new(before.as_bytes(), far.as_bytes());
        assert_eq!(far.hunks().len(), 2);
        let one: Vec<u8> = far.apply(|number| number == 1);
        assert_eq!(one, edited(&[20]).into_bytes());
    }
}
