//! The rule for what a run or a step does after a failed call.
//!
//! The embedder (the program that uses this library) chooses an [`OnToolError`]: pass the failure
//! on to the model and continue, halt, or ask a function. Such a function, a [`Policy`], is
//! blocking or async, gets the call and its failure, and returns a [`Verdict`]: a value for the
//! model in place of the failure, or a halt. The rule applies to errors that a tool's own code
//! reports, tool errors and refusals alike.
//!
//! Not here: asking the function, with its time limit and panic guard, in `runner/ask`.
//!
//! Source: docs/contract.md, section 3 (`on_tool_error`).

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolcell_contract::call::ToolCall;
use toolcell_contract::json::Json;
use toolcell_contract::message::failure::Failure;

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
pub(crate) type DecideAsync =
    dyn Fn(ToolCall, Failure) -> BoxFuture<'static, Verdict> + Send + Sync;

/// The rule for failures in a run: handlers' errors, tool errors and refusals alike.
///
/// # Defaults
/// [`Continue`](Self::Continue).
#[derive(Debug, Clone, Default)]
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
    /// use toolcell::OnToolError;
    /// use toolcell::run::Verdict;
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
        let function = move |call, failure| -> BoxFuture<'static, Verdict> {
            Box::pin(function(call, failure))
        };
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
