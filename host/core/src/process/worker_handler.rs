//! The handler of a tool whose calls run in a worker process: it passes each call to the child.
//!
//! The host's executor calls it as the handler of such a [`Tool`](crate::Tool). It puts a request
//! into the request table and awaits its replies: start, progress and log lines, which it passes to
//! the call's observers, then the answer with the usage, which it adds to the call's own. An abort
//! is passed on; a request that was not sent by its deadline is refused. If the future is dropped,
//! the worker is told to cancel the call.
//!
//! The host's executor decides the rest: schemas, overlays (rules that can only narrow a grant),
//! sealed states of questions, usage. The worker calls the tool by an executor of its own, so that
//! the rules, limits and middleware that the worker's own program set apply too.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use toolcell_contract::call::CallResult;
use toolcell_contract::call::usage::Usage;
use toolcell_contract::event::Event;
use toolcell_contract::outcome::refusal::Refusal;
use toolcell_contract::outcome::tool_error::{Timeout, ToolError};

use super::request_table::{CallerMessage, DIED, FinishedRequest, Reply, Resend};
use super::supervisor::KillOnDrop;
use super::wire::{self, Answer, Notification, OfferedTool, RequestKind};
use crate::os::clock;
use crate::tool::handler::{Handler, HandlerFuture, Invocation, ValidateFuture, VisibleFuture};

/// One tool of a worker.
pub(super) struct WorkerHandler {
    guard: Arc<KillOnDrop>,
    code: Option<String>,
    resend: Resend,
    always_visible: bool,
}

impl WorkerHandler {
    pub(super) fn new(guard: Arc<KillOnDrop>, offered: &OfferedTool) -> Self {
        let OfferedTool { definition, code, always_visible, limits: _ } = offered;
        let may_repeat = definition.hints.idempotent || definition.hints.read_only;
        let resend = if may_repeat { Resend::Once } else { Resend::Never };
        Self { guard, code: code.clone(), resend, always_visible: *always_visible }
    }

    async fn ask(&self, what: RequestKind, invocation: &Arc<Invocation>) -> Reply {
        let keeper = &self.guard.0;
        let faults = wire::unreadable(&invocation.context);
        if !faults.is_empty() {
            return Reply::refused(Refusal::InvalidArguments(faults));
        }
        // Reads without side effects may be repeated.
        let again = if what == RequestKind::Call { self.resend } else { Resend::Once };
        let asked = keeper.requests().ask(what, Arc::clone(invocation), again, Instant::now());
        let (number, mut replies) = match asked {
            Ok(asked) => asked,
            Err(refusal) => return Reply::refused(refusal),
        };
        keeper.wake();
        let _abandoned = scopeguard::guard((), |()| keeper.abandon(number));
        let (mut is_aborted, mut is_late) = (false, false);
        loop {
            tokio::select! {
                biased;
                message = replies.recv() => match message {
                    // An observer of the embedder may block here: it delays this call only.
                    Some(CallerMessage::Started) => invocation.open(),
                    Some(CallerMessage::Notification(said)) => invocation.events.emit(|| said.event(invocation.call.id.clone())),
                    Some(CallerMessage::End(reply)) => return reply,
                    None => return Reply::died(),
                },
                () = invocation.abort.raised(), if !is_aborted => {
                    is_aborted = true;
                    keeper.requests().abort(number);
                    keeper.wake();
                }
                // A request that was not sent by then never ran: it is refused, and does not count
                // as a timeout, as with a call that waits for a cell.
                () = clock::until_deadline(invocation.deadline()), if !is_late => {
                    is_late = true;
                    let ended = keeper.requests().refuse_waiting(number);
                    ended.into_iter().for_each(FinishedRequest::send);
                }
            }
        }
    }
}

/// Adds the usage of the worker's part of the call to the call's own. Returns the fuel that was
/// spent before.
fn note(invocation: &Invocation, usage: Usage) -> u64 {
    let meter = &invocation.meter;
    let (fuel, host_calls) = (meter.fuel.load(Relaxed), meter.host_calls.load(Relaxed));
    if let Some(used) = usage.fuel {
        meter.note(
            fuel.saturating_add(used),
            usage.peak_memory,
            host_calls.saturating_add(usage.host_calls),
        );
    }
    meter.bytes_out.store(usage.bytes_out, Relaxed);
    meter.log_bytes.fetch_add(usage.log_bytes, Relaxed);
    meter.log_bytes_dropped.fetch_add(usage.log_bytes_dropped, Relaxed);
    fuel
}

/// Replaces the rest of the budget, which the worker had, by the whole budget in the result.
fn with_whole_budget(result: CallResult, invocation: &Invocation, spent: u64) -> CallResult {
    let CallResult::ToolError(ToolError::Timeout(timeout)) = result else { return result };
    let (budget, used) = (invocation.limits.timeout, invocation.started.elapsed());
    CallResult::ToolError(ToolError::Timeout(match timeout {
        Timeout::Fuel { used, stdout, .. } => Timeout::Fuel {
            budget: invocation.limits.fuel,
            used: spent.saturating_add(used),
            stdout,
        },
        Timeout::Deadline { .. } | Timeout::Blocked { .. } => timeout.with_durations(budget, used),
    }))
}

impl Notification {
    fn event(self, id: String) -> Event {
        match self {
            Self::Progress { done, total, message } => Event::Progress { id, done, total, message },
            Self::Log { source, level, message } => Event::Log { id, source, level, message },
            Self::Denied(denial) => Event::Denied { id, denial },
        }
    }
}

impl Handler for WorkerHandler {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        Box::pin(async move {
            match self.ask(RequestKind::Call, &invocation).await {
                Reply::Lost(result) => result,
                Reply::Answer(Answer::Called { result, usage }) => {
                    let spent = note(&invocation, usage);
                    with_whole_budget(result, &invocation, spent)
                }
                // An answer of the wrong kind: the child is not a worker of this version.
                Reply::Answer(Answer::Visible(_) | Answer::Validated(_)) => {
                    CallResult::ToolError(DIED)
                }
            }
        })
    }

    fn reads_arguments(&self) -> bool {
        false
    }

    fn always_visible(&self) -> bool {
        self.always_visible
    }

    fn visible(&self, invocation: Arc<Invocation>) -> VisibleFuture<'_> {
        if self.always_visible {
            return Box::pin(std::future::ready(true));
        }
        Box::pin(async move {
            match self.ask(RequestKind::Visible, &invocation).await {
                Reply::Answer(Answer::Visible(visible)) => visible,
                Reply::Answer(Answer::Called { .. } | Answer::Validated(_)) | Reply::Lost(_) => {
                    false
                }
            }
        })
    }

    fn validate(&self, invocation: Arc<Invocation>) -> ValidateFuture<'_> {
        Box::pin(async move {
            match self.ask(RequestKind::Validate, &invocation).await {
                Reply::Answer(Answer::Validated(answer)) => answer,
                Reply::Lost(CallResult::Refusal(Refusal::InvalidArguments(faults))) => Ok(faults),
                Reply::Lost(CallResult::ToolError(error)) => Err(error),
                Reply::Answer(Answer::Called { .. } | Answer::Visible(_))
                | Reply::Lost(CallResult::Outcome(_) | CallResult::Refusal(_)) => Err(DIED),
            }
        })
    }

    fn digest(&self) -> Option<&str> {
        self.code.as_deref()
    }

    fn enforces_deadline(&self) -> bool {
        true
    }
}
