//! Decides what a run does after a failure.
//!
//! In: a failed call. Out: a [`Verdict`].
//! Source: docs/contract.md, section 3 (`on_tool_error`).

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::call::{CallResult, ToolCall};
use crate::json::Json;
use crate::outcome::{HandlerError, Outcome};
use crate::refusal::Refusal;
use crate::tool_error::{Exit, Timeout, ToolError};

/// A failed call. The variant says which part failed it.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The handler reported an error.
    Error(HandlerError),
    /// The handler gave no valid answer.
    ToolError(ToolError),
    /// The host refused the call before the handler ran.
    Refusal(Refusal),
}

impl Failure {
    /// Returns the failure of a result, or `None` if the result is not a failure.
    #[must_use]
    pub fn of(result: &CallResult) -> Option<Self> {
        match result {
            CallResult::Outcome(Outcome::Error(error)) => Some(Self::Error(error.clone())),
            CallResult::ToolError(error) => Some(Self::ToolError(error.clone())),
            CallResult::Refusal(refusal) => Some(Self::Refusal(refusal.clone())),
            CallResult::Outcome(Outcome::Ok(_) | Outcome::AskUser(_) | Outcome::Halt(_)) => None,
        }
    }

    /// Returns true if the same call may succeed later. A handler's error with a `retry_after`
    /// counts as retryable, unless it says that it is not.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Error(error) => error.retryable.unwrap_or(error.retry_after_ms.is_some()),
            Self::ToolError(error) => match error {
                // The machine or the awaited resource may be less busy later.
                ToolError::Timeout(Timeout::Deadline { .. } | Timeout::Blocked { .. }) => true,
                ToolError::HandlerExit(Exit::Died) => true,
                // A repetition costs the same fuel and ends in the same way.
                ToolError::Timeout(Timeout::Fuel { .. })
                | ToolError::HandlerExit(Exit::Called { .. })
                // The caller has cancelled the call.
                | ToolError::HandlerExit(Exit::Cancelled)
                | ToolError::HandlerRaised(_)
                | ToolError::InvalidReturn(_)
                | ToolError::NotFound
                | ToolError::EncodingFailed(_) => false,
            },
            Self::Refusal(refusal) => refusal.retry_after().is_some(),
        }
    }

    /// Returns the time to wait before the same call is made again, if the failure gives one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Error(error) => error.retry_after_ms.map(Duration::from_millis),
            Self::ToolError(_) => None,
            Self::Refusal(refusal) => refusal.retry_after(),
        }
    }
}

impl Failure {
    /// Returns all faults, in words for a model. Joined by `; ` they are the text of the failure.
    #[must_use]
    pub fn errors(&self) -> Vec<String> {
        match self {
            Self::Refusal(Refusal::InvalidArguments(faults)) => {
                faults.iter().map(ToString::to_string).collect()
            }
            Self::Error(_) | Self::ToolError(_) | Self::Refusal(_) => vec![self.to_string()],
        }
    }

    /// Returns the data that the handler returned with its message. For a command that was ended
    /// this is `{"stdout": …}`, the text that the command had printed.
    #[must_use]
    pub fn data(&self) -> Option<Cow<'_, Json>> {
        match self {
            Self::Error(error) => error.data.as_ref().map(Cow::Borrowed),
            Self::ToolError(error) => error
                .stdout()
                .map(|stdout| Cow::Owned(serde_json::json!({ "stdout": stdout }).into())),
            Self::Refusal(_) => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => f.write_str(&error.message),
            Self::ToolError(error) => error.fmt(f),
            Self::Refusal(refusal) => refusal.fmt(f),
        }
    }
}

/// The decision about a failure.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The run continues, and the model gets this value instead of the failure.
    Continue(Json),
    /// The running calls finish, and the run halts.
    Halt,
}

/// A function that decides about a failure. See [`OnToolError::decide`] and
/// [`OnToolError::decide_async`].
#[derive(Clone)]
pub struct Policy(pub(crate) PolicyKind);

#[derive(Clone)]
pub(crate) enum PolicyKind {
    Blocking(Arc<Decide>),
    Async(Arc<DecideAsync>),
}

pub(crate) type Decide = dyn Fn(&ToolCall, &Failure) -> Verdict + Send + Sync;
pub(crate) type DecideAsync = dyn Fn(ToolCall, Failure) -> VerdictFuture + Send + Sync;
pub(crate) type VerdictFuture = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// The rule for failures in a run: handlers' errors, tool errors and refusals alike.
///
/// # Defaults
/// [`Continue`](Self::Continue).
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum OnToolError {
    /// The model gets the failure as `{"error": …}`, and the run continues.
    #[default]
    Continue,
    /// The running calls finish, and the run halts.
    Halt,
    /// A function decides.
    Decide(Policy),
}

impl OnToolError {
    /// Decides with a function that may block. It is called once per failure, on a thread of its
    /// own. It sees none of the call's task-locals, but the run's runtime and tracing span are
    /// entered there. It has as much time as the call had, counted anew. If it panics, or does not
    /// return in time, the run halts.
    pub fn decide(
        function: impl Fn(&ToolCall, &Failure) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        Self::Decide(Policy(PolicyKind::Blocking(Arc::new(function))))
    }

    /// Decides with an async function. It is called once per failure, in the call's own task, so it
    /// sees the task-locals and the tracing span of the task that awaits the run. It must not
    /// block: that would hold up the other calls of the run. Time and panics count as for
    /// [`decide`](Self::decide). When its time is over, its future is dropped.
    ///
    /// ```
    /// use toolcell::{OnToolError, Verdict};
    ///
    /// let policy = OnToolError::decide_async(async |call, failure| match failure.is_retryable() {
    ///     true => Verdict::Continue(serde_json::json!(format!("{} is busy, try later", call.name)).into()),
    ///     false => Verdict::Halt,
    /// });
    /// ```
    pub fn decide_async<Answer>(
        function: impl Fn(ToolCall, Failure) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        Answer: Future<Output = Verdict> + Send + 'static,
    {
        let function = move |call, failure| -> VerdictFuture { Box::pin(function(call, failure)) };
        Self::Decide(Policy(PolicyKind::Async(Arc::new(function))))
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            PolicyKind::Blocking(_) => "Policy::Blocking",
            PolicyKind::Async(_) => "Policy::Async",
        })
    }
}

impl fmt::Debug for OnToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Continue => "Continue",
            Self::Halt => "Halt",
            Self::Decide(_) => "Decide",
        })
    }
}
