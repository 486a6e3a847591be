//! Makes calls of tools by tools.
//!
//! A guest (the WebAssembly code of a tool) that is granted it can call another tool through the
//! import `toolcell:tool/invoke`. The engine reaches the executor by the trait [`Invoker`], which
//! this module implements; the tools are those of a lookup function that the embedder (the program
//! that uses this library), a run or a step sets. The called tool runs as a call of its own, with
//! events and a completion (result and usage), within what is left of the caller's limits and with
//! at most the caller's rights. Native code is not bound by rights, so it is refused unless the
//! grant says `own`. Depth is limited.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolcell_contract::call::{CallResult, Completion, ToolCall};
use toolcell_contract::outcome::refusal::Refusal;

use super::{Executor, terminal::Terminal};
use crate::tool::handler::{Caller, Invoker};
use crate::tool::{Tool, handler::options::CallOptions, statistics::Counting};

/// Finds a tool by name.
type Find = dyn Fn(&str) -> Option<Tool> + Send + Sync;

/// Finds the tools that tools can call.
#[derive(Clone)]
pub(super) struct Callable(Arc<Find>);

impl Executor {
    /// Lets tools call the tools that `find` returns, by name, through the import
    /// `toolcell:tool/invoke`. A tool can call those that it is granted
    /// ([`Grants::invoke`](crate::Grants::invoke)).
    ///
    /// - The called tool runs in a cell of its own, for the same tenant, with a completion and
    ///   events of its own. The id of its call is the id of the calling call, `/` and a number that
    ///   counts from 1.
    /// - It has at most what the calling call has left of each limit, and its usage also counts for
    ///   the calling call.
    /// - It has at most the rights of the calling tool, unless the grant says `own NAME`. A tool in
    ///   native code is not bound by rights, so it can be called only with such a grant.
    ///
    /// A run and a step let tools call the tools of their registry, unless this method is used. In
    /// a [`WorkerProcess`](crate::process::WorkerProcess) there are no tools to call.
    ///
    /// ```
    /// use toolcell::{Executor, Registry};
    ///
    /// let registry = Registry::new();
    /// let tools = registry.clone();
    /// let executor = Executor::new().with_callable(move |name| tools.get(name));
    /// ```
    pub fn with_callable(
        mut self,
        find: impl Fn(&str) -> Option<Tool> + Send + Sync + 'static,
    ) -> Self {
        self.callable = Some(Callable(Arc::new(find)));
        self
    }

    /// Sets how deep calls of tools by tools can be nested. Default:
    /// [`Executor::DEFAULT_CALL_DEPTH`]. With 0, no tool can call another one.
    pub fn with_call_depth(mut self, most: u32) -> Self {
        self.call_depth = Some(most);
        self
    }

    /// Sets the tools that tools can call, unless the embedder set them already.
    pub(crate) fn calling(
        self,
        find: impl Fn(&str) -> Option<Tool> + Send + Sync + 'static,
    ) -> Self {
        if self.callable.is_some() { self } else { self.with_callable(find) }
    }

    pub(super) fn invoker(&self) -> Option<Arc<dyn Invoker>> {
        self.callable.is_some().then(|| Arc::new(self.clone()) as Arc<dyn Invoker>)
    }
}

impl Invoker for Executor {
    fn most_depth(&self) -> u32 {
        self.call_depth.unwrap_or(Executor::DEFAULT_CALL_DEPTH)
    }

    fn invoke<'a>(
        &'a self,
        call: ToolCall,
        options: CallOptions,
        caller: Arc<Caller>,
    ) -> BoxFuture<'a, Completion> {
        let found = self.callable.as_ref().and_then(|Callable(find)| find(&call.name));
        Box::pin(async move {
            let Some(tool) = found else {
                return self.not_found(&Tool::unknown(&call.name), call, options, Some(caller));
            };
            let is_bound = caller.rights.is_some();
            // No rights bind native code.
            if is_bound && tool.rights().is_none() {
                let (invocation, refused) = self.admitted(&tool, call, options, Some(caller));
                let refused = refused.unwrap_or(Refusal::NotAllowed);
                return Terminal::open(&tool, invocation).close(CallResult::Refusal(refused));
            }
            let counting = Counting::new(tool.counters());
            counting.end(self.uncounted(&tool, call, options, Some(caller)).await)
        })
    }
}

impl fmt::Debug for Callable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callable")
    }
}
