//! The calls of one run: checked together, started in order, ended in any.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::{Context, Poll};

use foldhash::fast::RandomState;
use futures_util::{Stream, StreamExt as _, stream};
use tokio::sync::Semaphore;

use super::settle::{Ended, settle};
use super::{RunOptions, Runner};
use crate::call::{CallOptions, ToolCall};
use crate::encode::Fenced;
use crate::error::Error;
use crate::executor::Executor;
use crate::policy::OnToolError;
use crate::registry::Entry;
use crate::statistics::{Counters, Counting};
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
    calls: Vec<(ToolCall, Tool, Arc<Counters>)>,
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
        options.check()?;
        // The run keeps what it started with, whatever is registered meanwhile.
        let toolbox = runner.registry.toolbox();
        let calls = calls.into_iter();
        let mut ready = Vec::with_capacity(calls.size_hint().0);
        for call in calls {
            let Entry { tool, counters } = toolbox.entry(&call.name)?.clone();
            ready.push((call, tool, counters));
        }
        let mut ids = HashSet::with_capacity_and_hasher(ready.len(), RandomState::default());
        if let Some((call, ..)) = ready.iter().find(|(call, ..)| !ids.insert(call.id.as_str())) {
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
        let one = move |(index, (call, tool, counters))| one(Arc::clone(&shared), index, call, tool, counters);
        stream::poll_fn(next).map(one).buffer_unordered(most)
    }
}

/// One call, from its start to its settled end.
async fn one(shared: Arc<Shared>, index: usize, call: ToolCall, tool: Tool, counters: Arc<Counters>) -> Ended {
    let options = &shared.options;
    let made = CallOptions {
        context: Arc::clone(&options.context),
        limits: options.limits.with_timeout(options.limits.timeout.min(options.tool_timeout)),
        abort: options.abort.clone(),
    };
    // Only a policy function looks at the call again.
    let kept = matches!(options.on_tool_error, OnToolError::Decide(_)).then(|| call.clone());
    let counting = Counting::new(counters);
    let completion = if options.abort.is_raised() {
        shared.executor.not_made(&tool, call, made)
    } else {
        shared.executor.call(&tool, call, made).await
    };
    counting.end(&completion);
    settle(&shared, index, completion, kept, &tool).await
}
