//! The transports of MCP: HTTP and lines of standard input and output.
//!
//! A transport reads messages, finds or opens the session, runs each request with the handler, and
//! writes the answers. HTTP is in `endpoint`, with its checks in `headers` and `refusals`, its
//! table of sessions in `sessions` and its responses in `events`. Lines are in `stdio`. Not here:
//! the methods of the protocol, in `mcp/handler.rs`.

pub(super) mod endpoint;
mod events;
mod headers;
mod methods;
mod refusals;
mod sessions;
pub(super) mod stdio;
