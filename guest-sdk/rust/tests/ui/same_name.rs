#![allow(unused, reason = "only the misuse matters")]

use toolcell_guest::{tool, tools};

/// Adds.
#[tool]
fn add() {}

/// Adds too.
#[tool(name = "add")]
fn plus() {}

tools![add, plus];

fn main() {}
