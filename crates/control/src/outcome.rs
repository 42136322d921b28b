//! What becomes of an execution, as it is kept.

use jiff::Timestamp;
use ring::digest::{Context, SHA256};
use sandbox_executor::artifact::ArtifactFound;
use sandbox_executor::{Ending, Outcome};
use sandbox_model::execution::{Artifact, ArtifactKind};
use sandbox_model::{ArtifactId, Execution, ExecutionEvent, ExecutionStatus};

use crate::clock::as_kept;
use crate::keys::hexadecimal;
use crate::random;

/// The execution as it is after its outcome; none when it was over already.
pub(crate) fn ended(execution: &Execution, outcome: &Outcome) -> Option<Execution> {
    let status = execution.status.after(event_of(outcome)).ok()?;
    let now = Timestamp::now();
    let mut ended = execution.clone();
    ended.status = status;
    ended.error = outcome.error.clone();
    match status {
        ExecutionStatus::Timeout => ended.timeout_at = Some(now),
        ExecutionStatus::Crashed => ended.crashed_at = Some(now),
        _ => ended.completed_at = Some(now),
    }
    Some(ended)
}

/// The execution with what became of it, where it was told beforehand that it ended, and how, and the outcome says the
/// same. Its status and its times stay.
pub(crate) fn confirmed(execution: &Execution, outcome: &Outcome) -> Option<Execution> {
    // What the outcome would make of one that runs.
    let status = ExecutionStatus::Running.after(event_of(outcome)).ok()?;
    (execution.status == status).then(|| Execution {
        error: outcome.error.clone().or_else(|| execution.error.clone()),
        ..execution.clone()
    })
}

fn event_of(outcome: &Outcome) -> ExecutionEvent {
    match outcome.ending {
        Ending::Finished => ExecutionEvent::Finished(outcome.result.exit_code),
        Ending::TimedOut => ExecutionEvent::TimedOut,
        Ending::Cancelled => ExecutionEvent::Cancelled,
        Ending::Crashed => ExecutionEvent::Crashed,
    }
}

/// A file that was found, as it is kept.
pub(crate) fn artifact(outcome: &Outcome, found: &ArtifactFound) -> Artifact {
    let name = found.path.rsplit('/').next().unwrap_or(&found.path);
    Artifact {
        id: ArtifactId::random(random::numbers()),
        execution_id: outcome.execution_id.clone(),
        kind: ArtifactKind::Artifact,
        name: name.to_owned(),
        path: found.path.clone(),
        size_bytes: found.size_bytes,
        mime_type: found.mime_type.clone(),
        sha256: found.sha256.clone(),
        created_at: as_kept(found.created_at),
    }
}

/// What tells this outcome from another one: a digest of everything that is kept of it, each part with its
/// length. Its name tells it from those that [`first_digest_of`] gave.
pub(crate) fn digest_of(outcome: &Outcome) -> String {
    let mut context = Context::new(&SHA256);
    let mut add = |part: &[u8]| {
        context.update(&part.len().to_be_bytes());
        context.update(part);
    };
    let ending = match outcome.ending {
        Ending::Finished => "finished",
        Ending::TimedOut => "timed out",
        Ending::Cancelled => "cancelled",
        Ending::Crashed => "crashed",
    };
    add(ending.as_bytes());
    let result = &outcome.result;
    for text in [Some(&result.stdout), Some(&result.stderr)]
        .into_iter()
        .chain([result.return_value.as_ref(), outcome.error.as_ref()])
    {
        // What is not there is not what is empty.
        add(&[u8::from(text.is_some())]);
        add(text.map_or(&[], |text| text.as_bytes()));
    }
    add(&[
        u8::from(result.stdout_truncated),
        u8::from(result.stderr_truncated),
        u8::from(result.artifacts_truncated),
    ]);
    add(&result.exit_code.to_be_bytes());
    let metrics = &result.metrics;
    for number in [
        result.execution_time,
        metrics.duration_ms,
        metrics.cpu_time_ms,
        metrics.peak_memory_mb,
    ] {
        add(&number.to_be_bytes());
    }
    for number in [metrics.io_read_bytes, metrics.io_write_bytes] {
        add(&number.to_be_bytes());
    }
    // Only where there is one: without it the digest is that of before there were any.
    if let Some(cause) = result.cause {
        add(cause.as_str().as_bytes());
    }
    format!("2:{}", hexadecimal(context.finish().as_ref()))
}

/// What outcomes were told apart by at first. A report that was kept then may come again.
pub(crate) fn first_digest_of(outcome: &Outcome) -> String {
    let mut context = Context::new(&SHA256);
    let result = &outcome.result;
    for part in [&result.stdout, &result.stderr] {
        context.update(&part.len().to_be_bytes());
        context.update(part.as_bytes());
    }
    context.update(&result.exit_code.to_be_bytes());
    context.update(
        result
            .return_value
            .as_deref()
            .unwrap_or_default()
            .as_bytes(),
    );
    hexadecimal(context.finish().as_ref())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sandbox_model::ExecutionResult;
    use sandbox_model::execution::{FailureCause, Metrics};

    use super::*;

    fn outcome() -> Outcome {
        Outcome {
            execution_id: "exec_20261116_aaaaaaaa".parse().expect("an identifier"),
            ending: Ending::Crashed,
            result: ExecutionResult {
                stdout: "out".to_owned(),
                stderr: "err".to_owned(),
                exit_code: -1,
                ..ExecutionResult::default()
            },
            error: None,
            artifacts: Vec::new(),
        }
    }

    fn with(change: impl FnOnce(&mut Outcome)) -> Outcome {
        let mut changed = outcome();
        change(&mut changed);
        changed
    }

    #[test]
    fn outcomes_that_differ_in_anything_have_different_digests() {
        let metrics = |change: fn(&mut Metrics)| with(|other| change(&mut other.result.metrics));
        let all = [
            outcome(),
            with(|other| other.ending = Ending::TimedOut),
            with(|other| other.ending = Ending::Cancelled),
            with(|other| other.ending = Ending::Finished),
            with(|other| other.error = Some(String::new())),
            with(|other| other.error = Some("it was lost".to_owned())),
            with(|other| other.result.stdout = "oute".to_owned()),
            with(|other| {
                other.result.stdout = "oute".to_owned();
                other.result.stderr = "rr".to_owned();
            }),
            with(|other| other.result.stdout_truncated = true),
            with(|other| other.result.artifacts_truncated = true),
            with(|other| other.result.stderr_truncated = true),
            with(|other| other.result.cause = Some(FailureCause::DiskFull)),
            with(|other| other.result.cause = Some(FailureCause::ProcessLimit)),
            with(|other| other.result.exit_code = 1),
            with(|other| other.result.execution_time = 0.5),
            with(|other| other.result.return_value = Some(String::new())),
            with(|other| other.result.return_value = Some("null".to_owned())),
            metrics(|metrics| metrics.duration_ms = 1.0),
            metrics(|metrics| metrics.cpu_time_ms = 1.0),
            metrics(|metrics| metrics.peak_memory_mb = 1.0),
            metrics(|metrics| metrics.io_read_bytes = 1),
            metrics(|metrics| metrics.io_write_bytes = 1),
        ];
        let digests: BTreeSet<_> = all.iter().map(digest_of).collect();
        assert_eq!(digests.len(), all.len());
        assert_eq!(digest_of(&outcome()), digest_of(&outcome()));
    }

    #[test]
    fn digests_of_the_first_kind_are_as_they_were_and_are_no_others() {
        // As it is in databases.
        let known = "c71941cc479f99094c28047819f302cb0f3c543dd496e451454506e51652a957";
        assert_eq!(first_digest_of(&outcome()), known);
        assert!(digest_of(&outcome()).starts_with("2:"));
    }
}
