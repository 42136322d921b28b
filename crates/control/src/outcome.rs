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

/// What tells this outcome from another one.
pub(crate) fn digest_of(outcome: &Outcome) -> String {
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
