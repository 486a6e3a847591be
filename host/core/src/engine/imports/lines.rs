//! Standard output and standard error of a guest: bounded, cut into lines, sent as log events.
//!
//! Invariants: never the host's own streams; at most the call's log limit is kept and the rest is counted; a write never
//! fails and never waits, so that a chatty guest behaves as it would alone.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use parking_lot::Mutex;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::defence::{Defence, stands};
use crate::event::{Event, LogLevel, LogSource};
use crate::handler::Invocation;

/// A line without an end is cut after this many bytes.
const LINE_BYTES: usize = 4096;
/// How much of standard error is kept as the guest's last words.
const LAST_WORDS_BYTES: usize = 2048;
/// How much one write may carry.
const PERMIT_BYTES: usize = 64 << 10;
/// What an empty write or line costs of the log limit: it makes the host work too.
const LINE_COST: u64 = 1;

/// Both streams of one cell.
#[derive(Clone)]
pub(in crate::engine) struct Lines(Arc<Streams>);

struct Streams {
    invocation: Arc<Invocation>,
    stdout: Mutex<Vec<u8>>,
    stderr: Mutex<Vec<u8>>,
    last_words: Mutex<String>,
}

impl Lines {
    pub(in crate::engine) fn new(invocation: Arc<Invocation>) -> Self {
        Self(Arc::new(Streams {
            invocation,
            stdout: Mutex::default(),
            stderr: Mutex::default(),
            last_words: Mutex::default(),
        }))
    }

    /// The stream of one source.
    pub(in crate::engine) fn stream(&self, source: LogSource) -> Stream {
        Stream { lines: self.clone(), source }
    }

    /// What was written last to standard error; none if nothing was.
    pub(in crate::engine) fn last_words(&self) -> Option<String> {
        self.finish();
        let words = self.0.last_words.lock();
        let words = words.trim();
        (!words.is_empty()).then(|| words.to_owned())
    }

    /// Sends what waits for the end of its line.
    pub(in crate::engine) fn finish(&self) {
        for source in [LogSource::Stdout, LogSource::Stderr] {
            let rest = std::mem::take(&mut *self.buffer(source).lock());
            if !rest.is_empty() {
                self.line(source, &rest);
            }
        }
    }

    fn buffer(&self, source: LogSource) -> &Mutex<Vec<u8>> {
        if source == LogSource::Stderr { &self.0.stderr } else { &self.0.stdout }
    }

    fn write(&self, source: LogSource, mut bytes: &[u8]) {
        let mut waiting = self.buffer(source).lock();
        while !bytes.is_empty() {
            let room = LINE_BYTES - waiting.len();
            let end = bytes.iter().take(room).position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(bytes.len().min(room));
            let (line, rest) = bytes.split_at(taken);
            waiting.extend_from_slice(line);
            bytes = if end.is_some() { rest.split_first().map_or(rest, |(_, rest)| rest) } else { rest };
            if end.is_some() || waiting.len() == LINE_BYTES {
                self.line(source, &waiting);
                waiting.clear();
            }
        }
    }

    fn line(&self, source: LogSource, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let level = if source == LogSource::Stderr { LogLevel::Warn } else { LogLevel::Info };
        if source == LogSource::Stderr {
            remember(&mut self.0.last_words.lock(), &text);
        }
        emit(&self.0.invocation, source, level, &text);
    }
}

/// Appends a line, dropping from the front what is over the bound.
fn remember(words: &mut String, line: &str) {
    words.push_str(line);
    words.push('\n');
    if words.len() > LAST_WORDS_BYTES {
        let cut = words.ceil_char_boundary(words.len() - LAST_WORDS_BYTES);
        words.drain(..cut);
    }
}

/// Sends one line as an event, within the call's log limit.
pub(in crate::engine) fn emit(invocation: &Invocation, source: LogSource, level: LogLevel, line: &str) {
    let meter = &invocation.meter;
    let kept = meter.log_bytes.load(Ordering::Relaxed);
    let room = invocation.limits.log.saturating_sub(kept);
    let cost = line.len() as u64 + LINE_COST;
    if cost > room && stands(Defence::LogBytes) {
        meter.log_bytes_lost.fetch_add(cost, Ordering::Relaxed);
        return;
    }
    meter.log_bytes.fetch_add(cost, Ordering::Relaxed);
    invocation.events.emit(|| Event::Log { id: invocation.call.id.clone(), source, level, message: line.to_owned() });
}

/// One end that a guest writes to.
pub(in crate::engine) struct Stream {
    lines: Lines,
    source: LogSource,
}

impl IsTerminal for Stream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stream {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Not reached: the engine's preview-2 host asks for `p2_stream`.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.lines.stream(self.source))
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Stream {
    async fn ready(&mut self) {}
}

impl OutputStream for Stream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.lines.write(self.source, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT_BYTES)
    }
}
