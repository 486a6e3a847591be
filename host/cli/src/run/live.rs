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
        Event::Log { source: LogSource::Stdout, message, .. } => Some(("tool stdout", message)),
        Event::Log { source: LogSource::Stderr, message, .. } => Some(("tool stderr", message)),
        Event::Log { source: LogSource::Log, level, message, .. } => {
            let label = match level {
                LogLevel::Trace => "tool trace",
                LogLevel::Debug => "tool debug",
                LogLevel::Info => "tool info",
                LogLevel::Warn => "tool warn",
                LogLevel::Error => "tool error",
            };
            Some((label, message))
        }
        Event::Progress { done, total, message, .. } => {
            let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
            let message = message.map(|message| format!(", {message}")).unwrap_or_default();
            Some(("tool progress", format!("{done}{of}{message}")))
        }
        _ => None,
    }
}
