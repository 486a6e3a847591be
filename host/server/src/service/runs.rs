//! Makes several calls of one model answer for a principal: as a run, as a stream of events, or as
//! steps of an agent loop.
//!
//! The HTTP routes pass a [`RunRequest`] to [`Service::run`] or [`Service::stream`], and a
//! [`StepRequest`] to [`Service::steps`]. The same rules hold as for one call: admission before any
//! tool is looked up, and a tenant that the principal decides. A request can choose how many calls
//! run at once, and the tenant's quota can lower it. The result is a [`RequestError`] only if no
//! call was made; the failure of a call is part of the result.
//!
//! A tool that is not visible to the principal is removed from the registry of the request (its
//! tools by name) before the run begins, so that the run treats it as an unknown tool. If it is
//! visible with the arguments of another call, only its own call fails.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use toolcell::run::{RunEvent, RunOutcome, RunStream, UnknownTools};
use toolcell::step::{RawCall, Step};
use toolcell::{CallContext, Registry, RunOptions, Runner, Stepper, ToolCall, Turn};

use super::facade::text;
use super::request_id::RequestId;
use super::served::{View, registry};
use crate::service::{Admitted, Service};
use crate::tenants::{principal::Principal, refused::RequestError};

/// Tools that are asked concurrently whether they are visible.
const ASKED_AT_ONCE: usize = 32;

/// A request for several calls at once.
///
/// # Defaults
/// A new request id and [`RunOptions::default`], except that each tool has its own time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunRequest {
    /// The calls.
    pub calls: Vec<ToolCall>,
    /// The id by which the run can be cancelled. `None`: a new one is generated.
    pub request_id: Option<RequestId>,
    /// The options of the run. The server sets the context's tenant and request id, and the abort
    /// signal; the tenant's quota can lower `max_concurrency`. A tool that the principal does not
    /// see is an unknown tool.
    pub options: RunOptions,
}

impl RunRequest {
    /// Creates a request for these calls.
    #[must_use]
    pub fn new(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self {
            calls: calls.into_iter().collect(),
            request_id: None,
            options: RunOptions::default(),
        }
    }
}

/// Calls of one model answer, as steps of an agent loop.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StepRequest {
    /// The calls as the model wrote them.
    pub calls: Vec<RawCall>,
    /// The turn of the calls. The server sets the tenant, the request id and the abort signal.
    pub turn: Turn,
    /// The id by which the steps can be cancelled. `None`: a new one is generated.
    pub request_id: Option<RequestId>,
}

impl StepRequest {
    /// Creates a request for these calls of this turn.
    #[must_use]
    pub fn new(calls: impl IntoIterator<Item = impl Into<RawCall>>, turn: Turn) -> Self {
        Self { calls: calls.into_iter().map(Into::into).collect(), turn, request_id: None }
    }
}

impl Service {
    /// Makes the calls and waits for all of them. A failed call is a message of the outcome.
    ///
    /// # Errors
    /// [`RequestError`] if no call was made.
    ///
    /// # Cancel safety
    /// When dropped, running guests are stopped, and the other calls never start.
    pub async fn run(
        &self,
        principal: &Principal,
        request: RunRequest,
    ) -> Result<RunOutcome, RequestError> {
        let (runner, calls, options, admitted) = self.prepared(principal, request).boxed().await?;
        let outcome = runner.run(calls, options).boxed().await.map_err(RequestError::Run)?;
        drop(admitted);
        Ok(outcome)
    }

    /// Makes the calls and returns their events. The run proceeds while they are read.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    /// As [`run`](Self::run), for this future and for the events.
    pub async fn stream(
        &self,
        principal: &Principal,
        request: RunRequest,
    ) -> Result<RunEvents, RequestError> {
        let (runner, calls, options, admitted) = self.prepared(principal, request).boxed().await?;
        let mut stream = runner.stream(calls, options);
        // A run that cannot start reports it in its first event, which is available at once.
        let first = stream.next().now_or_never().flatten();
        if let Some(RunEvent::Error(failure)) = first {
            return Err(RequestError::Run(failure.0));
        }
        Ok(RunEvents { first, stream, span: tracing::Span::current(), _admitted: admitted })
    }

    /// Makes the steps of these calls. Returns them and the turn after them.
    ///
    /// # Errors
    /// [`RequestError`] if no call was made.
    ///
    /// # Cancel safety
    /// As [`run`](Self::run). The turn is lost.
    pub async fn steps(
        &self,
        principal: &Principal,
        request: StepRequest,
    ) -> Result<(Vec<Step>, Turn), RequestError> {
        let StepRequest { calls, mut turn, request_id } = request;
        let view = self.view(principal)?;
        let calls: Vec<_> = calls.into_iter().map(|call| view.resolve_raw_call(call)).collect();
        let id = request_id.unwrap_or_else(RequestId::generate);
        let wanted = RunOptions::default().concurrency(calls.len()).min(calls.len());
        let admitted = self.admit(principal, &view, &id, calls.len(), wanted, &mut turn.call)?;
        let named = calls.iter().filter_map(|call| {
            Some((call.name.clone()?, call.arguments.as_ref().map_or_else(String::new, text)))
        });
        let (named, context) = (named.collect(), Arc::clone(&turn.call.context));
        let visible = visible_to(&view, named, context, UnknownTools::Answer).await;
        let registry = visible.unwrap_or_else(|| view.runner.registry().clone());
        let config = toolcell::step::StepConfig {
            max_concurrency: Some(admitted.slots.count.max(1)),
            ..toolcell::step::StepConfig::default()
        };
        let stepper = Stepper::new(registry)
            .with_executor(self.executor(principal, &view))
            .with_config(config);
        let steps = stepper.step_all(calls, &mut turn).boxed().await;
        drop(admitted);
        Ok((steps, turn))
    }

    /// Admits a run, and returns it ready to start.
    async fn prepared(
        &self,
        principal: &Principal,
        request: RunRequest,
    ) -> Result<(Runner, Vec<ToolCall>, RunOptions, Admitted), RequestError> {
        let view = self.view(principal)?;
        let RunRequest { calls, request_id, mut options } = request;
        let calls: Vec<_> = calls.into_iter().map(|call| view.resolve_call(call)).collect();
        let id = request_id.unwrap_or_else(RequestId::generate);
        let wanted = options.concurrency(calls.len()).min(calls.len());
        let admitted = self.admit(principal, &view, &id, calls.len(), wanted, &mut options.call)?;
        let named = calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect();
        let (context, unknown) = (Arc::clone(&options.call.context), options.unknown_tools);
        let visible = visible_to(&view, named, context, unknown).await;
        let runner = visible.map_or_else(|| view.runner.clone(), Runner::new);
        let registry = runner.registry();
        if options.unknown_tools == UnknownTools::Refuse
            && let Some(call) = calls.iter().find(|call| !registry.is_registered(&call.name))
        {
            return Err(view.unknown_tool(&call.name, &options.call.context).await);
        }
        // Each tool has its own time within that of the executor.
        options.tool_timeout.get_or_insert(view.executor.limits().timeout);
        // A maximum of 0 stays 0, so that the run reports it, whatever the quota.
        options.max_concurrency =
            Some(if options.max_concurrency == Some(0) { 0 } else { admitted.slots.count.max(1) });
        let runner = runner.with_executor(self.executor(principal, &view));
        Ok((runner, calls, options, admitted))
    }
}

/// Returns the view's tools without those of these calls that are not visible in this context.
/// `None`: all are visible. A tool can be visible with some arguments only. Unless an unknown tool
/// refuses the run, it stays if one of its calls sees it, and the executor refuses the others.
async fn visible_to(
    view: &View,
    calls: Vec<(String, String)>,
    context: Arc<CallContext>,
    unknown: UnknownTools,
) -> Option<Registry> {
    let asks = |(name, arguments): (String, String)| {
        let tool = view.tools.get(&name)?.clone();
        let (context, executor) = (Arc::clone(&context), view.executor.clone());
        let asked = async move {
            // If there was no room to ask, the call itself is refused for that reason.
            let is_visible = executor.is_visible(&tool, Some(&arguments), &context).await;
            (name, is_visible != Some(false))
        };
        Some(asked.boxed())
    };
    let asked: Vec<BoxFuture<'static, (String, bool)>> =
        calls.into_iter().filter_map(asks).collect();
    let mut answers = stream::iter(asked).buffered(ASKED_AT_ONCE);
    let (mut seen, mut hidden) = (BTreeSet::new(), BTreeSet::new());
    while let Some((name, is_visible)) = answers.next().await {
        if is_visible {
            seen.insert(name)
        } else {
            hidden.insert(name)
        };
    }
    if unknown == UnknownTools::Answer {
        hidden.retain(|name| !seen.contains(name));
    }
    if hidden.is_empty() {
        return None;
    }
    let visible = view.tools.iter().filter(|(name, _)| !hidden.contains(*name));
    Some(registry(visible.map(|(_, tool)| tool.clone())))
}

/// The events of a run, as [`Runner::stream`] yields them.
pub struct RunEvents {
    first: Option<RunEvent>,
    stream: RunStream,
    /// The span of the request: calls start while the events are read.
    span: tracing::Span,
    /// Freed with the stream.
    _admitted: Admitted,
}

impl Stream for RunEvents {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        let Self { stream, span, .. } = &mut *self;
        span.in_scope(|| stream.poll_next_unpin(context))
    }
}

impl fmt::Debug for RunEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunEvents").finish_non_exhaustive()
    }
}
