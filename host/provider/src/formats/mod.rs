//! The format of each model provider, both ways: definitions and results out, calls in.
//!
//! One module for each API, with functions that `Provider` calls. Each writes a tool's definition
//! and the messages of a run as JSON of that API, and reads the calls from a response. They open no
//! connections.

pub(super) mod agui;
pub(super) mod anthropic;
pub(super) mod gemini;
pub(super) mod mcp;
pub(super) mod openai;
