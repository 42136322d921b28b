//! Shells and how each is given its prompt.
