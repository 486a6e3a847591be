#![allow(unused, reason = "only the misuse matters")]

use toolcell_guest::{tool, tools};

struct Plain;

/// Returns what is not JSON.
#[tool]
fn returns() -> Plain {
    Plain
}

/// Returns what is not JSON, perhaps.
#[tool]
fn returns_result() -> Result<Plain, String> {
    Ok(Plain)
}

/// Fails with what cannot be said.
#[tool]
fn fails() -> Result<u32, Plain> {
    Err(Plain)
}

/// Takes what is not JSON.
#[tool]
fn takes(args: Plain) {}

#[derive(serde::Serialize)]
struct Undescribed {
    a: u32,
}

/// Promises what has no schema.
#[tool(output)]
fn promises() -> Undescribed {
    Undescribed { a: 1 }
}

/// Checks with another type.
#[tool(validate = check)]
fn checked(a: u32) {}

fn check(_: &String) -> Vec<String> {
    Vec::new()
}

tools![returns, returns_result, fails, takes, promises, checked];

fn main() {}
