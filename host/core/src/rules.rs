//! An embedder's own rules for a tool: who is offered it, which calls it takes, which arguments are
//! good.
//!
//! In: a call. Out: yes, or a refusal.
//! Invariants: a rule of visibility or admission that panics refuses the call; a check that panics
//! fails it.
//! Source: docs/contract.md, sections 4 and 5.

use std::sync::Arc;

use serde_json::Value;

use crate::call::{CallContext, ToolCall};
use crate::fence::{Panic, caught, fenced};
use crate::refusal::{Fault, Refusal};

type Visible = dyn Fn(&Value, &CallContext) -> bool + Send + Sync;
type Takes = dyn Fn(&ToolCall) -> bool + Send + Sync;
type Validate = dyn Fn(&Value) -> Vec<String> + Send + Sync;

/// The rules of each kind. All rules of a kind have to agree.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    pub(crate) visible: Vec<Arc<Visible>>,
    pub(crate) takes: Vec<Arc<Takes>>,
    pub(crate) validate: Vec<Arc<Validate>>,
}

impl Rules {
    /// Whether the tool is offered.
    pub(crate) fn show(&self, arguments: &Value, context: &CallContext) -> bool {
        self.visible.iter().all(|rule| fenced(|| rule(arguments, context)).unwrap_or(false))
    }

    /// Whether the tool takes this call.
    pub(crate) fn take(&self, call: &ToolCall) -> bool {
        self.takes.iter().all(|rule| fenced(|| rule(call)).unwrap_or(false))
    }

    /// The refusal of a call that may not be made, whatever its arguments are worth.
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

    /// Everything that is wrong with arguments that fit the schema.
    ///
    /// # Errors
    /// A check panicked, which says nothing about the arguments.
    pub(crate) fn problems(&self, arguments: &Value) -> Result<Vec<Fault>, Panic> {
        let mut problems = Vec::new();
        for rule in &self.validate {
            problems.extend(caught(|| rule(arguments))?);
        }
        Ok(Fault::of_handler(problems))
    }
}
