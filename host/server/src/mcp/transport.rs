//! The transports of MCP: HTTP and lines of standard input and output.

pub(super) mod endpoint;
mod events;
mod headers;
mod methods;
mod refusals;
mod sessions;
pub(super) mod stdio;
