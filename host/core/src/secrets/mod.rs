//! Secret values that embedders supply, and their removal from everything that leaves a cell.
//!
//! An embedder is a program that uses this library. A tool sees only the names of its secrets,
//! unless its grants show a value to it; the host adds the values to requests. A value can come
//! back in a response, so a tool's output is searched twice: when it leaves the cell, the sandbox
//! of one call, and when the tool sends it in a request.
//!
//! Internal modules: `secret` holds values and their sources. `redact` finds values in bytes, in
//! many encodings. `secret_redactor` applies it to results, events and texts. `token_patterns`
//! recognises tokens that the host does not know. `engine/cell/call_redactor` searches the output
//! of a cell, `capability/http/outbound_scan` the requests.

pub(crate) mod redact;
pub(crate) mod secret;
pub(crate) mod secret_redactor;
pub(crate) mod token_patterns;

pub use secret::{KnownFuture, Secret, SecretError, SecretFuture, SecretSource, StoredSecrets};
