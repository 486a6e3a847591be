//! A handler that answers from a script, for tests of middleware, retries and the circuit breaker.
//! It records the attempt number and the time of each call.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use toolcell_contract::call::{CallContext, CallResult, ToolCall};
use toolcell_contract::definition::Definition;
use toolcell_contract::limits::Limits;
use toolcell_contract::outcome::refusal::{Fault, Refusal};
use toolcell_contract::outcome::tool_error::{Crash, CrashKind, Exit, Timeout, ToolError};
use toolcell_contract::outcome::{HandlerError, Outcome};

use super::handler::{Handler, HandlerFuture, Invocation, ValidateFuture, VisibleFuture};
use crate::os::clock::{Clock as _, ManualClock};
use crate::tool::Tool;

/// One answer. The last one of a script is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub(crate) enum ScriptedAnswer {
    Ok,
    /// A failure that a retry cannot change.
    Error,
    /// A retryable failure.
    Busy,
    /// A failure with this `retry_after` in milliseconds, but without `retryable`.
    BusyFor(u64),
    OutOfFuel,
    Blocked,
    Trap,
    Died,
    Cancelled,
    Overloaded,
    Quarantined,
    Invalid,
    Panic,
    Hang,
}

impl ScriptedAnswer {
    fn result(self) -> CallResult {
        let (budget, used) = (Duration::ZERO, Duration::ZERO);
        let timeout = |timeout| CallResult::ToolError(ToolError::Timeout(timeout));
        match self {
            Self::Ok => CallResult::Outcome(Outcome::ok(serde_json::Value::Null)),
            Self::Error => CallResult::Outcome(Outcome::error("no such person")),
            Self::Busy => {
                let mut busy = HandlerError::new("busy");
                busy.retryable = Some(true);
                CallResult::Outcome(Outcome::Error(busy))
            }
            Self::BusyFor(wait) => {
                let mut busy = HandlerError::new("busy");
                busy.retry_after_ms = Some(wait);
                CallResult::Outcome(Outcome::Error(busy))
            }
            Self::OutOfFuel => timeout(Timeout::Fuel { budget: 1, used: 1, stdout: None }),
            Self::Blocked => {
                timeout(Timeout::Blocked { budget, used, blocked_on: None, stdout: None })
            }
            Self::Trap => {
                CallResult::ToolError(ToolError::HandlerRaised(Crash::new(CrashKind::Unreachable)))
            }
            Self::Died => CallResult::ToolError(ToolError::HandlerExit(Exit::ProcessEnded)),
            Self::Cancelled => CallResult::ToolError(ToolError::HandlerExit(Exit::Cancelled)),
            Self::Overloaded => {
                CallResult::Refusal(Refusal::Overloaded { retry_after: Duration::from_millis(250) })
            }
            Self::Quarantined => CallResult::Refusal(Refusal::Quarantined),
            Self::Invalid => CallResult::Refusal(Refusal::InvalidArguments(Vec::new())),
            Self::Panic | Self::Hang => unreachable!("no result"),
        }
    }
}

/// The attempt number of a call, and its time.
type Attempt = (Option<u32>, Duration);

/// The handler, and a record of its calls.
#[derive(Clone)]
pub(crate) struct Scripted {
    clock: ManualClock,
    left: Arc<Mutex<VecDeque<ScriptedAnswer>>>,
    calls: Arc<Mutex<Vec<Attempt>>>,
    started: std::time::Instant,
}

impl Scripted {
    pub(crate) fn new(clock: &ManualClock, script: &[ScriptedAnswer]) -> Self {
        Self {
            clock: clock.clone(),
            left: Arc::new(Mutex::new(script.iter().copied().collect())),
            calls: Arc::default(),
            started: clock.now(),
        }
    }

    /// Creates a tool with this handler.
    pub(crate) fn tool(&self) -> Tool {
        Tool::with_handler(Definition::new("scripted", "").unwrap(), self.clone()).unwrap()
    }

    /// Replaces the script by one answer.
    pub(crate) fn set_answer(&self, say: ScriptedAnswer) {
        *self.left.lock() = VecDeque::from([say]);
    }

    /// Returns the attempt number of each call, and its time in milliseconds since the start.
    pub(crate) fn calls(&self) -> Vec<(Option<u32>, u64)> {
        let millis = |at: &Duration| u64::try_from(at.as_millis()).unwrap();
        self.calls.lock().iter().map(|(attempt, at)| (*attempt, millis(at))).collect()
    }
}

impl Handler for Scripted {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        self.calls.lock().push((invocation.context.attempt, self.clock.now() - self.started));
        let mut left = self.left.lock();
        let say = if left.len() > 1 { left.pop_front() } else { left.front().copied() };
        drop(left);
        Box::pin(async move {
            let say = say.expect("a script has a line");
            assert!(say != ScriptedAnswer::Panic, "ouch");
            if say == ScriptedAnswer::Hang {
                std::future::pending::<()>().await;
            }
            say.result()
        })
    }

    fn visible(&self, _: Arc<Invocation>) -> VisibleFuture<'_> {
        Box::pin(std::future::ready(false))
    }

    fn validate(&self, _: Arc<Invocation>) -> ValidateFuture<'_> {
        Box::pin(std::future::ready(Ok(vec![Fault::new("", "scripted")])))
    }

    fn digest(&self) -> Option<&str> {
        Some("scripted")
    }

    fn always_visible(&self) -> bool {
        true
    }

    fn reads_arguments(&self) -> bool {
        false
    }

    fn enforces_deadline(&self) -> bool {
        true
    }
}

/// Creates a call that starts now, with this timeout.
pub(crate) fn invocation(clock: &ManualClock, timeout: Duration) -> Invocation {
    let aside = Invocation::scripted("scripted", Limits { timeout, ..Limits::default() });
    Invocation { started: clock.now(), ..aside }
}

impl Invocation {
    /// Creates a call that no executor made.
    pub(crate) fn scripted(tool: &str, limits: Limits) -> Self {
        let call = ToolCall::new("1", tool, "{}");
        Self::outside_call(call, serde_json::json!({}), CallContext::default(), limits)
    }
}

/// Asserts that a middleware passes everything but calls to the inner handler, whose methods all
/// differ from the defaults.
pub(crate) async fn assert_delegates(handler: &dyn Handler) {
    let clock = ManualClock::new();
    let invocation = Arc::new(invocation(&clock, Duration::from_secs(1)));
    assert!(!handler.visible(Arc::clone(&invocation)).await);
    assert_eq!(handler.validate(invocation).await.unwrap(), [Fault::new("", "scripted")]);
    assert!(handler.enforces_deadline() && !handler.reads_arguments());
    assert!(handler.always_visible());
    assert_eq!(handler.digest(), Some("scripted"));
}
