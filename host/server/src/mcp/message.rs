//! Messages of MCP: JSON-RPC, decoded strictly.

pub(super) mod meta;
pub(super) mod raw;
pub(super) mod wire;
