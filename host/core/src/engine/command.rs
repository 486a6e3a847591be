//! A program with `wasi:cli/run` as one tool: its command line, its streams, its status.
//!
//! In: the arguments of a call. Out: what it wrote to standard output, or a failure with its status and the end of what it
//! wrote to standard error.
//! Invariants: standard input is bounded as arguments are, standard output as a result is, standard error as a log is; none of
//! them is the host's.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use wasmtime::component::{Component, ComponentExportIndex, Instance};
use wasmtime::{Engine, Store};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use super::cell::Cell;
use super::imports::lines::Lines;
use super::veil::Veil;
use crate::call::CallResult;
use crate::component_kind::{Command, CommandInput, CommandOutput, STDIN};
use crate::error::Error;
use crate::event::LogSource;
use crate::handler::Invocation;
use crate::json::Json;
use crate::outcome::{HandlerError, Media, Outcome, Output, Part, Resource, ResourceContent};
use crate::tool_error::{ReturnRule, ToolError};

/// The interface that makes a component a command. A later patch version is as good.
const RUN: &str = "wasi:cli/run@0.2.";
/// What a component lacks that is used as [`ComponentKind::Command`](crate::ComponentKind::Command).
pub(super) const NONE: &str = "it does not export `wasi:cli/run@0.2`";
/// How much one write may carry.
const PERMIT_BYTES: usize = 64 << 10;

/// Whether an export makes a component a command.
pub(super) fn is_run(export: &str) -> bool {
    export.starts_with(RUN)
}

/// The function that runs the command.
///
/// # Errors
/// [`Error::is_component`] if there is none.
pub(super) fn entry(engine: &Engine, component: &Component) -> Result<ComponentExportIndex, Error> {
    let ty = component.component_type();
    let interface = ty.exports(engine).map(|(name, _)| name).find(|name| is_run(name));
    let interface = interface.and_then(|name| component.get_export_index(None, name));
    let entry = interface.and_then(|interface| component.get_export_index(Some(&interface), "run"));
    entry.ok_or_else(|| Error::no_tools(NONE, None))
}

/// What a command sees of its call.
pub(super) struct Streams {
    pub(super) words: Vec<String>,
    pub(super) stdin: Bytes,
    pub(super) stdout: Captured,
}

impl Streams {
    /// Those of one call.
    pub(super) fn new(command: &Command, invocation: &Invocation) -> Self {
        let words = command.words(invocation.arguments());
        let stdin = match command.stdin {
            CommandInput::Text => {
                let text = invocation.arguments().get(STDIN).and_then(Value::as_str).unwrap_or_default();
                Bytes::copy_from_slice(text.as_bytes())
            }
            CommandInput::Json => Bytes::copy_from_slice(invocation.call.arguments.as_bytes()),
            CommandInput::Nothing => Bytes::new(),
        };
        Self { words, stdin, stdout: Captured::up_to(invocation.limits.result) }
    }
}

/// Runs the command to its end.
pub(super) async fn run(
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
    let written = cell.captured().unwrap_or_default();
    Ok(match written.bytes() {
        Err(rule) => CallResult::ToolError(ToolError::InvalidReturn(rule)),
        Ok(bytes) if status != 0 => CallResult::Outcome(Outcome::Error(failure(status, &bytes, cell.last_words()))),
        Ok(bytes) if command.output == CommandOutput::Bytes => CallResult::Outcome(Outcome::Ok(part(bytes, command))),
        Ok(bytes) => {
            let mut output = Output::new(result(&String::from_utf8_lossy(&bytes), command.output));
            output.message = not_text(&bytes);
            CallResult::Outcome(Outcome::Ok(output))
        }
    })
}

/// Says where bytes are no text in UTF-8, if they are none.
fn not_text(bytes: &[u8]) -> Option<String> {
    let offset = std::str::from_utf8(bytes).err()?.valid_up_to();
    Some(format!(
        "standard output is not UTF-8 at byte {offset}: what is no text is shown as U+FFFD; `output = \"bytes\"` keeps it"
    ))
}

/// The result of a command whose output is bytes.
fn part(data: Vec<u8>, command: &Command) -> Output {
    let mime_type = command.media_type.clone().unwrap_or_else(|| "application/octet-stream".to_owned());
    let message = format!("{} bytes of {mime_type}", data.len());
    let part = match mime_type.split_once('/') {
        Some(("image", _)) => Part::Image(Media { mime_type, data }),
        Some(("audio", _)) => Part::Audio(Media { mime_type, data }),
        _ => {
            let (uri, content) = (format!("stdout:{}", command.name), ResourceContent::Bytes { data });
            Part::Resource(Resource { uri, mime_type: Some(mime_type), content })
        }
    };
    Output::from_message(message).with_part(part)
}

/// The result of a command that succeeded.
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

/// The failure of a command with another status than 0.
fn failure(status: i32, stdout: &[u8], stderr: Option<String>) -> HandlerError {
    let message = match &stderr {
        Some(words) => format!("{words} (exit status {status})"),
        None => format!("the command ended with exit status {status}"),
    };
    let mut data = json!({ "status": status });
    if !stdout.is_empty() {
        data["stdout"] = Value::from(String::from_utf8_lossy(stdout));
    }
    if let Some(note) = not_text(stdout) {
        data["note"] = Value::from(note);
    }
    if let Some(words) = stderr {
        data["stderr"] = Value::from(words);
    }
    HandlerError::new(message).with_data(data)
}

/// What a command wrote to standard output, up to a bound; the rest is counted.
#[derive(Clone, Default)]
pub(super) struct Captured(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    limit: u64,
    written: u64,
    is_logged: bool,
    /// Hides the secrets in it.
    veil: Option<Arc<Veil>>,
}

impl Captured {
    fn up_to(limit: u64) -> Self {
        Self(Arc::new(Mutex::new(Kept { limit, ..Kept::default() })))
    }

    /// All of it.
    fn bytes(&self) -> Result<Vec<u8>, ReturnRule> {
        let mut kept = self.0.lock();
        if kept.written > kept.limit {
            return Err(ReturnRule::TooLarge { limit: kept.limit, got: kept.written });
        }
        Ok(std::mem::take(&mut kept.bytes))
    }

    /// Hides these secrets in it from now on.
    pub(super) fn veil(&self, veil: Arc<Veil>) {
        self.0.lock().veil = Some(veil);
    }

    /// As text, without secrets: what no answer has taken. None: there is nothing.
    pub(super) fn text(&self) -> Option<String> {
        let (bytes, veil) = {
            let kept = self.0.lock();
            (kept.bytes.clone(), kept.veil.clone())
        };
        let bytes = veil.iter().fold(bytes, |bytes, veil| veil.bytes(bytes));
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes to the log what no answer has taken, once.
    pub(super) fn log(&self, lines: &Lines) {
        let bytes = {
            let mut kept = self.0.lock();
            if std::mem::replace(&mut kept.is_logged, true) { Vec::new() } else { kept.bytes.clone() }
        };
        lines.write(LogSource::Stdout, &bytes);
        lines.finish();
    }
}

impl IsTerminal for Captured {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Captured {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Not reached: the engine's preview-2 host asks for `p2_stream`.
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
        kept.written = kept.written.saturating_add(bytes.len() as u64);
        let room = usize::try_from(kept.limit).unwrap_or(usize::MAX).saturating_sub(kept.bytes.len());
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
