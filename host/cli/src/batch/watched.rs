//! A run that tells an end of every call, also when it is given up.
//!
//! In: a run, the signal that gives it up, and the halt of a call that could not be read. Out: the
//! run's events; of the calls that have not ended when it is given up, those of cancelled calls.
//! Invariants: each call has one last event; a call that ended before keeps its own; a call starts
//! once.

use std::collections::HashSet;

use toolcell::{
    AbortSignal, Event, Halted, OnToolError, RunEvent, RunOptions, RunStream, Runner, ToolCall,
};

use super::calls::{List, UnreadableHalt};

/// A run and what is known of its calls.
pub(super) struct Watched {
    runner: Runner,
    options: RunOptions,
    /// All of them, in order.
    calls: Vec<ToolCall>,
    run: RunStream,
    given_up: AbortSignal,
    is_given_up: bool,
    started: HashSet<String>,
    ended: HashSet<String>,
    /// Why the run halted before it was given up.
    halted: Option<Halted>,
    unreadable: Option<UnreadableHalt>,
    /// The event of the halt was told.
    is_halt_told: bool,
}

impl Watched {
    pub(super) fn new(
        runner: Runner,
        list: List,
        options: RunOptions,
        given_up: AbortSignal,
    ) -> Self {
        let unreadable = list.halt().filter(|_| matches!(options.on_tool_error, OnToolError::Halt));
        let calls = list.calls;
        let run = runner.stream(calls.clone(), options.clone());
        let (started, ended) = (HashSet::new(), HashSet::new());
        Self {
            runner,
            options,
            calls,
            run,
            given_up,
            is_given_up: false,
            started,
            ended,
            halted: None,
            unreadable,
            is_halt_told: false,
        }
    }

    /// The next event; none after the last.
    pub(super) async fn next(&mut self) -> Option<RunEvent> {
        loop {
            let event = tokio::select! {
                biased;
                // What has come about is told first: the end of a call is its own.
                event = self.run.next() => match event {
                    Some(event) => event,
                    None => return self.halt(),
                },
                () = self.given_up.raised(), if !self.is_given_up => {
                    self.give_up();
                    continue;
                }
            };
            match &event {
                RunEvent::Call(Event::Started { id, .. }) if !self.started.insert(id.clone()) => {
                    continue;
                }
                RunEvent::Settled { message, .. } => {
                    drop(self.ended.insert(message.tool_call_id.clone()))
                }
                RunEvent::Halted(_) => return self.halt(),
                RunEvent::Call(_) | RunEvent::Error(_) | _ => {}
            }
            return Some(event);
        }
    }

    /// The event of the halt, once. Of two runs that halted the first counts.
    fn halt(&mut self) -> Option<RunEvent> {
        let is_told = std::mem::replace(&mut self.is_halt_told, true);
        self.halted().filter(|_| !is_told).map(RunEvent::Halted)
    }

    /// Drops the calls that have not ended, and makes a run of them in which none is made.
    fn give_up(&mut self) {
        self.is_given_up = true;
        self.halted = self.run.halted().cloned();
        let mut rest = std::mem::take(&mut self.calls);
        rest.retain(|call| !self.ended.contains(&call.id));
        let abort = AbortSignal::new();
        abort.raise();
        self.run = self.runner.stream(rest, self.options.clone().with_abort(abort));
    }

    /// Why the loop is not to go on: final once the last event was told.
    pub(super) fn halted(&self) -> Option<Halted> {
        let made = self.halted.clone().or_else(|| self.run.halted().cloned());
        match &self.unreadable {
            Some(unreadable) => Some(unreadable.or_earlier(made)),
            None => made,
        }
    }
}
