//! Adapts what a component exports to tools: typed functions, commands, preview 1 modules.

pub(super) mod command;
pub(crate) mod component_kind;
pub(super) mod functions;
pub(super) mod preview1;
