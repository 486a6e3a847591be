#![allow(unused, reason = "only the misuse matters")]

use toolcell_guest::{tool, tools};

/// Waits.
#[tool]
async fn waits() {}

/// Takes anything.
#[tool]
fn generic<T: Copy>(value: T) -> T {
    value
}

/// Takes something.
#[tool]
fn some(value: impl Copy) {}

/// Is not safe.
#[tool]
unsafe fn danger() {}

/// Is for C.
#[tool]
extern "C" fn foreign(a: f64) -> f64 {
    a
}

/// Takes as many as there are.
#[tool]
unsafe extern "C" fn many(a: f64, _: ...) {}

/// Borrows.
#[tool]
fn borrows(text: &str, list: Vec<&'static [u8]>) {}

/// Has a name of the language.
#[tool]
fn bool() {}

tools![waits, generic, some, danger, foreign, many, borrows, bool];

fn main() {}
