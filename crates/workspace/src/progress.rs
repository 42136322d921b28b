//! How long work tells its caller how far it is.

/// Receives progress. Calls come often; an implementation must be cheap.
pub trait Progress {
    /// A phase begins; `total` items of work are expected, where that is known.
    fn begin(&mut self, phase: Phase, total: Option<u64>);
    /// `items` more are done.
    fn advance(&mut self, items: u64);
    /// The phase is over.
    fn finish(&mut self);
    /// Whether the work should stop. Asked between steps by work that can stop without leaving
    /// anything half done; other work never asks.
    fn is_cancelled(&mut self) -> bool {
        false
    }
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Copying a tree.
    Copying,
    /// Looking for changes.
    Comparing,
    /// Copying what a promote will apply to the source's filesystem.
    Staging,
    /// Changing the source.
    Applying,
    /// Deleting.
    Deleting,
}

/// For callers that do not care.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _: Phase, _: Option<u64>) {}
    fn advance(&mut self, _: u64) {}
    fn finish(&mut self) {}
}
