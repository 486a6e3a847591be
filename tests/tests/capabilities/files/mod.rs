//! Tests that guests get directories, environment, clocks and randomness as granted, and no others.

mod deep;
mod failure_messages;
mod own;
mod paths;
mod races;
mod refused;
mod room;
mod sent;
mod shared;
mod streams;
mod ungranted;

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use toolcell::grants::{Access, Directory, DirectoryQuota};
use toolcell::runtime::Placement;
use toolcell::{
    CallOptions, Completion, Component, Engine, Error, Executor, Grants, Limits, Overlay, ToolCall,
};
use toolcell_test_guests::rows;
use toolcell_tests::{engine, wait};

use crate::of;

/// The result of a write that does not fit: the host returns `insufficient-space`, which the C
/// library of guests turns into `EIO`, like any failure of a stream. Without a stream in between it
/// is `StorageFull`.
const FULL: &str = "error 29";
const BIG: DirectoryQuota = DirectoryQuota { bytes: 1 << 20, files: 1000 };

fn tree() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn granted(directories: &[(&str, &Path, Access, DirectoryQuota)]) -> Grants {
    let mut grants = Grants::default();
    for (name, path, access, room) in directories {
        grants
            .directories
            .push(Directory::new(*name, *path, *access).expect("a name").with_quota(*room));
    }
    grants
}

fn load_on(engine: &Engine, grants: Grants) -> Result<Component, Error> {
    crate::load(engine, "clerk", grants)
}

fn load(grants: Grants) -> Component {
    load_on(&engine(Placement::Cells, env!("CARGO_TARGET_TMPDIR")), grants).expect("it loads")
}

fn call(component: &Component, id: &str, steps: &[&[&str]], options: CallOptions) -> Completion {
    let tool = component.tool("clerk").expect("the tool").clone();
    let call = ToolCall::with_value(id, "clerk", &json!({ "steps": steps }));
    let limits = Limits { timeout: Duration::from_secs(20), ..Limits::default() };
    wait(async move { Executor::new().with_limits(limits).call(&tool, call, options).await })
}

fn answers(completion: &Completion) -> Vec<String> {
    let value = completion.result.value().unwrap_or_else(|| panic!("{completion:?}"));
    serde_json::from_str(value.as_str()).expect("a list of texts")
}

/// Runs the steps, and returns the answer of each.
fn run(component: &Component, steps: &[&[&str]]) -> Vec<String> {
    answers(&call(component, "call-1", steps, CallOptions::default()))
}

/// Runs the steps, and compares the answer of each.
fn expect(component: &Component, steps: &[(&[&str], &str)]) {
    expect_with(component, steps, CallOptions::default());
}

/// Like `expect`, on behalf of a tenant.
fn expect_for(tenant: &str, component: &Component, steps: &[(&[&str], &str)]) {
    expect_with(component, steps, of(tenant));
}

/// Like `expect`, with the steps and answers of a table.
fn expect_rows(component: &Component, file: &str, table: &str) {
    let steps = rows::<(Vec<&str>, &str)>(&format!("capabilities/files/{file}"), table);
    let steps: Vec<_> = steps.iter().map(|(step, answer)| (step.as_slice(), *answer)).collect();
    expect(component, &steps);
}

fn expect_with(component: &Component, steps: &[(&[&str], &str)], options: CallOptions) {
    let taken: Vec<_> = steps.iter().map(|(step, _)| *step).collect();
    for ((step, expected), answer) in
        steps.iter().zip(answers(&call(component, "call-1", &taken, options)))
    {
        assert_eq!(answer, *expected, "{step:?}");
    }
}

fn narrowed(files: &[&str]) -> CallOptions {
    let mut overlay = Overlay::default();
    overlay.paths = Some(files.iter().map(|rule| rule.parse().expect("a rule")).collect());
    CallOptions { overlay: Some(overlay.into()), ..CallOptions::default() }
}
