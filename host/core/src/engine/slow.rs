//! The slow lane: threads that go on with calls that outlast a slice.
//!
//! A slice ends here at a tick as well, and then it is another call's turn.
//! Invariants: no more slices run at once than there are threads, and a call that waits for one
//! keeps no thread; a turn that a call does not take goes to the next.

use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::fair::{FairQueue, Turns};
use super::pulse::Pulse;

/// The way to the threads.
#[derive(Clone)]
pub(super) struct Slow(Arc<Shared>);

struct Shared {
    threads: Handle,
    state: Mutex<State>,
}

struct State {
    /// Turns that no call has. There are none while a call waits.
    free: usize,
    line: FairQueue<Waiting>,
}

/// Who waits for a turn.
struct Waiting {
    pulse: Arc<Pulse>,
    turn: oneshot::Sender<Turn>,
}

impl Waiting {
    fn is_alive(&self) -> bool {
        !self.turn.is_closed() && !self.pulse.is_cancelled()
    }
}

/// A turn at one slice, until it is dropped.
pub(super) struct Turn(Slow);

/// A place in the line.
pub(super) type Place = oneshot::Receiver<Turn>;

impl Slow {
    /// So many threads, to be reached this way.
    pub(super) fn new(threads: Handle, many: usize) -> Self {
        Self(Arc::new(Shared {
            threads,
            state: Mutex::new(State { free: many, line: FairQueue::default() }),
        }))
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.threads.spawn(task);
    }

    /// Lines up for a turn; new is a call that has had none, anywhere.
    pub(super) fn line_up(&self, whose: &Arc<Turns>, pulse: &Arc<Pulse>, is_new: bool) -> Place {
        let (turn, place) = oneshot::channel();
        let waiting = Waiting { pulse: Arc::clone(pulse), turn };
        let mut state = self.0.state.lock();
        if is_new {
            state.line.push_new(whose, waiting);
        } else {
            state.line.push(whose, waiting);
        }
        if state.free > 0 {
            state.free -= 1;
            drop(state);
            drop(Turn(self.clone()));
        }
        place
    }
}

impl Drop for Turn {
    /// Gives the turn to the next call in the line.
    fn drop(&mut self) {
        let next = || {
            let mut state = self.0.0.state.lock();
            let next = state.line.pop(Waiting::is_alive);
            state.free += usize::from(next.is_none());
            next
        };
        while let Some(next) = next() {
            if next.is_alive() {
                // Who has left at this very moment does not take it: then it is dropped again.
                drop(next.turn.send(Self(self.0.clone())));
                return;
            }
        }
    }
}

impl std::fmt::Debug for Slow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slow").field("free", &self.0.state.lock().free).finish_non_exhaustive()
    }
}
