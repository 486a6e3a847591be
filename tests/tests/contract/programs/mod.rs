//! Small programs against the public API, as an embedder writes them: the tools of a front end,
//! single calls, a batch under one policy, functions of a model, and the steps of an agent loop.
//! Each asserts what such a program relies on.

mod agent_loop;
mod batch;
mod calls;
mod front_end;
mod functions;

use serde::Serialize;
use serde_json::Value;
use toolcell::runtime::Placement;
use toolcell::{Definition, Error, Tool};
use toolcell_tests::{engine, load};

/// Loads a tool of an example component.
fn example(component: &str, tool: &str) -> Result<Tool, Error> {
    let engine = engine(Placement::Cells, env!("CARGO_TARGET_TMPDIR"));
    Ok(load(&engine, toolcell_test_guests::bytes(component))?.tool(tool)?.clone())
}

/// Returns a definition that has only a name.
fn named(name: &str) -> Definition {
    Definition::new(name, "").expect("a tool's name")
}

/// Returns the JSON form of a result, an event or a message.
fn form(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("JSON")
}
