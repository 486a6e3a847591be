//! The queue of messages of one stream to a client.
//!
//! The handler of requests (`mcp/handler.rs`) adds messages as text: notifications with `notify`,
//! requests and answers with `send`. A transport reads them with a [`Reader`], each with its
//! number. Adding never waits, so a client that does not read delays neither a call nor its end.
//! Notifications are dropped when too many are unread; requests and answers are never dropped.
//!
//! Over HTTP up to 16 messages are kept after they were read, so that a client that reconnects can
//! resume after the last one it saw. A new reader replaces the earlier one.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::service::running::until;

/// Messages that are kept after they were read, for a client that resumes its stream.
const KEPT_MESSAGES: usize = 16;
/// The most unread notifications, and the most bytes of them.
const NOTICES: usize = 256;
const NOTICE_BYTES: usize = 256 << 10;

/// The messages of one stream.
#[derive(Debug)]
pub(in crate::mcp) struct Outbox {
    state: Mutex<State>,
    changed: Notify,
    /// The number of messages that are kept after they were read.
    kept: usize,
}

impl Default for Outbox {
    fn default() -> Self {
        Self::with_kept(KEPT_MESSAGES)
    }
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Entry>,
    /// The number of messages that were removed before the first of `messages`.
    dropped: u64,
    /// The number of messages that were read, including removed ones.
    read: u64,
    /// The number of unread notifications, and their bytes.
    notices: usize,
    notice_bytes: usize,
    /// The number of the newest reader, the only one that gets messages.
    reader: u64,
    is_over: bool,
}

#[derive(Debug)]
struct Entry {
    text: Bytes,
    is_notice: bool,
}

/// Reads the messages of a stream, from a given one on.
#[derive(Debug)]
pub(in crate::mcp) struct Reader {
    outbox: Arc<Outbox>,
    number: u64,
    next: u64,
}

impl Outbox {
    /// Creates a queue that keeps `kept` messages after they were read.
    pub(in crate::mcp) fn with_kept(kept: usize) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), kept }
    }

    /// Adds a notification, which is dropped if too many are unread. Returns false if the stream
    /// has ended.
    pub(in crate::mcp) fn notify(&self, text: Vec<u8>) -> bool {
        self.push(text, true)
    }

    /// Adds a request or an answer. Returns false if the stream has ended.
    pub(in crate::mcp) fn send(&self, text: Vec<u8>) -> bool {
        self.push(text, false)
    }

    fn push(&self, text: Vec<u8>, is_notice: bool) -> bool {
        let mut state = self.state.lock();
        if state.is_over {
            return false;
        }
        if is_notice {
            if state.notices >= NOTICES || state.notice_bytes + text.len() > NOTICE_BYTES {
                return true;
            }
            state.notices += 1;
            state.notice_bytes += text.len();
        }
        while state.messages.len() >= self.kept && state.dropped < state.read {
            state.messages.pop_front();
            state.dropped += 1;
        }
        state.messages.push_back(Entry { text: text.into(), is_notice });
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Ends the stream: its reader ends after the last message.
    pub(in crate::mcp) fn end(&self) {
        self.state.lock().is_over = true;
        self.changed.notify_waiters();
    }

    /// Returns true if no message was ever added.
    pub(in crate::mcp) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.messages.is_empty() && state.dropped == 0
    }

    /// Returns when there is a message, or the stream has ended.
    pub(in crate::mcp) async fn begun(&self) {
        self.until(|state| (state.is_over || !state.messages.is_empty()).then_some(())).await;
    }

    /// Returns when at most `most` messages are unread, or the stream has ended.
    pub(in crate::mcp) async fn has_room(&self, most: usize) {
        let look = |state: &mut State| {
            let waiting = (state.dropped + state.messages.len() as u64).saturating_sub(state.read);
            (state.is_over || waiting <= most as u64).then_some(())
        };
        self.until(look).await;
    }

    /// Reads from this message on; the first has the number 0. An earlier reader gets no more
    /// messages.
    pub(in crate::mcp) fn read(self: &Arc<Self>, next: u64) -> Reader {
        let mut state = self.state.lock();
        state.reader += 1;
        Reader { outbox: Arc::clone(self), number: state.reader, next }
    }

    async fn until<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        until(&self.changed, || look(&mut self.state.lock())).await
    }
}

impl State {
    /// Counts the messages before this one as read.
    fn read_up_to(&mut self, next: u64) {
        while self.read < next {
            let index = usize::try_from(self.read - self.dropped).unwrap_or(usize::MAX);
            if let Some(Entry { text, is_notice: true }) = self.messages.get(index) {
                self.notices -= 1;
                self.notice_bytes -= text.len();
            }
            self.read += 1;
        }
    }
}

impl Reader {
    /// Returns the next message and its number, or `None` at the end. A reader that is no longer
    /// the newest waits for the end.
    ///
    /// # Cancel safety
    /// Cancel safe: a message that was not returned is returned next.
    pub(in crate::mcp) async fn next(&mut self) -> Option<(u64, Bytes)> {
        let Self { outbox, number, next } = self;
        let found = outbox.until(|state| {
            if state.reader == *number {
                let at = (*next).max(state.dropped);
                let index = usize::try_from(at - state.dropped).unwrap_or(usize::MAX);
                if let Some(text) = state.messages.get(index).map(|entry| entry.text.clone()) {
                    state.read_up_to(at + 1);
                    return Some(Some((at, text)));
                }
            }
            state.is_over.then_some(None)
        });
        let found = found.await;
        if let Some((at, _)) = &found {
            *next = at + 1;
            // For tasks that wait for room.
            outbox.changed.notify_waiters();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn notices_are_bounded_and_answers_are_kept() {
        let outbox = Arc::new(Outbox::default());
        for _ in 0..2 * NOTICES {
            assert!(outbox.notify(b"notice".to_vec()));
        }
        assert!(outbox.notify(vec![b'x'; NOTICE_BYTES]) && outbox.send(b"answer".to_vec()));
        outbox.end();
        assert!(!outbox.send(b"late".to_vec()));
        let (mut reader, mut read) = (outbox.read(0), Vec::new());
        while let Some((_, text)) = reader.next().await {
            read.push(text);
        }
        assert_eq!((read.len(), read.pop().as_deref()), (NOTICES + 1, Some(&b"answer"[..])));
    }

    #[tokio::test]
    async fn new_reader_starts_at_given_position() {
        let outbox = Arc::new(Outbox::default());
        for number in 0..2 * KEPT_MESSAGES {
            outbox.send(number.to_string().into());
        }
        let mut first = outbox.read(0);
        for number in 0..KEPT_MESSAGES as u64 {
            assert_eq!(first.next().await, Some((number, number.to_string().into())));
        }
        // Messages that were read long ago are dropped when more arrive.
        outbox.send(b"more".to_vec());
        let (last, mut again) = (KEPT_MESSAGES as u64 - 1, outbox.read(KEPT_MESSAGES as u64 - 1));
        let from = again.next().await.expect("a message").0;
        assert!(from >= last, "{from}");
        outbox.end();
        assert_eq!(first.next().await, None, "it is no longer the newest");
    }
}
