//! The routes: a file for each noun.

pub(crate) mod audit;
pub(crate) mod changes;
pub(crate) mod events;
pub(crate) mod executions;
pub(crate) mod files;
pub(crate) mod health;
pub(crate) mod keys;
pub(crate) mod nodes;
pub(crate) mod ports;
pub(crate) mod promotion;
pub(crate) mod resources;
pub(crate) mod sessions;
pub(crate) mod templates;
pub(crate) mod terminal;
pub(crate) mod words;
