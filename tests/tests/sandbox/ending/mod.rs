//! Tests how calls end before they answer: at their deadline, and because their caller ends them.

mod blocking;
mod stops;
mod waits;

use std::time::Duration;

use toolcell::component::{LoadOptions, OnMissingGrant};
use toolcell::{Component, Engine, Grants, Tool};
use toolcell_test_guests::bytes;
use toolcell_tests::wait;

/// Time after which a test counts as hung. No test waits this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Loads a component that was built for the tests, and returns one of its tools.
fn tool(engine: &Engine, component: &'static str, tool: &'static str, grants: Grants) -> Tool {
    let engine = engine.clone();
    let load = async move {
        let options =
            LoadOptions { grants, missing: OnMissingGrant::Denied, ..LoadOptions::default() };
        Component::load_with(&engine, bytes(component), options).await
    };
    wait(load).expect("it loads").tool(tool).expect("the tool").clone()
}
