//! Bounded thread pool for blocking I/O, with a cap for each tenant and each cell.
//!
//! Host functions for files and keys call [`PoolAccess::run`] with work that may block for long,
//! such as a read from a disk. It waits for a permit of the cell (a running call; at most two
//! pieces of work at once) and of the tenant (8 of 32 threads), runs the work on a thread of the
//! pool, and returns its result. If work of ended calls blocks all of a tenant's threads for a
//! quarter of a second, the next call gets [`Unserved::Blocked`].
//! A permit is held until the work returns, also when no call waits for it any more. Work that has
//! not begun is dropped with its call; work that has begun goes on to its end.
//! Source: docs/threat-model.md, rows 6 and 56.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{pin::Pin, sync::Arc};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;
use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::panic_guard::resume_panic;

use crate::os::clock::{before, sleeps};
use crate::os::threads::BlockingThreads;
use crate::tenant::state::{PerTenant, TenantPart, TenantState};

/// Threads of one pool. They start at the first need, and wait for a disk most of the time.
const THREADS: usize = 32;
/// Threads of one pool that the calls of one tenant occupy at once; calls without a tenant count as
/// one tenant's.
const OF_TENANT: usize = THREADS / 4;
/// Threads of one pool that one cell occupies at once: for example one read and one write.
const OF_CELL: usize = 2;
/// The time after which the next call of a tenant gets an error because abandoned work occupies all
/// of the tenant's threads. Within it the work of calls that were cancelled together returns.
const ABANDONED_TIMEOUT: Duration = Duration::from_millis(250);

/// Work that was started.
pub(crate) type StartedWork<T> = Pin<Box<dyn Future<Output = Result<T, Unserved>> + Send>>;

/// The reason for which work has no result.
#[derive(Debug)]
pub(crate) enum Unserved {
    /// Work of ended calls occupies all of the tenant's threads, and does not return.
    Blocked,
    /// There are no threads.
    Failed(wasmtime::Error),
}

/// A thread pool. The tenants in it exist as long as their cells.
pub(crate) struct IoPool {
    name: &'static str,
    threads: BlockingThreads,
    tenants: PerTenant<Share>,
}

/// A tenant's share of a pool.
struct Share {
    free: Arc<Semaphore>,
    /// Pieces of work that run without a call that waits for them.
    abandoned: watch::Sender<usize>,
}

/// A cell's access to a pool.
#[derive(Clone)]
pub(crate) struct PoolAccess {
    pool: Arc<IoPool>,
    share: Arc<TenantPart<Share>>,
    own: Arc<Semaphore>,
}

impl IoPool {
    pub(crate) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, threads: BlockingThreads::default(), tenants: PerTenant::default() })
    }

    /// Returns the access for a cell of this tenant.
    pub(crate) fn way(self: &Arc<Self>, tenant: &Arc<TenantState>) -> PoolAccess {
        let share = self.tenants.get(tenant, Share::new);
        let of_cell = bound!(CellThreads, OF_CELL).min(THREADS);
        PoolAccess { pool: Arc::clone(self), share, own: Arc::new(Semaphore::new(of_cell)) }
    }
}

impl Share {
    fn new() -> Self {
        let of_tenant = bound!(TenantThreads, OF_TENANT).min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(of_tenant)), abandoned: watch::Sender::new(0) }
    }

    /// Takes one of the tenant's permits.
    ///
    /// # Errors
    /// [`Unserved::Blocked`] if abandoned work holds all of them.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, Unserved> {
        tokio::select! {
            biased;
            turn = Arc::clone(&self.free).acquire_owned() => turn.map_err(closed),
            () = self.blocked_too_long() => Err(Unserved::Blocked),
        }
    }

    /// Resolves when abandoned work has occupied all of the share for [`ABANDONED_TIMEOUT`].
    async fn blocked_too_long(&self) {
        let mut left = self.abandoned.subscribe();
        loop {
            let is_sure = left.wait_for(|left| *left >= OF_TENANT).await.is_ok();
            let comes_back = left.wait_for(|left| *left < OF_TENANT);
            if is_sure
                && before(Instant::now().checked_add(ABANDONED_TIMEOUT), comes_back).await.is_none()
            {
                return;
            }
        }
    }
}

impl PoolAccess {
    /// Runs this on a thread that may block, when the cell and its tenant have a free permit.
    ///
    /// # Cancel safety
    /// When dropped, work that has not begun is not done, and work that has begun goes on to its
    /// end.
    ///
    /// # Panics
    /// If the work panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unserved> {
        let own = Arc::clone(&self.own).acquire_owned().await.map_err(closed)?;
        let turn = self.share.permit().await?;
        self.begin([own, turn], work)?.done().await
    }

    /// Starts the same without waiting for it. The work begins when permits are free, also if the
    /// result is not polled.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> StartedWork<T> {
        let own = Arc::clone(&self.own).try_acquire_owned().ok();
        let turn = Arc::clone(&self.share.free).try_acquire_owned().ok();
        if let Some((own, turn)) = own.zip(turn) {
            let begun = self.begin([own, turn], work);
            return Box::pin(async move { begun?.done().await });
        }
        let way = self.clone();
        let waiting = async move { way.run(work).await };
        // Waits on a thread of the host. If it waited here, it would keep the permit that it gets
        // until the guest polls it, and other work would wait for that permit.
        match sleeps() {
            Ok(threads) => {
                let task = AbortOnDropHandle::new(threads.spawn(waiting));
                Box::pin(
                    async move { resume_panic(task.await).unwrap_or_else(|| Err(shut_down())) },
                )
            }
            Err(_) => Box::pin(waiting),
        }
    }

    /// Hands the work to a thread of the pool.
    fn begin<T: Send + 'static>(
        &self,
        turns: [OwnedSemaphorePermit; 2],
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<CallerGuard<T>, Unserved> {
        let threads = self.pool.threads.handle(self.pool.name, THREADS);
        let threads = threads.ok_or_else(|| failed("no threads"))?;
        let state =
            Arc::new(WorkState { share: Arc::clone(&self.share), is_left: AtomicBool::new(false) });
        let turns = enforced!(BusyThreads).then_some(turns);
        let out = ThreadGuard { state: Arc::clone(&state), _turns: turns };
        let task = threads.spawn_blocking(move || {
            let done = work();
            drop(out);
            done
        });
        Ok(CallerGuard { task, state })
    }
}

fn closed(_: AcquireError) -> Unserved {
    unreachable!("no share is ever closed")
}

fn failed(problem: &'static str) -> Unserved {
    Unserved::Failed(wasmtime::Error::msg(problem))
}

fn shut_down() -> Unserved {
    failed("the host's threads for files and keys have shut down")
}

/// The state of a piece of work, shared by its thread and its caller.
struct WorkState {
    share: Arc<TenantPart<Share>>,
    /// True as soon as the thread or the caller is done with the work. It changes only under the
    /// lock of the share's count `abandoned`.
    is_left: AtomicBool,
}

/// The part on the thread: records the end of the work when dropped.
struct ThreadGuard {
    state: Arc<WorkState>,
    _turns: Option<[OwnedSemaphorePermit; 2]>,
}

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        let WorkState { share, is_left } = &*self.state;
        share.abandoned.send_if_modified(|left| {
            let was_left = is_left.swap(true, Ordering::Relaxed);
            *left -= usize::from(was_left);
            was_left
        });
    }
}

/// The part of the caller: when dropped before the end, counts the work as abandoned.
struct CallerGuard<T> {
    task: JoinHandle<T>,
    state: Arc<WorkState>,
}

impl<T> CallerGuard<T> {
    async fn done(mut self) -> Result<T, Unserved> {
        resume_panic((&mut self.task).await).ok_or_else(shut_down)
    }
}

impl<T> Drop for CallerGuard<T> {
    fn drop(&mut self) {
        self.task.abort();
        let WorkState { share, is_left } = &*self.state;
        share.abandoned.send_if_modified(|left| {
            let leaves = !is_left.swap(true, Ordering::Relaxed);
            *left += usize::from(leaves);
            leaves
        });
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::sync::mpsc;

    use futures_util::{FutureExt as _, future::join_all};
    use parking_lot::Mutex;

    use super::*;
    use crate::os::clock;

    /// Work that reports its start, and returns when `opens` is dropped.
    struct HeldWork {
        opens: mpsc::Sender<()>,
        gate: Arc<Mutex<mpsc::Receiver<()>>>,
        began: mpsc::Sender<()>,
        begun: mpsc::Receiver<()>,
    }

    impl HeldWork {
        fn new() -> Self {
            let ((opens, gate), (began, begun)) = (mpsc::channel(), mpsc::channel());
            Self { opens, gate: Arc::new(Mutex::new(gate)), began, begun }
        }

        fn piece(&self) -> impl FnOnce() + Send + 'static + use<> {
            let (gate, began) = (Arc::clone(&self.gate), self.began.clone());
            move || {
                began.send(()).unwrap();
                let _ = gate.lock().recv();
            }
        }
    }

    /// Returns the access of a cell of this tenant.
    fn cell_of(pool: &Arc<IoPool>, tenant: Option<&str>) -> PoolAccess {
        pool.way(&TenantState::of(tenant))
    }

    /// Waits for work that must not be delayed.
    async fn in_time<T>(work: impl Future<Output = Result<T, Unserved>>) -> Result<T, Unserved> {
        let deadline = Instant::now().checked_add(Duration::from_secs(20));
        before(deadline, work).await.expect("it is held up")
    }

    /// Fails without: a share for each tenant; permits that are held until the work returns.
    #[test]
    fn stuck_work_blocks_only_its_own_tenant() {
        let (pool, work) = (IoPool::new("test"), HeldWork::new());
        clock::sleeps().unwrap().block_on(async {
            let cells: Vec<_> = (0..OF_TENANT).map(|_| cell_of(&pool, Some("hog"))).collect();
            let out: Vec<_> = cells.iter().map(|way| way.start(work.piece())).collect();
            for _ in &out {
                work.begun.recv().unwrap();
            }
            // Its calls end; the work continues.
            drop(out);
            let cell = cell_of(&pool, Some("hog"));
            assert!(matches!(in_time(cell.run(|| ())).await, Err(Unserved::Blocked)));
            for other in [Some("other"), Some(""), None] {
                let done = in_time(cell_of(&pool, other).run(|| 7)).await;
                assert_eq!(done.unwrap(), 7, "{other:?}");
            }
            drop(work.opens);
            // Work that returns gives its permit back.
            cells[0].share.abandoned.subscribe().wait_for(|left| *left == 0).await.unwrap();
            assert_eq!(in_time(cell.run(|| 7)).await.unwrap(), 7);
        });
    }

    /// One tenant has many cells and more work than its share. Fails without: the share.
    #[test]
    fn busy_tenant_delays_only_itself() {
        let (pool, work) = (IoPool::new("test"), HeldWork::new());
        clock::sleeps().unwrap().block_on(async {
            let start = |_| cell_of(&pool, Some("busy")).start(work.piece());
            let busy: Vec<_> = (0..THREADS).map(start).collect();
            for _ in 0..OF_TENANT {
                work.begun.recv().unwrap();
            }
            assert_eq!(in_time(cell_of(&pool, Some("other")).run(|| 7)).await.unwrap(), 7);
            assert!(work.begun.try_recv().is_err(), "no more than its share has begun");
            drop(work.opens);
            let done = join_all(busy).await;
            assert!(done.iter().all(Result::is_ok), "and all of it is done in the end");
        });
    }

    /// Fails without: one semaphore for all work of a cell.
    #[test]
    fn cell_runs_two_blocking_tasks_at_once() {
        let (pool, work) = (IoPool::new("test"), HeldWork::new());
        clock::sleeps().unwrap().block_on(async {
            let cell = cell_of(&pool, None);
            let eight: Vec<_> = (0..8).map(|_| cell.start(work.piece())).collect();
            for _ in 0..OF_CELL {
                work.begun.recv().unwrap();
            }
            assert_eq!(in_time(cell_of(&pool, None).run(|| 7)).await.unwrap(), 7);
            assert!(work.begun.try_recv().is_err());
            drop(work.opens);
            assert!(join_all(eight).await.iter().all(Result::is_ok));
        });
    }

    /// Fails without: waiting for permits on a thread of the host.
    #[test]
    fn unpolled_work_delays_no_other_work() {
        let (pool, work) = (IoPool::new("test"), HeldWork::new());
        clock::sleeps().unwrap().block_on(async {
            let cell = cell_of(&pool, None);
            let started: Vec<_> = (0..2 * OF_CELL).map(|_| cell.start(work.piece())).collect();
            drop(work.opens);
            assert_eq!(in_time(cell.run(|| 7)).await.unwrap(), 7);
            // All of it begins.
            started.iter().for_each(|_| work.begun.recv().unwrap());
        });
    }

    /// A panic of the work reaches its caller, and its permit is given back.
    #[test]
    fn panic_reaches_the_caller_and_frees_its_permit() {
        let shares = IoPool::new("test");
        clock::sleeps().unwrap().block_on(async {
            let cell = cell_of(&shares, Some("a"));
            for _ in 0..2 * OF_TENANT {
                let work = cell.run(|| panic!("a bug"));
                assert!(AssertUnwindSafe(work).catch_unwind().await.is_err());
            }
            assert_eq!(in_time(cell.run(|| 7)).await.unwrap(), 7);
            drop(cell);
            let tenant = TenantState::of(Some("a"));
            assert!(shares.tenants.find(&tenant).is_none(), "who has no cells is forgotten");
        });
    }
}
