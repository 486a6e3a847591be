//! The state that the calls of a run share: executor, encoder, options, tools.
//!
//! `Batch` builds one [`Shared`] for a run, and each call holds a reference to it. The tools are a
//! snapshot from the start of the run, so later registrations do not change the run.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use toolcell_contract::call::ToolCall;
use toolcell_contract::message::encode::GuardedEncoder;

use super::RunOptions;
use crate::executor::Executor;
use crate::run::policy::OnToolError;
use crate::run::registry::Toolbox;
use crate::tool::Tool;

/// The state that the calls of a run share.
pub(super) struct Shared {
    pub(super) executor: Executor,
    pub(super) encoder: GuardedEncoder,
    pub(super) options: RunOptions,
    pub(super) deciding: Arc<Semaphore>,
    /// The tools at the start of the run. Later registrations do not change it.
    pub(super) toolbox: Toolbox,
}

impl Shared {
    /// Returns the time that a call of this tool has.
    pub(super) fn time_of_a_call(&self, tool: &Tool) -> Duration {
        tool.tightened(self.executor.limits().tightened(&self.options.limits_of_a_call())).timeout
    }

    /// Copies a call for a policy function. `None` if the policy is not a function, because the
    /// copy would not be read.
    pub(super) fn copy_for_policy(&self, call: &ToolCall) -> Option<Box<ToolCall>> {
        matches!(self.options.on_tool_error, OnToolError::Decide(_)).then(|| Box::new(call.clone()))
    }
}
