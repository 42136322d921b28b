//! What changed, in a few lines.
