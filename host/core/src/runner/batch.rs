//! The calls of one run: checked together, started in order, ended in any.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec::IntoIter;

use futures_util::Stream;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::settle::{Ended, settle};
use super::{RunOptions, Runner};
use crate::call::{CallOptions, ToolCall};
use crate::encode::Fenced;
use crate::error::Error;
use crate::executor::Executor;
use crate::policy::OnToolError;
use crate::registry::Toolbox;
use crate::tool::Tool;

/// What the calls of a run share.
pub(super) struct Shared {
    pub(super) toolbox: Toolbox,
    pub(super) executor: Executor,
    pub(super) encoder: Fenced,
    pub(super) options: RunOptions,
}

/// The calls that wait, and those that run. As a stream: the ends, in the order in which they come.
pub(super) struct Batch {
    waiting: IntoIter<(usize, ToolCall, Tool)>,
    running: FuturesUnordered<BoxFuture<'static, Ended>>,
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
        let resolve = |(index, call): (usize, ToolCall)| {
            let tool = toolbox.resolve(&call.name)?.clone();
            Ok((index, call, tool))
        };
        let calls = calls.into_iter().enumerate().map(resolve).collect::<Result<Vec<_>, Error>>()?;
        let mut ids = HashSet::with_capacity(calls.len());
        if let Some((_, call, _)) = calls.iter().find(|(_, call, _)| !ids.insert(call.id.as_str())) {
            return Err(Error::duplicate_call(&call.id));
        }
        let most = options.concurrency(calls.len());
        let (executor, encoder) = (runner.executor.clone(), runner.encoder.clone());
        let shared = Arc::new(Shared { toolbox, executor, encoder, options });
        Ok(Self { waiting: calls.into_iter(), running: FuturesUnordered::new(), most, shared })
    }

    /// Calls that have not ended.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.running.len()
    }
}

impl Stream for Batch {
    type Item = Ended;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Ended>> {
        while self.running.len() < self.most
            && let Some((index, call, tool)) = self.waiting.next()
        {
            self.running.push(Box::pin(one(Arc::clone(&self.shared), index, call, tool)));
        }
        Pin::new(&mut self.running).poll_next(context)
    }
}

/// One call, from its start to its settled end.
async fn one(shared: Arc<Shared>, index: usize, call: ToolCall, tool: Tool) -> Ended {
    let options = &shared.options;
    let made = CallOptions::default()
        .with_context(options.context.clone())
        .with_limits(options.limits.with_timeout(options.limits.timeout.min(options.tool_timeout)))
        .with_abort(options.abort.clone());
    // Only a policy function looks at the call again.
    let kept = matches!(options.on_tool_error, OnToolError::Decide(_)).then(|| call.clone());
    let completion = shared.executor.call(&tool, call, made).await;
    shared.toolbox.record(&completion);
    settle(&shared, index, completion, kept, &tool).await
}
