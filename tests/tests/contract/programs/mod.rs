//! Small programs against the public API, as an embedder writes them: the tools of a front end,
//! single calls, a batch under one policy, functions of a model, and the steps of an agent loop.
//! Each asserts what such a program relies on.

mod agent_loop;
mod batch;
mod calls;
mod front_end;
mod functions;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolcell::runtime::Placement;
use toolcell::tool::BlockingFn;
use toolcell::{Completion, Executor, Tool};

use crate::{component, named};

/// A value that records if it is dropped.
struct Recorded(Arc<AtomicBool>);

impl Drop for Recorded {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Loads a tool of an example component.
fn example(name: &str, tool: &str) -> Tool {
    component(Placement::Cells, name).tool(tool).expect("the tool").clone()
}

/// Returns a tool that has only a name and this handler, which may block.
fn blocking<S: 'static>(name: &str, handler: impl BlockingFn<S>) -> Tool {
    Tool::native_blocking(named(name), handler).expect("a tool")
}

/// Calls a tool by its own name, with an executor that does not seal questions.
fn call(tool: &Tool, arguments: &str) -> Completion {
    crate::call(&Executor::new().without_sealer(), tool, arguments)
}
