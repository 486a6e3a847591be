//! What an observer sees of a call while it runs.
//!
//! In: the executor and the cell. Out: [`Event`]s at an [`EventSink`].
//! Invariants: per call `Started`, then any number of `Progress` and `Log`, then exactly one `Completed`, also when the
//! call was cancelled or something panicked.

mod written;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::call::CallResult;
use crate::fence::fenced;
use crate::rights::Denial;
use crate::usage::Usage;

/// One event of one call.
///
/// # Shape
/// As JSON: `{"type": "tool_execution_started" | "tool_progress" | "tool_log" | "tool_execution_completed", …}` with the
/// fields by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
#[non_exhaustive]
pub enum Event {
    /// The call really starts.
    #[serde(rename = "tool_execution_started")]
    Started {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments as they came.
        arguments: String,
    },
    /// How far it has come.
    #[serde(rename = "tool_progress")]
    Progress {
        /// The call.
        id: String,
        /// Units of work done.
        done: u64,
        /// Units of work in all, if known.
        total: Option<u64>,
        /// A line for a person.
        message: Option<String>,
    },
    /// A line of log. Text of a stranger: bounded in size, not in content.
    #[serde(rename = "tool_log")]
    Log {
        /// The call.
        id: String,
        /// Where it was written.
        source: LogSource,
        /// How loud.
        level: LogLevel,
        /// The line.
        message: String,
    },
    /// The tool asked for something that it may not have. The call goes on: the tool was told.
    #[serde(rename = "tool_denied")]
    Denied {
        /// The call.
        id: String,
        /// What was denied, and the smallest grant that would have allowed it.
        denial: Denial,
    },
    /// The one terminal event.
    #[serde(rename = "tool_execution_completed")]
    Completed {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// How it ended.
        result: CallResult,
        /// What it used.
        usage: Usage,
    },
}

/// Where a line of log was written.
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

/// How loud a line is.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Steps of a computation.
    Trace,
    /// For the tool's author.
    Debug,
    /// For the operator; standard output counts as this.
    Info,
    /// Something is not as it should be; standard error counts as this.
    Warn,
    /// Something failed.
    Error,
}

/// Receives events. Called on the thread that runs the call: must be quick and must not block, or the call's end waits for
/// it too.
pub trait EventSink: Send + Sync + 'static {
    /// Receives one event. A panic here is caught and costs this event only.
    fn emit(&self, event: Event);
}

impl<F: Fn(Event) + Send + Sync + 'static> EventSink for F {
    fn emit(&self, event: Event) {
        self(event);
    }
}

/// An [`EventSink`] or none, without cost where there is none.
#[derive(Clone, Default)]
pub(crate) struct Events(Option<Arc<dyn EventSink>>);

impl Events {
    pub(crate) fn to(sink: Arc<dyn EventSink>) -> Self {
        Self(Some(sink))
    }

    /// The same with one more listener, who hears first.
    pub(crate) fn and(&self, sink: impl EventSink) -> Self {
        match self.0.clone() {
            None => Self::to(Arc::new(sink)),
            Some(first) => Self::to(Arc::new(move |event: Event| {
                let _ = fenced(|| sink.emit(event.clone()));
                first.emit(event);
            })),
        }
    }

    /// Builds and sends an event, if anybody listens.
    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        if let Some(sink) = &self.0 {
            // An observer's mistake must not become the tool's failure.
            let _ = fenced(|| sink.emit(event()));
        }
    }
}

/// The events of one call: nothing before the first and nothing after the terminal one.
#[derive(Debug)]
pub(crate) struct CallEvents {
    events: Events,
    stage: Mutex<Stage>,
    veil: Mutex<Option<Veil>>,
}

/// What every event of a running call goes through.
#[derive(Clone)]
struct Veil(Arc<dyn Fn(Event) -> Event + Send + Sync>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The call waits for its turn.
    Waiting,
    /// It runs.
    Open,
    Closed,
}

impl CallEvents {
    pub(crate) fn new(events: Events) -> Self {
        Self { events, stage: Mutex::new(Stage::Waiting), veil: Mutex::default() }
    }

    /// From now on every event of the running call is what this makes of it.
    pub(crate) fn veil(&self, veil: impl Fn(Event) -> Event + Send + Sync + 'static) {
        *self.veil.lock() = Some(Veil(Arc::new(veil)));
    }

    /// Sends the first event, if it was not sent.
    pub(crate) fn open(&self, started: impl FnOnce() -> Event) {
        self.at_stage(|stage| {
            if *stage == Stage::Waiting {
                *stage = Stage::Open;
                self.events.emit(started);
            }
        });
    }

    /// Sends an event of a call that still runs. A guest that was killed may speak for a tick longer: nobody hears it.
    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        self.at_stage(|stage| {
            if *stage == Stage::Open {
                let veil = self.veil.lock().clone();
                self.events.emit(|| match veil {
                    Some(Veil(veil)) => veil(event()),
                    None => event(),
                });
            }
        });
    }

    /// Sends the terminal event, after the first if the call never had its turn.
    pub(crate) fn close(&self, started: impl FnOnce() -> Event, completed: impl FnOnce() -> Event) {
        self.open(started);
        self.at_stage(|stage| {
            if std::mem::replace(stage, Stage::Closed) == Stage::Open {
                self.events.emit(completed);
            }
        });
    }

    /// Under the lock, so that events of one call come one after the other.
    fn at_stage(&self, send: impl FnOnce(&mut Stage)) {
        if self.events.0.is_some() {
            send(&mut self.stage.lock());
        }
    }
}

impl fmt::Debug for Veil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Veil")
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Events").field(&self.0.is_some()).finish()
    }
}
