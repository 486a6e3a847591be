//! Threads that wait for disks, and each tenant's share of them.
//!
//! In: work that may wait for long. Out: what came of it, or that the tenant has nothing left to
//! wait with.
//! Invariants: one tenant never keeps all threads, one cell never more than two; a share is held
//! until the work has come back, also when no call waits for it any more; work that waits for a
//! turn waits within its call and stops with it.
//! Source: docs/threat-model.md, rows 6 and 56.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;

use super::runtimes::Threads;
use crate::clock::before;
use crate::defence::{Defence, stands};
use crate::fence::resumed;

/// Threads of one pool. They are made when they are first needed, and most of their time they wait
/// for a disk.
const THREADS: usize = 32;
/// Threads of one pool that the calls of one tenant keep at once; those without a tenant are one
/// tenant's, too.
const OF_TENANT: usize = THREADS / 4;
/// Threads of one pool that one cell keeps at once: it reads and writes, say, and begins no third
/// thing meanwhile.
const OF_CELL: usize = 2;
/// How long a tenant's whole share has to be out with work that no call waits for until the next
/// call hears of it: calls that were cancelled together are back by then.
const PATIENCE: Duration = Duration::from_millis(250);

/// Work on its way.
pub(super) type Running<T> = Pin<Box<dyn Future<Output = Result<T, Unserved>> + Send>>;

/// Why work was not done, or its result is not there.
#[derive(Debug)]
pub(super) enum Unserved {
    /// All of the tenant's share is out with work whose calls have ended, and does not come back.
    Blocked,
    /// There are no threads.
    Failed(wasmtime::Error),
}

/// A pool of threads. Its tenants come and go with their cells.
pub(super) struct Shares {
    name: &'static str,
    threads: OnceLock<Option<Threads>>,
    without_tenant: Arc<Share>,
    tenants: Mutex<HashMap<String, Weak<Share>>>,
}

/// What a tenant has of a pool.
struct Share {
    free: Arc<Semaphore>,
    /// How much work is out that no call waits for any more.
    left: watch::Sender<usize>,
}

/// One cell's way to a pool.
#[derive(Clone)]
pub(super) struct Way {
    shares: Arc<Shares>,
    share: Arc<Share>,
    own: Arc<Semaphore>,
}

impl Shares {
    pub(super) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            name,
            threads: OnceLock::new(),
            without_tenant: Share::new(),
            tenants: Mutex::default(),
        })
    }

    /// The way of a cell of this tenant.
    pub(super) fn way(self: &Arc<Self>, tenant: Option<&str>) -> Way {
        let share =
            tenant.map_or_else(|| Arc::clone(&self.without_tenant), |tenant| self.share(tenant));
        let of_cell = if stands(Defence::CellThreads) { OF_CELL } else { THREADS };
        Way { shares: Arc::clone(self), share, own: Arc::new(Semaphore::new(of_cell)) }
    }

    fn share(&self, tenant: &str) -> Arc<Share> {
        let mut tenants = self.tenants.lock();
        if let Some(known) = tenants.get(tenant).and_then(Weak::upgrade) {
            return known;
        }
        tenants.retain(|_, share| share.strong_count() > 0);
        let share = Share::new();
        tenants.insert(tenant.to_owned(), Arc::downgrade(&share));
        share
    }

    fn threads(&self) -> Result<&Handle, Unserved> {
        let threads = self.threads.get_or_init(|| {
            let mut builder = Builder::new_current_thread();
            builder.max_blocking_threads(THREADS).thread_name(self.name);
            Threads::build(builder)
                .inspect_err(|error| tracing::error!(%error, self.name, "no threads"))
                .ok()
        });
        threads
            .as_ref()
            .map(Threads::handle)
            .ok_or_else(|| Unserved::Failed(wasmtime::Error::msg("no threads")))
    }
}

impl Share {
    fn new() -> Arc<Self> {
        let of_tenant =
            if stands(Defence::TenantThreads) { OF_TENANT } else { Semaphore::MAX_PERMITS };
        Arc::new(Self { free: Arc::new(Semaphore::new(of_tenant)), left: watch::Sender::new(0) })
    }

    /// One of the tenant's threads, or that none comes back.
    async fn turn(&self) -> Result<OwnedSemaphorePermit, Unserved> {
        tokio::select! {
            biased;
            turn = Arc::clone(&self.free).acquire_owned() => turn.map_err(closed),
            () = self.hopeless() => Err(Unserved::Blocked),
        }
    }

    /// Ends when all of the share has been left for a while.
    async fn hopeless(&self) {
        let mut left = self.left.subscribe();
        loop {
            let is_sure = left.wait_for(|left| *left >= OF_TENANT).await.is_ok();
            let comes_back = left.wait_for(|left| *left < OF_TENANT);
            if is_sure && before(Instant::now().checked_add(PATIENCE), comes_back).await.is_none() {
                return;
            }
        }
    }
}

impl Way {
    /// Does this on a thread that may wait, when it is this cell's turn.
    ///
    /// # Cancel safety
    /// When dropped, what has not begun is not done, and what has begun goes on to its end.
    ///
    /// # Panics
    /// When the work does.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unserved> {
        let own = Arc::clone(&self.own).acquire_owned().await.map_err(closed)?;
        let turn = self.share.turn().await?;
        let threads = self.shares.threads()?;
        let stage = Stage::new(&self.share);
        let turns = stands(Defence::BusyThreads).then_some([own, turn]);
        let out = Out { stage: Arc::clone(&stage), _turns: turns };
        let task = threads.spawn_blocking(move || {
            let done = work();
            drop(out);
            done
        });
        let mut asked = Asked { task, stage };
        resumed((&mut asked.task).await).ok_or_else(ended)
    }

    /// The same without waiting for it: it begins at once where it can.
    pub(super) fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Running<T> {
        let way = self.clone();
        let mut running: Running<T> = Box::pin(async move { way.run(work).await });
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match running.as_mut().poll(&mut context) {
            std::task::Poll::Ready(done) => Box::pin(std::future::ready(done)),
            std::task::Poll::Pending => running,
        }
    }
}

fn closed(_: AcquireError) -> Unserved {
    unreachable!("no share is ever closed")
}

fn ended() -> Unserved {
    Unserved::Failed(wasmtime::Error::msg("the host's threads for files and keys have shut down"))
}

const RUNNING: u8 = 0;
const LEFT: u8 = 1;
const DONE: u8 = 2;

/// How far a piece of work is, as both of its ends see it. Changed only inside of the share's count
/// of what was left.
struct Stage {
    share: Arc<Share>,
    now: AtomicU8,
}

impl Stage {
    fn new(share: &Arc<Share>) -> Arc<Self> {
        Arc::new(Self { share: Arc::clone(share), now: AtomicU8::new(RUNNING) })
    }
}

/// The end where it is done.
struct Out {
    stage: Arc<Stage>,
    _turns: Option<[OwnedSemaphorePermit; 2]>,
}

impl Drop for Out {
    fn drop(&mut self) {
        let Stage { share, now } = &*self.stage;
        share.left.send_if_modified(|left| {
            let was_left = now.swap(DONE, Ordering::Relaxed) == LEFT;
            *left -= usize::from(was_left);
            was_left
        });
    }
}

/// The end where it is waited for.
struct Asked<T> {
    task: JoinHandle<T>,
    stage: Arc<Stage>,
}

impl<T> Drop for Asked<T> {
    fn drop(&mut self) {
        self.task.abort();
        let Stage { share, now } = &*self.stage;
        share.left.send_if_modified(|left| {
            let leaves =
                now.compare_exchange(RUNNING, LEFT, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            *left += usize::from(leaves);
            leaves
        });
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::sync::mpsc;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;
    use crate::clock;

    type Gate = Arc<Mutex<mpsc::Receiver<()>>>;

    /// Work that tells when it began, and comes back when the gate is gone.
    fn stuck(gate: &Gate, began: &mpsc::Sender<()>) -> impl FnOnce() + Send + 'static {
        let (gate, began) = (Arc::clone(gate), began.clone());
        move || {
            began.send(()).unwrap();
            let _ = gate.lock().recv();
        }
    }

    /// What work comes to, which nothing should hold up.
    async fn soon<T>(work: impl Future<Output = Result<T, Unserved>>) -> Result<T, Unserved> {
        before(Instant::now().checked_add(Duration::from_secs(20)), work)
            .await
            .expect("it is held up")
    }

    fn gate() -> (mpsc::Sender<()>, Gate) {
        let (opens, gate) = mpsc::channel();
        (opens, Arc::new(Mutex::new(gate)))
    }

    /// A tenant's stuck share is that tenant's alone. Seen to fail with one share for all, and with
    /// turns given back when the asker goes.
    #[test]
    fn a_tenants_stuck_share_is_its_own() {
        let (shares, (opens, gate), (began, begun)) =
            (Shares::new("test"), gate(), mpsc::channel());
        clock::sleeps().unwrap().block_on(async {
            let cells: Vec<_> = (0..OF_TENANT).map(|_| shares.way(Some("hog"))).collect();
            let out: Vec<_> = cells.iter().map(|way| way.start(stuck(&gate, &began))).collect();
            for _ in &out {
                begun.recv().unwrap();
            }
            // Its calls go, the work stays.
            drop(out);
            let cell = shares.way(Some("hog"));
            assert!(matches!(soon(cell.run(|| ())).await, Err(Unserved::Blocked)));
            for other in [Some("other"), Some(""), None] {
                assert_eq!(soon(shares.way(other).run(|| 7)).await.unwrap(), 7, "{other:?}");
            }
            drop(opens);
            // What comes back is given back.
            cells[0].share.left.subscribe().wait_for(|left| *left == 0).await.unwrap();
            assert_eq!(soon(cell.run(|| 7)).await.unwrap(), 7);
        });
    }

    /// Many cells of a tenant, more work than its share: a thread is left for another. Seen to fail
    /// without the share.
    #[test]
    fn a_busy_tenant_waits_for_itself() {
        let (shares, (opens, gate), (began, begun)) =
            (Shares::new("test"), gate(), mpsc::channel());
        clock::sleeps().unwrap().block_on(async {
            let busy: Vec<_> = (0..THREADS)
                .map(|_| shares.way(Some("busy")).start(stuck(&gate, &began)))
                .collect();
            for _ in 0..OF_TENANT {
                begun.recv().unwrap();
            }
            assert_eq!(soon(shares.way(Some("other")).run(|| 7)).await.unwrap(), 7);
            assert!(begun.try_recv().is_err(), "no more than its share has begun");
            drop(opens);
            assert!(
                join_all(busy).await.iter().all(Result::is_ok),
                "and all of it is done in the end"
            );
        });
    }

    /// Seen to fail with a semaphore of its own for each piece of work.
    #[test]
    fn a_cell_does_two_things_at_once() {
        let (shares, (opens, gate), (began, begun)) =
            (Shares::new("test"), gate(), mpsc::channel());
        clock::sleeps().unwrap().block_on(async {
            let cell = shares.way(None);
            let work: Vec<_> = (0..8).map(|_| cell.start(stuck(&gate, &began))).collect();
            for _ in 0..OF_CELL {
                begun.recv().unwrap();
            }
            assert_eq!(soon(shares.way(None).run(|| 7)).await.unwrap(), 7);
            assert!(begun.try_recv().is_err());
            drop(opens);
            assert!(join_all(work).await.iter().all(Result::is_ok));
        });
    }

    /// A panic of what was asked is told, and its turn is given back.
    #[test]
    fn a_panic_gives_its_turn_back() {
        let shares = Shares::new("test");
        clock::sleeps().unwrap().block_on(async {
            let cell = shares.way(Some("a"));
            for _ in 0..2 * OF_TENANT {
                let work = cell.run(|| panic!("a bug"));
                assert!(AssertUnwindSafe(work).catch_unwind().await.is_err());
            }
            assert_eq!(soon(cell.run(|| 7)).await.unwrap(), 7);
            drop(cell);
            shares.share("b");
            assert_eq!(shares.tenants.lock().len(), 1, "who has no cells is forgotten");
        });
    }
}
