//! Command line, standard input and captured standard output of a program that runs as a tool.
//!
//! For each call of a command, [`Streams::new`] builds the words of the command line and the input
//! from the call's arguments. WASI gives them to the guest (the WebAssembly code of a tool).
//! [`Captured`] is its standard output: it keeps bytes up to the limit of a result and counts the
//! rest; a write never fails. `answer` returns the bytes for the result, or an error if they exceed
//! the limit. If the call ends without an answer, `text` puts the output into the error and `log`
//! sends it to the log, without secrets.
//! Not here: the conversion of the output to a result (`engine/adapt/command`).

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use toolcell_contract::{event::LogSource, outcome::tool_error::ReturnRule};

use super::lines::Lines;
use crate::engine::adapt::command::readable;
use crate::engine::adapt::component_kind::{Command, CommandInput, STDIN};
use crate::engine::cell::call_redactor::CallRedactor;
use crate::tool::handler::Invocation;

/// The command line and the streams of one call of a command.
pub(crate) struct Streams {
    pub(crate) argv: Vec<String>,
    pub(crate) stdin: Bytes,
    pub(crate) stdout: Captured,
}

impl Streams {
    /// Builds those of one call.
    pub(crate) fn new(command: &Command, invocation: &Invocation) -> Self {
        let words = command.words(invocation.arguments());
        let stdin = match command.stdin {
            CommandInput::Text => {
                let text =
                    invocation.arguments().get(STDIN).and_then(Value::as_str).unwrap_or_default();
                Bytes::copy_from_slice(text.as_bytes())
            }
            CommandInput::Json => Bytes::copy_from_slice(invocation.call.arguments.as_bytes()),
            CommandInput::Empty => Bytes::new(),
        };
        Self { argv: words, stdin, stdout: Captured::up_to(invocation.limits.result) }
    }

    /// Returns true if a word has the character U+0000, at which a program in C would cut it.
    pub(crate) fn is_cut_by_nul(&self) -> bool {
        self.argv.iter().any(|word| word.contains('\0'))
    }
}

/// The standard output of a command, up to a bound; further bytes are only counted.
#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<OutputBuffer>>);

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

    pub(super) fn write(&self, bytes: &[u8]) {
        let mut kept = self.0.lock();
        kept.total_bytes = kept.total_bytes.saturating_add(bytes.len() as u64);
        let room =
            usize::try_from(kept.limit).unwrap_or(usize::MAX).saturating_sub(kept.bytes.len());
        kept.bytes.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }

    /// Returns all of it for the command's answer.
    pub(crate) fn answer(&self) -> Result<Vec<u8>, ReturnRule> {
        let mut kept = self.0.lock();
        if kept.total_bytes > kept.limit {
            return Err(ReturnRule::TooLarge { limit: kept.limit, actual: kept.total_bytes });
        }
        kept.is_answered = true;
        Ok(kept.bytes.clone())
    }

    /// Returns true if the output was taken for the command's answer.
    pub(crate) fn is_answered(&self) -> bool {
        self.0.lock().is_answered
    }

    /// Sets the call redactor for the output.
    pub(crate) fn set_redactor(&self, redactor: Arc<CallRedactor>) {
        self.0.lock().redactor = Some(redactor);
    }

    /// Returns the output as text, without secrets, for an error that replaces the answer. A note
    /// says how many bytes were cut, and from where on it is not UTF-8. Returns `None` if nothing
    /// was written.
    pub(crate) fn text(&self) -> Option<String> {
        let (bytes, limit, left_out) = {
            let kept = self.0.lock();
            (self.redacted(&kept), kept.limit, kept.total_bytes - kept.bytes.len() as u64)
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
    pub(crate) fn log(&self, lines: &Lines) {
        let bytes = {
            let mut kept = self.0.lock();
            if std::mem::replace(&mut kept.is_logged, true) {
                return;
            }
            self.redacted(&kept)
        };
        lines.write(LogSource::Stdout, &bytes);
        lines.finish();
    }

    fn redacted(&self, kept: &OutputBuffer) -> Vec<u8> {
        kept.redactor.iter().fold(kept.bytes.clone(), |bytes, redactor| redactor.bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captured_text_reports_omitted_bytes() {
        let captured = Captured::up_to(300);
        assert_eq!(captured.text(), None);
        captured.write(b"a\n");
        assert_eq!(captured.text().as_deref(), Some("a\n"));
        captured.write(&[b'x'; 400]);
        assert!(captured.text().unwrap().ends_with("x\n[102 more bytes were printed]"));
    }
}
