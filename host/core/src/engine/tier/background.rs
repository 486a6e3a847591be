//! What compiles optimised code, one component at a time and in nobody's way.
//!
//! Invariants: there is a thread while there is work, and one at most; what waits is bounded in bytes; what nobody wants
//! any more is not compiled; whatever becomes of a job, its component is settled.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::thread;

use parking_lot::Mutex;

use super::Current;
use crate::engine::compile::Watch;
use crate::fence::fenced;

/// Bytes of the components that wait: four of the largest, or thousands of ordinary ones.
const MAX_WAITING: usize = 256 << 20;
/// Names of components that cannot be optimised, before all are forgotten: a megabyte or two.
const MAX_GIVEN_UP: usize = 10_000;
/// How much less urgent than the host's own threads, in steps of `nice`: as a guest that takes long.
const NICENESS: i32 = 10;

/// Compiles, and replaces the current code or keeps it.
pub(in crate::engine) type Work = Box<dyn FnOnce(&[u8], &Weak<Current>, Watch) + Send>;

/// Optimised code for one component.
pub(in crate::engine) struct Job {
    pub(in crate::engine) component: Vec<u8>,
    /// Whom the code is for.
    pub(in crate::engine) current: Weak<Current>,
    /// Hears when it is for nobody any more.
    pub(in crate::engine) watch: Watch,
    pub(in crate::engine) work: Work,
}

/// The jobs of an engine.
#[derive(Default)]
pub(in crate::engine) struct Background {
    queue: Arc<Mutex<Queue>>,
    given_up: Mutex<HashSet<String>>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    is_worked_on: bool,
}

impl Background {
    /// Has the job done when its turn comes. Where there is no room for it, its component stays as it is.
    pub(in crate::engine) fn push(&self, job: Job) {
        let mut queue = self.queue.lock();
        if let Err(job) = queue.enter(job) {
            drop(queue);
            return job.give_up("too many components wait for it");
        }
        if queue.is_worked_on {
            return;
        }
        let shared = Arc::clone(&self.queue);
        queue.is_worked_on = thread::Builder::new().name("toolcell-optimise".into()).spawn(|| work(shared)).is_ok();
        if !queue.is_worked_on {
            let jobs = std::mem::take(&mut queue.jobs);
            drop(queue);
            jobs.into_iter().for_each(|job| job.give_up("the process can have no thread for it"));
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

    /// Whether that is remembered.
    pub(in crate::engine) fn has_given_up(&self, name: &str) -> bool {
        self.given_up.lock().contains(name)
    }
}

impl Queue {
    /// Makes room if it must.
    fn enter(&mut self, job: Job) -> Result<(), Job> {
        let fits = |jobs: &VecDeque<Job>| {
            let waiting: usize = jobs.iter().map(|job| job.component.len()).sum();
            waiting + job.component.len() <= MAX_WAITING
        };
        if !fits(&self.jobs) {
            self.jobs.retain(Job::is_wanted);
        }
        if !fits(&self.jobs) {
            return Err(job);
        }
        self.jobs.push_back(job);
        Ok(())
    }

    /// The next job that somebody wants. Without one, nobody works here any more.
    fn next(&mut self) -> Option<Job> {
        while let Some(job) = self.jobs.pop_front() {
            if job.is_wanted() {
                return Some(job);
            }
        }
        self.is_worked_on = false;
        None
    }
}

impl Job {
    fn is_wanted(&self) -> bool {
        self.current.strong_count() > 0
    }

    fn run(self) {
        let Self { component, current, watch, work } = self;
        if fenced(|| work(&component, &current, watch)).is_none() {
            tracing::warn!("the compiler panicked; the component stays as it is, unoptimised");
        }
        // It has a last word already, unless the work had none.
        if let Some(current) = current.upgrade() {
            current.keep();
        }
    }

    fn give_up(self, why: &str) {
        tracing::warn!(why, "a component stays unoptimised");
        if let Some(current) = self.current.upgrade() {
            current.keep();
        }
    }
}

fn work(queue: Arc<Mutex<Queue>>) {
    // Refused in some containers: then it competes as an equal. A compiler's process inherits it.
    let _ = rustix::process::nice(NICENESS);
    loop {
        let next = queue.lock().next();
        match next {
            Some(job) => job.run(),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::compile::leash;

    /// A job that nobody wants.
    fn job(bytes: usize) -> Job {
        Job {
            component: vec![0; bytes],
            current: Weak::new(),
            watch: leash().1,
            work: Box::new(|_, _, _| panic!("nobody wants it")),
        }
    }

    #[test]
    fn what_waits_is_bounded_and_what_nobody_wants_makes_room() {
        let mut queue = Queue { is_worked_on: true, ..Queue::default() };
        assert!(queue.enter(job(MAX_WAITING - 1)).is_ok() && queue.enter(job(1)).is_ok());
        assert_eq!(queue.jobs.len(), 2);
        assert!(queue.enter(job(1)).is_ok());
        assert_eq!(queue.jobs.len(), 1);
        assert!(queue.enter(job(MAX_WAITING + 1)).is_err());
        assert!(queue.next().is_none() && !queue.is_worked_on);
    }

    #[test]
    fn a_panic_ends_its_job_alone() {
        let panics = job(1);
        panics.run();
    }
}
