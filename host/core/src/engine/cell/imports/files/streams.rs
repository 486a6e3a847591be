//! Streams by which a guest reads or writes an open file.
//!
//! `types` creates a [`Writer`] or a [`Reader`] for a descriptor, and wasmtime's `wasi:io` calls
//! it. A write is refused if it does not fit into the quota of the directory. A read sees what
//! other handles have written since the last one. Both do their work in the tenant's share of the
//! thread pool, at most 64 KiB at a time, and the guest (the WebAssembly code of a tool) waits or
//! polls until it is done.
//! An open file counts as long as its stream exists, also after the descriptor is closed. A stream
//! keeps at most one piece, which is charged to the host memory of the cell (a fresh WebAssembly
//! instance for one call).

use std::{fs::File, io, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use rustix::io::{Errno, pread, retry_on_intr};
use toolcell_contract::controls::bound;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::capability::files::{OpenMark, WritePosition};
use crate::engine::cell::bounds::blocking_pool::{PoolAccess, StartedWork, Unserved};
use crate::engine::cell::bounds::host_memory::Charge;
use crate::tenant::share::Reservation;

/// Bytes that one write may carry, and that one read returns at most.
pub(super) const PIECE: usize = 64 << 10;

/// The file of a stream, and what the stream holds while it exists.
pub(super) struct Source {
    pub(super) file: Arc<File>,
    pub(super) pool: PoolAccess,
    /// The permit of the open file: the file's own descriptor may be closed before the stream.
    pub(super) _slot: Option<Arc<Reservation>>,
    /// The host-memory charge for one piece.
    pub(super) _charge: Charge,
}

/// A stream that writes to a file.
pub(super) struct Writer {
    source: Source,
    open_mark: Arc<OpenMark>,
    position: WritePosition,
    state: Writing,
}

enum Writing {
    Ready,
    Busy(StartedWork<io::Result<()>>),
    Failed(wasmtime::Error),
    Closed,
}

/// Converts the result of an operation to a stream's error.
fn stream_result<T>(done: Result<io::Result<T>, Unserved>) -> wasmtime::Result<T> {
    match done {
        Ok(done) => done.map_err(wasmtime::Error::from),
        Err(Unserved::Blocked) => Err(io::Error::from(Errno::BUSY).into()),
        Err(Unserved::Failed(error)) => Err(error),
    }
}

impl Writer {
    pub(super) fn new(source: Source, hold: Arc<OpenMark>, at: WritePosition) -> Self {
        Self { source, open_mark: hold, position: at, state: Writing::Ready }
    }

    /// Returns the failure once; after that the stream is closed.
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
            Writing::Ready if bytes.len() > bound!(WritePermits, PIECE) => {
                return Err(StreamError::trap("a write of more than was permitted"));
            }
            Writing::Ready => {}
            Writing::Closed => return Err(StreamError::Closed),
            Writing::Busy(_) | Writing::Failed(_) => {
                return Err(StreamError::trap("a write without asking whether it may"));
            }
        }
        let (file, hold, at) =
            (Arc::clone(&self.source.file), Arc::clone(&self.open_mark), self.position);
        if let WritePosition::Offset(offset) = &mut self.position {
            *offset = offset.saturating_add(bytes.len() as u64);
        }
        self.state = Writing::Busy(self.source.pool.start(move || hold.write(&file, &bytes, at)));
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
            self.state =
                stream_result(work.await).map_or_else(Writing::Failed, |()| Writing::Ready);
        }
    }
}

/// A stream that reads a file. It holds the file: a file without a name takes up room until then.
///
/// Bytes that were read are for one read alone: the rest of them is dropped and read again, so that
/// each read sees what other handles have written or truncated since the last one.
pub(super) struct Reader {
    source: Source,
    _hold: Option<Arc<OpenMark>>,
    position: u64,
    state: Reading,
}

enum Reading {
    Idle,
    Busy(StartedWork<io::Result<Bytes>>),
    /// The bytes that were read; empty at the end of the file.
    Read(Bytes),
    Failed(wasmtime::Error),
    Closed,
}

impl Reader {
    pub(super) fn new(source: Source, hold: Option<Arc<OpenMark>>, at: u64) -> Self {
        Self { source, _hold: hold, position: at, state: Reading::Idle }
    }

    /// Starts to read at most `size` bytes.
    fn begin(&mut self, size: usize) {
        let (file, at) = (Arc::clone(&self.source.file), self.position);
        self.state =
            Reading::Busy(self.source.pool.start(move || piece(&file, at, size.min(PIECE))));
    }

    /// Waits for the read that was started.
    async fn end(&mut self) {
        if let Reading::Busy(work) = &mut self.state {
            self.state = stream_result(work.await).map_or_else(Reading::Failed, Reading::Read);
        }
    }

    /// Returns the bytes that were read, or the reason why there are none. The end of a file does
    /// not close its stream: the file may grow.
    fn take(&mut self, size: usize) -> StreamResult<Bytes> {
        match std::mem::replace(&mut self.state, Reading::Closed) {
            Reading::Read(bytes) => {
                self.state = Reading::Idle;
                if bytes.is_empty() {
                    return Err(StreamError::Closed);
                }
                let taken = bytes.slice(..bytes.len().min(size));
                self.position = self.position.saturating_add(taken.len() as u64);
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

/// Reads at this offset of a file; empty at its end.
fn piece(file: &File, at: u64, size: usize) -> io::Result<Bytes> {
    let mut bytes = BytesMut::zeroed(size);
    let read = retry_on_intr(|| pread(file, &mut *bytes, at))?;
    bytes.truncate(read);
    Ok(bytes.freeze())
}

#[wasmtime_wasi::async_trait]
impl InputStream for Reader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        match self.state {
            _ if size == 0 => return Ok(Bytes::new()),
            Reading::Idle => self.begin(size),
            // The read may have ended since.
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
        // Bytes that were read before this call may have changed since.
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
            // The size that the guest will ask for is not known yet.
            self.begin(PIECE);
        }
        self.end().await;
    }
}
