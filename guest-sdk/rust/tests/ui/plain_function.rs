#![allow(unused, reason = "only the misuse matters")]

use toolcell_guest::{tool, tools};

fn add() {}

mod text {
    pub fn reverse() {}
}

/// Is a tool.
#[tool]
fn fine() {}

tools![add, fine, text::reverse, missing];

fn main() {}
