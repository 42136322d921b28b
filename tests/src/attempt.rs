//! What became of an attempt of the attacker's.

use crate::Outcome;

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// It got what it wanted; the detail says what.
    Done(String),
    /// Something said no: the error's number, and where.
    Refused(i32, String),
    /// It was killed for trying.
    Killed,
}

impl Attempt {
    /// Reads the attacker's verdict. Panics when it never came to try.
    #[track_caller]
    pub fn of(outcome: &Outcome) -> Attempt {
        let out = outcome.out();
        let verdict = out.lines().last().unwrap_or_default();
        let (word, rest) = verdict.split_once(' ').unwrap_or((verdict, ""));
        match (outcome.code(), word) {
            (0, "done") => Attempt::Done(rest.to_owned()),
            (10, "refused") => {
                let (errno, at) = rest.split_once(' ').unwrap_or((rest, ""));
                Attempt::Refused(errno.parse().expect("an errno"), at.to_owned())
            }
            (159, _) => Attempt::Killed,
            _ => panic!("the attacker was not heard: {outcome}"),
        }
    }

    /// It must have worked: the control without which a refusal proves nothing.
    #[track_caller]
    pub fn must_work(self) -> String {
        match self {
            Attempt::Done(detail) => detail,
            other => panic!("the attempt does not even work outside: {other:?}"),
        }
    }

    /// It must not have worked.
    #[track_caller]
    pub fn must_fail(self) {
        if let Attempt::Done(detail) = self {
            panic!("the attempt succeeded inside: {detail}");
        }
    }
}
