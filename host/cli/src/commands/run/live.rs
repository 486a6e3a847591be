//! Prints log lines and progress of a running tool on standard error.
//!
//! `run` starts a [`Live`] before a call and passes its sink to the executor, which sends it the
//! events. A thread prints the lines, so that a slow terminal never delays the call. Log lines
//! wait, and their amount is bounded by the call's log limit; progress is dropped while too many
//! lines wait. [`Live::finish`] waits until every line is written and returns the denied requests,
//! each once, for hints. Lines that may be the text of a panic are held back; they are not printed
//! if the call's error has that text.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use toolcell::call::{LogLevel, LogSource};
use toolcell::grants::{Denial, Request};
use toolcell::outcome::Crash;
use toolcell::{CallResult, Event, ToolError};

use crate::print::Printer;

/// The most waiting lines before progress is dropped.
const QUEUE: usize = 256;
/// The most denials for which a hint is printed, and the most denials of paths among them.
const MAX_DENIALS: usize = 16;
const MAX_PATHS: usize = 8;
/// Prefixes of system directories.
const SYSTEM: [&str; 6] = ["/dev/", "/etc/", "/lib", "/proc/", "/sys/", "/usr/"];

/// The label of a line on the tool's standard error.
const STDERR: &str = "tool stderr";

/// A label and a text.
type Line = (&'static str, String);

/// A message to the printing thread.
enum Message {
    Line(Line),
    /// The call has ended.
    End {
        /// True if the call's error has the text of a panic.
        has_panic: bool,
    },
}

/// Lines of standard error that may be the text of a panic; printed only after the call has ended.
#[derive(Default)]
struct DeferredLines(Vec<Line>);

impl DeferredLines {
    /// Returns the lines to print now. The runtime of a Rust tool writes an empty line before a
    /// panic.
    fn next(&mut self, line: Line) -> Vec<Line> {
        if line.0 != STDERR {
            return vec![line];
        }
        self.0.push(line);
        let is_held = self.0.iter().any(|(_, text)| is_panic(text))
            || self.0.iter().all(|(_, text)| text.is_empty());
        if is_held { Vec::new() } else { std::mem::take(&mut self.0) }
    }
}

/// Returns true if a panic of a Rust tool begins with this line.
fn is_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(" panicked at ")
}

/// The output of one call, printed by a thread.
pub(super) struct Live {
    lines: Sender<Message>,
    waiting: Arc<AtomicUsize>,
    denials: Arc<Mutex<Vec<Denial>>>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    pub(super) fn start(printer: &Printer) -> Self {
        let (lines, queue) = channel::<Message>();
        let waiting = Arc::<AtomicUsize>::default();
        let (printer, left) = (printer.clone(), Arc::clone(&waiting));
        let show = move || {
            let mut held = DeferredLines::default();
            for message in queue {
                let lines = match message {
                    Message::Line(line) => {
                        left.fetch_sub(1, Ordering::Relaxed);
                        held.next(line)
                    }
                    Message::End { has_panic } => {
                        if !has_panic {
                            held.0.iter().for_each(|(label, text)| printer.labelled(label, text));
                        }
                        return;
                    }
                };
                lines.iter().for_each(|(label, text)| printer.labelled(label, text));
            }
        };
        let thread = std::thread::Builder::new().name("toolcell-lines".into()).spawn(show).ok();
        Self { lines, waiting, denials: Arc::default(), thread }
    }

    /// Returns the event sink for the executor.
    pub(super) fn sink(&self) -> impl Fn(Event) + Send + Sync + 'static {
        let (lines, waiting, denials) =
            (self.lines.clone(), Arc::clone(&self.waiting), Arc::clone(&self.denials));
        move |event| {
            if let Event::Denied { denial, .. } = &event {
                let (mut denials, is_path) = (denials.lock(), is_path(denial));
                let most = if is_path { MAX_PATHS } else { MAX_DENIALS };
                if denials.len() < most && !denials.contains(denial) {
                    denials.push(denial.clone());
                }
                if is_path {
                    return;
                }
            }
            let is_progress = matches!(event, Event::Progress { .. });
            let Some(line) = line(event) else { return };
            if is_progress && waiting.load(Ordering::Relaxed) >= QUEUE {
                return;
            }
            waiting.fetch_add(1, Ordering::Relaxed);
            // Fails only if there is no thread to print it.
            let _ = lines.send(Message::Line(line));
        }
    }

    /// Waits until every line is written. The call has ended with this result. Returns the denials,
    /// each once. If the call succeeded, system paths are left out: language runtimes look for
    /// files there that they do not need.
    pub(super) fn finish(self, result: &CallResult) -> Vec<Denial> {
        let mut denials = std::mem::take(&mut *self.denials.lock());
        if result.output().is_some() {
            denials.retain(|denial| !path(denial).is_some_and(|path| is_of_system(&path)));
        }
        for denial in denials.iter().filter(|denial| is_path(denial)) {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let _ = self.lines.send(Message::Line(denied_line(denial)));
        }
        let has_panic = matches!(
            result,
            CallResult::ToolError(ToolError::HandlerRaised(raised)) if has_panic(raised)
        );
        // The executor still has a sender, so the channel does not close by itself.
        let _ = self.lines.send(Message::End { has_panic });
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
        denials
    }
}

/// Returns the denied path; none if the denial is about something else, for example a host or a
/// key.
fn path(denial: &Denial) -> Option<String> {
    let Ok(Request::File { path, .. }) = Request::parse(&denial.request) else { return None };
    Some(path.to_string())
}

fn is_path(denial: &Denial) -> bool {
    path(denial).is_some()
}

/// Returns true if a path is a file at the top, such as `/pyvenv.cfg`: a grant for its directory
/// would be one for all files.
pub(super) fn is_top_file(denial: &Denial) -> bool {
    path(denial).is_some_and(|path| {
        path.rsplit_once('/').is_some_and(|(above, name)| above.is_empty() && name.contains('.'))
    })
}

/// Returns true if a path is in a system directory with files for all programs, such as
/// `/etc/localtime`.
pub(crate) fn is_of_system(path: &str) -> bool {
    SYSTEM.iter().any(|directory| path.starts_with(directory))
}

/// Returns true if the error has the whole text of a panic. The text is then printed with the
/// error.
pub(super) fn has_panic(raised: &Crash) -> bool {
    raised.panic_message.as_deref().is_some_and(|text| text.starts_with("panicked at "))
}

fn denied_line(denial: &Denial) -> Line {
    ("denied", denial.to_string())
}

/// Returns the label and text of an event, if it has any.
fn line(event: Event) -> Option<Line> {
    match event {
        Event::Denied { denial, .. } => Some(denied_line(&denial)),
        Event::Log { source, level, message, .. } => Some((label(source, level), message)),
        Event::Progress { done, total, message, .. } => {
            let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
            let message = message.map(|message| format!(", {message}")).unwrap_or_default();
            Some(("tool progress", format!("{done}{of}{message}")))
        }
        Event::Started { .. } | Event::Completed { .. } | _ => None,
    }
}

/// Returns the label for the source of a line. It cannot be taken for a label of our own.
fn label(source: LogSource, level: LogLevel) -> &'static str {
    match (source, level) {
        (LogSource::Host, _) => "toolcell",
        (LogSource::Stdout, _) => "tool stdout",
        (LogSource::Stderr, _) => STDERR,
        (LogSource::Log, LogLevel::Trace) => "tool log trace",
        (LogSource::Log, LogLevel::Debug) => "tool log debug",
        (LogSource::Log, LogLevel::Info) => "tool log info",
        (LogSource::Log, LogLevel::Warn) => "tool log warn",
        (LogSource::Log, LogLevel::Error) => "tool log error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_output_is_held_back() {
        const PANIC: &str = "thread 'main' panicked at a.rs:1:2:";
        for (lines, printed) in [
            (&["a", "", "b"][..], &["a", "", "b"][..]),
            (&["a", "", PANIC, "no", ""], &["a"]),
            (&[PANIC, "no"], &[]),
            (&["", ""], &[]),
        ] {
            let mut held = DeferredLines::default();
            let shown = lines.iter().flat_map(|line| held.next((STDERR, (*line).to_owned())));
            assert_eq!(shown.map(|(_, text)| text).collect::<Vec<_>>(), printed, "{lines:?}");
        }
        let mut held = DeferredLines(vec![(STDERR, PANIC.to_owned())]);
        assert_eq!(held.next(("tool log info", "b".to_owned())).len(), 1);
    }
}
