//! Slow lane: threads of low priority that continue calls that outlast their first slice.
//!
//! A call runs in slices, each of which ends at a tick, about a millisecond. Before each slice,
//! `guest` calls [`SlowLane::enqueue`] with the flow (tenant) of the call and waits for a [`Turn`].
//! When the turn is dropped, it goes to the next call, of another flow if one waits (`fair_queue`).
//! Invariants: at most as many slices run at once as there are threads. A call that waits for a
//! turn occupies no thread. A turn that a cancelled call does not take goes to the next call.

use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::fair_queue::{FairQueue, FlowState};
use crate::engine::cell::bounds::run_state::RunState;

/// A handle of the lane.
#[derive(Clone)]
pub(in crate::engine) struct SlowLane(Arc<Shared>);

struct Shared {
    threads: Handle,
    state: Mutex<State>,
}

struct State {
    /// Turns that no call has. Zero while a call waits.
    free: usize,
    line: FairQueue<Waiting>,
}

/// A call that waits for a turn.
struct Waiting {
    run_state: Arc<RunState>,
    turn: oneshot::Sender<Turn>,
}

impl Waiting {
    fn is_alive(&self) -> bool {
        !self.turn.is_closed() && !self.run_state.is_cancelled()
    }
}

/// A turn at one slice; passed on when dropped.
pub(super) struct Turn(SlowLane);

/// A place in the queue: receives the turn.
pub(super) type Place = oneshot::Receiver<Turn>;

impl SlowLane {
    /// Builds a lane of this many threads on this runtime.
    pub(super) fn new(threads: Handle, many: usize) -> Self {
        Self(Arc::new(Shared {
            threads,
            state: Mutex::new(State { free: many, line: FairQueue::default() }),
        }))
    }

    pub(in crate::engine) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.threads.spawn(task);
    }

    /// Queues a call for a turn. `is_new`: the call has never had a turn in any lane.
    pub(super) fn enqueue(
        &self,
        whose: &Arc<FlowState>,
        run_state: &Arc<RunState>,
        is_new: bool,
    ) -> Place {
        let (turn, place) = oneshot::channel();
        let waiting = Waiting { run_state: Arc::clone(run_state), turn };
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
    /// Gives the turn to the next call in the queue.
    fn drop(&mut self) {
        let next = || {
            let mut state = self.0.0.state.lock();
            let next = state.line.pop(Waiting::is_alive);
            state.free += usize::from(next.is_none());
            next
        };
        while let Some(next) = next() {
            if next.is_alive() {
                // If the call has left meanwhile, the send fails, and the turn is dropped and
                // passed on.
                drop(next.turn.send(Self(self.0.clone())));
                return;
            }
        }
    }
}
