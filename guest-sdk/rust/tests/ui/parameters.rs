#![allow(unused, reason = "only the misuse matters")]

use toolcell_guest::{Context, tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Args {
    expression: String,
}

/// Takes the context first.
#[tool]
fn first(context: &Context, a: f64) {}

/// Takes one more after the context.
#[tool]
fn three(args: Args, context: &Context, extra: u32) {}

/// Takes the struct and one more.
#[tool]
fn beside(Args { expression }: Args, extra: u32) {}

/// Changes the context.
#[tool]
fn changes(context: &mut Context) {}

/// Takes what has no name.
#[tool]
fn nameless(_: u32) {}

/// Calls two the same.
#[tool]
fn twice(a: u32, _a: u32) {}

/// Takes one number as the whole object.
#[tool]
fn whole(args: f64) {}

fn main() {}
