//! One tool.

use toolcell_guest::{tool, tools};

/// Greets a person by name.
#[tool(read_only, idempotent)]
fn greet(
    /// Who to greet, for example `Ada`.
    name: String,
) -> String {
    format!("Hello, {name}!")
}

tools![greet];
