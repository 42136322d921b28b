//! Deleting a sandbox, and finding what could be cleaned.

use std::io;

use crate::tree::Dir;

/// Deletes the directory `name` of the root, whatever it holds.
pub(crate) fn delete(root: &Dir, name: &[u8]) -> io::Result<()> {
    root.remove_all(name)
}
