//! Messages of MCP: JSON-RPC, decoded strictly and without a tree.
//!
//! Both transports pass the bytes of each message to `wire`, which refuses whatever is ambiguous.
//! The parts of a message stay JSON text in `raw`, which shares the bytes of the message. The
//! metadata of a request (its member `_meta`) are read by `meta`.

pub(super) mod meta;
pub(super) mod raw;
pub(super) mod wire;
