//! The history: one line per operation, appended.
