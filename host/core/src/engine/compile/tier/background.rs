//! Queue and thread that compile optimised code in the background, one component at a time.
//!
//! A load that has quick code (compiled without the optimiser) pushes a [`Job`] with the bytes of
//! the component and the work to do. The thread starts with the first job, runs with a lower
//! priority than calls, and ends when the queue is empty. A job that does not fit is given up: the
//! component stays on quick code. `give_up` remembers components that cannot be optimised.
//! Invariants: the waiting components are bounded in bytes, in all and for each tenant. No tenant
//! has a second turn while another one waits for its first. A component that was dropped is not
//! compiled. However a job ends, it is settled which code its component uses.
//! The thread ends with its process. So a component that only short commands call stays on quick
//! code, until a command outlasts the optimiser or `toolcell check` waits for it.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::panic_guard::guarded;

use super::Current;
use crate::engine::{cell::invoke::Ready, schedule::runtimes::become_slow};

/// Bytes of the components that wait: four of the largest, or thousands of ordinary ones.
const MAX_WAITING: usize = 256 << 20;
/// Bytes of one tenant's components that wait: one of the largest.
const OF_TENANT: usize = MAX_WAITING / 4;
/// Names of components that cannot be optimised, above which all names are forgotten: a megabyte or
/// two.
const MAX_GIVEN_UP: usize = 10_000;

/// Time before the first job: a program that makes one short call then ends without starting a
/// compiler, which would take CPU time from that call.
const DELAY: Duration = Duration::from_millis(100);

/// Compiles a component, then replaces the current code or keeps it.
pub(in crate::engine) type Work = Box<dyn FnOnce(&[u8]) + Send>;

/// A job: the optimised code of one component.
pub(in crate::engine) struct Job<R = Ready> {
    pub(in crate::engine) component: Vec<u8>,
    /// The tenant for which the component was loaded.
    pub(in crate::engine) tenant: Option<String>,
    /// The code to replace.
    pub(in crate::engine) current: Weak<Current<R>>,
    pub(in crate::engine) work: Work,
}

/// The jobs of an engine.
#[derive(Default)]
pub(in crate::engine) struct Background {
    queue: Arc<Mutex<Queue>>,
    given_up: Mutex<HashSet<String>>,
}

struct Queue<R = Ready> {
    jobs: VecDeque<Job<R>>,
    is_worked_on: bool,
}

impl Background {
    /// Queues the job, and starts a thread if there is none. If the queue is full, the component
    /// stays as it is.
    pub(in crate::engine) fn push(&self, job: Job) {
        let mut queue = self.queue.lock();
        if let Err(job) = queue.enter(job) {
            drop(queue);
            return job.give_up("too many components wait to be optimised");
        }
        if queue.is_worked_on {
            return;
        }
        let shared = Arc::clone(&self.queue);
        queue.is_worked_on =
            thread::Builder::new().name("toolcell-optimise".into()).spawn(|| work(shared)).is_ok();
        if !queue.is_worked_on {
            let jobs = std::mem::take(&mut queue.jobs);
            drop(queue);
            jobs.into_iter().for_each(|job| job.give_up("no thread can be started to optimise it"));
        }
    }

    /// Remembers that the component of this name cannot be optimised.
    pub(in crate::engine) fn give_up(&self, name: &str) {
        let mut given_up = self.given_up.lock();
        if given_up.len() >= MAX_GIVEN_UP {
            given_up.clear();
        }
        given_up.insert(name.to_owned());
    }

    /// Returns true if the component of this name is known as one that cannot be optimised.
    pub(in crate::engine) fn has_given_up(&self, name: &str) -> bool {
        self.given_up.lock().contains(name)
    }
}

impl<R> Default for Queue<R> {
    fn default() -> Self {
        Self { jobs: VecDeque::new(), is_worked_on: false }
    }
}

impl<R> Queue<R> {
    /// Adds a job, and removes those of dropped components. Returns the job if the queue is full.
    fn enter(&mut self, job: Job<R>) -> Result<(), Job<R>> {
        self.jobs.retain(Job::is_wanted);
        let is_of_tenant = |other: &&Job<R>| other.tenant.is_some() && other.tenant == job.tenant;
        let jobs = || self.jobs.iter().chain([&job]);
        let bytes = |job: &Job<R>| job.component.len();
        let all: usize = jobs().map(bytes).sum();
        let tenants: usize = jobs().filter(is_of_tenant).map(bytes).sum();
        if all > MAX_WAITING || tenants > bound!(OptimiserShare, OF_TENANT) {
            return Err(job);
        }
        self.jobs.push_back(job);
        Ok(())
    }

    /// Returns the next job whose component still exists, and puts its tenant's other jobs behind
    /// those of all others. If there is none, records that the thread ends.
    fn next(&mut self) -> Option<Job<R>> {
        self.jobs.retain(Job::is_wanted);
        let Some(job) = self.jobs.pop_front() else {
            self.is_worked_on = false;
            return None;
        };
        if enforced!(OptimiserTurn) {
            // The sort is stable: each keeps its order.
            self.jobs.make_contiguous().sort_by_key(|other| other.tenant == job.tenant);
        }
        Some(job)
    }
}

impl<R> Job<R> {
    fn is_wanted(&self) -> bool {
        self.current.strong_count() > 0
    }

    fn run(self) {
        let Self { component, current, work, .. } = self;
        if guarded(|| work(&component)).is_none() {
            tracing::warn!("the compiler panicked; the component stays as it is, unoptimised");
        }
        // Has no effect if the work has settled the code already.
        if let Some(current) = current.upgrade() {
            current.settle_unoptimised();
        }
    }

    fn give_up(self, why: &str) {
        tracing::warn!(why, "a component stays unoptimised");
        if let Some(current) = self.current.upgrade() {
            current.settle_unoptimised();
        }
    }
}

fn work(queue: Arc<Mutex<Queue>>) {
    // A compile worker inherits the priority.
    become_slow();
    thread::sleep(DELAY);
    // The queue is not locked while a job runs.
    std::iter::from_fn(|| queue.lock().next()).for_each(Job::run);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::compile::tier::CodeTier;

    /// Builds a job whose component was dropped.
    fn job<R>(bytes: usize) -> Job<R> {
        Job {
            component: vec![0; bytes],
            tenant: None,
            current: Weak::new(),
            work: Box::new(|_| panic!("it is not wanted")),
        }
    }

    #[test]
    fn queue_is_bounded_and_drops_unwanted_jobs() {
        let mut queue = Queue::<()> { is_worked_on: true, ..Queue::default() };
        assert!(queue.enter(job(MAX_WAITING)).is_ok() && queue.enter(job(1)).is_ok());
        assert_eq!(queue.jobs.len(), 1);
        assert!(queue.enter(job(MAX_WAITING + 1)).is_err());
        assert!(queue.next().is_none() && !queue.is_worked_on);
    }

    /// Queues jobs of these tenants (`-`: no tenant), and returns their tenants in the order of
    /// service.
    fn served(tenants: &str) -> String {
        let current = Arc::new(Current::settled(Arc::new(()), CodeTier::Quick));
        let mut queue = Queue::default();
        for tenant in tenants.chars() {
            let tenant = (tenant != '-').then(|| tenant.to_string());
            let job = Job { tenant, current: Arc::downgrade(&current), ..job(1) };
            assert!(queue.enter(job).is_ok());
        }
        let tenants = std::iter::from_fn(|| queue.next()).map(|job| job.tenant);
        tenants.map(|tenant| tenant.unwrap_or_else(|| "-".into())).collect()
    }

    #[test]
    fn tenants_with_many_jobs_get_one_turn_in_a_round() {
        for (waiting, order) in
            [("aaaaabc", "abcaaaa"), ("aaabbbc", "abcabab"), ("aa--b", "a-ba-"), ("---", "---")]
        {
            assert_eq!(served(waiting), order);
        }
    }

    #[test]
    fn tenant_share_of_the_queue_is_bounded() {
        let current = Arc::new(Current::settled(Arc::new(()), CodeTier::Quick));
        let mut queue = Queue::default();
        let mut enter = |tenant: Option<&str>, bytes| {
            let tenant = tenant.map(str::to_owned);
            queue.enter(Job { tenant, current: Arc::downgrade(&current), ..job(bytes) }).is_ok()
        };
        assert!(enter(Some("a"), OF_TENANT - 1) && enter(Some("a"), 1));
        assert!(!enter(Some("a"), 1), "it takes more than its share");
        assert!(enter(Some("b"), OF_TENANT) && enter(None, 2 * OF_TENANT));
        assert!(!enter(None, 1), "there is no more");
    }

    #[test]
    fn panic_ends_only_its_own_job() {
        job::<()>(1).run();
    }
}
