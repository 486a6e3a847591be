//! Tests of MCP from the client's side: messages over lines and over HTTP, in both eras.

pub(crate) mod client;
mod elicitation;
mod fixture;
mod input;
mod later;
mod lines;
mod listed;
mod notifications;
mod resources;
mod revisions;
mod sessions;
mod web;
