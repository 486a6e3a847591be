#![allow(unused, reason = "only the misuse matters")]

toolcell_guest::tools![];

fn main() {}
