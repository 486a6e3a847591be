//! The one end of a call: its terminal event, its span, its receipt.
//!
//! Invariants: a call that was opened is closed exactly once, also when it is dropped.
//! Source: docs/contract.md, section 3 (spans: start, stop, exception, duration, outcome).

use std::sync::Arc;

use tracing::field::Empty;

use crate::call::{CallResult, Completion};
use crate::event::Event;
use crate::handler::Invocation;
use crate::outcome::Outcome;
use crate::policy::Failure;
use crate::tool::Tool;
use crate::tool_error::{Exit, ToolError};
use crate::usage::Usage;

/// Sees to it that a call that was opened is closed, exactly once.
pub(super) struct Terminal<'a> {
    tool: &'a Tool,
    /// The call. Until it is checked there is no other reference to it.
    pub(super) invocation: Arc<Invocation>,
    open: bool,
}

impl<'a> Terminal<'a> {
    pub(super) fn open(tool: &'a Tool, mut invocation: Invocation) -> Self {
        let call = &invocation.call;
        invocation.span = tracing::info_span!(
            "tool_call",
            id = call.id,
            tool = %call.name,
            request_id = invocation.context.request_id.as_deref(),
            outcome = Empty,
            reason = Empty,
            exception = Empty,
            duration_us = Empty,
        );
        Self { tool, invocation: Arc::new(invocation), open: true }
    }

    /// The call's span: what runs for the call runs in it.
    pub(super) fn span(&self) -> tracing::Span {
        self.invocation.span.clone()
    }

    fn usage(&self) -> Usage {
        let invocation = &self.invocation;
        invocation.meter.read(invocation.started.elapsed(), invocation.call.arguments.len() as u64)
    }

    pub(super) fn close(mut self, result: CallResult) -> Completion {
        let usage = self.usage();
        self.report(&result, usage);
        let call = &self.invocation.call;
        let attributes = self.tool.definition().attributes.clone();
        Completion { id: call.id.clone(), tool: call.name.clone(), result, usage, attributes }
    }

    fn report(&mut self, result: &CallResult, usage: Usage) {
        self.open = false;
        let (call, span) = (&self.invocation.call, &self.invocation.span);
        if !span.is_disabled() {
            span.record("outcome", name_of(result));
            span.record("duration_us", u64::try_from(usage.wall.as_micros()).unwrap_or(u64::MAX));
            if let CallResult::ToolError(error) = result {
                span.record("reason", error.reason().name());
            }
            if let CallResult::Refusal(refusal) = result {
                span.record("reason", refusal.kind());
            }
            if let Some(failure) = Failure::of(result) {
                // As a debug string: the text may quote a stranger.
                span.record("exception", tracing::field::debug(failure.to_string()));
            }
            span.in_scope(|| tracing::debug!(wall = ?usage.wall, fuel = usage.fuel, "completed"));
        }
        let completed = || Event::Completed {
            id: call.id.clone(),
            name: call.name.clone(),
            result: result.clone(),
            usage,
            parent: self.invocation.caller.as_ref().map(|caller| caller.id.clone()),
        };
        self.invocation.events.close(|| self.invocation.started_event(), completed);
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        if self.open {
            let usage = self.usage();
            self.report(&CallResult::ToolError(ToolError::HandlerExit(Exit::Cancelled)), usage);
        }
    }
}

/// The result's name, the same in JSON and in traces.
fn name_of(result: &CallResult) -> &'static str {
    match result {
        CallResult::Outcome(Outcome::Ok(_)) => "ok",
        CallResult::Outcome(Outcome::Error(_)) => "error",
        CallResult::Outcome(Outcome::AskUser(_)) => "ask_user",
        CallResult::Outcome(Outcome::Halt(_)) => "halt",
        CallResult::ToolError(_) => "tool_error",
        CallResult::Refusal(_) => "refusal",
    }
}
