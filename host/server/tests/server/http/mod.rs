//! Tests of the HTTP API over real loopback connections.

mod access;
mod calls;
mod cancels;
pub(crate) mod client;
mod described;
mod ending;
mod fixture;
mod input;
mod observed;
mod page;
mod scale;
mod storage;
mod tenancy;
