//! Tests of MCP from the client's side: messages over lines and over HTTP, in both eras.

mod bad_input;
mod cancels;
mod changes;
pub(crate) mod client;
mod fixture;
mod forms;
mod hostile_messages;
mod later;
mod lines;
mod listed;
mod malformed;
mod notifications;
mod questions;
mod resources;
mod revisions;
mod rounds;
mod streams;
mod web;
