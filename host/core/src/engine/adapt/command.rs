//! Runs a program with `wasi:cli/run` as one tool, and converts its exit to the result of a call.
//!
//! When a component is loaded as a command, [`entry`] finds the function to run. For each call, the
//! cell (a fresh wasmtime store) calls [`run`], which returns the exit status, and then [`answer`].
//! With status 0 the result is the program's standard output, as text, JSON or bytes. With another
//! status it is a failure with the status, the output, and the end of standard error.
//! Standard input has the bound of arguments, standard output that of a result, standard error that
//! of a log. None of them is a stream of the host. Text that is not UTF-8 is made readable and cut
//! to the limit, with a note.
//! Not here: the streams themselves (`engine/cell/output`), and the command line ([`Command`]).

use std::borrow::Cow;

use serde_json::{Value, json};
use toolcell_contract::outcome::tool_error::{ReturnRule, ToolError};
use toolcell_contract::outcome::{
    HandlerError, Media, Outcome, Output, Part, Resource, ResourceContent,
};
use toolcell_contract::{call::CallResult, error::Error, json::Json};
use wasmtime::component::{Component, ComponentExportIndex, Instance};
use wasmtime::{Engine, Store};
use wasmtime_wasi::I32Exit;

use super::component_kind::{Command, CommandOutput};

/// The interface that makes a component a command. A later patch version also fits.
const RUN: &str = "wasi:cli/run@0.2.";
/// The reason in the error for a component without that interface that is used as
/// [`ComponentKind::Command`](crate::component::ComponentKind::Command).
pub(in crate::engine) const NONE: &str = "it does not export `wasi:cli/run@0.2`";
/// Bytes of an answer beside a text that was cut: more than the quotes and the note.
const CUT_NOTE_BYTES: u64 = 256;

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

/// Runs the command to its end, and returns its exit status.
pub(in crate::engine) async fn run<T: Send + 'static>(
    entry: ComponentExportIndex,
    store: &mut Store<T>,
    instance: &Instance,
) -> wasmtime::Result<i32> {
    let run = instance.get_typed_func::<(), (Result<(), ()>,)>(&mut *store, entry)?;
    match run.call_async(&mut *store, ()).await {
        Ok((Ok(()),)) => Ok(0),
        Ok((Err(()),)) => Ok(1),
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(exit) => Ok(exit.0),
            None => Err(error),
        },
    }
}

/// Converts the end of a command to its result: its status, its standard output, and for a failure
/// the end of its standard error.
pub(in crate::engine) fn answer(
    command: &Command,
    status: i32,
    stdout: Result<Vec<u8>, ReturnRule>,
    limit: u64,
    stderr: impl FnOnce() -> Option<String>,
) -> CallResult {
    match stdout {
        Err(rule) => CallResult::ToolError(ToolError::InvalidReturn(rule)),
        Ok(bytes) if status != 0 => {
            CallResult::Outcome(Outcome::Error(failure(status, &bytes, limit, stderr())))
        }
        Ok(bytes) if command.output == CommandOutput::Bytes => {
            CallResult::Outcome(Outcome::Ok(part(bytes, command)))
        }
        Ok(bytes) => {
            let (text, note) = readable(&bytes, limit);
            let mut output = Output::new(result(&text, command.output));
            output.parts.extend(note.map(|text| Part::Text { text }));
            CallResult::Outcome(Outcome::Ok(output))
        }
    }
}

/// Returns bytes as text. If they are not UTF-8, U+FFFD replaces each invalid sequence, the text is
/// cut before it exceeds the limit as JSON, and a note says so.
pub(in crate::engine) fn readable(bytes: &[u8], limit: u64) -> (Cow<'_, str>, Option<String>) {
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
    if output == CommandOutput::Json
        && let Ok(parsed) = Json::parse(text.trim().to_owned())
    {
        return parsed;
    }
    let line = text.strip_suffix('\n').unwrap_or(text);
    Json::from(Value::from(line.strip_suffix('\r').unwrap_or(line)))
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
            let found = (&*text, note.contains("only its beginning"));
            assert_eq!(found, (expected, is_cut), "{bytes:?}");
            let size = |text: &str| serde_json::to_string(text).unwrap().len();
            let json = size(&text) + size(&note);
            assert!(json as u64 <= limit.max(CUT_NOTE_BYTES), "{json} bytes of JSON of {bytes:?}");
        }
    }
}
