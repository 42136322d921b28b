//! What the control plane is told of an execution that is over, as it is written and sent.
//!
//! It takes so much and no more (`sandbox_model::report`), which is all that an executor keeps, however long that
//! becomes as JSON. Text that were longer would lose its end and say so. What is left out of one report is not sent in
//! another, so that the same execution is always told in the same words.

use std::borrow::Cow;
use std::io::{self, Write};

use sandbox_executor::{ArtifactFound, Ending, Outcome};
use sandbox_model::execution::{FailureCause, Metrics};
use sandbox_model::report::{
    MOST_ARTIFACTS, MOST_ERROR_BYTES, MOST_PRINTED_BYTES, MOST_RESULT_BYTES,
};
use serde::Serialize;
use serde_json::value::RawValue;

/// How long the descriptions of the files of one report may be together.
const LONGEST_ARTIFACTS: usize = 1 << 20;

/// Everything that is told of one execution, in this order.
#[derive(Debug)]
pub(crate) struct Report<'o> {
    artifacts: Vec<Artifacts<'o>>,
    result: Result<'o>,
}

/// Where a part of it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    /// Files that were made.
    Artifacts,
    /// What became of it.
    Result,
}

impl Part {
    /// As paths have it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Part::Artifacts => "artifacts",
            Part::Result => "result",
        }
    }
}

#[derive(Debug, Default, Serialize)]
struct Artifacts<'o> {
    artifacts: Vec<Artifact<'o>>,
}

#[derive(Debug, Serialize)]
struct Artifact<'o> {
    path: &'o str,
    size: u64,
    mime_type: &'o str,
    sha256: &'o str,
}

#[derive(Debug, Serialize)]
struct Result<'o> {
    status: Status,
    stdout: Cow<'o, str>,
    stderr: Cow<'o, str>,
    stdout_truncated: bool,
    stderr_truncated: bool,
    artifacts_truncated: bool,
    exit_code: i32,
    execution_time: f64,
    return_value: Option<Box<RawValue>>,
    metrics: Metrics,
    error: Option<Cow<'o, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<FailureCause>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Success,
    Failed,
    Timeout,
    Crashed,
    Cancelled,
}

impl<'o> Report<'o> {
    /// The one of `outcome`.
    pub(crate) fn of(outcome: &'o Outcome) -> Report<'o> {
        Report {
            artifacts: artifacts(&outcome.artifacts),
            result: result(outcome),
        }
    }

    /// Its parts, and how long each is.
    pub(crate) fn parts(&self) -> Vec<(Part, u64)> {
        let files = self
            .artifacts
            .iter()
            .map(|part| (Part::Artifacts, encoded(part) as u64));
        files
            .chain([(Part::Result, encoded(&self.result) as u64)])
            .collect()
    }

    /// Writes all parts, one after the other.
    pub(crate) fn write(&self, mut to: impl Write) -> io::Result<()> {
        for part in &self.artifacts {
            serde_json::to_writer(&mut to, part)?;
        }
        Ok(serde_json::to_writer(to, &self.result)?)
    }
}

fn artifacts(found: &[ArtifactFound]) -> Vec<Artifacts<'_>> {
    let mut parts: Vec<Artifacts<'_>> = Vec::new();
    let mut length = 0;
    for artifact in found {
        let artifact = Artifact {
            path: &artifact.path,
            size: artifact.size_bytes,
            mime_type: &artifact.mime_type,
            sha256: &artifact.sha256,
        };
        let more = encoded(&artifact) + 1;
        match parts.last_mut() {
            Some(part)
                if part.artifacts.len() < MOST_ARTIFACTS && length + more <= LONGEST_ARTIFACTS =>
            {
                part.artifacts.push(artifact);
                length += more;
            }
            _ => {
                length = more;
                parts.push(Artifacts {
                    artifacts: vec![artifact],
                });
            }
        }
    }
    parts
}

fn result(outcome: &Outcome) -> Result<'_> {
    let told = &outcome.result;
    let error = outcome
        .error
        .as_deref()
        .map(|error| Cow::from(head(error, MOST_ERROR_BYTES)));
    let mut result = Result {
        status: match outcome.ending {
            Ending::Finished if told.exit_code == 0 => Status::Success,
            Ending::Finished => Status::Failed,
            Ending::TimedOut => Status::Timeout,
            Ending::Crashed => Status::Crashed,
            Ending::Cancelled => Status::Cancelled,
        },
        stdout: Cow::from(""),
        stderr: Cow::from(""),
        stdout_truncated: told.stdout_truncated,
        stderr_truncated: told.stderr_truncated,
        artifacts_truncated: told.artifacts_truncated,
        exit_code: match (outcome.ending, told.exit_code) {
            // Success is an exit status of nothing, and nothing else has it.
            (Ending::TimedOut | Ending::Crashed | Ending::Cancelled, 0) => -1,
            (_, exit_code) => exit_code,
        },
        execution_time: told.execution_time,
        return_value: told
            .return_value
            .as_ref()
            .and_then(|text| RawValue::from_string(text.clone()).ok()),
        metrics: told.metrics,
        error,
        cause: told.cause,
    };
    // When it ran out of time its last line says so: that is not what is cut off.
    let last = match (outcome.ending, &outcome.error) {
        (Ending::TimedOut, Some(error)) => format!("{error}\n"),
        _ => String::new(),
    };
    let (stderr, last) = match told.stderr.strip_suffix(&last) {
        Some(before) => (before, last),
        None => (told.stderr.as_str(), String::new()),
    };
    let room = MOST_RESULT_BYTES.saturating_sub(encoded(&result));
    let (most_stdout, most_stderr) = share(
        room,
        escaped(&told.stdout),
        escaped(stderr) + escaped(&last),
    );
    let stdout = fit(&told.stdout, MOST_PRINTED_BYTES, most_stdout);
    let most_stderr = most_stderr.saturating_sub(escaped(&last));
    let stderr_kept = fit(
        stderr,
        MOST_PRINTED_BYTES.saturating_sub(last.len()),
        most_stderr,
    );
    result.stdout_truncated |= stdout.len() < told.stdout.len();
    result.stderr_truncated |= stderr_kept.len() < stderr.len();
    result.stdout = Cow::from(stdout);
    result.stderr = match last.is_empty() {
        true => Cow::from(stderr_kept),
        false => Cow::from(format!("{stderr_kept}{last}")),
    };
    result
}

/// How much of `room` each of two gets that want so much: what one does not need is the other's.
fn share(room: usize, one: usize, other: usize) -> (usize, usize) {
    let half = room / 2;
    match (one <= half, other <= half) {
        (true, _) => (one, room - one),
        (_, true) => (room - other, other),
        (false, false) => (half, room - half),
    }
}

/// The beginning of `text` that is at most `longest` bytes, and at most `longest_escaped` in JSON.
fn fit(text: &str, longest: usize, longest_escaped: usize) -> &str {
    let text = head(text, longest);
    let mut length = 0;
    for (at, character) in text.char_indices() {
        length += width(character);
        if length > longest_escaped {
            return &text[..at];
        }
    }
    text
}

/// At most so many bytes of `text`, and whole characters.
fn head(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

/// How long `text` is in JSON, without its quotes.
fn escaped(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// How long a character is in JSON.
fn width(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..' ' => 6,
        _ => character.len_utf8(),
    }
}

/// How long `value` is as JSON.
fn encoded(value: &impl Serialize) -> usize {
    let mut counted = Counted(0);
    // Structures of our own are written to what cannot fail.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

struct Counted(usize);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox_model::ExecutionResult;
    use serde_json::Value;

    fn outcome(ending: Ending, stdout: &str, stderr: &str) -> Outcome {
        Outcome {
            execution_id: "exec_20261116_aaaaaaaa".parse().expect("an identifier"),
            ending,
            result: ExecutionResult {
                stdout: stdout.to_owned(),
                stderr: stderr.to_owned(),
                return_value: Some("{\"a\": [1]}".to_owned()),
                ..ExecutionResult::default()
            },
            error: None,
            artifacts: Vec::new(),
        }
    }

    fn written(outcome: &Outcome) -> Value {
        let report = Report::of(outcome);
        let mut bytes = Vec::new();
        report.write(&mut bytes).expect("memory");
        let lengths: u64 = report.parts().iter().map(|(_, length)| length).sum();
        assert_eq!(lengths, bytes.len() as u64);
        assert!(bytes.len() <= MOST_RESULT_BYTES, "{}", bytes.len());
        serde_json::from_slice(&bytes).expect("JSON")
    }

    #[test]
    fn what_fits_is_told_as_it_is() {
        let told = written(&outcome(Ending::Finished, "out\n", "\u{1}err"));
        assert_eq!(
            (&told["stdout"], &told["stderr"]),
            (&"out\n".into(), &"\u{1}err".into())
        );
        assert_eq!(
            (&told["status"], &told["stdout_truncated"]),
            (&"success".into(), &false.into())
        );
        assert_eq!(told["return_value"]["a"][0], 1);
    }

    #[test]
    fn the_worst_that_can_be_kept_is_told_whole() {
        const KEPT: usize = 1 << 20;
        // Control characters take six bytes of JSON each; bytes that are no text take three of text.
        for printed in ["\0".repeat(KEPT), "\u{fffd}".repeat(KEPT)] {
            let mut worst = outcome(Ending::TimedOut, &printed, "");
            let reason = "\u{1}".repeat(MOST_ERROR_BYTES);
            worst.result.stderr = format!("{printed}\nlast line\n");
            worst.result.return_value = Some(format!("\"{}\"", "x".repeat(KEPT - 2)));
            worst.error = Some(reason.clone());
            let told = written(&worst);
            assert_eq!(told["stdout"], printed.as_str());
            assert_eq!(told["stderr"], worst.result.stderr.as_str());
            assert_eq!(told["error"], reason.as_str());
            assert_eq!(told["return_value"].as_str().map(str::len), Some(KEPT - 2));
            assert_eq!(
                (&told["stdout_truncated"], &told["stderr_truncated"]),
                (&false.into(), &false.into())
            );
        }
    }

    #[test]
    fn what_is_more_than_that_is_made_to_fit() {
        let much = "\0".repeat(MOST_PRINTED_BYTES);
        let told = written(&outcome(Ending::Finished, &much, &much));
        assert_eq!(
            (&told["stdout_truncated"], &told["stderr_truncated"]),
            (&true.into(), &true.into())
        );
        let long = "\u{fffd}".repeat(MOST_PRINTED_BYTES);
        let told = written(&outcome(Ending::Finished, &long, "short"));
        let length = told["stdout"].as_str().map_or(0, str::len);
        assert!(length <= MOST_PRINTED_BYTES && length > MOST_PRINTED_BYTES - 3);
        assert_eq!(
            (&told["stdout_truncated"], &told["stderr"]),
            (&true.into(), &"short".into())
        );
    }

    #[test]
    fn the_line_about_the_timeout_is_never_cut_off() {
        let line = "Execution timeout after 1 seconds";
        for printed in [
            "x".repeat(MOST_PRINTED_BYTES),
            "\0".repeat(MOST_PRINTED_BYTES),
        ] {
            let mut late = outcome(Ending::TimedOut, &printed, &format!("{printed}\n{line}\n"));
            late.error = Some(line.to_owned());
            late.result.exit_code = -1;
            let told = written(&late);
            let stderr = told["stderr"].as_str().expect("text");
            assert!(stderr.ends_with(&format!("{line}\n")) && stderr.len() <= MOST_PRINTED_BYTES);
            assert_eq!(
                (&told["status"], &told["stderr_truncated"]),
                (&"timeout".into(), &true.into())
            );
        }
    }

    #[test]
    fn many_files_are_told_in_several_parts() {
        let mut many = outcome(Ending::Finished, "", "");
        many.artifacts = (0..MOST_ARTIFACTS)
            .map(|number| ArtifactFound {
                path: format!("{number}/{}", "\u{1}".repeat(600)),
                size_bytes: 1,
                mime_type: "text/plain".to_owned(),
                sha256: "0".repeat(64),
                created_at: jiff::Timestamp::UNIX_EPOCH,
            })
            .collect();
        let report = Report::of(&many);
        let parts = report.parts();
        assert!(parts.len() > 3);
        // Other reports than results are of four megabytes at most.
        assert!(parts.iter().all(|(_, length)| *length < 4 << 20));
        assert_eq!(parts.last().map(|(part, _)| *part), Some(Part::Result));
        let told: usize = report
            .artifacts
            .iter()
            .map(|part| part.artifacts.len())
            .sum();
        assert_eq!(told, MOST_ARTIFACTS);
    }

    #[test]
    fn one_that_did_not_finish_has_no_status_of_success() {
        for (ending, status) in [
            (Ending::Crashed, "crashed"),
            (Ending::Cancelled, "cancelled"),
            (Ending::TimedOut, "timeout"),
        ] {
            let told = written(&outcome(ending, "", ""));
            assert_eq!(
                (&told["status"], &told["exit_code"]),
                (&status.into(), &(-1).into())
            );
        }
    }
}
