//! The events of a running call: its start, progress, log lines, denied requests, end.
//!
//! An embedder (the program that uses this library) passes an [`EventSink`] to the executor. The
//! executor and the cell (a fresh WebAssembly instance for one call) then send it [`Event`]s while
//! the call runs, on the thread that runs the call. The order for each call is fixed: `Started`,
//! then any number of `Progress`, `Log` and `Denied`, then exactly one `Completed`, even if the
//! call was cancelled or something panicked. Events after the end are dropped. While a component's
//! call runs, a redactor removes secret values from each event.
//!
//! A sink runs under the mutex of its own call's events, with panics caught. It is the only code of
//! an embedder that runs under a mutex.

mod form;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::call::CallResult;
use super::call::usage::Usage;
use super::grants::rights::Denial;
use super::panic_guard::guarded;

/// One event of one call.
///
/// `Started` comes first, then any number of `Progress`, `Log` and `Denied`, then exactly one
/// `Completed`. `docs/events.md` lists all events with examples.
///
/// # Shape
/// As JSON: `{"type": "tool_execution_started" | "tool_progress" | "tool_log" | "tool_denied" |
/// "tool_execution_completed", …}` with the fields by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
#[non_exhaustive]
pub enum Event {
    /// The call gets a cell and starts, or its native handler starts. If the call is refused or
    /// gets no cell, this event comes at its end.
    #[serde(rename = "tool_execution_started")]
    Started {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments, unchanged.
        arguments: String,
    },
    /// The tool reported progress.
    #[serde(rename = "tool_progress")]
    Progress {
        /// The call.
        id: String,
        /// Units of work that are done.
        done: u64,
        /// Units of work in all, if known.
        total: Option<u64>,
        /// A line for a person.
        message: Option<String>,
    },
    /// A line of the tool's log. It is untrusted text: its size is limited, its content is not.
    #[serde(rename = "tool_log")]
    Log {
        /// The call.
        id: String,
        /// The place where the line was written.
        source: LogSource,
        /// Its level.
        level: LogLevel,
        /// The line.
        message: String,
    },
    /// The tool requested something that it is not granted. The request failed, and the call
    /// continues.
    #[serde(rename = "tool_denied")]
    Denied {
        /// The call.
        id: String,
        /// The denied request, and the smallest grant that would allow it.
        denial: Denial,
    },
    /// The call has ended. Exactly one per call.
    #[serde(rename = "tool_execution_completed")]
    Completed {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The result of the call.
        result: CallResult,
        /// The usage: the resources that the call took.
        usage: Usage,
        /// The id of the call whose tool made this one, if a tool did. The usage of this call is
        /// included in the usage of that one.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
}

/// The place where a log line was written.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    /// The `log` import.
    Log,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The host itself, about the call.
    Host,
}

/// The level of a log line.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Single steps of a computation.
    Trace,
    /// For the tool's author.
    Debug,
    /// For the operator. Lines on standard output have this level.
    Info,
    /// Something is unexpected. Lines on standard error have this level.
    Warn,
    /// Something failed.
    Error,
}

/// Receives the events of calls. A closure `Fn(Event)` is an event sink too.
///
/// It is called on the thread that runs the call, so it must be quick and must not block.
pub trait EventSink: Send + Sync + 'static {
    /// Receives one event. If it panics, the panic is caught, and only this event is lost.
    fn emit(&self, event: Event);
}

impl<F: Fn(Event) + Send + Sync + 'static> EventSink for F {
    fn emit(&self, event: Event) {
        self(event);
    }
}

/// An optional [`EventSink`]. Without a sink, events cost nothing.
#[derive(Clone, Default)]
#[doc(hidden)]
pub struct Events(Option<Arc<dyn EventSink>>);

impl Events {
    pub fn to(sink: Arc<dyn EventSink>) -> Self {
        Self(Some(sink))
    }

    /// Returns these events with an additional sink, which receives each event first.
    pub fn and(&self, sink: impl EventSink) -> Self {
        match self.0.clone() {
            None => Self::to(Arc::new(sink)),
            Some(first) => Self::to(Arc::new(move |event: Event| {
                let _ = guarded(|| sink.emit(event.clone()));
                first.emit(event);
            })),
        }
    }

    /// Builds and sends an event, if there is a sink.
    pub fn emit(&self, event: impl FnOnce() -> Event) {
        if let Some(sink) = &self.0 {
            // A panic of the sink must not become a failure of the tool.
            let _ = guarded(|| sink.emit(event()));
        }
    }
}

/// The events of one call: sends nothing before the first and nothing after the terminal event.
#[derive(Debug)]
#[doc(hidden)]
pub struct CallEvents {
    events: Events,
    state: Mutex<CallState>,
    redactor: Mutex<Option<EventRedactor>>,
}

/// The call redactor, which every event of a running call passes through.
#[derive(Clone)]
struct EventRedactor(Arc<dyn Fn(Event) -> Event + Send + Sync>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    /// The call waits for its turn.
    Waiting,
    /// The call runs.
    Open,
    Closed,
}

impl CallEvents {
    pub fn new(events: Events) -> Self {
        Self { events, state: Mutex::new(CallState::Waiting), redactor: Mutex::default() }
    }

    /// Sets the call redactor: from now on it rewrites every event of the running call.
    pub fn set_redactor(&self, redact: impl Fn(Event) -> Event + Send + Sync + 'static) {
        *self.redactor.lock() = Some(EventRedactor(Arc::new(redact)));
    }

    /// Sends the first event, if it was not sent yet.
    pub fn open(&self, started: impl FnOnce() -> Event) {
        self.at_stage(|stage| {
            if *stage == CallState::Waiting {
                *stage = CallState::Open;
                self.events.emit(started);
            }
        });
    }

    /// Sends an event, but only while the call runs. A guest that was killed can still log for up
    /// to a tick; such events are dropped.
    pub fn emit(&self, event: impl FnOnce() -> Event) {
        self.at_stage(|stage| {
            if *stage == CallState::Open {
                let redactor = self.redactor.lock().clone();
                self.events.emit(|| match redactor {
                    Some(EventRedactor(redact)) => redact(event()),
                    None => event(),
                });
            }
        });
    }

    /// Sends the terminal event. If the call never started, sends the first event before it.
    pub fn close(&self, started: impl FnOnce() -> Event, completed: impl FnOnce() -> Event) {
        self.open(started);
        self.at_stage(|stage| {
            if std::mem::replace(stage, CallState::Closed) == CallState::Open {
                self.events.emit(completed);
            }
        });
    }

    /// Calls `send` under the lock, so that the events of one call are sent one after the other.
    fn at_stage(&self, send: impl FnOnce(&mut CallState)) {
        if self.events.0.is_some() {
            send(&mut self.state.lock());
        }
    }
}

impl fmt::Debug for EventRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventRedactor")
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Events").field(&self.0.is_some()).finish()
    }
}
