//! Bringing the source's changes into a sandbox, three-way.
