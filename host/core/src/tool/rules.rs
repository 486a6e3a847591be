//! An embedder's own rules for a tool: visibility, admission of calls, checks of arguments.
//!
//! The embedder (the program that uses this library) adds them with `Tool::with_visibility`,
//! `with_can_execute` and `with_validator`. Before a handler (the code of a tool) runs, the
//! executor calls [`Rules::gate`] for the first two kinds and, once the arguments fit the schema,
//! [`Rules::problems`] for the third. The result is permission, a refusal, or a list of faults. All
//! rules of a kind have to allow the call. A rule of visibility or admission that panics refuses
//! the call; a check of arguments that panics is an error, because the arguments may be right.
//!
//! Source: docs/contract.md, sections 4 and 5.

use std::sync::Arc;

use serde_json::Value;
use toolcell_contract::call::{CallContext, ToolCall};
use toolcell_contract::outcome::refusal::{Fault, Refusal};
use toolcell_contract::panic_guard::{Panic, catch_panic, guarded};

type Visible = dyn Fn(&Value, &CallContext) -> bool + Send + Sync;
type CallRule = dyn Fn(&ToolCall) -> bool + Send + Sync;
type Validate = dyn Fn(&Value) -> Vec<String> + Send + Sync;

/// The rules of each kind. All rules of a kind have to allow the call.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    pub(crate) visible: Vec<Arc<Visible>>,
    pub(crate) takes: Vec<Arc<CallRule>>,
    pub(crate) validate: Vec<Arc<Validate>>,
}

impl Rules {
    /// Returns true if the tool is offered.
    pub(crate) fn show(&self, arguments: &Value, context: &CallContext) -> bool {
        self.visible.iter().all(|rule| guarded(|| rule(arguments, context)).unwrap_or(false))
    }

    /// Returns true if the tool accepts this call.
    pub(crate) fn take(&self, call: &ToolCall) -> bool {
        self.takes.iter().all(|rule| guarded(|| rule(call)).unwrap_or(false))
    }

    /// Refuses a call that is not visible or not allowed, whatever the checks say about its
    /// arguments.
    pub(crate) fn gate(
        &self,
        call: &ToolCall,
        arguments: &Value,
        context: &CallContext,
    ) -> Result<(), Refusal> {
        if !self.show(arguments, context) {
            return Err(Refusal::NotVisible);
        }
        if self.take(call) { Ok(()) } else { Err(Refusal::NotAllowed) }
    }

    /// Returns every fault that the checks find in arguments that fit the schema.
    ///
    /// # Errors
    /// A check panicked, so nothing is known about the arguments.
    pub(crate) fn problems(&self, arguments: &Value) -> Result<Vec<Fault>, Panic> {
        let mut problems = Vec::new();
        for rule in &self.validate {
            problems.extend(catch_panic(|| rule(arguments))?);
        }
        Ok(Fault::of_handler(problems))
    }
}
