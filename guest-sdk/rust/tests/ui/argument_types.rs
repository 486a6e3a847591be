#![allow(unused, reason = "only the misuse matters")]

use toolcell_guest::{tool, tools};

struct Point {
    x: f64,
}

/// Moves a point.
#[tool]
fn shift(point: Point, by: f64) {}

tools![shift];

fn main() {}
