//! One call, from a model's words to a completion.
//!
//! In: a [`Tool`], a [`ToolCall`], [`CallOptions`]. Out: a [`Completion`], always.
//! The pipe: resolve → validate → (handler: admit → cell → guest) → check the answer → receipt.
//! Invariants: never fails and never panics; consults no registry, invents no ids; exactly one terminal event per call,
//! also when the future is dropped; under a sealer no state of a question leaves unsealed, and none comes in unopened.

mod checks;
mod terminal;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use serde_json::Value;
use tracing::Instrument as _;

use crate::call::{CallContext, CallOptions, CallResult, Completion, Resume, ToolCall};
use crate::clock;
use crate::event::{CallEvents, EventSink, Events};
use crate::fence::{dispose, fenced};
use crate::handler::Invocation;
use crate::limits::Limits;
use crate::outcome::Outcome;
use crate::refusal::{Fault, Refusal};
use crate::seal::{Origin, Sealer};
use crate::tool::Tool;
use crate::tool_error::{Exit, Raised, Timeout, ToolError};
use checks::{invalid, judge};
use terminal::Terminal;

/// How long after the deadline the executor waits for a handler that keeps time by itself.
const GRACE: Duration = Duration::from_millis(250);

/// Makes calls. Cheap to clone.
///
/// # Defaults
/// [`Limits::default`], no observer, **no sealer**: what a tool leaves with a question goes to the client as it is, and what
/// comes back with an answer goes to the tool unchecked. Whoever does not trust every client needs
/// [`with_sealer`](Self::with_sealer).
#[derive(Debug, Clone, Default)]
pub struct Executor {
    limits: Limits,
    events: Events,
    sealer: Option<Sealer>,
}

impl Executor {
    /// An executor with the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With these limits for every call.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The limits for every call.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// With this observer.
    #[must_use]
    pub fn with_events(mut self, sink: impl EventSink) -> Self {
        self.events = Events::to(Arc::new(sink));
        self
    }

    /// Seals every question: its `state` leaves as a text that only this key opens, also when the tool left none. A call
    /// with an answer must bring that text back, on behalf of the same tenant, to the same tool in the same version, with
    /// the same arguments, in time; otherwise it is refused, and the refusal says why. Source: contract, section 7.
    #[must_use]
    pub fn with_sealer(mut self, sealer: Sealer) -> Self {
        self.sealer = Some(sealer);
        self
    }

    /// The same with one more observer.
    pub(crate) fn also_observed(&self, sink: impl EventSink) -> Self {
        Self { events: self.events.and(sink), ..self.clone() }
    }

    /// Calls a tool. A failed call is part of the completion.
    ///
    /// # Cancel safety
    /// When dropped, the guest stops at its next tick, everything it held is given back, and observers see a completion
    /// with `handler_exit`, status `cancelled`.
    pub async fn call(&self, tool: &Tool, mut call: ToolCall, options: CallOptions) -> Completion {
        let started = Instant::now();
        let CallOptions { mut context, limits, abort } = options;
        let mut limits = self.limits.tightened(&limits);
        if let Some(bound) = tool.definition().max_execution {
            limits.timeout = limits.timeout.min(bound);
        }
        // The caller resolved the name, perhaps an alias, to this tool: what was checked is what runs.
        call.name.clone_from(&tool.definition().name);
        let checked = fenced(|| self.checked(tool, &call, &mut context, &limits))
            .unwrap_or_else(|| Err(invalid(vec![Fault::new("", "the check against the tool's schema failed")])));
        let (arguments, refused) = match checked {
            Ok(arguments) => (arguments, None),
            Err(refusal) => (Value::Null, Some(CallResult::Refusal(refusal))),
        };
        let events = Arc::new(CallEvents::new(self.events.clone()));
        let invocation =
            Arc::new(Invocation { call, arguments, context, limits, started, abort, events, meter: Arc::default() });
        let terminal = Terminal::open(&invocation);
        let result = match (refused, tool.handler()) {
            (_, None) => CallResult::ToolError(ToolError::NotFound),
            (Some(refused), Some(_)) => refused,
            (None, Some(handler)) => {
                let answer = AssertUnwindSafe(async { handler.call(Arc::clone(&invocation)).await }).catch_unwind();
                let answer = answer.instrument(terminal.span());
                let grace = if handler.keeps_time() { GRACE } else { Duration::ZERO };
                let deadline = invocation.deadline().and_then(|deadline| deadline.checked_add(grace));
                match clock::before(deadline, answer).await {
                    Some(Ok(result)) => fenced(|| self.sealed(tool, judge(tool, result, &invocation), &invocation))
                        .unwrap_or(CallResult::ToolError(ToolError::HandlerExit(Exit::Died))),
                    Some(Err(panic)) => CallResult::ToolError(panicked(panic)),
                    None => CallResult::ToolError(overdue(&invocation)),
                }
            }
        };
        terminal.close(result)
    }

    /// Everything that is wrong with a call's arguments, as far as the host's checks and the tool's own can say without
    /// making it. Source: contract, section 4.
    ///
    /// # Errors
    /// [`ToolError`] when the tool's own check could not be asked.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub async fn validate(&self, tool: &Tool, call: ToolCall, options: CallOptions) -> Result<Vec<Fault>, ToolError> {
        let CallOptions { mut context, limits, .. } = options;
        let limits = self.limits.tightened(&limits);
        let arguments = match fenced(|| self.checked(tool, &call, &mut context, &limits)) {
            Some(Ok(arguments)) => arguments,
            Some(Err(Refusal::InvalidArguments(faults))) => return Ok(faults),
            Some(Err(refusal)) => return Ok(vec![Fault::new("", refusal.to_string())]),
            None => return Err(ToolError::HandlerExit(Exit::Died)),
        };
        let Some(handler) = tool.handler() else { return Ok(Vec::new()) };
        let invocation = Arc::new(Invocation::aside(call, arguments, context, limits));
        let asked = AssertUnwindSafe(handler.validate(Arc::clone(&invocation))).catch_unwind();
        match clock::before(invocation.deadline().and_then(|deadline| deadline.checked_add(GRACE)), asked).await {
            Some(Ok(answer)) => answer,
            Some(Err(panic)) => Err(panicked(panic)),
            None => Err(overdue(&invocation)),
        }
    }

    /// What is known to be wrong with a call before it is made. Opens what an answer brings back.
    fn checked(
        &self,
        tool: &Tool,
        call: &ToolCall,
        context: &mut Arc<CallContext>,
        limits: &Limits,
    ) -> Result<Value, Refusal> {
        let arguments = checks::checked(tool, call, context, limits)?;
        if let (Some(sealer), Some(resume)) = (&self.sealer, &context.resume) {
            let origin = Origin::of(tool, context.tenant.as_deref(), &arguments);
            let state = sealer.open(&origin, resume.state.as_ref()).map_err(Refusal::Resume)?;
            let resume = Resume { answer: resume.answer.clone(), state };
            Arc::make_mut(context).resume = Some(resume);
        }
        Ok(arguments)
    }

    /// Seals what a question leaves.
    fn sealed(&self, tool: &Tool, mut result: CallResult, invocation: &Invocation) -> CallResult {
        if let (Some(sealer), CallResult::Outcome(Outcome::AskUser(question))) = (&self.sealer, &mut result) {
            let origin = Origin::of(tool, invocation.context.tenant.as_deref(), &invocation.arguments);
            match sealer.seal(&origin, question.state.as_ref()) {
                Ok(state) => question.state = Some(state),
                Err(error) => return CallResult::ToolError(error),
            }
        }
        result
    }
}

/// A handler that panicked.
fn panicked(panic: Box<dyn Any + Send>) -> ToolError {
    let raised = Raised::panicked(&*panic);
    dispose(panic);
    ToolError::HandlerRaised(raised)
}

/// A handler that has not answered in time.
fn overdue(invocation: &Invocation) -> ToolError {
    ToolError::Timeout(Timeout::Blocked { budget: invocation.limits.timeout, used: invocation.started.elapsed() })
}
