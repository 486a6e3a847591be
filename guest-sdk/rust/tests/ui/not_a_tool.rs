#![allow(unused, reason = "only the misuse matters")]

use toolcell_guest::tools;

struct Thing;

tools![Thing];

fn main() {}
