//! Writes all output of the commands to standard output and standard error.
//!
//! `main` creates one [`Printer`], and each command gets it. Results go to standard output as text
//! or JSON. Notes, warnings, errors, progress and the log go to standard error, each line with a
//! label such as `hint`. With `--quiet` only results and errors are printed. The printer also tells
//! if a person is at the terminal who can answer a question.
//!
//! No harmful character of untrusted text reaches a terminal. Further lines of a text are indented,
//! so that they cannot be taken for lines of the command itself. A reader of standard output that
//! went away is not an error. Lines on standard error never mix with a spinner or a bar. Labels
//! have colours only on a terminal, unless the environment says otherwise (`NO_COLOR`,
//! `CLICOLOR_FORCE`).

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::json;

use super::clean::{self, Reader};
use super::exit::ExitStatus;
use super::failure::{Failure, Result};

/// Interval of the steps of a spinner or a bar.
const TICK: Duration = Duration::from_millis(120);

/// Availability of a person who can read the output and answer a question about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    /// Present: the output is on the terminal.
    Reader,
    /// There is a terminal, but the output went to a file or a pipe.
    Redirected,
    /// There is no terminal.
    Absent,
}

/// Writes to standard output and standard error. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    drawings: MultiProgress,
    reader: Reader,
    has_colours: bool,
    is_quiet: bool,
}

/// Labels of lines that are printed in spite of `--quiet`.
const ALWAYS_PRINTED: [&str; 7] =
    ["error", "caused by", "reason", "in", "bug", "interrupted", "usage"];

impl Printer {
    /// Returns the printer of this process; one instance.
    pub(crate) fn new() -> Self {
        // Draws to standard error, and nothing if that is not a terminal.
        let has_colours = AutoStream::choice(&io::stderr()) != ColorChoice::Never;
        Self {
            drawings: MultiProgress::new(),
            reader: Reader::of_stdout(),
            has_colours,
            is_quiet: false,
        }
    }

    /// Returns a printer of results and errors only.
    pub(crate) fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }

    /// Returns true if only results and errors are printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Prints plain text for a person and an end of line, on standard output.
    pub(crate) fn text(&self, text: &str) -> Result<()> {
        let (clean, lost) = clean::text(text);
        self.out(&clean)?;
        self.note_removed(lost);
        Ok(())
    }

    /// Prints a tool's result and an end of line, on standard output: unchanged unless that is a
    /// terminal.
    pub(crate) fn result(&self, text: &str) -> Result<()> {
        let shown = clean::result(text, self.reader);
        self.out(&shown.text)?;
        self.note_removed(shown.lost);
        if let cut @ 1.. = shown.cut {
            self.note(format!(
                "cut off {cut} more characters; a pipe and `--json` get all of them"
            ));
        }
        Ok(())
    }

    /// Prints JSON with the layout of its author, on standard output.
    pub(crate) fn json_text(&self, json: &str) -> Result<()> {
        self.out(&clean::json(json))
    }

    /// Prints one line of JSON on standard output.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<()> {
        self.event(value).map(drop)
    }

    /// Prints one line of JSON, one of many: breaks if the reader went away.
    pub(crate) fn event(&self, value: &impl Serialize) -> Result<ControlFlow<()>> {
        self.write_stdout(&clean::json_line(&serde_json::to_string(value)?))
    }

    /// Prints `label: text` on standard error. Further lines of the text are indented, so that they
    /// cannot be taken for our own lines.
    pub(crate) fn labelled(&self, label: &str, text: impl Display) {
        self.point(label, &format!("{}: ", self.coloured(label)), &text);
    }

    /// Prints `error: text`.
    pub(crate) fn error(&self, text: impl Display) {
        self.labelled("error", text);
    }

    /// Prints `warning: text`.
    pub(crate) fn warning(&self, text: impl Display) {
        self.labelled("warning", text);
    }

    /// Prints `note: text`.
    pub(crate) fn note(&self, text: impl Display) {
        self.labelled("note", text);
    }

    /// Prints `hint: text`.
    pub(crate) fn hint(&self, text: impl Display) {
        self.labelled("hint", text);
    }

    /// Prints a failure: as text on standard error, or as JSON on standard output. If the JSON
    /// cannot be printed, prints the text.
    pub(crate) fn show_failure(&self, failure: &Failure, json: bool) -> ExitStatus {
        if !json || self.json(&json!({ "error": failure.to_json() })).is_err() {
            self.failure(failure);
        }
        failure.status
    }

    /// Prints a failure as text on standard error.
    pub(crate) fn failure(&self, failure: &Failure) {
        for problem in &failure.problems {
            self.error(problem);
            self.hint(&problem.hint);
        }
        if !failure.problems.is_empty() {
            return;
        }
        self.error(failure.message());
        for cause in failure.causes() {
            self.labelled("  caused by", &cause);
        }
        self.hint(&failure.hint);
    }

    /// Prints an error of several lines of our own, on standard error.
    pub(crate) fn error_lines(&self, text: &str) {
        self.err(&format!("{}: {}", self.coloured("error"), clean::text(text).0));
    }

    /// Returns a label in its colour.
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

    /// Prints lines of our own on standard error, without the harmful characters in typed words.
    pub(crate) fn lines(&self, text: &str) {
        self.err(&clean::text(text).0);
    }

    /// Tells if a person can answer a question now.
    pub(crate) fn listener(&self) -> Listener {
        match self.reader {
            _ if !(io::stdin().is_terminal() && io::stderr().is_terminal()) => Listener::Absent,
            Reader::Program => Listener::Redirected,
            Reader::Person => Listener::Reader,
        }
    }

    /// Prints one of several points below the note before, which has this label: with `--quiet`
    /// both are printed or neither.
    pub(crate) fn print_item(&self, label: &str, text: impl Display) {
        self.point(label, "  - ", &text);
    }

    /// Prints a text after its beginning, unless `--quiet` leaves out texts with this label.
    fn point(&self, label: &str, start: &str, text: &dyn Display) {
        if self.is_quiet && !ALWAYS_PRINTED.contains(&label.trim_start()) {
            return;
        }
        let (clean, _) = clean::text(text.to_string().trim_end());
        self.err(&format!("{start}{}\n", clean.replace('\n', "\n    ")));
    }

    /// Prints the next step of the work, if no spinner can be drawn.
    pub(crate) fn step(&self, text: impl Display) {
        if !io::stderr().is_terminal() {
            self.note(text);
        }
    }

    /// Draws a spinner on standard error until the returned value is dropped.
    pub(crate) fn spinner(&self, text: &str) -> Progress {
        let bar = ProgressBar::new_spinner().with_message(clean::text(text).0.replace('\n', " "));
        self.drawn(bar, "{spinner} {msg} ({elapsed})")
    }

    /// Draws a bar of this many steps on standard error until the returned value is dropped.
    pub(crate) fn bar(&self, steps: u64, what: &str) -> Progress {
        let bar = ProgressBar::new(steps).with_message(what.to_owned());
        self.drawn(bar, "{bar:30} {pos} of {len} {msg} ({elapsed})")
    }

    /// Removes spinners and bars.
    pub(crate) fn clear(&self) {
        // If this fails, the failure could not be shown either.
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

    fn note_removed(&self, characters: usize) {
        if characters > 0 {
            self.note(format!(
                "left out {characters} invisible or control characters; `--json` escapes them"
            ));
        }
    }

    fn out(&self, clean: &str) -> Result<()> {
        self.write_stdout(clean).map(drop)
    }

    fn write_stdout(&self, clean: &str) -> Result<ControlFlow<()>> {
        let mut out = io::stdout().lock();
        Self::written(writeln!(out, "{clean}").and_then(|()| out.flush()))
    }

    /// Converts the result of a write to standard output. A reader that went away is not an error:
    /// the caller is to stop.
    pub(crate) fn written(result: io::Result<()>) -> Result<ControlFlow<()>> {
        match result {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
            Err(error) => {
                let error = anyhow::Error::from(error).context("cannot write to standard output");
                Err(Failure::file(error, "is its disk full?"))
            }
        }
    }

    fn err(&self, clean: &str) {
        // A failure here cannot be reported anywhere.
        self.drawings.suspend(|| drop(io::stderr().lock().write_all(clean.as_bytes())));
    }
}

/// A visible spinner or bar.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Returns a function that counts one step. It never waits: another thread draws.
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

/// Each write is one entry of the diagnostic log, on standard error.
impl Write for Printer {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        self.lines(&String::from_utf8_lossy(entry));
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
