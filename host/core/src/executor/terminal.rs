//! Ends a call exactly once: sends its terminal event, closes its tracing span, reads its usage.
//!
//! The executor opens a [`Terminal`] when a call begins and closes it with the result; closing
//! returns the [`Completion`] with the usage (the resources that the call took). If the future of
//! the call is dropped before, dropping the `Terminal` reports the call as cancelled. So each
//! opened call has exactly one end for observers and in traces.
//!
//! Source: docs/contract.md, section 3 (spans: start, stop, exception, duration, outcome).

use std::mem;
use std::sync::Arc;

use toolcell_contract::call::{CallResult, Completion, usage::Usage};
use toolcell_contract::event::Event;
use toolcell_contract::message::failure::Failure;
use toolcell_contract::outcome::tool_error::{Exit, ToolError};
use tracing::field::Empty;

use crate::tool::{Tool, handler::Invocation};

/// Closes an opened call exactly once: by [`close`](Self::close), or as cancelled when it is
/// dropped.
pub(super) struct Terminal<'a> {
    tool: &'a Tool,
    /// The call. There is no other reference to it until it is checked.
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

    fn usage(&self) -> Usage {
        let invocation = &self.invocation;
        invocation.meter.read(invocation.started.elapsed(), invocation.call.arguments.len() as u64)
    }

    pub(super) fn close(mut self, result: CallResult) -> Completion {
        let usage = self.usage();
        self.report(&result, usage);
        // A task that the call left behind may still hold the invocation.
        let (id, name) = match Arc::get_mut(&mut self.invocation) {
            Some(Invocation { call, .. }) => (mem::take(&mut call.id), mem::take(&mut call.name)),
            None => (self.invocation.call.id.clone(), self.invocation.call.name.clone()),
        };
        let attributes = self.tool.definition().attributes.clone();
        Completion::new(id, name, result, usage, attributes)
    }

    fn report(&mut self, result: &CallResult, usage: Usage) {
        self.open = false;
        let (call, span) = (&self.invocation.call, &self.invocation.span);
        if !span.is_disabled() {
            span.record("outcome", result.name());
            span.record("duration_us", u64::try_from(usage.wall.as_micros()).unwrap_or(u64::MAX));
            if let CallResult::ToolError(error) = result {
                span.record("reason", error.reason().name());
            }
            if let CallResult::Refusal(refusal) = result {
                span.record("reason", refusal.kind());
            }
            if let Some(failure) = Failure::of(result) {
                // Recorded as a debug string, because the text may quote untrusted input.
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
