//! Output that a guest prints: lines for the log, and the captured standard output of a command.
//!
//! A guest writes to standard output and standard error through WASI. `lines` sends both as log
//! events within the log limit of the call. `captured` keeps the standard output of a command, a
//! program that runs as a tool, because it is the result of the call. Each hands its
//! [`GuestStream`] to WASI.

pub(in crate::engine) mod captured;
pub(in crate::engine) mod lines;

use bytes::Bytes;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// Bytes that one write may carry.
const PERMIT_BYTES: usize = 64 << 10;

/// A function that takes what a guest writes.
pub(in crate::engine) trait WriteBytes:
    Fn(&[u8]) + Clone + Send + Sync + 'static
{
}

impl<F: Fn(&[u8]) + Clone + Send + Sync + 'static> WriteBytes for F {}

/// A stream of WASI that calls a function with each write. A write never fails and never waits.
#[derive(Clone)]
pub(in crate::engine) struct GuestStream<F>(F);

impl<F: WriteBytes> IsTerminal for GuestStream<F> {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl<F: WriteBytes> StdoutStream for GuestStream<F> {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Not reached: wasmtime's WASI preview 2 host asks for `p2_stream`.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl<F: WriteBytes> Pollable for GuestStream<F> {
    async fn ready(&mut self) {}
}

impl<F: WriteBytes> OutputStream for GuestStream<F> {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        (self.0)(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT_BYTES)
    }
}
