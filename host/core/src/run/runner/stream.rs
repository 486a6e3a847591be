//! A run as a stream of events, for a reader that wants them as they happen.
//!
//! `Runner::stream` returns a [`RunStream`]; the run advances while it is read. It observes the
//! executor's events, puts them into a queue, and yields them, followed by the settled end of each
//! call and at last the halt, if there is one. The events of one call come in their order. No call
//! starts while events wait to be read, so a run of any length needs little memory. Progress events
//! are dropped when too many wait, because a newer one makes them obsolete.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::BoxStream;
use futures_util::task::AtomicWaker;
use futures_util::{Stream, StreamExt as _};
use parking_lot::Mutex;
use toolcell_contract::call::ToolCall;
use toolcell_contract::error::Error;
use toolcell_contract::event::Event;
use toolcell_contract::message::{RunEvent, RunFailure, RunHalt};

use super::{RunOptions, Runner, batch::Batch, settle::CallSettlement};

/// The maximum number of queued events at which progress is still queued. Later progress events are
/// dropped: a newer one makes them obsolete.
const MAX_PROGRESS: usize = 1024;

/// The events of a run. The run advances while they are read. The stream ends after the last event.
pub struct RunStream {
    run: Result<BoxStream<'static, CallSettlement>, Option<Error>>,
    queue: Arc<Queue>,
    halted: Option<(usize, RunHalt)>,
    is_over: bool,
}

impl RunStream {
    pub(super) fn new(
        runner: &Runner,
        calls: impl IntoIterator<Item = ToolCall>,
        options: RunOptions,
    ) -> Self {
        let queue = Arc::new(Queue::default());
        let sink = Arc::clone(&queue);
        let executor =
            runner.executor.clone().with_additional_events(move |event| sink.receive(event));
        let observed = Runner { executor, ..runner.clone() };
        let waiting = Arc::clone(&queue);
        let start = |batch: Batch| batch.call_ends(move || !waiting.is_empty()).boxed();
        let run = Batch::new(&observed, calls, options).map(start).map_err(Some);
        Self { run, queue, halted: None, is_over: false }
    }

    /// Returns the next event, or `None` after the last.
    ///
    /// # Cancel safety
    /// May be dropped and called again: no event is lost.
    pub async fn next(&mut self) -> Option<RunEvent> {
        futures_util::StreamExt::next(self).await
    }

    /// Returns the reason why the loop must not continue, as far as the run has come. It is final
    /// once the stream has ended.
    #[must_use]
    pub fn halted(&self) -> Option<&RunHalt> {
        self.halted.as_ref().map(|(_, halted)| halted)
    }
}

impl Stream for RunStream {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let Self { run, queue, halted, is_over } = &mut *self;
        let ends = match run {
            Ok(ends) => ends,
            Err(error) => {
                return Poll::Ready(error.take().map(|error| RunEvent::Error(RunFailure(error))));
            }
        };
        // Every poll advances the calls, also while events wait: a slow reader does not delay a
        // call.
        queue.reader.register(context.waker());
        while !*is_over {
            match ends.poll_next_unpin(context) {
                Poll::Ready(Some(end)) => {
                    let earlier = halted.as_ref().is_some_and(|(index, _)| *index < end.index);
                    if let Some(why) = &end.halted
                        && !earlier
                    {
                        *halted = Some((end.index, why.clone()));
                    }
                    queue.push(end.settled());
                }
                Poll::Ready(None) => {
                    *is_over = true;
                    if let Some((_, halted)) = halted {
                        queue.push(RunEvent::Halted(halted.clone()));
                    }
                }
                Poll::Pending => break,
            }
        }
        match queue.pop() {
            None if !*is_over => Poll::Pending,
            event => Poll::Ready(event),
        }
    }
}

impl std::fmt::Debug for RunStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunStream").field("halted", &self.halted).finish_non_exhaustive()
    }
}

/// The queue of events that wait to be read.
#[derive(Default)]
struct Queue {
    events: Mutex<VecDeque<RunEvent>>,
    reader: AtomicWaker,
}

impl Queue {
    fn push(&self, event: RunEvent) {
        let mut events = self.events.lock();
        let is_progress = matches!(event, RunEvent::Call(Event::Progress { .. }));
        if !is_progress || events.len() < MAX_PROGRESS {
            events.push_back(event);
        }
    }

    fn is_empty(&self) -> bool {
        self.events.lock().is_empty()
    }

    fn pop(&self) -> Option<RunEvent> {
        self.events.lock().pop_front()
    }

    /// Queues an event of a call.
    fn receive(&self, event: Event) {
        self.push(RunEvent::Call(event));
        self.reader.wake();
    }
}
