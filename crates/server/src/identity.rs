//! What a server is among those that share its database, kept in its data directory.
//!
//! The workspaces of its sessions are there, so its name stays with them: in a container that is made anew on the
//! same volume it is the same node, whatever the machine is called by then. Beside it is something that no other
//! directory has, by which its server holds the node.

use std::io;
use std::path::Path;

use crate::settings::Secret;

/// The node's name.
pub(crate) const NODE: &str = "node.id";

/// What no other directory has.
pub(crate) const INSTANCE: &str = "instance.id";

/// Which node the server of a data directory is on such a database; none before its first start, and where nobody
/// shares it. Nothing is written.
pub fn kept_node(data: &Path, database: &Secret) -> io::Result<Option<String>> {
    if database.0.starts_with("sqlite:") {
        return Ok(None);
    }
    match std::fs::read_to_string(data.join(NODE)) {
        Ok(text) => {
            let node = text.trim();
            Ok((!node.is_empty()).then(|| node.to_owned()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
