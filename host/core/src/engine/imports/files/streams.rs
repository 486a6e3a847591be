//! Streams of files that are counted: one that writes within the room, one that reads and keeps its file held.

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::p2::{DynInputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, spawn_blocking};

use crate::directory::{At, Hold};

/// Bytes that one write may carry, as much as one read.
const PERMIT_BYTES: usize = 64 << 10;

/// Writes to a file.
pub(super) struct Writer {
    file: Arc<File>,
    hold: Arc<Hold>,
    at: At,
    state: State,
}

enum State {
    Ready,
    Busy(AbortOnDropJoinHandle<io::Result<At>>),
    Failed(io::Error),
    Closed,
}

impl Writer {
    pub(super) fn new(file: Arc<File>, hold: Arc<Hold>, at: At) -> Self {
        Self { file, hold, at, state: State::Ready }
    }

    /// What is there to say at the next call, once: then the stream is closed.
    fn failure(&mut self) -> StreamError {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Failed(error) => StreamError::LastOperationFailed(error.into()),
            State::Ready | State::Busy(_) | State::Closed => StreamError::Closed,
        }
    }
}

impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        match self.state {
            State::Ready => {}
            State::Closed => return Err(StreamError::Closed),
            State::Busy(_) | State::Failed(_) => {
                return Err(StreamError::trap("a write without asking whether it may"));
            }
        }
        let (file, hold, at) = (Arc::clone(&self.file), Arc::clone(&self.hold), self.at);
        self.state = State::Busy(spawn_blocking(move || {
            hold.write(&file, &bytes, at)?;
            Ok(match at {
                At::Offset(offset) => At::Offset(offset.saturating_add(bytes.len() as u64)),
                At::End => At::End,
            })
        }));
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        match self.state {
            State::Ready | State::Busy(_) => Ok(()),
            State::Failed(_) | State::Closed => Err(self.failure()),
        }
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        match self.state {
            State::Ready => Ok(PERMIT_BYTES),
            State::Busy(_) => Ok(0),
            State::Failed(_) | State::Closed => Err(self.failure()),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {
        if let State::Busy(work) = &mut self.state {
            self.state = match work.await {
                Ok(at) => {
                    self.at = at;
                    State::Ready
                }
                Err(error) => State::Failed(error),
            };
        }
    }
}

/// Reads a file, which is held for as long: without a name it takes up room until then.
pub(super) struct Reader {
    pub(super) stream: DynInputStream,
    pub(super) _hold: Arc<Hold>,
}

#[wasmtime_wasi::async_trait]
impl InputStream for Reader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.stream.read(size)
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.stream.blocking_read(size).await
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Reader {
    async fn ready(&mut self) {
        self.stream.ready().await;
    }
}
