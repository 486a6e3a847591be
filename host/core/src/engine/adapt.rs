//! Adapts what a component exports to tools: typed functions, and commands.

pub(super) mod command;
pub(crate) mod component_kind;
pub(super) mod functions;
