//! Log lines and progress of a running tool, on standard error while it runs.
//!
//! Invariants: a slow terminal never holds up the call. Log lines wait, the call's log limit bounds them; progress that
//! nobody could read is left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use toolcell::{Event, LogLevel, LogSource};

use crate::printer::Printer;

/// Lines that may wait before progress is left out.
const QUEUE: usize = 256;

/// A label and a text; none at the end.
type Line = Option<(&'static str, String)>;

/// The printing side of one call.
pub(super) struct Live {
    lines: Sender<Line>,
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    pub(super) fn start(printer: &Printer) -> Self {
        let (lines, queue) = channel::<Line>();
        let waiting = Arc::<AtomicUsize>::default();
        let (printer, left) = (printer.clone(), Arc::clone(&waiting));
        let show = move || {
            while let Ok(Some((label, text))) = queue.recv() {
                left.fetch_sub(1, Ordering::Relaxed);
                printer.note(label, &text);
            }
        };
        let thread = std::thread::Builder::new().name("toolcell-lines".into()).spawn(show).ok();
        Self { lines, waiting, thread }
    }

    /// What the executor sends its events to.
    pub(super) fn sink(&self) -> impl Fn(Event) + Send + Sync + 'static {
        let (lines, waiting) = (self.lines.clone(), Arc::clone(&self.waiting));
        move |event| {
            let is_progress = matches!(event, Event::Progress { .. });
            let Some(line) = line(event) else { return };
            if is_progress && waiting.load(Ordering::Relaxed) >= QUEUE {
                return;
            }
            waiting.fetch_add(1, Ordering::Relaxed);
            // Without a thread to print there is nobody to lose it.
            let _ = lines.send(Some(line));
        }
    }

    /// Waits until every line is written.
    pub(super) fn finish(self) {
        // The executor still holds a sender, so the end is said and not left to be seen.
        let _ = self.lines.send(None);
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}

/// An event as a label and a text, if it has any.
fn line(event: Event) -> Line {
    match event {
        Event::Denied { denial, .. } => Some(("denied", denial.to_string())),
        Event::Log { source, level, message, .. } => Some((label(source, level), message)),
        Event::Progress { done, total, message, .. } => {
            let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
            let message = message.map(|message| format!(", {message}")).unwrap_or_default();
            Some(("tool progress", format!("{done}{of}{message}")))
        }
        Event::Started { .. } | Event::Completed { .. } | _ => None,
    }
}

/// Where a line comes from; none of it can be taken for a line of ours.
fn label(source: LogSource, level: LogLevel) -> &'static str {
    match (source, level) {
        (LogSource::Host, _) => "toolcell",
        (LogSource::Stdout, _) => "tool stdout",
        (LogSource::Stderr, _) => "tool stderr",
        (LogSource::Log, LogLevel::Trace) => "tool log trace",
        (LogSource::Log, LogLevel::Debug) => "tool log debug",
        (LogSource::Log, LogLevel::Info) => "tool log info",
        (LogSource::Log, LogLevel::Warn) => "tool log warn",
        (LogSource::Log, LogLevel::Error) => "tool log error",
    }
}
