#![allow(unused, reason = "only the misuse matters")]

use toolcell_guest::tool;

/// Is a type.
#[tool]
struct Thing;

fn main() {}
