#![allow(unused, reason = "only the misuse matters")]

use toolcell_guest::tools;

fn add() {}

tools![add];

fn main() {}
