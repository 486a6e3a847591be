//! Secrets: their values, and their removal from everything that leaves a cell.
//!
//! A tool's output is searched twice: when it leaves the cell (`engine/cell/call_redactor`), and
//! when the tool sends it in a request (`capability/http/outbound_scan`).

pub(crate) mod redact;
pub(crate) mod secret;
pub(crate) mod secret_redactor;
pub(crate) mod token_patterns;

pub use secret::{KnownFuture, Secret, SecretError, SecretFuture, SecretSource, StoredSecrets};
