//! The calls of one run: checked together, started in order, ended in any.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use foldhash::fast::RandomState;
use futures_util::{Stream, StreamExt as _, stream};
use tokio::sync::Semaphore;

use super::settle::{Ended, settle};
use super::{RunOptions, Runner};
use crate::call::ToolCall;
use crate::encode::Fenced;
use crate::error::Error;
use crate::executor::Executor;
use crate::policy::OnToolError;
use crate::statistics::Counting;
use crate::tool::Tool;

/// What the calls of a run share.
pub(super) struct Shared {
    pub(super) executor: Executor,
    pub(super) encoder: Fenced,
    pub(super) options: RunOptions,
    pub(super) deciding: Arc<Semaphore>,
}

/// The calls of a run, known to be good to start.
pub(super) struct Batch {
    calls: Vec<(ToolCall, Tool)>,
    most: usize,
    shared: Arc<Shared>,
}

impl Batch {
    /// Checks everything that can be checked before a call is made.
    pub(super) fn new(
        runner: &Runner,
        calls: impl IntoIterator<Item = ToolCall>,
        options: RunOptions,
    ) -> Result<Self, Error> {
        let calls: Vec<_> = calls.into_iter().collect();
        options.check(calls.len(), runner.executor.limits().timeout)?;
        // The run keeps what it started with, whatever is registered meanwhile.
        let toolbox = runner.registry.toolbox();
        let mut ready = Vec::with_capacity(calls.len());
        for call in calls {
            let tool = toolbox.resolve(&call.name)?.clone();
            ready.push((call, tool));
        }
        let mut ids = HashSet::with_capacity_and_hasher(ready.len(), RandomState::default());
        if let Some((call, _)) = ready.iter().find(|(call, _)| !ids.insert(call.id.as_str())) {
            return Err(Error::duplicate_call(&call.id));
        }
        let most = options.concurrency(ready.len());
        let Runner { executor, encoder, deciding, .. } = runner.clone();
        Ok(Self { calls: ready, most, shared: Arc::new(Shared { executor, encoder, options, deciding }) })
    }

    /// How many calls.
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Makes the calls as it is read, in their order: their ends, in the order in which they come. While `hold` holds, no
    /// further call starts; whoever let it hold reads on when it does not.
    pub(super) fn ends(self, hold: impl Fn() -> bool + Send + 'static) -> impl Stream<Item = Ended> + Send + 'static {
        let Self { calls, most, shared } = self;
        let mut calls = calls.into_iter().enumerate();
        let next = move |_: &mut Context<'_>| if hold() { Poll::Pending } else { Poll::Ready(calls.next()) };
        stream::poll_fn(next).map(move |call| one(Arc::clone(&shared), call)).buffer_unordered(most)
    }
}

/// One call, from its start to its settled end.
///
/// Every running call has one of these futures on the heap: what is not needed across an await stays out of it, because it
/// keeps room for each of its arguments twice, and for whatever it ever lent out.
fn one(shared: Arc<Shared>, (index, (call, tool)): (usize, (ToolCall, Tool))) -> impl Future<Output = Ended> + Send {
    let kept = shared.kept(&call);
    async move {
        let counting = Counting::new(tool.counters());
        let options = shared.options.of_a_call(&call.id);
        let completion = if options.abort.is_raised() {
            shared.executor.not_made(&tool, call, options)
        } else {
            shared.executor.uncounted(&tool, call, options).await
        };
        match settle(&shared, index, completion, kept, &tool, counting) {
            Ok(ended) => ended,
            // In a box for the same reason.
            Err(undecided) => Box::pin(undecided.decided()).await,
        }
    }
}

impl Shared {
    /// The time that a call of this tool has.
    pub(super) fn time_of_a_call(&self, tool: &Tool) -> Duration {
        tool.tightened(self.executor.limits().tightened(&self.options.limits_of_a_call())).timeout
    }

    /// A copy of a call for a policy function: it is not read again.
    fn kept(&self, call: &ToolCall) -> Option<Box<ToolCall>> {
        matches!(self.options.on_tool_error, OnToolError::Decide(_)).then(|| Box::new(call.clone()))
    }
}
