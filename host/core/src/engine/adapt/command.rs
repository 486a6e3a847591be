//! Runs a program with `wasi:cli/run` as one tool: its command line, its streams, its status.
//!
//! In: the arguments of a call.
//! Out: its standard output, or a failure with its status and the end of its standard error.
//! Invariants: standard input has the bound of arguments, standard output that of a result,
//! standard error that of a log. None of them is a stream of the host.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use wasmtime::component::{Component, ComponentExportIndex, Instance};
use wasmtime::{Engine, Store};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use super::component_kind::{Command, CommandInput, CommandOutput, STDIN};
use crate::contract::call::CallResult;
use crate::contract::error::Error;
use crate::contract::event::LogSource;
use crate::contract::json::Json;
use crate::contract::outcome::tool_error::{ReturnRule, ToolError};
use crate::contract::outcome::{
    HandlerError, Media, Outcome, Output, Part, Resource, ResourceContent,
};
use crate::engine::cell::Cell;
use crate::engine::cell::call_redactor::CallRedactor;
use crate::engine::cell::output::lines::Lines;
use crate::tool::handler::Invocation;

/// The interface that makes a component a command. A later patch version also fits.
const RUN: &str = "wasi:cli/run@0.2.";
/// The reason in the error for a component without that interface that is used as
/// [`ComponentKind::Command`](crate::component::ComponentKind::Command).
pub(in crate::engine) const NONE: &str = "it does not export `wasi:cli/run@0.2`";
/// Bytes of an answer beside a text that was cut: more than the quotes and the note.
const CUT_NOTE_BYTES: u64 = 256;
/// Bytes that one write may carry.
const PERMIT_BYTES: usize = 64 << 10;

/// Returns true if this export makes a component a command.
pub(in crate::engine) fn is_run(export: &str) -> bool {
    export.starts_with(RUN)
}

/// Finds the function that runs the command.
///
/// # Errors
/// [`Error::is_component`] if there is none.
pub(in crate::engine) fn entry(
    engine: &Engine,
    component: &Component,
) -> Result<ComponentExportIndex, Error> {
    let ty = component.component_type();
    let interface = ty.exports(engine).map(|(name, _)| name).find(|name| is_run(name));
    let interface = interface.and_then(|name| component.get_export_index(None, name));
    let entry = interface.and_then(|interface| component.get_export_index(Some(&interface), "run"));
    entry.ok_or_else(|| Error::no_tools(NONE, None))
}

/// The command line and the streams of one call of a command.
pub(in crate::engine) struct Streams {
    pub(in crate::engine) argv: Vec<String>,
    pub(in crate::engine) stdin: Bytes,
    pub(in crate::engine) stdout: Captured,
}

impl Streams {
    /// Builds those of one call.
    pub(in crate::engine) fn new(command: &Command, invocation: &Invocation) -> Self {
        let words = command.words(invocation.arguments());
        let stdin = match command.stdin {
            CommandInput::Text => {
                let text =
                    invocation.arguments().get(STDIN).and_then(Value::as_str).unwrap_or_default();
                Bytes::copy_from_slice(text.as_bytes())
            }
            CommandInput::Json => Bytes::copy_from_slice(invocation.call.arguments.as_bytes()),
            CommandInput::Nothing => Bytes::new(),
        };
        Self { argv: words, stdin, stdout: Captured::up_to(invocation.limits.result) }
    }
}

/// Runs the command to its end, and returns its result.
pub(in crate::engine) async fn run(
    entry: ComponentExportIndex,
    command: &Command,
    store: &mut Store<Cell>,
    instance: &Instance,
) -> wasmtime::Result<CallResult> {
    let run = instance.get_typed_func::<(), (Result<(), ()>,)>(&mut *store, entry)?;
    let status = match run.call_async(&mut *store, ()).await {
        Ok((Ok(()),)) => 0,
        Ok((Err(()),)) => 1,
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(exit) => exit.0,
            None => return Err(error),
        },
    };
    let cell = store.data();
    let (written, limit) = (cell.captured().unwrap_or_default(), cell.invocation.limits.result);
    Ok(match written.answer() {
        Err(rule) => CallResult::ToolError(ToolError::InvalidReturn(rule)),
        Ok(bytes) if status != 0 => CallResult::Outcome(Outcome::Error(failure(
            status,
            &bytes,
            limit,
            cell.stderr_excerpt(),
        ))),
        Ok(bytes) if command.output == CommandOutput::Bytes => {
            CallResult::Outcome(Outcome::Ok(part(bytes, command)))
        }
        Ok(bytes) => {
            let (text, note) = readable(&bytes, limit);
            let mut output = Output::new(result(&text, command.output));
            output.parts.extend(note.map(|text| Part::Text { text }));
            CallResult::Outcome(Outcome::Ok(output))
        }
    })
}

/// Returns bytes as text. If they are not UTF-8, U+FFFD replaces each invalid sequence, the text is
/// cut before it exceeds the limit as JSON, and a note says so.
fn readable(bytes: &[u8], limit: u64) -> (Cow<'_, str>, Option<String>) {
    let offset = match std::str::from_utf8(bytes) {
        Ok(text) => return (text.into(), None),
        Err(error) => error.valid_up_to(),
    };
    let (all, mut text) = (String::from_utf8_lossy(bytes), String::new());
    let mut room = limit.saturating_sub(CUT_NOTE_BYTES);
    for c in all.chars() {
        room = match room.checked_sub(size_in_json(c)) {
            Some(left) => left,
            None => break,
        };
        text.push(c);
    }
    let cut = if text.len() < all.len() { ", and only its beginning is here" } else { "" };
    let note = format!(
        "standard output is not UTF-8 at byte {offset}: U+FFFD stands for what is not{cut}; `output = \"bytes\"` keeps all of it"
    );
    (text.into(), Some(note))
}

/// Returns the number of bytes of a character in a string of JSON.
fn size_in_json(c: char) -> u64 {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8() as u64,
    }
}

/// Builds the result of a command whose output is bytes.
fn part(data: Vec<u8>, command: &Command) -> Output {
    let mime_type =
        command.media_type.clone().unwrap_or_else(|| "application/octet-stream".to_owned());
    let message = format!("{} bytes of {mime_type}", data.len());
    let part = match mime_type.split_once('/') {
        Some(("image", _)) => Part::Image(Media { mime_type, data }),
        Some(("audio", _)) => Part::Audio(Media { mime_type, data }),
        _ => {
            let (uri, content) =
                (format!("stdout:{}", command.name), ResourceContent::Bytes { data });
            Part::Resource(Resource { uri, mime_type: Some(mime_type), content })
        }
    };
    Output::from_message(message).with_part(part)
}

/// Builds the result of a command that succeeded.
fn result(text: &str, output: CommandOutput) -> Json {
    let plain = |text: &str| {
        let line = text.strip_suffix('\n').unwrap_or(text);
        Json::from(Value::from(line.strip_suffix('\r').unwrap_or(line)))
    };
    match output {
        CommandOutput::Text | CommandOutput::Bytes => plain(text),
        CommandOutput::Json => {
            let parsed = Json::parse(text.trim().to_owned());
            parsed.unwrap_or_else(|_| plain(text))
        }
    }
}

/// Builds the failure of a command whose status is not 0.
fn failure(status: i32, stdout: &[u8], limit: u64, stderr: Option<String>) -> HandlerError {
    let message = match &stderr {
        Some(words) => format!("{words} (exit status {status})"),
        None => format!("the command ended with exit status {status}"),
    };
    let mut data = json!({ "status": status });
    if !stdout.is_empty() {
        let beside = stderr.as_ref().map_or(0, |words| 4 * words.len() as u64);
        let (text, note) = readable(stdout, limit.saturating_sub(beside));
        data["stdout"] = Value::from(text);
        note.into_iter().for_each(|note| data["note"] = Value::from(note));
    }
    if let Some(words) = stderr {
        data["stderr"] = Value::from(words);
    }
    HandlerError::new(message).with_data(data)
}

/// The standard output of a command, up to a bound; further bytes are only counted.
#[derive(Clone, Default)]
pub(in crate::engine) struct Captured(Arc<Mutex<OutputBuffer>>);

#[derive(Default)]
struct OutputBuffer {
    bytes: Vec<u8>,
    limit: u64,
    total_bytes: u64,
    /// True if the output was taken for the command's answer.
    is_answered: bool,
    is_logged: bool,
    /// The call redactor for the output.
    redactor: Option<Arc<CallRedactor>>,
}

impl Captured {
    fn up_to(limit: u64) -> Self {
        Self(Arc::new(Mutex::new(OutputBuffer { limit, ..OutputBuffer::default() })))
    }

    /// Returns all of it for the command's answer.
    fn answer(&self) -> Result<Vec<u8>, ReturnRule> {
        let mut kept = self.0.lock();
        if kept.total_bytes > kept.limit {
            return Err(ReturnRule::TooLarge { limit: kept.limit, got: kept.total_bytes });
        }
        kept.is_answered = true;
        Ok(kept.bytes.clone())
    }

    /// Returns true if the output was taken for the command's answer.
    pub(in crate::engine) fn is_answered(&self) -> bool {
        self.0.lock().is_answered
    }

    /// Sets the call redactor for the output.
    pub(in crate::engine) fn set_redactor(&self, veil: Arc<CallRedactor>) {
        self.0.lock().redactor = Some(veil);
    }

    /// Returns the output as text, without secrets, for an error that replaces the answer. A note
    /// says how many bytes were cut, and from where on it is not UTF-8. Returns `None` if nothing
    /// was written.
    pub(in crate::engine) fn text(&self) -> Option<String> {
        let (bytes, limit, left_out) = {
            let kept = self.0.lock();
            (
                self.redacted(&kept),
                kept.limit,
                kept.total_bytes.saturating_sub(kept.bytes.len() as u64),
            )
        };
        let (text, note) = readable(&bytes, limit);
        let cut = (left_out > 0).then(|| format!("{left_out} more bytes were printed"));
        let notes: Vec<_> = cut.into_iter().chain(note).collect();
        match &*notes {
            [] if text.is_empty() => None,
            [] => Some(text.into_owned()),
            notes => Some(format!("{text}\n[{}]", notes.join("; "))),
        }
    }

    /// Writes the output to the log, without secrets. A second call writes nothing.
    pub(in crate::engine) fn log(&self, lines: &Lines) {
        let bytes = {
            let mut kept = self.0.lock();
            if std::mem::replace(&mut kept.is_logged, true) {
                Vec::new()
            } else {
                self.redacted(&kept)
            }
        };
        lines.write(LogSource::Stdout, &bytes);
        lines.finish();
    }

    fn redacted(&self, kept: &OutputBuffer) -> Vec<u8> {
        kept.redactor.iter().fold(kept.bytes.clone(), |bytes, veil| veil.bytes(bytes))
    }
}

impl IsTerminal for Captured {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Captured {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Not reached: wasmtime's WASI preview 2 host asks for `p2_stream`.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Captured {
    async fn ready(&mut self) {}
}

impl OutputStream for Captured {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut kept = self.0.lock();
        kept.total_bytes = kept.total_bytes.saturating_add(bytes.len() as u64);
        let room =
            usize::try_from(kept.limit).unwrap_or(usize::MAX).saturating_sub(kept.bytes.len());
        kept.bytes.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_utf8_output_fits_the_limit() {
        assert_eq!(readable("é\0".as_bytes(), 1), ("é\0".into(), None));
        for (bytes, limit, expected, is_cut) in [
            (&b"ok\xff"[..], 1000, "ok\u{fffd}", false),
            (b"\xffab", 256 + 4, "\u{fffd}a", true),
            (b"\xff\0\"", 256 + 9, "\u{fffd}\0", true),
            (b"\xff", 1, "", true),
        ] {
            let (text, note) = readable(bytes, limit);
            let note = note.unwrap_or_else(|| panic!("{bytes:?}"));
            assert_eq!(
                (&*text, note.contains("only its beginning")),
                (expected, is_cut),
                "{bytes:?}"
            );
            let json = serde_json::to_string(&text).unwrap().len()
                + serde_json::to_string(&note).unwrap().len();
            assert!(json as u64 <= limit.max(CUT_NOTE_BYTES), "{json} bytes of JSON of {bytes:?}");
        }
    }

    #[test]
    fn captured_text_reports_omitted_bytes() {
        let mut captured = Captured::up_to(300);
        assert_eq!(captured.text(), None);
        OutputStream::write(&mut captured, Bytes::from_static(b"a\n")).unwrap();
        assert_eq!(captured.text().as_deref(), Some("a\n"));
        OutputStream::write(&mut captured, Bytes::from(vec![b'x'; 400])).unwrap();
        assert!(captured.text().unwrap().ends_with("x\n[102 more bytes were printed]"));
    }
}
