//! Applying a change set to its source: all of it or nothing, across crashes.
