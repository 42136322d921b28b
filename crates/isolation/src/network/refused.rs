//! The record of what was asked for and refused.
//!
//! What is asked comes from inside the sandbox: it may be long, endless in variety, or full of
//! escape sequences. The record is bounded and holds only printable text.

use std::collections::HashMap;
use std::sync::Mutex;

use super::Refused;
use super::stop::locked;

/// How many different refusals are told apart.
const MOST: usize = 1000;

/// How many characters of a target are kept.
const LONGEST: usize = 300;

/// Counts refusals.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    counts: Mutex<HashMap<(String, String), u32>>,
}

impl Ledger {
    /// One more refusal of `target`.
    pub(super) fn record(&self, target: &str, reason: &str) {
        let mut key = (printable(target), printable(reason));
        let mut counts = locked(&self.counts);
        if counts.len() >= MOST && !counts.contains_key(&key) {
            key = (
                "others".to_owned(),
                format!("more than {MOST} different targets were refused"),
            );
        }
        let count = counts.entry(key).or_insert(0);
        *count = count.saturating_add(1);
    }

    /// What was refused, most often first.
    pub(super) fn sorted(&self) -> Vec<Refused> {
        let counts = locked(&self.counts);
        let mut list: Vec<Refused> = counts
            .iter()
            .map(|((target, reason), count)| Refused {
                target: target.clone(),
                reason: reason.clone(),
                count: *count,
            })
            .collect();
        list.sort_by(|a, b| {
            b.count
                .cmp(&a.count)
                .then_with(|| (&a.target, &a.reason).cmp(&(&b.target, &b.reason)))
        });
        list
    }
}

/// Printable ASCII as it is, anything else escaped, and not too much of it.
pub(super) fn printable(text: &str) -> String {
    let mut out = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == LONGEST {
            out.push_str("...");
            break;
        }
        match character {
            ' '..='~' => out.push(character),
            _ => out.extend(character.escape_default()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_and_the_most_frequent_comes_first() {
        let ledger = Ledger::default();
        ledger.record("b:1", "no");
        ledger.record("a:1", "no");
        ledger.record("c:1", "no");
        ledger.record("c:1", "no");
        let list: Vec<_> = ledger
            .sorted()
            .into_iter()
            .map(|r| (r.target, r.count))
            .collect();
        assert_eq!(
            list,
            [
                ("c:1".to_owned(), 2),
                ("a:1".to_owned(), 1),
                ("b:1".to_owned(), 1)
            ]
        );
    }

    #[test]
    fn the_record_is_bounded_and_still_counts() {
        let ledger = Ledger::default();
        for index in 0..MOST + 500 {
            ledger.record(&format!("host-{index}:443"), "no");
        }
        let list = ledger.sorted();
        assert_eq!(list.len(), MOST + 1);
        assert_eq!((list[0].target.as_str(), list[0].count), ("others", 500));
    }

    #[test]
    fn a_target_cannot_speak_to_the_terminal() {
        let ledger = Ledger::default();
        ledger.record("\u{1b}]0;owned\u{7}\u{202e}é\n:443", "no");
        ledger.record(&"x".repeat(10_000), "no");
        for refused in ledger.sorted() {
            assert!(refused.target.bytes().all(|b| (b' '..=b'~').contains(&b)));
            assert!(refused.target.len() <= LONGEST + 3);
        }
    }
}
