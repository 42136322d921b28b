//! The vocabulary every other crate speaks: names, paths, entries, change sets, settings and
//! history records of sandboxes; sessions, executions, templates, nodes and keys of the control
//! plane.
//!
//! Pure data: nothing here opens a file, reads a clock or an environment variable. What can be
//! decided from values alone (is this a valid name, does this limit parse, is this path beneath
//! the workspace) is decided here, once, and tested without a kernel.
#![forbid(unsafe_code)]

pub mod audit;
pub mod backend;
pub mod change;
pub mod container;
pub mod entry;
pub mod execution;
pub mod failure;
pub mod history;
pub mod id;
pub mod key;
pub mod mount;
pub mod name;
pub mod node;
pub mod path;
pub mod pool;
pub mod report;
pub mod request;
pub mod resources;
pub mod runtime;
pub mod secrecy;
pub mod session;
pub mod settings;
pub mod size;
pub mod template;

pub use audit::{AuditRecord, SessionNotice};
pub use backend::{BackendChoice, BackendKind};
pub use change::{Change, ChangeKind, ChangeSet, Flag};
pub use container::{Container, ContainerStatus};
pub use entry::{Entry, EntryKind, Fingerprint, Timestamp};
pub use execution::{Execution, ExecutionEvent, ExecutionResult, ExecutionStatus, Language};
pub use failure::{Class, Failure};
pub use history::{HistoryRecord, Operation, Outcome};
pub use id::{
    ArtifactId, ExecutionId, KeyId, NodeId, PoolEntryId, RequestId, SessionId, TemplateId,
};
pub use key::{ApiKey, Scope};
pub use mount::{OverlayXattr, WorkspaceMount};
pub use name::SandboxName;
pub use node::{Capacity, Node, NodeStatus};
pub use path::RelPath;
pub use pool::PoolEntry;
pub use resources::{Cpu, Quantity, Resources};
pub use runtime::RuntimeKind;
pub use session::{Session, SessionEvent, SessionMode, SessionStatus};
pub use settings::{EnvVar, Exposure, HostPattern, Limits, Network, PublishedPort, Settings, Wall};
pub use size::ByteSize;
pub use template::Template;
