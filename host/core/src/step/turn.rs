//! The state of an agent loop between its steps.
//!
//! A turn is everything between a person's message and the model's final answer. The loop creates a
//! [`Turn`] with its settings: context, language, limits, the stop signal. Each step reads and
//! updates it: errors in a row, and the tools that stay allowed. In [`Deliberate`] mode a loop lets
//! the person's words decide which tools a turn may call: with a list, only those tools can be
//! called; without one, all can. The mode keeps a tool allowed for some turns after a success, and
//! reports the word (trigger) that allowed a called tool. A loop that stores its state elsewhere
//! saves and restores a [`TurnMemory`]. No update spans an await, so a dropped step leaves a
//! consistent turn.
//!
//! Source: docs/contract.md, section 6.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toolcell_contract::call::{AbortSignal, CallContext};

use crate::tool::handler::options::CallOptions;

/// One turn of an agent loop: everything between a person's message and the model's final answer.
/// [`next_turn`](Self::next_turn) begins the next one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Turn {
    /// The options of each call. The context's `resume` is ignored, because an answer belongs to one
    /// call: see [`RawCall::with_resume`](crate::step::RawCall::with_resume). The limits only tighten
    /// the executor's, for example to the time that is left for the turn. `abort` stops the turn:
    /// give a clone of it to the code behind the stop button.
    pub call: CallOptions,
    /// The user's language. Tools get it as the context's extension `locale`, a JSON string.
    pub locale: Option<String>,
    /// The rounds that the loop has made, counted by the loop. From
    /// [`StepConfig::soft_warn_at`](crate::step::StepConfig::soft_warn_at) on, tools get
    /// the context's extension `show_kill_hint`, which is `true`; before, it is absent.
    pub iteration: u32,
    /// Deliberate mode. `None`: every tool can be called.
    pub deliberate: Option<Deliberate>,
    memory: TurnMemory,
}

/// Deliberate mode: a tool stays allowed for some turns after a success, and triggers are reported.
/// With a list of allowed tools, only these and the ones that stay allowed can be called; without a
/// list, every tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deliberate {
    /// The tools that can be called. `None`: all.
    pub allowed: Option<BTreeSet<String>>,
    /// For each tool, the trigger in the user's text that allowed it.
    pub triggers: BTreeMap<String, String>,
    /// Further turns in which a tool stays allowed after a success.
    pub context_turns: u32,
}

impl Deliberate {
    /// The number of further turns in which a tool stays allowed after a success in deliberate
    /// mode, so that a user can ask for the same again.
    pub const DEFAULT_CONTEXT_TURNS: u32 = 2;

    /// Allows only these tools. A tool stays allowed for [`Deliberate::DEFAULT_CONTEXT_TURNS`]
    /// after a success.
    pub fn new(allowed: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            allowed: Some(allowed.into_iter().map(Into::into).collect()),
            ..Self::unrestricted()
        }
    }

    /// Allows every tool. Triggers are reported.
    #[must_use]
    pub fn unrestricted() -> Self {
        Self {
            allowed: None,
            triggers: BTreeMap::new(),
            context_turns: Self::DEFAULT_CONTEXT_TURNS,
        }
    }

    /// Allows this tool too, because `trigger` matched.
    #[must_use]
    pub fn with_trigger(mut self, tool: impl Into<String>, trigger: impl Into<String>) -> Self {
        let tool = tool.into();
        if let Some(allowed) = &mut self.allowed {
            allowed.insert(tool.clone());
        }
        self.triggers.insert(tool, trigger.into());
        self
    }

    /// Sets the number of further turns in which a tool stays allowed after a success.
    #[must_use]
    pub fn with_context_turns(mut self, turns: u32) -> Self {
        self.context_turns = turns;
        self
    }
}

/// The state that a turn carries from step to step, for loops that store it elsewhere between two
/// requests.
///
/// # Shape
/// As JSON: `{"errors", "windows"}`; absent members are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TurnMemory {
    /// Errors since the last success or restart.
    pub errors: u32,
    /// Tools that stay allowed, and for how many turns after this one.
    pub windows: BTreeMap<String, u32>,
}

impl Default for Turn {
    fn default() -> Self {
        Self::new(CallContext::default())
    }
}

impl Turn {
    /// Creates the first turn: no locale, no tighter limits, every tool allowed, a new abort
    /// signal.
    #[must_use]
    pub fn new(context: CallContext) -> Self {
        let (context, abort) = (context.into(), AbortSignal::new());
        Self {
            call: CallOptions { context, abort, ..CallOptions::default() },
            locale: None,
            iteration: 0,
            deliberate: None,
            memory: TurnMemory::default(),
        }
    }

    /// Returns the state that the turn carries so far.
    #[must_use]
    pub fn memory(&self) -> TurnMemory {
        self.memory.clone()
    }

    /// Continues with this state.
    #[must_use]
    pub fn with_memory(mut self, memory: TurnMemory) -> Self {
        self.memory = memory;
        self
    }

    /// Begins the next turn: iterations and errors count from zero, tools stay allowed for one turn
    /// less, and there is a new abort signal, because a stop applies to one turn.
    /// Everything else stays.
    pub fn next_turn(&mut self) {
        (self.iteration, self.memory.errors, self.call.abort) = (0, 0, AbortSignal::new());
        self.memory.windows.retain(|_, left| {
            let open = *left > 0;
            *left = left.saturating_sub(1);
            open
        });
    }

    /// Stops the turn: no further tool starts, and running tools are ended, at once or after the
    /// grace of [`call`](Self::call).
    pub fn stop(&self) {
        self.call.abort.raise();
    }

    /// Returns true if the tool may be called in this turn.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        self.allow_list()
            .is_none_or(|allowed| allowed.contains(name) || self.memory.windows.contains_key(name))
    }

    /// Returns the tools that can be called, if there is a list of allowed tools: those of the list
    /// and those that stay allowed.
    #[must_use]
    pub fn allowed_names(&self) -> Option<BTreeSet<&str>> {
        let windows = self.memory.windows.keys();
        Some(self.allow_list()?.iter().chain(windows).map(String::as_str).collect())
    }

    fn allow_list(&self) -> Option<&BTreeSet<String>> {
        self.deliberate.as_ref()?.allowed.as_ref()
    }

    /// Returns the number of errors since the last success or restart.
    #[must_use]
    pub fn consecutive_errors(&self) -> u32 {
        self.memory.errors
    }

    /// Returns the trigger that allowed this tool.
    pub(super) fn trigger(&self, name: &str) -> Option<&str> {
        self.deliberate.as_ref()?.triggers.get(name).map(String::as_str)
    }

    /// Keeps a tool allowed after a success; in deliberate mode only.
    pub(super) fn keep_allowed(&mut self, name: &str) {
        if let Some(deliberate) = &self.deliberate {
            let left = self.memory.windows.entry(name.to_owned()).or_default();
            *left = deliberate.context_turns.max(*left);
        }
    }

    /// Counts a success or a restart.
    pub(super) fn count_success(&mut self) {
        self.memory.errors = 0;
    }

    /// Counts an error.
    pub(super) fn count_error(&mut self) {
        self.memory.errors = self.memory.errors.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_close_after_their_turns() {
        for turns in [0, 1, 2, 5] {
            let deliberate = Some(Deliberate::new(["draw"]).with_context_turns(turns));
            let mut turn = Turn { deliberate, ..Turn::default() };
            turn.keep_allowed("draw");
            turn.deliberate = Some(Deliberate::new(["other"]));
            for further in 1..=turns {
                turn.next_turn();
                let allowed = turn.allowed_names().unwrap();
                assert_eq!(allowed, ["draw", "other"].into(), "{further} of {turns}");
            }
            turn.next_turn();
            assert!(!turn.allows("draw") && turn.allows("other"), "{turns}");
        }
    }

    #[test]
    fn unrestricted_mode_allows_all_and_opens_windows() {
        let deliberate = Deliberate::unrestricted().with_trigger("draw", "a picture of");
        let deliberate = Some(deliberate.with_context_turns(1));
        let mut turn = Turn { deliberate, ..Turn::default() };
        assert!(turn.allows("anything") && turn.allowed_names().is_none());
        assert_eq!(turn.trigger("draw"), Some("a picture of"));
        turn.keep_allowed("sing");
        turn.next_turn();
        turn.deliberate = Some(Deliberate::new(["draw"]));
        assert_eq!(turn.allowed_names(), Some(["draw", "sing"].into()));
    }

    #[test]
    fn windows_open_only_in_deliberate_mode_and_only_grow() {
        let mut turn = Turn::default();
        turn.keep_allowed("draw");
        assert!(turn.allows("anything") && turn.allowed_names().is_none());
        turn.deliberate = Some(Deliberate::new(["draw"]).with_context_turns(3));
        turn.keep_allowed("draw");
        turn.deliberate = Some(Deliberate::new([""; 0]).with_context_turns(1));
        turn.keep_allowed("draw");
        assert_eq!(turn.memory.windows, [("draw".to_owned(), 3)].into());
    }

    #[test]
    fn next_turn_resets_counters_and_abort() {
        let mut turn = Turn { iteration: 7, ..Turn::default() };
        turn.count_error();
        turn.stop();
        turn.next_turn();
        assert_eq!((turn.iteration, turn.consecutive_errors()), (0, 0));
        assert!(!turn.call.abort.is_raised());
    }
}
