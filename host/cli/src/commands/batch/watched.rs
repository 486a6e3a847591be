//! A run of calls that yields a last event for every call, also if the run is given up.
//!
//! `batch` creates a [`Watched`] and reads its events until there are none. First are the answers
//! of the calls that could not be read, then the events of the library's run. If the user presses
//! Ctrl-C again, the signal that gives the run up is raised. The calls that have not ended are then
//! dropped, and a second run, which is aborted from the beginning, yields the events of cancelled
//! calls for them. A call that had ended before keeps its own end, and no call has two start
//! events. If the list had a call that could not be read and failures halt the run, the earlier of
//! the two halts counts.

use std::collections::HashSet;

use toolcell::message::Message;
use toolcell::run::{RunEvent, RunHalt, RunStream, SettledCall};
use toolcell::{AbortSignal, Event, OnToolError, RunOptions, Runner, ToolCall};

use super::calls::List;

/// A run, and the state of its calls.
pub(super) struct Watched {
    runner: Runner,
    options: RunOptions,
    /// All calls in order, until the run is given up.
    calls: Vec<ToolCall>,
    run: RunStream,
    /// The answers of the calls that cannot be read. They come first.
    unread: std::vec::IntoIter<Message>,
    given_up: AbortSignal,
    is_given_up: bool,
    started: HashSet<String>,
    ended: HashSet<String>,
    /// The halt of the run before it was given up.
    halted: Option<RunHalt>,
    /// The halt by a call that cannot be read, and the ids of the calls before it.
    unreadable: Option<(RunHalt, HashSet<String>)>,
    /// True once the event of the halt was returned.
    is_halt_sent: bool,
}

impl Watched {
    pub(super) fn new(
        runner: Runner,
        list: List,
        options: RunOptions,
        given_up: AbortSignal,
    ) -> Self {
        let unreadable = list.halt().filter(|_| matches!(options.on_tool_error, OnToolError::Halt));
        let unread = list.unreadable_messages().collect::<Vec<_>>().into_iter();
        let calls = list.calls;
        let run = runner.stream(calls.clone(), options.clone());
        let (started, ended) = (HashSet::new(), HashSet::new());
        Self {
            runner,
            options,
            calls,
            run,
            unread,
            given_up,
            is_given_up: false,
            started,
            ended,
            halted: None,
            unreadable,
            is_halt_sent: false,
        }
    }

    /// Returns the next event; none after the last.
    pub(super) async fn next(&mut self) -> Option<RunEvent> {
        if let Some(message) = self.unread.next() {
            let (id, content) = (message.tool_call_id.clone(), message.content.clone());
            let settled = SettledCall::Encoded { id, content };
            return Some(RunEvent::Settled { settled, message });
        }
        loop {
            let event = tokio::select! {
                biased;
                // Events that are ready come first, so that a call that has ended keeps its own
                // end.
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
                    self.ended.insert(message.tool_call_id.clone());
                }
                RunEvent::Halted(_) => return self.halt(),
                RunEvent::Call(_) | RunEvent::Error(_) | _ => {}
            }
            return Some(event);
        }
    }

    /// Returns the event of the halt, once. If both runs halted, the first counts.
    fn halt(&mut self) -> Option<RunEvent> {
        let is_told = std::mem::replace(&mut self.is_halt_sent, true);
        self.halted().filter(|_| !is_told).map(RunEvent::Halted)
    }

    /// Drops the calls that have not ended, and starts a run of them that is aborted from the
    /// beginning.
    fn give_up(&mut self) {
        self.is_given_up = true;
        self.halted = self.run.halted().cloned();
        let mut rest = std::mem::take(&mut self.calls);
        rest.retain(|call| !self.ended.contains(&call.id));
        let mut options = self.options.clone();
        options.call.abort = AbortSignal::new();
        options.call.abort.raise();
        self.run = self.runner.stream(rest, options);
    }

    /// Returns the halt of the run. It is final once the last event was returned.
    pub(super) fn halted(&self) -> Option<RunHalt> {
        let made = self.halted.clone().or_else(|| self.run.halted().cloned());
        match &self.unreadable {
            // The first call of the list that halts counts.
            Some((halt, before)) => {
                let earlier = made.filter(|made| before.contains(made.tool_call_id()));
                Some(earlier.unwrap_or_else(|| halt.clone()))
            }
            None => made,
        }
    }
}
