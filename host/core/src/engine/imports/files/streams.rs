//! Streams of files: one that writes within the room, one that reads and keeps its file held.
//!
//! Invariants: each waits for its disk on a thread of the cell's tenant; what it opened stays
//! counted for as long; it keeps one piece and no more, which it is charged.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use rustix::io::Errno;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::defence::{Defence, stands};
use crate::directory::{At, Hold};
use crate::engine::descriptors::Slot;
use crate::engine::retained::Charge;
use crate::engine::shares::{Running, Unserved, Way};

/// Bytes that one write may carry, and that one read brings.
pub(super) const PIECE: usize = 64 << 10;

/// What a stream works on, and what it holds for as long as it is there.
pub(super) struct Source {
    pub(super) file: Arc<File>,
    pub(super) way: Way,
    /// Among all that is open. The file's own descriptor may be gone.
    pub(super) _slot: Option<Arc<Slot>>,
    /// One piece.
    pub(super) _charge: Charge,
}

/// Writes to a file.
pub(super) struct Writer {
    source: Source,
    hold: Arc<Hold>,
    at: At,
    state: Writing,
}

enum Writing {
    Ready,
    Busy(Running<io::Result<At>>),
    Failed(wasmtime::Error),
    Closed,
}

/// What an operation came to, as a stream tells it.
fn told<T>(done: Result<io::Result<T>, Unserved>) -> wasmtime::Result<T> {
    match done {
        Ok(done) => done.map_err(wasmtime::Error::from),
        Err(Unserved::Blocked) => Err(io::Error::from(Errno::BUSY).into()),
        Err(Unserved::Failed(error)) => Err(error),
    }
}

impl Writer {
    pub(super) fn new(source: Source, hold: Arc<Hold>, at: At) -> Self {
        Self { source, hold, at, state: Writing::Ready }
    }

    /// What is there to say at the next call, once: then the stream is closed.
    fn failure(&mut self) -> StreamError {
        match std::mem::replace(&mut self.state, Writing::Closed) {
            Writing::Failed(error) => StreamError::LastOperationFailed(error),
            Writing::Ready | Writing::Busy(_) | Writing::Closed => StreamError::Closed,
        }
    }
}

impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        match self.state {
            Writing::Ready if bytes.len() > PIECE && stands(Defence::WritePermits) => {
                return Err(StreamError::trap("a write of more than was permitted"));
            }
            Writing::Ready => {}
            Writing::Closed => return Err(StreamError::Closed),
            Writing::Busy(_) | Writing::Failed(_) => {
                return Err(StreamError::trap("a write without asking whether it may"));
            }
        }
        let (file, hold, at) = (Arc::clone(&self.source.file), Arc::clone(&self.hold), self.at);
        self.state = Writing::Busy(self.source.way.start(move || {
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
            Writing::Ready | Writing::Busy(_) => Ok(()),
            Writing::Failed(_) | Writing::Closed => Err(self.failure()),
        }
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        match self.state {
            Writing::Ready => Ok(PIECE),
            Writing::Busy(_) => Ok(0),
            Writing::Failed(_) | Writing::Closed => Err(self.failure()),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {
        if let Writing::Busy(work) = &mut self.state {
            self.state = match told(work.await) {
                Ok(at) => {
                    self.at = at;
                    Writing::Ready
                }
                Err(error) => Writing::Failed(error),
            };
        }
    }
}

/// Reads a file, which is held for as long: without a name it takes up room until then.
///
/// What one read brings is for that read alone: what is left of it is dropped and read again, so
/// that a read sees what other handles have written or cut off since the one before.
pub(super) struct Reader {
    source: Source,
    _hold: Option<Arc<Hold>>,
    at: u64,
    state: Reading,
}

enum Reading {
    Idle,
    Busy(Running<io::Result<Bytes>>),
    /// Nothing at the end of the file.
    Read(Bytes),
    Failed(wasmtime::Error),
    Closed,
}

impl Reader {
    pub(super) fn new(source: Source, hold: Option<Arc<Hold>>, at: u64) -> Self {
        Self { source, _hold: hold, at, state: Reading::Idle }
    }

    /// Begins to read as much as is asked for.
    fn begin(&mut self, size: usize) {
        let (file, at) = (Arc::clone(&self.source.file), self.at);
        self.state =
            Reading::Busy(self.source.way.start(move || piece(&file, at, size.min(PIECE))));
    }

    /// Waits for what was begun.
    async fn end(&mut self) {
        if let Reading::Busy(work) = &mut self.state {
            self.state = told(work.await).map_or_else(Reading::Failed, Reading::Read);
        }
    }

    /// What was read, or why nothing was. The end of a file is no end of its stream: the file may
    /// grow.
    fn take(&mut self, size: usize) -> StreamResult<Bytes> {
        match std::mem::replace(&mut self.state, Reading::Closed) {
            Reading::Read(bytes) => {
                self.state = Reading::Idle;
                if bytes.is_empty() {
                    return Err(StreamError::Closed);
                }
                let taken = bytes.slice(..bytes.len().min(size));
                self.at = self.at.saturating_add(taken.len() as u64);
                Ok(taken)
            }
            Reading::Failed(error) => Err(StreamError::LastOperationFailed(error)),
            Reading::Closed => Err(StreamError::Closed),
            waiting @ (Reading::Idle | Reading::Busy(_)) => {
                self.state = waiting;
                Ok(Bytes::new())
            }
        }
    }
}

/// What is at this place of a file; nothing at its end.
fn piece(file: &File, at: u64, size: usize) -> io::Result<Bytes> {
    let mut bytes = BytesMut::zeroed(size);
    loop {
        match file.read_at(&mut bytes, at) {
            Ok(read) => {
                bytes.truncate(read);
                return Ok(bytes.freeze());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for Reader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        match self.state {
            _ if size == 0 => return Ok(Bytes::new()),
            Reading::Idle => self.begin(size),
            // It may have ended since.
            Reading::Busy(_) => drop(self.end().now_or_never()),
            Reading::Read(_) | Reading::Failed(_) | Reading::Closed => {}
        }
        self.take(size)
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.end().await;
        if size == 0 {
            return Ok(Bytes::new());
        }
        // What was read before this was asked may have changed since.
        if let Reading::Idle | Reading::Read(_) = self.state {
            self.begin(size);
            self.end().await;
        }
        self.take(size)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Reader {
    async fn ready(&mut self) {
        if let Reading::Idle = self.state {
            // The guest has not said yet how much it wants.
            self.begin(PIECE);
        }
        self.end().await;
    }
}
