#![allow(unused, reason = "only the misuse matters")]

use toolcell_guest::tool;

#[tool]
fn silent() {}

/// Has a word too many.
#[tool(readonly, colour = "red", max_exec = "2s")]
fn unknown() {}

/// Has no good duration.
#[tool(max_execution = "2 minutes", max_execution = "0s")]
fn waits() {}

/// Has no good name.
#[tool(name = "add numbers")]
fn named() {}

/// Has no good name either.
#[tool]
fn größe() {}

/// Says a flag wrongly.
#[tool(read_only = true, title, attributes = "math")]
fn flagged() {}

/// Contradicts itself.
#[tool(read_only, destructive)]
fn contradiction() {}

/// Promises an output without a type.
#[tool(output)]
fn promises() -> toolcell_guest::Outcome {
    toolcell_guest::Outcome::ok(1)
}

fn main() {}
