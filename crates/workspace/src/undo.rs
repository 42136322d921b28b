//! Taking a promote back.
