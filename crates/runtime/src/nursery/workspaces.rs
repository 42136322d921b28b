//! The workspaces of sessions: made, copied, looked at, removed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Resource, Rlimit};
use sandbox_isolation::{Runs, accountant};
use sandbox_model::id::SessionId;
use sandbox_model::{BackendChoice, BackendKind, Class, Failure, SandboxName, WorkspaceMount};
use sandbox_workspace::changes::{self, Budget, ChangeOptions};
use sandbox_workspace::checkpoint::{self, CheckpointError};
use sandbox_workspace::diff::{self, Colour};
use sandbox_workspace::progress::Silent;
use sandbox_workspace::promote::{self, Backup, Resolution, Resolutions, Selection};
use sandbox_workspace::root::{CreateRequest, Root, RootError};
use sandbox_workspace::{Sandbox, View, discard as removal};

use super::errand::LOOKERS_MEMORY;
use super::{Refusal, RefusalKind};
use crate::promotion::{Extent, Promote, Promotion, Resolve};
use crate::runtime::Changes;
use crate::spec::{SessionSpec, Workspace};

/// The directory, beside the workspaces, that those which start from nothing are copies of.
pub(super) const EMPTY: &str = "empty";

/// The directory of all workspaces, each called as its session.
pub(crate) const SANDBOXES: &str = "sandboxes";

/// Beside a workspace that is a full copy: how many bytes that was.
const COPIED: &str = "copied";

/// The longest diff that is reported, in bytes of JSON. A workspace may hold gigabytes, and its diff more.
const LONGEST_DIFF: usize = 8 << 20;

/// How much of a change set is listed, and looked at. Whoever wrote the workspace decides how many
/// paths there are, and how long.
const BUDGET: Budget = Budget {
    listed: 10_000,
    listed_bytes: 8 << 20,
    walked_bytes: 64 << 20,
};

/// Removes what was half made when somebody was killed.
pub(super) fn sweep(root: &Path) -> Result<(), Refusal> {
    let sandboxes = Root::open(&root.join(SANDBOXES)).map_err(refusal)?;
    sandboxes.sweep().map_err(refusal)
}

/// Finishes or takes back promotes that were interrupted.
pub(super) fn recover_sources(root: &Path) -> Result<(), Refusal> {
    let sandboxes = Root::open(&root.join(SANDBOXES)).map_err(refusal)?;
    promote::recover_all(&sandboxes.unswept()).map_err(refusal)?;
    Ok(())
}

/// The session's workspace: the one it had, or a new one.
pub(super) fn of(root: &Path, spec: &SessionSpec) -> Result<Sandbox, Refusal> {
    let sandboxes = Root::open(&root.join(SANDBOXES)).map_err(refusal)?;
    // Looking for what was left takes as long as there are workspaces.
    let sandboxes = sandboxes.unswept();
    if let Some(sandbox) = find(&sandboxes, &spec.session_id)? {
        return Ok(sandbox);
    }
    let source = match &spec.workspace {
        Workspace::Source(source) => source.clone(),
        Workspace::Empty => {
            let empty = root.join(EMPTY);
            std::fs::create_dir_all(&empty)?;
            empty
        }
    };
    let request = CreateRequest {
        name: Some(name(&spec.session_id)?),
        source,
        backend: BackendChoice::Auto,
        settings: sandbox_model::Settings::default(),
    };
    let sandbox = sandboxes.create(&request, &mut Silent).map_err(refusal)?;
    if sandbox.meta.backend == BackendKind::Copy {
        let bytes = accountant::space(&layer_of(&sandbox))?;
        std::fs::write(sandbox.dir.join(COPIED), bytes.to_string())?;
    }
    Ok(sandbox)
}

/// How much of its disk space a workspace was made with: nothing, unless it is a full copy. Not known of a copy
/// that an older server made.
pub(super) fn copied(sandbox: &Sandbox) -> Option<u64> {
    match sandbox.meta.backend {
        BackendKind::Copy => {
            let text = std::fs::read_to_string(sandbox.dir.join(COPIED)).ok()?;
            text.trim().parse().ok()
        }
        BackendKind::Overlay | BackendKind::Btrfs => Some(0),
    }
}

/// Where what is written in a workspace goes.
pub(super) fn layer_of(sandbox: &Sandbox) -> PathBuf {
    match sandbox.mount() {
        WorkspaceMount::Overlay { upper, .. } => upper,
        WorkspaceMount::Bind { dir } => dir,
    }
}

/// Removes a session's workspace; it is no error when there is none.
pub(super) fn discard(root: &Path, id: &SessionId) -> Result<(), Refusal> {
    let sandboxes = Root::open(&root.join(SANDBOXES)).map_err(refusal)?;
    let Some(sandbox) = find(&sandboxes, id)? else {
        return Ok(());
    };
    end_orphans(&sandbox)?;
    removal::discard(sandbox, &mut Silent).map_err(refusal)
}

/// Makes `to` a copy of the workspace of `from`, in which nothing moves: it is raised and held still, or its orphans
/// have been ended.
pub(super) fn fork(
    root: &Path,
    from: &SessionId,
    to: &SessionId,
    is_raised: bool,
) -> Result<(), Refusal> {
    let sandbox = existing(root, from)?;
    let copied = match is_raised {
        true => checkpoint::fork_still(&sandbox, &name(to)?, &mut Silent),
        false => checkpoint::fork(&sandbox, &name(to)?, &mut Silent),
    };
    match copied {
        Ok(fork) => {
            if let Some(bytes) = self::copied(&sandbox).filter(|bytes| *bytes > 0) {
                std::fs::write(fork.dir.join(COPIED), bytes.to_string())?;
            }
            Ok(())
        }
        Err(CheckpointError::Root(RootError::Exists(_))) => {
            Err(Refusal::conflict(&format!("{to} has a workspace already")))
        }
        Err(error) => Err(refusal(error)),
    }
}

/// What a workspace has that it did not start with.
pub(super) fn changes(root: &Path, id: &SessionId) -> Result<Changes, Refusal> {
    let most = Some(LOOKERS_MEMORY);
    let limit = Rlimit {
        current: most,
        maximum: most,
    };
    rustix::process::setrlimit(Resource::Data, limit).map_err(io::Error::from)?;
    let sandbox = existing(root, id)?;
    let _lock = sandbox.lock_shared().map_err(refusal)?;
    let view = View::open(&sandbox).map_err(refusal)?;
    let options = ChangeOptions::default();
    let listing = changes::listing(&view, &options, &BUDGET, &mut Silent).map_err(refusal)?;
    let (mut out, mut beside) = (Room::new(LONGEST_DIFF), Room::new(LONGEST_DIFF / 8));
    match diff::unified(&view, &listing.set, Colour::Plain, &mut out, &mut beside) {
        // What was full has said so by this.
        Err(error) if !out.full && !beside.full => return Err(error.into()),
        _ => {}
    }
    let all_listed = listing.complete && listing.total == listing.set.changes.len();
    Ok(Changes {
        total: listing.total as u64,
        truncated: !all_listed || out.full || beside.full,
        changes: listing.set.changes,
        diff: out.into_text(),
        beside: beside.into_text(),
    })
}

/// Applies what a workspace has become to the directory that it is a copy of.
pub(super) fn promote(root: &Path, id: &SessionId, what: &Promote) -> Result<Promotion, Refusal> {
    let sandbox = existing(root, id)?;
    if sandbox.source() == root.join(EMPTY) {
        return Err(Refusal::conflict("its workspace is a copy of nothing"));
    }
    end_orphans(&sandbox)?;
    let selection = Selection {
        paths: what.paths.clone(),
        ..Selection::default()
    };
    let resolutions = Resolutions {
        others: what.resolve.map(Resolution::from),
        ..Resolutions::default()
    };
    promote::recover(&sandbox.root, sandbox.source()).map_err(refusal)?;
    // From before the plan is made until it is applied: what is told is what is promoted.
    let lock = sandbox.lock_exclusive().map_err(refusal)?;
    let plan = {
        let view = View::open(&sandbox).map_err(refusal)?;
        promote::plan(&view, &selection, &resolutions, &mut Silent).map_err(refusal)?
    };
    let told = serde_json::to_value(&plan).map_err(|error| error.to_string())?;
    let applied = what.extent == Extent::Apply;
    if applied {
        promote::apply_alone(&sandbox, &lock, plan, Backup::None, &mut Silent).map_err(refusal)?;
    }
    Ok(Promotion {
        plan: told,
        applied,
    })
}

impl From<Resolve> for Resolution {
    fn from(resolve: Resolve) -> Resolution {
        match resolve {
            Resolve::Ours => Resolution::Ours,
            Resolve::Theirs => Resolution::Theirs,
            Resolve::Merge => Resolution::Merge,
            Resolve::Skip => Resolution::Skip,
        }
    }
}

/// What a server before this one left takes a moment to end with it. Whoever is asked to raise a session
/// has not raised it, so what is still there is such a one.
pub(super) fn end_orphans(sandbox: &Sandbox) -> Result<Runs, Refusal> {
    let runs = Runs::open(&sandbox.runs_dir());
    runs.stop(Duration::ZERO)?;
    Ok(runs)
}

/// The same, by the session's name.
pub(super) fn end_orphans_of(root: &Path, id: &SessionId) -> Result<(), Refusal> {
    end_orphans(&existing(root, id)?).map(drop)
}

fn existing(root: &Path, id: &SessionId) -> Result<Sandbox, Refusal> {
    let sandboxes = Root::open(&root.join(SANDBOXES)).map_err(refusal)?;
    find(&sandboxes, id)?.ok_or_else(|| Refusal {
        kind: RefusalKind::NotFound,
        reason: "it has no workspace".to_owned(),
    })
}

fn find(sandboxes: &Root, id: &SessionId) -> Result<Option<Sandbox>, Refusal> {
    sandboxes.find(&name(id)?).map_err(refusal)
}

fn name(id: &SessionId) -> Result<SandboxName, Refusal> {
    id.as_str().parse().map_err(Refusal::because)
}

/// Takes text worth so many bytes of JSON, and then no more.
struct Room {
    bytes: Vec<u8>,
    left: usize,
    full: bool,
}

impl Room {
    fn new(most: usize) -> Room {
        Room {
            bytes: Vec::new(),
            left: most,
            full: false,
        }
    }

    fn into_text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            let worth = match byte {
                b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
                byte if byte.is_ascii_control() => 6,
                // What is not UTF-8 becomes a replacement character for each byte.
                0x80.. => 3,
                _ => 1,
            };
            if worth > self.left {
                self.full = true;
                self.left = 0;
                return match at {
                    0 => Err(io::ErrorKind::StorageFull.into()),
                    at => Ok(at),
                };
            }
            self.left -= worth;
            self.bytes.push(*byte);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn refusal(error: impl Failure + 'static) -> Refusal {
    let kind = match error.class() {
        Class::Busy | Class::Conflict | Class::Permission | Class::SourceNotFound => {
            Some(RefusalKind::Conflict)
        }
        Class::NotFound => Some(RefusalKind::NotFound),
        _ => None,
    };
    let refusal = Refusal::because(error);
    Refusal {
        kind: kind.unwrap_or(refusal.kind),
        ..refusal
    }
}
