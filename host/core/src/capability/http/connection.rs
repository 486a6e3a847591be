//! Makes one connection to a server: proxy and TLS settings, name lookup, address check, byte
//! count.
//!
//! `http.rs` uses these modules in the order of a request. `threads` has the runtime that all
//! requests run on. `resolve` turns a host name into checked addresses, `connect` opens a byte
//! stream to one of them, through the operator's `proxy` if there is one. `roots` has the trusted
//! certificate authorities, `meter` bounds the bytes that are read.
//! Not here: HTTP itself, which begins when there is a stream.

pub(super) mod connect;
pub(super) mod meter;
pub(super) mod proxy;
pub(super) mod resolve;
pub(super) mod roots;
pub(super) mod threads;
