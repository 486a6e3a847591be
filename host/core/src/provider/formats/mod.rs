//! The format of each model provider, both ways.

pub(super) mod agui;
pub(super) mod anthropic;
pub(super) mod gemini;
pub(super) mod mcp;
pub(super) mod openai;
