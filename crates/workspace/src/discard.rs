//! Deleting a sandbox, and finding what could be cleaned.
