//! Shared parts of the end-to-end tests: engines, calls, and short texts for how a call ended.

pub mod binary;
pub mod server;

use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use toolcell::call::Resume;
use toolcell::component::{LoadOptions, OnMissingGrant};
use toolcell::runtime::Placement;
use toolcell::{
    CallContext, CallOptions, CallResult, Completion, Component, Engine, Error, Executor, Grants,
    Json, Limits, Outcome, Tool, ToolCall,
};
use toolcell_test_guests::bytes;
pub use toolcell_test_guests::own_process;

/// The placements of cells: every promise must hold at each.
pub const PLACEMENTS: [Placement; 2] = [Placement::Cells, Placement::Inline];

/// Bytes that a process has beside its cells: engines, compiled code, arguments that wait or are
/// checked, state of handlers, and the test itself.
const REST: u64 = 768 << 20;

/// Returns the bytes of memory that a process may have at most with this many cells, each with
/// `memory` bytes of its own.
#[must_use]
pub fn worst_case(cells: u32, memory: u64) -> u64 {
    u64::from(cells) * (memory + Limits::HOST_BYTES) + REST
}

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime")
});

/// Runs a future to its end on threads that are not the engine's.
pub fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    let task = RUNTIME.spawn(future);
    RUNTIME.block_on(task).expect("the test's own task does not panic")
}

/// Runs a future that borrows to its end on this thread.
pub fn wait_here<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// Returns an engine whose cache of compiled code is in `scratch`.
///
/// # Panics
/// If the engine cannot be built on this machine.
#[must_use]
pub fn engine(placement: Placement, scratch: &str) -> Engine {
    Engine::builder()
        .placement(placement)
        .cells(80)
        .cache(Path::new(scratch).join("artifacts"))
        .build()
        .expect("an engine")
}

/// Loads a component.
///
/// # Errors
/// As [`Component::load`].
pub fn load(engine: &Engine, bytes: Vec<u8>) -> Result<Component, Error> {
    let engine = engine.clone();
    wait(async move { Component::load(&engine, bytes).await })
}

/// Loads a component with these grants. Each use of an import that they do not cover is denied.
///
/// # Errors
/// As [`Component::load_with`].
pub fn load_with(engine: &Engine, bytes: Vec<u8>, grants: Grants) -> Result<Component, Error> {
    let engine = engine.clone();
    let options = LoadOptions { grants, missing: OnMissingGrant::Denied, ..LoadOptions::default() };
    wait(async move { Component::load_with(&engine, bytes, options).await })
}

/// Loads a component that was built for the tests, and returns one of its tools.
///
/// # Panics
/// If there is no such component or tool, or it does not load.
#[must_use]
pub fn tool(engine: &Engine, component: &str, tool: &str, grants: Grants) -> Tool {
    let component = load_with(engine, bytes(component), grants).expect("it loads");
    component.tool(tool).expect("the tool").clone()
}

/// Calls a tool of a component under these limits.
///
/// # Panics
/// If the component has no such tool.
#[must_use]
pub fn call(component: &Component, tool: &str, arguments: &str, limits: Limits) -> Completion {
    let tool = component.tool(tool).expect("the tool").clone();
    let call = ToolCall::new("call-1", tool.definition().name.as_str(), arguments);
    wait(async move {
        Executor::new().with_limits(limits).call(&tool, call, CallOptions::default()).await
    })
}

/// Returns how a call ended, as one word for each level: `timeout/fuel`,
/// `handler_raised/unreachable+memory`, `ok`, `refusal/not_visible`.
#[must_use]
pub fn ending(result: &CallResult) -> String {
    match result {
        CallResult::Outcome(Outcome::Ok(_)) => "ok".into(),
        CallResult::Outcome(Outcome::Error(_)) => "error".into(),
        CallResult::Outcome(Outcome::AskUser(_)) => "ask_user".into(),
        CallResult::Outcome(Outcome::Halt(_)) => "halt".into(),
        CallResult::Refusal(refusal) => format!("refusal/{}", refusal.kind()),
        CallResult::ToolError(error) => tool_error(error),
    }
}

/// Like [`ending`], for a tool error alone.
#[must_use]
pub fn tool_error(error: &toolcell::ToolError) -> String {
    let json = serde_json::to_value(error).expect("an error is JSON");
    let cause = &json["cause"];
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let detail = ["kind", "status", "rule"].iter().find_map(|key| word(&cause[key]));
    let limit = word(&cause["limit"]["kind"]).map(|kind| format!("+{kind}")).unwrap_or_default();
    let reason = json["reason"].as_str().expect("a reason");
    detail.map_or_else(|| reason.to_owned(), |detail| format!("{reason}/{detail}{limit}"))
}

/// Returns how a load ended: `ok`, the ending of the guest's `describe` (as [`tool_error`]), or the
/// error's message.
#[must_use]
pub fn load_ending(loaded: &Result<Component, Error>) -> String {
    match loaded {
        Ok(_) => "ok".into(),
        Err(error) => {
            match std::error::Error::source(error).and_then(|source| source.downcast_ref()) {
                Some(failure) => tool_error(failure),
                None => error.to_string(),
            }
        }
    }
}

/// Reads a call context from its JSON form.
///
/// # Panics
/// If the JSON has another form.
#[must_use]
pub fn context(json: &Value) -> CallContext {
    let text = |key: &str| json.get(key).map(|value| value.as_str().expect("a string").to_owned());
    let mut context = CallContext::default();
    context.session_id = text("session_id");
    context.request_id = text("request_id");
    context.thread_id = text("thread_id");
    context.run_id = text("run_id");
    context.tenant = text("tenant");
    context.metadata = json.get("metadata").cloned().map(Json::from);
    context.attempt = json.get("attempt").map(|value| value.as_u64().expect("a number") as u32);
    context.resume = json.get("resume").map(|resume| Resume {
        answer: Json::from(resume["answer"].clone()),
        state: resume.get("state").cloned().map(Json::from),
    });
    context
}
