//! Turns a guest's standard output and standard error into log events, line by line.
//!
//! A guest is the WebAssembly code of a tool. WASI's streams of a cell (the sandbox of one call)
//! write to a [`Lines`]. It cuts the bytes into lines of at most 4096 bytes and sends each as an
//! event, as long as the call's log limit has room; further bytes are only counted. Bytes that are
//! not UTF-8 are escaped. The beginning and the end of standard error are also kept, 2 KiB in all,
//! as the text of an error.
//! Invariants: the streams are never the host's own. The bytes that were kept and those that were
//! lost add up to what the guest wrote. A write never fails and never waits, so that a guest with
//! much output behaves as it would elsewhere.

use std::{borrow::Cow, sync::Arc, sync::atomic::Ordering};

use parking_lot::Mutex;
use toolcell_contract::controls::bound;
use toolcell_contract::event::{Event, LogLevel, LogSource};

use crate::tool::handler::Invocation;

/// A line without an end is cut after this many bytes.
const LINE_BYTES: usize = 4096;
/// Bytes of standard error that are kept for an error's text.
const LAST_WORDS_BYTES: usize = 2048;
/// Bytes of them that are the beginning of what was written, if that is longer: an exception begins
/// with its message.
const LAST_WORDS_HEAD: usize = 512;
/// The mark between that beginning and the end.
const LAST_WORDS_GAP: &str = "…\n…";
/// Bytes of one line that are kept in them: a long message keeps its beginning, even if a stack
/// trace follows.
const LAST_WORDS_LINE: usize = 1024;
/// Bytes that the end of a line takes of the log limit, also for a message of `log`: an empty line
/// makes the host work too.
pub(crate) const LINE_END: u64 = 1;

/// Both streams of one cell.
#[derive(Clone)]
pub(crate) struct Lines(Arc<Streams>);

struct Streams {
    invocation: Arc<Invocation>,
    stdout: Mutex<Vec<u8>>,
    stderr: Mutex<Vec<u8>>,
    stderr_excerpt: Mutex<StderrExcerpt>,
}

/// The text that was written to standard error: all of it, or its beginning and its end.
#[derive(Default)]
struct StderrExcerpt {
    text: String,
    /// True if the last line has not ended yet.
    is_open: bool,
}

impl Lines {
    pub(crate) fn new(invocation: Arc<Invocation>) -> Self {
        Self(Arc::new(Streams {
            invocation,
            stdout: Mutex::default(),
            stderr: Mutex::default(),
            stderr_excerpt: Mutex::default(),
        }))
    }

    /// Returns the text that is kept of standard error; `None` if there is none.
    pub(crate) fn stderr_excerpt(&self) -> Option<String> {
        self.finish();
        let words = self.0.stderr_excerpt.lock();
        let words = words.text.trim();
        (!words.is_empty()).then(|| words.to_owned())
    }

    /// Sends lines that have not ended.
    pub(crate) fn finish(&self) {
        for source in [LogSource::Stdout, LogSource::Stderr] {
            let rest = std::mem::take(&mut *self.buffer(source).lock());
            if !rest.is_empty() {
                self.line(source, &rest, 0);
            }
        }
    }

    fn buffer(&self, source: LogSource) -> &Mutex<Vec<u8>> {
        if source == LogSource::Stderr { &self.0.stderr } else { &self.0.stdout }
    }

    pub(crate) fn write(&self, source: LogSource, mut bytes: &[u8]) {
        let mut waiting = self.buffer(source).lock();
        while !bytes.is_empty() {
            let room = bytes.len().min(LINE_BYTES - waiting.len());
            let end = bytes[..room].iter().position(|byte| *byte == b'\n');
            let length = end.unwrap_or(room);
            waiting.extend_from_slice(&bytes[..length]);
            if end.is_some() {
                bytes = &bytes[length + 1..];
                self.line(source, &waiting, LINE_END);
                waiting.clear();
            } else {
                bytes = &bytes[length..];
                if waiting.len() == LINE_BYTES {
                    let whole = LINE_BYTES - unfinished(&waiting);
                    self.line(source, &waiting[..whole], 0);
                    waiting.drain(..whole);
                }
            }
        }
    }

    fn line(&self, source: LogSource, line: &[u8], end: u64) {
        let text = escape_utf8(line);
        let level = if source == LogSource::Stderr { LogLevel::Warn } else { LogLevel::Info };
        if source == LogSource::Stderr {
            self.0.stderr_excerpt.lock().remember(&text, end > 0);
        }
        emit(&self.0.invocation, source, level, &text, line.len() as u64 + end);
    }
}

/// Returns bytes as text. A byte that is not UTF-8 is written as its escape, for example `\xff`.
fn escape_utf8(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.into();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text.into()
}

/// Returns the number of bytes at the end that begin an incomplete character.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let is_begun = |length: &usize| {
        std::str::from_utf8(&tail[tail.len() - length..])
            .is_err_and(|error| error.error_len().is_none() && error.valid_up_to() == 0)
    };
    (1..=tail.len()).find(is_begun).unwrap_or(0)
}

impl StderrExcerpt {
    /// Appends the beginning of a line; nothing if it continues one. Over the bound, the middle is
    /// dropped.
    fn remember(&mut self, line: &str, is_whole: bool) {
        let is_continued = std::mem::replace(&mut self.is_open, !is_whole);
        if is_continued {
            return;
        }
        let start = &line[..line.floor_char_boundary(LAST_WORDS_LINE)];
        self.text.extend([start, if start.len() < line.len() { "…\n" } else { "\n" }]);
        if self.text.len() > LAST_WORDS_BYTES {
            let tail = LAST_WORDS_BYTES - LAST_WORDS_HEAD - LAST_WORDS_GAP.len();
            let dropped = self.text.floor_char_boundary(LAST_WORDS_HEAD)
                ..self.text.ceil_char_boundary(self.text.len() - tail);
            self.text.replace_range(dropped, LAST_WORDS_GAP);
        }
    }
}

/// Sends one line as an event, within the call's log limit. Its cost is what the guest wrote,
/// although a byte that is not UTF-8 is shown as four.
pub(crate) fn emit(
    invocation: &Invocation,
    source: LogSource,
    level: LogLevel,
    line: &str,
    cost: u64,
) {
    let meter = &invocation.meter;
    let kept = meter.log_bytes.load(Ordering::Relaxed);
    let room = invocation.limits.log.saturating_sub(kept);
    if cost > bound!(LogBytes, room) {
        meter.log_bytes_dropped.fetch_add(cost, Ordering::Relaxed);
        return;
    }
    meter.log_bytes.fetch_add(cost, Ordering::Relaxed);
    invocation.events.emit(|| Event::Log {
        id: invocation.call.id.clone(),
        source,
        level,
        message: line.to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use toolcell_contract::limits::Limits;
    use toolcell_test_guests::rows;
    use wasmtime_wasi::p2::{OutputStream as _, StreamError};

    use super::super::{GuestStream, PERMIT_BYTES};
    use super::*;

    /// Writes these pieces to the two streams in turn, and returns the bytes that are kept and
    /// lost. Also checks the bound of the buffer after each write.
    fn write_pieces(limit: u64, pieces: &[&[u8]]) -> (u64, u64) {
        let limits = Limits { log: limit, ..Limits::default() };
        let invocation = Arc::new(Invocation::scripted("t", limits));
        let lines = Lines::new(Arc::clone(&invocation));
        let sources = [LogSource::Stdout, LogSource::Stderr];
        let mut streams = sources.map(|source| GuestStream::Logged(lines.clone(), source));
        for (index, piece) in pieces.iter().enumerate() {
            streams[index % 2].write(Bytes::copy_from_slice(piece)).unwrap();
            assert!(lines.buffer(sources[index % 2]).lock().len() < LINE_BYTES);
        }
        lines.finish();
        let meter = &invocation.meter;
        (meter.log_bytes.load(Ordering::Relaxed), meter.log_bytes_dropped.load(Ordering::Relaxed))
    }

    /// Fails without: the bound on the bytes of one write.
    #[test]
    fn write_of_more_than_permitted_is_a_trap() {
        let lines = Lines::new(Arc::new(Invocation::scripted("t", Limits::default())));
        let mut stream = GuestStream::Logged(lines, LogSource::Stderr);
        let mut write = |count| stream.write(Bytes::from(vec![b'\n'; count]));
        assert!(write(PERMIT_BYTES).is_ok());
        assert!(matches!(write(PERMIT_BYTES + 1), Err(StreamError::Trap(_))));
    }

    #[test]
    fn non_utf8_bytes_are_escaped() {
        for (bytes, text) in rows::<(Vec<u8>, &str)>("engine/cell/output/lines", "escaped") {
            assert_eq!(escape_utf8(&bytes), text);
        }
        for (bytes, count) in rows::<(Vec<u8>, usize)>("engine/cell/output/lines", "unfinished") {
            assert_eq!(unfinished(&bytes), count, "{bytes:?}");
        }
    }

    #[test]
    fn long_message_keeps_its_head_and_stack() {
        let lines = Lines::new(Arc::new(Invocation::scripted("t", Limits::default())));
        let mut stream = GuestStream::Logged(lines.clone(), LogSource::Stderr);
        let message = format!("ValueError: no such city: {}", "é".repeat(10_000));
        for part in
            ["a line before\n", &message, "\n    at find (tool.py:7)\n", "    at main (tool.py:9)"]
        {
            stream.write(Bytes::copy_from_slice(part.as_bytes())).unwrap();
        }
        let words = lines.stderr_excerpt().unwrap();
        assert!(words.len() <= LAST_WORDS_BYTES, "{} bytes", words.len());
        assert!(words.contains("\nValueError: no such city: é"), "{words}");
        assert!(words.ends_with("é…\n    at find (tool.py:7)\n    at main (tool.py:9)"), "{words}");
    }

    #[test]
    fn many_line_message_keeps_its_head_and_end() {
        let lines = Lines::new(Arc::new(Invocation::scripted("t", Limits::default())));
        let faults: String = (0..1000).map(|row| format!("row {row} is no date: é\n")).collect();
        let message = format!("ValueError: 1000 rows are wrong\n{faults}    at read (tool.py:7)\n");
        lines.write(LogSource::Stderr, message.as_bytes());
        let words = lines.stderr_excerpt().unwrap();
        assert!(words.len() <= LAST_WORDS_BYTES, "{} bytes", words.len());
        let begin = "ValueError: 1000 rows are wrong\nrow 0 is no date: é\n";
        assert!(words.starts_with(begin), "{words}");
        assert!(words.ends_with("row 999 is no date: é\n    at read (tool.py:7)"), "{words}");
        assert_eq!(words.matches(LAST_WORDS_GAP).count(), 1, "{words}");
    }

    /// Fails without: the cost of a byte as it was written, not as it is shown; no cost for the end
    /// of a line that has none.
    #[test]
    fn kept_plus_lost_bytes_equal_written_bytes() {
        let long = vec![b'x'; PERMIT_BYTES];
        let ends = vec![b'\n'; 5000];
        let volume = vec![long.as_slice(); 1600];
        let table: [&[&[u8]]; 9] = [
            &[b"line\n", b"warning\n", b"no end"],
            &[b"\n\n", b"\n", b"", b"\n"],
            &[&long[..LINE_BYTES], &long[..LINE_BYTES + 1], b"\n", b"\n"],
            &[&long[..LINE_BYTES - 1], b"\xf0\x9f", b"\x92\xa9\n", b"\xa9"],
            &[b"\xff\xfe\n", b"\xff\xff\xff\xff"],
            &[&[0xff; PERMIT_BYTES], &[0x80; 5000]],
            &[&ends, &long, &ends],
            &[&b""[..]; 10_000],
            &volume,
        ];
        for (index, pieces) in table.into_iter().enumerate() {
            let all = pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
            for limit in [0, 1, 1000, 10_000, u64::MAX] {
                let (kept, lost) = write_pieces(limit, pieces);
                assert_eq!(kept + lost, all, "{index}, {limit}");
                let is_due = lost == 0 || all > limit;
                assert!(kept <= limit && is_due, "{index}, {limit}: {kept} and {lost}");
            }
        }
    }
}
