//! Tests of the contract of a call, with the library: definitions, results, runs, steps, and their
//! forms.

mod calls;
mod json;
mod programs;
mod runs;
mod step;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use toolcell::run::RunEvent;
use toolcell::runtime::Placement;
use toolcell::tool::NativeFn;
use toolcell::{
    CallContext, CallOptions, Completion, Component, Definition, Engine, Executor, Limits,
    OnToolError, Registry, RunOptions, Runner, Tool, ToolCall,
};
use toolcell_test_guests::{Hostile, bytes};
use toolcell_tests::{load, wait_here};

/// Returns an engine with the cache of compiled code of these tests.
fn engine(placement: Placement) -> Engine {
    toolcell_tests::engine(placement, env!("CARGO_TARGET_TMPDIR"))
}

/// Loads a component that was built for the tests.
fn component(placement: Placement, name: &str) -> Component {
    load(&engine(placement), bytes(name)).expect("it loads")
}

/// Loads a guest that has one tool.
fn guest(engine: &Engine, guest: Hostile) -> Tool {
    load(engine, guest.component()).expect("it loads").tools()[0].clone()
}

/// Returns a definition that has only a name.
fn named(name: &str) -> Definition {
    Definition::new(name, "").expect("a name")
}

/// Returns a tool that has only a name and this handler.
fn native<S: 'static>(name: &str, handler: impl NativeFn<S>) -> Tool {
    Tool::native(named(name), handler).expect("a tool")
}

/// Returns a registry of these tools.
fn registry(tools: impl IntoIterator<Item = Tool>) -> Registry {
    let registry = Registry::new();
    registry.register_all(tools).expect("names of their own");
    registry
}

/// Returns the default limits with this timeout, in milliseconds.
fn within(millis: u64) -> Limits {
    Limits { timeout: Duration::from_millis(millis), ..Limits::default() }
}

/// Returns the options of a call under these limits.
fn limited(limits: Limits) -> CallOptions {
    CallOptions { limits, ..CallOptions::default() }
}

/// Returns the options of a call in this context.
fn inside(context: CallContext) -> CallOptions {
    CallOptions { context: context.into(), ..CallOptions::default() }
}

/// Returns the options of a run with this policy for failures.
fn with_policy(on_tool_error: OnToolError) -> RunOptions {
    RunOptions { on_tool_error, ..RunOptions::default() }
}

/// Returns the options of a run with this bound on calls at the same time.
fn at_most(calls: usize) -> RunOptions {
    RunOptions { max_concurrency: Some(calls), ..RunOptions::default() }
}

/// Calls a tool by its own name.
fn call(executor: &Executor, tool: &Tool, arguments: &str) -> Completion {
    call_with(executor, tool, arguments, CallOptions::default())
}

/// Calls a tool by its own name, with these options.
fn call_with(executor: &Executor, tool: &Tool, arguments: &str, with: CallOptions) -> Completion {
    let call = ToolCall::new("call-1", tool.definition().name.as_str(), arguments);
    wait_here(executor.call(tool, call, with))
}

/// Runs calls, and returns all events of the run.
fn drained(runner: &Runner, calls: Vec<ToolCall>, options: RunOptions) -> Vec<RunEvent> {
    let (mut stream, mut events) = (runner.stream(calls, options), Vec::new());
    while let Some(event) = wait_here(stream.next()) {
        events.push(event);
    }
    assert!(wait_here(stream.next()).is_none(), "it ends once");
    events
}

/// Polls a future once, with a waker that does nothing.
fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns the JSON form of a value.
fn form(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("JSON")
}

/// A list that handlers and observers extend, and their test reads.
#[derive(Clone)]
struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Log<T> {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    /// Returns a list twice: to read, and to extend.
    fn shared() -> (Self, Self) {
        let log = Self::new();
        let sink = Self(Arc::clone(&log.0));
        (log, sink)
    }

    fn push(&self, item: T) {
        self.0.lock().expect("no panic").push(item);
    }

    /// Removes and returns the items.
    fn taken(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}
