//! Handlers: the code that answers the calls of a tool.
//!
//! The executor checks a call, builds its [`Invocation`] (the call, its context, limits, signal,
//! meter), and awaits [`Handler::call`], which returns a [`CallResult`]. Implementations are a
//! component's export (`engine::component`), an async closure (`native`), a closure that may block
//! (`blocking`) and a tool of a worker process. A retry, a circuit breaker or any other
//! [`Middleware`](crate::tool::Middleware) wraps a handler. An invocation also reports progress,
//! log lines and denials to observers, and makes the attempts of a retried call, which share one
//! budget and one usage.
//!
//! Not here: the wait for a handler, with deadline and cancellation, in `handler_wait`.

mod arguments;
pub(crate) mod options;
mod sub_call;

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use toolcell_contract::call::usage::{CheckFuel, Meter};
use toolcell_contract::call::{AbortSignal, CallContext, CallResult, Resume, ToolCall};
use toolcell_contract::event::{CallEvents, Event, Events, LogLevel, LogSource};
use toolcell_contract::grants::{Overlay, rights::Denial};
use toolcell_contract::limits::Limits;
use toolcell_contract::outcome::{refusal::Fault, tool_error::ToolError};

use crate::capability::{files::CallFiles, http::Budget};
use crate::tenant::state::TenantState;
pub(crate) use arguments::Arguments;
use options::CallOptions;
pub(crate) use sub_call::{Caller, Invoker, SubCall};

/// The future that [`Handler::call`] returns.
pub type HandlerFuture<'a> = Pin<Box<dyn Future<Output = CallResult> + Send + 'a>>;
/// The future that [`Handler::visible`] returns.
pub type VisibleFuture<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
/// The future that [`Handler::validate`] returns.
pub type ValidateFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Fault>, ToolError>> + Send + 'a>>;

/// The code of a tool. The executor checks the call before it, enforces the deadline, and reads
/// the usage.
pub trait Handler: Send + Sync + 'static {
    /// Answers one call.
    ///
    /// It must not block its thread: while it does, the deadline cannot be enforced, and the other
    /// calls of its run cannot continue. Use
    /// [`Tool::native_blocking`](crate::Tool::native_blocking) for code that blocks. A panic in it
    /// ends this call only.
    ///
    /// # Cancel safety
    /// The future is dropped at the deadline, when the caller ends the call by force, and when the
    /// caller drops the call. It must release everything then.
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_>;

    /// Returns true if the tool is offered in the invocation's context. The arguments are those of
    /// a call, before they are checked against the schema, or `null` for a list.
    /// [`call`](Self::call) must do this check by itself.
    ///
    /// # Defaults
    /// Yes.
    ///
    /// # Cancel safety
    /// As [`call`](Self::call).
    fn visible(&self, _invocation: Arc<Invocation>) -> VisibleFuture<'_> {
        Box::pin(std::future::ready(true))
    }

    /// Returns all faults that the handler finds in arguments that fit the schema. It is used for a
    /// check without a call: [`call`](Self::call) must do this check by itself.
    ///
    /// # Defaults
    /// No faults.
    ///
    /// # Errors
    /// [`ToolError`] if the check ended without an answer.
    ///
    /// # Cancel safety
    /// As [`call`](Self::call).
    fn validate(&self, _invocation: Arc<Invocation>) -> ValidateFuture<'_> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Returns the digest of the handler's code, if it has one. The answer to a question is
    /// accepted only by the same code.
    fn digest(&self) -> Option<&str> {
        None
    }

    /// Returns true if the tool is [`visible`](Self::visible) in every context, so that `visible`
    /// need not be called.
    ///
    /// # Defaults
    /// No.
    fn always_visible(&self) -> bool {
        false
    }

    /// Returns true if the handler reads [`Invocation::arguments`]. If so, the parsed arguments are
    /// kept until the call ends. Return `false` if the handler only passes on the text: a parsed
    /// tree takes many times the memory of its text.
    ///
    /// # Defaults
    /// Yes.
    fn reads_arguments(&self) -> bool {
        true
    }

    /// Returns true if the handler enforces the deadline by itself and answers with an error after
    /// it. The executor then waits a moment longer for that error, which can say how the time was
    /// spent. Any other handler is dropped at the deadline.
    ///
    /// # Defaults
    /// No.
    fn enforces_deadline(&self) -> bool {
        false
    }
}

/// Settings of the executor for a check of a tool outside of its calls.
#[derive(Debug, Default)]
pub(crate) struct CheckSettings {
    /// The call of the tool for which the check is made, if any.
    pub(crate) caller: Option<Arc<Caller>>,
    pub(crate) is_shared: bool,
    /// The observer of the fuel that the check uses.
    pub(crate) fuel: Option<CheckFuel>,
}

/// The overlays that narrow the tool's rights in this call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overlays {
    pub(crate) tenant: Option<Arc<Overlay>>,
    pub(crate) call: Option<Arc<Overlay>>,
}

/// Denials of one call that are reported to observers: enough to see a pattern.
const MAX_DENIALS: u64 = 100;

/// One call, as its handler gets it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Invocation {
    /// The call. It has the name of the tool in place of an alias, and `{}` in place of blank
    /// arguments.
    pub call: ToolCall,
    /// The context of the call.
    pub context: Arc<CallContext>,
    /// The limits of the call: the tightest of the executor's, the call's and the tool's own.
    pub limits: Limits,
    /// The time at which the call was made.
    pub started: Instant,
    /// Raised when the caller ends the call early.
    pub abort: AbortSignal,
    /// Time between a raised `abort` and the forced end of the call.
    pub(crate) stop_grace: Duration,
    /// The tenant of the call.
    pub(crate) tenant: Arc<TenantState>,
    /// True if the executor defines other tenants, so that the call's tenant leaves room to them.
    pub(crate) is_shared: bool,
    pub(crate) tree: Arguments,
    /// The arguments' fingerprint, if a sealer needs it.
    pub(crate) fingerprint: Option<[u8; 32]>,
    pub(crate) overlays: Overlays,
    /// Files that the tool can read, if it is a component.
    pub(crate) files: Option<CallFiles>,
    pub(crate) egress: OnceLock<Budget>,
    pub(crate) events: Arc<CallEvents>,
    pub(crate) meter: Arc<Meter>,
    /// The call of the tool that made this call, if a tool did.
    pub(crate) caller: Option<Arc<Caller>>,
    /// Makes calls of other tools for the handler.
    pub(crate) invoker: Option<Arc<dyn Invoker>>,
    /// The number of calls of other tools that this call has led to. Used if no tool made this
    /// call.
    pub(crate) sub_calls: Arc<AtomicU32>,
    /// The call's span, the parent of the spans of its calls into the host.
    pub(crate) span: tracing::Span,
}

impl Invocation {
    /// Calls that one call may lead to, at all depths together.
    pub const MAX_SUB_CALLS: u32 = 1000;

    /// The call's arguments as a tree: an object that fits the tool's schema. A whole number that
    /// neither a 64-bit type nor a double holds exactly is a string with all its digits. The
    /// original text is in `call.arguments`. If [`reads_arguments`](Handler::reads_arguments) is
    /// false, the text is parsed at the first use.
    #[must_use]
    pub fn arguments(&self) -> &Value {
        self.tree.read_exact(&self.call.arguments)
    }

    /// Returns the same tree as [`arguments`](Self::arguments), as an owned value.
    pub(crate) fn take_arguments(&self) -> Value {
        self.tree.take_exact(&self.call.arguments)
    }

    /// The tree that was checked, in which each number is the nearest one that a tree can hold.
    pub(crate) fn checked_arguments(&self) -> &Value {
        self.tree.read(&self.call.arguments)
    }

    /// Returns the bytes of the call's text: arguments, answer, state and metadata. A waiting call
    /// holds them.
    pub(crate) fn text_bytes(&self) -> u64 {
        let resume = self.context.resume.as_ref().map_or(0, |Resume { answer, state }| {
            answer.as_str().len() + state.as_ref().map_or(0, |state| state.as_str().len())
        });
        let metadata = self.context.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
        (self.call.arguments.len() + resume + metadata) as u64
    }

    /// Returns the deadline of the call, or `None` if it is beyond what [`Instant`] can hold.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.started.checked_add(self.limits.timeout)
    }

    /// Returns the time until the deadline.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.limits.timeout.saturating_sub(self.started.elapsed())
    }

    /// Returns the same call with other arguments, as JSON text, and with files that the tool can
    /// read if it is a component. It is meant for a [`Middleware`](crate::tool::Middleware) that
    /// replaces references in the arguments by the paths of files. The arguments are not checked
    /// again.
    #[must_use]
    pub fn with_files(&self, arguments: impl Into<String>, files: CallFiles) -> Self {
        let ToolCall { id, name, .. } = &self.call;
        Self {
            call: ToolCall::new(id, name, arguments),
            tree: Arguments::default(),
            context: Arc::clone(&self.context),
            files: Some(files),
            ..self.attempt_after(0, None)
        }
    }

    /// Reports progress to observers.
    ///
    /// # Units
    /// The handler's own: `done` of `total`, if the total is known.
    pub fn progress(&self, done: u64, total: Option<u64>, message: Option<String>) {
        self.events.emit(|| Event::Progress { id: self.call.id.clone(), done, total, message });
    }

    /// Reports a denied request to observers. After [`MAX_DENIALS`], a single note says that there
    /// are more.
    pub(crate) fn denied(&self, denial: &Denial) {
        match self.meter.denials.fetch_add(1, Ordering::Relaxed) {
            ..MAX_DENIALS => self
                .events
                .emit(|| Event::Denied { id: self.call.id.clone(), denial: denial.clone() }),
            MAX_DENIALS => self.noted(
                LogLevel::Warn,
                format!("more than {MAX_DENIALS} denials: further denials are not reported"),
            ),
            _ => {}
        }
    }

    /// Reports to observers that a request of the tool looks as if it carried a secret of a
    /// well-known kind. It happens only a few times for each request, so it does not count against
    /// the log limit, which the tool could use up before.
    pub(crate) fn report_suspect_request(&self, kind: &str) {
        self.noted(LogLevel::Warn, format!("a request of the tool seems to carry {kind}"));
    }

    /// Sends observers a log line of the host about the call. It does not count against the log
    /// limit, which the tool could use up.
    pub(crate) fn noted(&self, level: LogLevel, message: String) {
        self.events.emit(|| Event::Log {
            id: self.call.id.clone(),
            source: LogSource::Host,
            level,
            message,
        });
    }

    /// Returns the budget of the requests of this call, shared by all attempts at it.
    pub(crate) fn egress_budget(&self) -> Budget {
        self.egress.get_or_init(|| Budget::of(&self.tenant)).clone()
    }

    /// Reports to observers that the call starts: it has a cell, or does not need one.
    pub(crate) fn open(&self) {
        self.events.open(|| self.started_event());
    }

    pub(crate) fn started_event(&self) -> Event {
        let ToolCall { id, name, arguments } = self.call.clone();
        Event::Started { id, name, arguments }
    }

    /// Creates an invocation that starts now, with the budget and the meter of its caller, if a tool
    /// makes the call.
    pub(crate) fn new(
        call: ToolCall,
        options: CallOptions,
        tenant: Arc<TenantState>,
        events: CallEvents,
        caller: Option<Arc<Caller>>,
    ) -> Self {
        let CallOptions { context, limits, abort, stop_grace, overlay, files } = options;
        let of_caller =
            caller.as_ref().map(|caller| (caller.egress.clone().into(), Arc::clone(&caller.meter)));
        let (egress, meter) = of_caller.unwrap_or_default();
        Self {
            call,
            context,
            limits,
            started: Instant::now(),
            abort,
            stop_grace,
            tenant,
            is_shared: false,
            tree: Arguments::default(),
            fingerprint: None,
            overlays: Overlays { tenant: None, call: overlay },
            files,
            egress,
            events: Arc::new(events),
            meter,
            caller,
            invoker: None,
            sub_calls: Arc::default(),
            span: tracing::Span::none(),
        }
    }

    /// Creates an invocation outside of any call: observers get no events of it, and no caller sees
    /// its usage.
    pub(crate) fn outside_call(
        call: ToolCall,
        arguments: Value,
        context: impl Into<Arc<CallContext>>,
        limits: Limits,
    ) -> Self {
        let options = CallOptions { context: context.into(), limits, ..CallOptions::default() };
        let tenant = TenantState::of(options.context.tenant.as_deref());
        let events = CallEvents::new(Events::default());
        let tree = Arguments::with_tree(arguments, None);
        Self { tree, ..Self::new(call, options, tenant, events, None) }
    }

    /// Returns an attempt at the call, after `failed` attempts have failed. It shares the call's
    /// budget, observer and usage. Its deadline is the call's, or `time` from now if that is
    /// sooner.
    pub(crate) fn attempt_after(&self, failed: u32, time: Option<Duration>) -> Self {
        let (started, timeout) = match time {
            Some(time) => (Instant::now(), time.min(self.remaining())),
            None => (self.started, self.limits.timeout),
        };
        let mut context = CallContext::clone(&self.context);
        context.attempt = Some(context.attempt.unwrap_or(1).saturating_add(failed));
        Self {
            call: self.call.clone(),
            tree: self.tree.of_an_attempt(),
            fingerprint: self.fingerprint,
            context: Arc::new(context),
            limits: Limits { timeout, ..self.limits },
            started,
            abort: self.abort.clone(),
            stop_grace: self.stop_grace,
            tenant: Arc::clone(&self.tenant),
            is_shared: self.is_shared,
            overlays: self.overlays.clone(),
            files: self.files.clone(),
            egress: self.egress_budget().into(),
            events: Arc::clone(&self.events),
            meter: Arc::clone(&self.meter),
            caller: self.caller.clone(),
            invoker: self.invoker.clone(),
            sub_calls: Arc::clone(&self.sub_calls),
            span: self.span.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use toolcell_contract::grants::rights::Layer;

    use super::*;

    /// Denials beyond the bound are reported once, and do not count as lost log.
    /// Fails without: the separate bound of denials.
    #[test]
    fn denials_beyond_the_bound_are_reported_once() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&heard);
        let mut invocation = Invocation::scripted("t", Limits::default());
        let events = Events::to(Arc::new(move |event: Event| sink.lock().push(event)));
        invocation.events = Arc::new(CallEvents::new(events));
        invocation.open();
        for _ in 0..3 * MAX_DENIALS {
            invocation.denied(&Denial::new(Layer::Component, "GET".into(), Some("http".into())));
        }
        let heard = heard.lock();
        let (denied, more) = heard[1..].split_at(MAX_DENIALS as usize);
        assert!(denied.iter().all(|event| matches!(event, Event::Denied { .. })));
        assert!(matches!(more, [Event::Log { source: LogSource::Host, .. }]), "{more:?}");
        assert_eq!(invocation.meter.log_bytes_dropped.load(Ordering::Relaxed), 0);
    }
}
