//! Output that a guest prints: lines for the log, and the captured standard output of a command.
//!
//! A guest writes to standard output and standard error through WASI. `lines` sends both as log
//! events within the log limit of the call. `captured` keeps the standard output of a command, a
//! program that runs as a tool, because it is the result of the call. WASI writes to each through a
//! [`GuestStream`].

pub(crate) mod captured;
pub(crate) mod lines;

use bytes::Bytes;
use toolcell_contract::controls::bound;
use toolcell_contract::event::LogSource;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use captured::Captured;
use lines::Lines;

/// Bytes that one write may carry: all of it is made into lines before the guest can be interrupted.
const PERMIT_BYTES: usize = 64 << 10;

/// A stream of WASI that a guest writes to. A permitted write never fails and never waits.
#[derive(Clone)]
pub(crate) enum GuestStream {
    /// Lines for the log.
    Logged(Lines, LogSource),
    Captured(Captured),
}

impl IsTerminal for GuestStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestStream {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Not reached: wasmtime's WASI preview 2 host asks for `p2_stream`.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for GuestStream {
    async fn ready(&mut self) {}
}

impl OutputStream for GuestStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > bound!(WritePermits, PERMIT_BYTES) {
            return Err(StreamError::trap("a write of more than was permitted"));
        }
        match self {
            Self::Logged(lines, source) => lines.write(*source, &bytes),
            Self::Captured(captured) => captured.write(&bytes),
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT_BYTES)
    }
}
