//! Control groups: where a process is, and a group of its own for a run.
