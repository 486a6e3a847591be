//! MCP as a client sees it: messages over lines and over HTTP, in both eras.
#![expect(clippy::unwrap_used, reason = "a test")]

mod client;
mod fixture;
mod lines;
mod streams;
mod told;
mod web;
