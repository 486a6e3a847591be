//! Tests of the HTTP API over real loopback connections.

mod artifacts;
mod bad_input;
mod calls;
mod cancels;
pub(crate) mod client;
mod cors;
mod described;
mod ending;
mod files;
mod fixture;
mod guests;
mod hidden;
mod hostile_bytes;
mod listening;
mod observed;
mod page;
mod published;
mod scale;
mod tenant_shares;
mod tenants;
mod tls;
mod tokens;
