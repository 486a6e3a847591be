//! Counts each byte that a server sends on one connection, and ends the connection at a limit.
//!
//! The budget of a call counts heads and bodies. A server could send much more that no response
//! shows, such as interim responses (status 1xx) and the frames of chunks. [`Metered`] wraps the
//! stream of a connection and counts all of it. [`Meter::for_head`] allows as many bytes as three
//! heads of 64 KiB; when the head has arrived, [`Meter::extend_for_body`] adds the body's limit and
//! 1 MiB for framing.
//! After the limit, reads fail and the connection is not read any more. `is_exceeded` lets the
//! caller report this cause.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use toolcell_contract::controls::bound;

use super::connect::Stream;
use crate::capability::http::MAX_HEAD;

/// Bytes of framing around a body. Chunks of five hundred bytes stay far below it, and so do two
/// hundred thousand smaller ones. A body sent byte by byte exceeds it and costs more to read than
/// it is worth.
const FRAMING: u64 = 1 << 20;

/// The bytes that may still be read from one connection.
#[derive(Debug, Clone)]
pub(crate) struct Meter(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    left: AtomicU64,
    is_exceeded: AtomicBool,
}

impl Meter {
    /// Creates a meter that allows a head, interim heads before it, and as much of a body as is
    /// read ahead.
    pub(crate) fn for_head() -> Self {
        let left = AtomicU64::new(bound!(ConnectionBytes, 3 * MAX_HEAD as u64));
        Self(Arc::new(Counts { left, is_exceeded: AtomicBool::new(false) }))
    }

    /// Allows a body of this many bytes, and its framing.
    pub(crate) fn extend_for_body(&self, bytes: u64) {
        let more = bytes.saturating_add(FRAMING);
        let add = |left: u64| Some(left.saturating_add(more));
        let _ = self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Returns true if the connection ended because the peer sent too much.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.0.is_exceeded.load(Ordering::Acquire)
    }

    fn count(&self, bytes: u64) -> io::Result<()> {
        let take = |left: u64| left.checked_sub(bytes);
        match self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(_) => {
                self.0.is_exceeded.store(true, Ordering::Release);
                Err(io::ErrorKind::QuotaExceeded.into())
            }
        }
    }
}

/// A connection whose incoming bytes are metered.
pub(crate) struct Metered {
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) meter: Meter,
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        Poll::Ready(self.meter.count((buf.filled().len() - before) as u64))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
