//! Streams of files: one that writes within the room, one that reads and keeps its file held.
//!
//! Invariants: each waits for its disk on a thread of the cell's tenant; what it opened stays counted for as long; it keeps
//! one piece and no more, which it is charged.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
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
pub(super) struct Reader {
    source: Source,
    _hold: Option<Arc<Hold>>,
    at: u64,
    state: Reading,
}

enum Reading {
    Idle,
    Busy(Running<io::Result<Bytes>>),
    /// Never empty.
    Read(Bytes),
    Failed(wasmtime::Error),
    Closed,
}

impl Reader {
    pub(super) fn new(source: Source, hold: Option<Arc<Hold>>, at: u64) -> Self {
        Self { source, _hold: hold, at, state: Reading::Idle }
    }

    fn begin(&mut self) {
        let (file, at) = (Arc::clone(&self.source.file), self.at);
        self.state = Reading::Busy(self.source.way.start(move || piece(&file, at)));
    }
}

/// What is at this place of a file; nothing at its end.
fn piece(file: &File, at: u64) -> io::Result<Bytes> {
    let mut bytes = BytesMut::zeroed(PIECE);
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
        match &mut self.state {
            Reading::Idle if size > 0 => self.begin(),
            Reading::Idle | Reading::Busy(_) => {}
            Reading::Read(bytes) => {
                let taken = bytes.split_to(bytes.len().min(size));
                if bytes.is_empty() {
                    self.state = Reading::Idle;
                }
                self.at = self.at.saturating_add(taken.len() as u64);
                return Ok(taken);
            }
            Reading::Failed(_) | Reading::Closed => {
                return Err(match std::mem::replace(&mut self.state, Reading::Closed) {
                    Reading::Failed(error) => StreamError::LastOperationFailed(error),
                    Reading::Idle | Reading::Busy(_) | Reading::Read(_) | Reading::Closed => StreamError::Closed,
                });
            }
        }
        Ok(Bytes::new())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Reader {
    async fn ready(&mut self) {
        if let Reading::Idle = self.state {
            self.begin();
        }
        if let Reading::Busy(work) = &mut self.state {
            self.state = match told(work.await) {
                Ok(bytes) if bytes.is_empty() => Reading::Closed,
                Ok(bytes) => Reading::Read(bytes),
                Err(error) => Reading::Failed(error),
            };
        }
    }
}
