//! Secrets: their values, and their removal from everything that leaves a cell.

pub(crate) mod redact;
pub(crate) mod secret;
pub(crate) mod secret_redactor;
pub(crate) mod token_patterns;
