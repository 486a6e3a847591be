//! The only place that writes.
//!
//! In: text of ours and of strangers. Out: standard output and standard error, and a spinner or a
//! bar there.
//! Invariants: no harmful character of a stranger reaches a terminal (`clean`); a reader who went
//! away is no failure; lines on stderr never mix with what is drawn there; labels have colours on a
//! terminal alone, unless the environment says otherwise (`NO_COLOR`, `CLICOLOR_FORCE`).

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::clean::{self, Reader};
use crate::failure::Failure;
use crate::files;

/// How often a spinner turns and a bar is drawn.
const TICK: Duration = Duration::from_millis(120);

/// Whether a person can read what was printed and answer a question about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    /// Yes: it was printed on the terminal.
    Reader,
    /// There is a terminal, but it was printed to a file or a pipe.
    Elsewhere,
    /// There is no terminal.
    Absent,
}

/// Writes. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    drawings: MultiProgress,
    reader: Reader,
    has_colours: bool,
    is_quiet: bool,
}

/// Labels of what is printed in spite of `--quiet`.
const LOUD: [&str; 7] = ["error", "caused by", "reason", "in", "bug", "interrupted", "receipt"];

impl Printer {
    /// One per process.
    pub(crate) fn new() -> Self {
        // Draws to standard error, and nothing at all where that is no terminal.
        let has_colours = AutoStream::choice(&io::stderr()) != ColorChoice::Never;
        Self {
            drawings: MultiProgress::new(),
            reader: Reader::of_stdout(),
            has_colours,
            is_quiet: false,
        }
    }

    /// The same for results and errors alone.
    pub(crate) fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }

    /// Whether only results and errors are printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Plain text that is laid out for reading, and an end of line, on standard output.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        let (clean, lost) = clean::text(text);
        self.out(&clean)?;
        self.lost(lost);
        Ok(())
    }

    /// A tool's result, and an end of line, on standard output: exact unless that is a terminal.
    pub(crate) fn result(&self, text: &str) -> Result<(), Failure> {
        let shown = clean::result(text, self.reader);
        self.out(&shown.text)?;
        self.lost(shown.lost);
        if let cut @ 1.. = shown.cut {
            self.note(
                "note",
                &format!("cut off {cut} more characters; a pipe and `--json` get all of them"),
            );
        }
        Ok(())
    }

    /// JSON as its maker laid it out, on standard output.
    pub(crate) fn json_text(&self, json: &str) -> Result<(), Failure> {
        self.out(&clean::json(json))
    }

    /// One line of JSON on standard output.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.event(value).map(drop)
    }

    /// The same, one of many: breaks when the reader went away.
    pub(crate) fn event(&self, value: &impl Serialize) -> Result<ControlFlow<()>, Failure> {
        self.written(&clean::json_line(&serde_json::to_string(value)?))
    }

    /// `label: text` on standard error. Further lines of the text are indented, so that none looks
    /// like one of ours.
    pub(crate) fn note(&self, label: &str, text: &str) {
        if self.is_quiet && !LOUD.contains(&label.trim_start()) {
            return;
        }
        let (clean, _) = clean::text(text.trim_end());
        self.err(&format!("{}: {}\n", self.coloured(label), clean.replace('\n', "\n    ")));
    }

    /// An error of several lines of ours on standard error.
    pub(crate) fn error_lines(&self, text: &str) {
        self.err(&format!("{}: {}", self.coloured("error"), clean::text(text).0));
    }

    /// A label, in its colour.
    fn coloured<'a>(&self, label: &'a str) -> Cow<'a, str> {
        let colour = match label {
            "error" | "bug" => "1;31",
            "warning" | "interrupted" => "1;33",
            "hint" => "1;36",
            "note" => "1;32",
            _ => return label.into(),
        };
        if self.has_colours {
            format!("\u{1b}[{colour}m{label}\u{1b}[0m").into()
        } else {
            label.into()
        }
    }

    /// Lines of ours on standard error, as they are but for what was typed into them.
    pub(crate) fn lines(&self, text: &str) {
        self.err(&clean::text(text).0);
    }

    /// Who would answer now.
    pub(crate) fn listener(&self) -> Listener {
        match self.reader {
            _ if !(io::stdin().is_terminal() && io::stderr().is_terminal()) => Listener::Absent,
            Reader::Program => Listener::Elsewhere,
            Reader::Person => Listener::Reader,
        }
    }

    /// Asks a person for a word, if there is one.
    pub(crate) fn ask(&self, question: &str) -> Option<String> {
        self.prompt(&format!("{question} [y/N] "));
        files::answer()
    }

    /// The words before what a person is to type.
    pub(crate) fn prompt(&self, words: &str) {
        self.err(words);
    }

    /// One of several points that belong to the note before, which has this label: with `--quiet`
    /// both are printed or neither.
    pub(crate) fn point(&self, label: &str, text: &str) {
        if self.is_quiet && !LOUD.contains(&label) {
            return;
        }
        let (clean, _) = clean::text(text.trim_end());
        self.err(&format!("  - {}\n", clean.replace('\n', "\n    ")));
    }

    /// What begins now, where no spinner can be drawn.
    pub(crate) fn step(&self, text: &str) {
        if !io::stderr().is_terminal() {
            self.note("note", text);
        }
    }

    /// A spinner on standard error, gone when the answer is dropped.
    pub(crate) fn spinner(&self, text: &str) -> Progress {
        let bar = ProgressBar::new_spinner().with_message(clean::text(text).0.replace('\n', " "));
        self.drawn(bar, "{spinner} {msg} ({elapsed})")
    }

    /// A bar of so many steps on standard error, gone when the answer is dropped.
    pub(crate) fn bar(&self, steps: u64, what: &str) -> Progress {
        let bar = ProgressBar::new(steps).with_message(what.to_owned());
        self.drawn(bar, "{bar:30} {pos} of {len} {msg} ({elapsed})")
    }

    /// Takes away what is drawn.
    pub(crate) fn clear(&self) {
        // Where this fails, the failure could not be shown either.
        let _ = self.drawings.clear();
    }

    fn drawn(&self, bar: ProgressBar, template: &str) -> Progress {
        if self.is_quiet {
            return Progress(ProgressBar::hidden());
        }
        let bar = self.drawings.add(match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        });
        bar.enable_steady_tick(TICK);
        Progress(bar)
    }

    fn lost(&self, characters: usize) {
        if characters > 0 {
            self.note(
                "note",
                &format!(
                    "left out {characters} invisible or control characters; `--json` escapes them"
                ),
            );
        }
    }

    fn out(&self, clean: &str) -> Result<(), Failure> {
        self.written(clean).map(drop)
    }

    fn written(&self, clean: &str) -> Result<ControlFlow<()>, Failure> {
        let mut out = io::stdout().lock();
        match writeln!(out, "{clean}").and_then(|()| out.flush()) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
            Err(error) => Err(Failure::file(
                anyhow::Error::from(error).context("cannot write to standard output"),
                "is its disk full?",
            )),
        }
    }

    fn err(&self, clean: &str) {
        // There is no place left to complain about a failure here.
        self.drawings.suspend(|| drop(io::stderr().lock().write_all(clean.as_bytes())));
    }
}

/// A spinner or a bar that is drawn.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Counts one step more. Never waits: the drawing is done by a thread of its own.
    pub(crate) fn counter(&self) -> impl Fn() + Send + Sync + 'static {
        let bar = self.0.clone();
        move || bar.inc(1)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// One entry of the diagnostic log, on standard error.
impl Write for Printer {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        self.lines(&String::from_utf8_lossy(entry));
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
