//! Reads the tool calls from a complete list of AG-UI events.
//!
//! A call is started, given arguments and ended by separate events, or it comes in chunks, which
//! need no end event: it ends with its last chunk. [`calls`] takes the list and returns the calls
//! in the order in which they begin. A call without its end, or one whose chunks are followed by
//! `RUN_ERROR`, is unreadable, because a part of its arguments may be missing. An error in one
//! call's events does not affect the others.
//!
//! Source: the protocol's reference of events.

use std::collections::BTreeMap;

use toolcell_contract::call::ToolCall;
use toolcell_contract::json::or_empty_object;

use crate::calls::{Calls, Read, UnreadableCall};
use crate::place::Place;
use crate::{Converted, Provider, ProviderError};

/// Returns the calls, in the order in which they begin.
pub(super) fn calls(events: &[Place<'_>]) -> Converted<Calls> {
    let mut list = List::default();
    // The call that chunks without an id belong to.
    let mut chunked: Option<&str> = None;
    for event in events {
        let kind = event.text("type", "an event")?;
        let id = event.text("toolCallId", "the id of the call");
        match kind {
            "TOOL_CALL_START" => list.start(id, event, State::Open),
            "TOOL_CALL_ARGS" => list.add(id, event),
            "TOOL_CALL_END" => list.end(id, event),
            "TOOL_CALL_CHUNK" => {
                let id = id.or_else(|error| {
                    chunked.filter(|_| event.get("toolCallId").is_none()).ok_or(error)
                });
                chunked = id.as_ref().ok().copied().or(chunked);
                list.chunk(id, event);
                continue;
            }
            "RUN_ERROR" => list.cut(chunked),
            // Events of another protocol are passed through between those of this one.
            "RAW" => continue,
            _ => event.check_is_own()?,
        }
        chunked = None;
    }
    Ok(Calls::of(list.calls.into_iter().map(Reading::read)))
}

/// The way in which a call ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// By an event that has not arrived.
    Open,
    Ended,
    /// With its last chunk.
    Chunks,
}

/// A call whose events are being read.
struct Reading<'p> {
    id: Option<&'p str>,
    name: Option<&'p str>,
    arguments: String,
    state: State,
    /// Its first event.
    first: Place<'p>,
    /// The first error.
    problem: Option<ProviderError>,
}

/// The calls of a list.
#[derive(Default)]
struct List<'p> {
    calls: Vec<Reading<'p>>,
    places: BTreeMap<&'p str, usize>,
}

impl<'p> List<'p> {
    /// Returns the call with this id and true if this event begins it. Creates the call if it is
    /// new.
    fn call(
        &mut self,
        id: Converted<&'p str>,
        event: &Place<'p>,
        state: State,
    ) -> (&mut Reading<'p>, bool) {
        let known = id.as_ref().ok().and_then(|id| self.places.get(id)).copied();
        let place = known.unwrap_or(self.calls.len());
        if known.is_none() {
            let readable = id.as_ref().ok().copied();
            self.places.extend(readable.map(|id| (id, place)));
            self.calls.push(Reading {
                id: readable,
                name: None,
                arguments: String::new(),
                state,
                first: event.clone(),
                problem: id.err(),
            });
        }
        (&mut self.calls[place], known.is_none())
    }

    fn start(&mut self, id: Converted<&'p str>, event: &Place<'p>, state: State) {
        let (call, is_new) = self.call(id, event, state);
        if !is_new {
            return call.record_error(event.malformed("a call that was not started before"));
        }
        match event.text("toolCallName", "the name of the tool") {
            Ok(name) => call.name = Some(name),
            Err(error) => call.record_error(error),
        }
    }

    fn add(&mut self, id: Converted<&'p str>, event: &Place<'p>) {
        const EXPECTED: &str = "a piece of the arguments";
        let Some(call) = self.running(id, event) else { return };
        let delta = event.need("delta", EXPECTED);
        let text =
            delta.and_then(|delta| delta.value.as_str().ok_or_else(|| delta.malformed(EXPECTED)));
        match text {
            Ok(text) => call.arguments.push_str(text),
            Err(error) => call.record_error(error),
        }
    }

    fn end(&mut self, id: Converted<&'p str>, event: &Place<'p>) {
        if let Some(call) = self.running(id, event) {
            call.state = State::Ended;
        }
    }

    /// Returns the call with this id, if it was started and has not ended. If not, this is recorded
    /// as its error.
    fn running(&mut self, id: Converted<&'p str>, event: &Place<'p>) -> Option<&mut Reading<'p>> {
        let (call, is_new) = self.call(id, event, State::Open);
        let is_running = !is_new && call.state != State::Ended;
        if !is_running {
            call.record_error(event.malformed("a call that was started and not ended"));
        }
        Some(call).filter(|_| is_running)
    }

    /// Marks a call as cut: the run failed while chunks of it arrived, so a part of it may be
    /// missing.
    fn cut(&mut self, id: Option<&str>) {
        if let Some(place) = id.and_then(|id| self.places.get(id)) {
            self.calls[*place].record_error(ProviderError::Truncated {
                provider: Provider::AgUi,
                reason: "RUN_ERROR".into(),
            });
        }
    }

    fn chunk(&mut self, id: Converted<&'p str>, event: &Place<'p>) {
        if !id.as_ref().is_ok_and(|id| self.places.contains_key(id)) {
            self.start(id.clone(), event, State::Chunks);
        }
        if id.is_ok() && event.get("delta").is_some() {
            self.add(id, event);
        }
    }
}

impl<'p> Reading<'p> {
    fn record_error(&mut self, error: ProviderError) {
        self.problem.get_or_insert(error);
    }

    fn read(self) -> Read {
        let Self { id, name, arguments, state, first, problem } = self;
        let unfinished = || {
            (state == State::Open)
                .then(|| first.malformed("a call that is ended by `TOOL_CALL_END`"))
        };
        match (problem.or_else(unfinished), id, name) {
            (None, Some(id), Some(name)) => Ok(ToolCall::new(id, name, or_empty_object(arguments))),
            (problem, ..) => {
                let error =
                    problem.unwrap_or_else(|| first.malformed("a call with an id and a name"));
                Err(UnreadableCall::new(id, name, error))
            }
        }
    }
}
