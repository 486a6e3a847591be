//! Servers that the command runs.

mod call_log;
mod drained;
mod held;
mod killed;
mod mcp_clients;
mod offered;
mod packaging;
pub(crate) mod serve;
pub(crate) mod stdio;
mod story;
mod supervised;
mod tenancy;
