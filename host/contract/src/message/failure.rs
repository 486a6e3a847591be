//! The failure of a call as one type, for policies, encoders and retries.
//!
//! A call can fail in three ways: its handler (the code of the tool) reports an error, gives no
//! valid answer (a tool error), or the host refuses the call before the handler runs (a refusal).
//! [`Failure::of`] takes the result of a call and returns the [`Failure`], or `None` for a success,
//! a question and a halt. It answers if the same call may succeed later, after which wait, and
//! gives the texts that a model reads. Running out of fuel (the budget of instructions) does not
//! count as retryable, because a repetition costs the same.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::call::{CallResult, Completion};
use crate::json::Json;
use crate::outcome::refusal::Refusal;
use crate::outcome::tool_error::{Exit, Timeout, ToolError};
use crate::outcome::{HandlerError, Outcome};

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
                ToolError::HandlerExit(Exit::ProcessEnded) => true,
                // A repetition costs the same fuel and ends in the same way.
                ToolError::Timeout(Timeout::Fuel { .. })
                | ToolError::HandlerExit(Exit::Exited { .. })
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

impl Completion {
    /// Returns the failure of the call: the handler's error, a tool error or a refusal. `None` for
    /// an [`output`](Self::output), a question and a halt.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        Failure::of(&self.result)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::call::usage::Usage;
    use crate::cases::rows;

    #[test]
    fn completion_has_output_or_failure_or_neither() {
        for (result, has_output, has_failure) in rows::<(CallResult, bool, bool)>(
            "message/failure",
            "completion_has_output_or_failure_or_neither",
        ) {
            let (usage, attributes) = (Usage::default(), BTreeMap::new());
            let completion =
                Completion { id: "1".into(), tool: "t".into(), result, usage, attributes };
            let found = (completion.output().is_some(), completion.failure().is_some());
            assert_eq!(found, (has_output, has_failure), "{completion:?}");
        }
    }
}
