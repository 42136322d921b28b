//! Clocks and medians.

use std::ffi::OsString;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::stage::StageError;

/// One side of a comparison: prepares round `n` untimed, performs it, says how long it took.
pub type Attempt<'a> = Box<dyn FnMut(usize) -> Result<Duration, StageError> + 'a>;

/// Performs the attempts in turn, `rounds` times after one round of warming up, and returns the
/// median of each.
pub fn interleave(
    rounds: usize,
    mut attempts: Vec<Attempt<'_>>,
) -> Result<Vec<Duration>, StageError> {
    let mut samples = vec![Vec::with_capacity(rounds); attempts.len()];
    for round in 0..=rounds {
        for (attempt, taken) in attempts.iter_mut().zip(&mut samples) {
            let took = attempt(round)?;
            if round > 0 {
                taken.push(took);
            }
        }
    }
    Ok(samples.into_iter().map(median).collect())
}

/// The median; the upper one of two.
pub fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

/// The time within which so many of a hundred samples are.
pub fn percentile(mut samples: Vec<Duration>, percent: usize) -> Duration {
    samples.sort_unstable();
    let place = (samples.len() * percent).div_ceil(100).saturating_sub(1);
    samples.get(place).copied().unwrap_or_default()
}

/// Lets others go on for a while: a client that does not ask at once, or what nobody tells the end of.
#[allow(
    clippy::disallowed_methods,
    reason = "the pauses are part of what is measured"
)]
pub fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// How long the command took from spawn to exit, and how it ended.
pub fn timed(command: &mut Command) -> Result<(Duration, ExitStatus), StageError> {
    let begun = Instant::now();
    let status = command.status();
    let took = begun.elapsed();
    match status {
        Ok(status) => Ok((took, status)),
        Err(source) => Err(StageError::spawn(command, source)),
    }
}

/// The `timer` mode: runs the command over and over here and prints nanoseconds, a line each. It
/// is started inside a sandbox, so that what is printed has no start-up cost in it.
pub fn print_rounds(rounds: usize, command: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else {
        eprintln!("error: no command to time");
        return ExitCode::FAILURE;
    };
    for _ in 0..rounds {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        match timed(&mut command) {
            Ok((took, status)) if status.success() => println!("{}", took.as_nanos()),
            Ok((_, status)) => {
                eprintln!("error: {command:?}: {status}");
                return ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_order_and_outliers() {
        let samples = [900, 3, 1, 2, 4].map(Duration::from_millis).to_vec();
        assert_eq!(median(samples), Duration::from_millis(3));
    }

    #[test]
    fn a_percentile_is_the_slowest_of_those_that_are_within_it() {
        let samples: Vec<_> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(samples.clone(), 95), Duration::from_millis(190));
        assert_eq!(percentile(samples.clone(), 100), Duration::from_millis(200));
        assert_eq!(percentile(samples[..1].to_vec(), 95), samples[0]);
    }

    #[test]
    fn attempts_alternate_and_the_first_round_is_not_counted() {
        let order = std::cell::RefCell::new(Vec::new());
        let attempt = |name: &'static str, first: u64, later: u64| -> Attempt<'_> {
            let order = &order;
            Box::new(move |round| {
                order.borrow_mut().push(name);
                Ok(Duration::from_millis(if round == 0 {
                    first
                } else {
                    later
                }))
            })
        };
        let medians = interleave(2, vec![attempt("a", 99, 1), attempt("b", 99, 2)]).unwrap();
        assert_eq!(medians, [1, 2].map(Duration::from_millis));
        assert_eq!(*order.borrow(), ["a", "b", "a", "b", "a", "b"]);
    }
}
