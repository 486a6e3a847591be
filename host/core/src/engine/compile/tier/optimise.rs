//! Compiles a component a second time, for speed, while its quick code already answers.
//!
//! A load that has quick code (compiled without the optimiser) calls [`optimise_later`] with the
//! bytes, the code and the definitions. It queues a job for the background thread and returns the
//! [`Current`] that the job will update. The job looks for optimised code in the cache, waits while
//! another process makes it, or compiles it. It writes the code to the cache, and later calls run
//! on it.
//! Invariants: no code of the guest (the WebAssembly code of a tool) runs. A component that cannot
//! be optimised within its bounds stays on quick code, and is not tried again, by this process or
//! by later ones with as much time. The job keeps neither engine nor component alive.

use std::sync::{Arc, Weak};
use std::time::Instant;

use toolcell_contract::definition::Definition;
use toolcell_contract::error::Error;

use super::{CodeTier, Current, Job};
use crate::engine::cell::invoke::Ready;
use crate::engine::compile::Compiler;
use crate::engine::compile::cache::entries::Artifact;
use crate::engine::compile::config::{Priority, Tier};
use crate::engine::compile::worker::{self, NoCode, Worker};

/// Returns true if an attempt with at least as much time has failed.
fn is_given_up(compiler: &Compiler, artifact: &Artifact, seconds: u64) -> bool {
    compiler.background.has_given_up(&artifact.key)
        || artifact.given_up_after().is_some_and(|tried| tried >= seconds)
}

/// Queues the optimisation of quick code. Returns a [`Current`] whose code it replaces.
pub(in crate::engine::compile) fn optimise_later(
    compiler: &Arc<Compiler>,
    component: Vec<u8>,
    artifact: Artifact,
    ready: Arc<Ready>,
    definitions: Vec<Definition>,
    tenant: Option<&str>,
) -> Arc<Current> {
    let (worker, bytes) = (compiler.worker.clone(), component.len());
    // Without a worker nothing bounds the time.
    let seconds =
        worker.as_ref().map_or(u64::MAX, |worker| worker.seconds(Priority::Background, bytes));
    if is_given_up(compiler, &artifact, seconds) {
        return Arc::new(Current::settled(ready, CodeTier::Unoptimised));
    }
    let current = Arc::new(Current::unoptimised(ready));
    let optimisation = Optimisation {
        compiler: Arc::downgrade(compiler),
        worker,
        current: Arc::downgrade(&current),
        artifact,
        definitions,
        seconds,
    };
    compiler.background.push(Job {
        component,
        tenant: tenant.map(str::to_owned),
        current: Arc::downgrade(&current),
        work: Box::new(move |component: &[u8]| optimisation.run(component)),
    });
    current
}

/// The optimisation of one component.
struct Optimisation {
    compiler: Weak<Compiler>,
    worker: Option<Worker>,
    current: Weak<Current>,
    artifact: Artifact,
    definitions: Vec<Definition>,
    /// CPU time of the compilation.
    seconds: u64,
}

impl Optimisation {
    fn run(&self, component: &[u8]) {
        let (tier, priority, began) = (Tier::Optimised, Priority::Background, Instant::now());
        let is_wanted = || self.current.strong_count() > 0;
        // Other processes that share the cache do not do the same work meanwhile. Waits no longer
        // than the compilation would take here.
        let _turn =
            self.artifact.lock(tier, || is_wanted() && began.elapsed().as_secs() < self.seconds);
        if self.is_done() {
            return;
        }
        let compiled = worker::compile(self.worker.as_ref(), tier, priority, component, is_wanted);
        // If the component was dropped, its worker was killed, which tells nothing about the
        // component.
        let Some((compiler, current)) = self.upgraded() else { return };
        let linked = compiled.and_then(|code| {
            let wiring = current.ready().wiring.clone();
            let ready = compiler.linker.link_new(&code, &wiring).map_err(NoCode::Interrupted)?;
            Ok((code, ready))
        });
        match linked {
            Ok((code, ready)) => {
                self.artifact.put(tier, &code, &self.definitions);
                current.replace(ready);
            }
            Err(none) => {
                if matches!(none, NoCode::Refused(_)) {
                    compiler.background.give_up(&self.artifact.key);
                    self.artifact.give_up(self.seconds);
                }
                tracing::warn!(error = %Error::from(none), "a component stays unoptimised");
                current.settle_unoptimised();
            }
        }
    }

    /// Returns true if another compilation has finished first, or has failed. Keeps nothing alive
    /// while the compiler runs.
    fn is_done(&self) -> bool {
        let Some((compiler, current)) = self.upgraded() else { return true };
        let wiring = current.ready().wiring.clone();
        match compiler.link_cached(&self.artifact, Tier::Optimised, &wiring) {
            Some(found) => current.replace(found.code),
            None if is_given_up(&compiler, &self.artifact, self.seconds) => {
                current.settle_unoptimised()
            }
            None => return false,
        }
        true
    }

    /// Returns the engine and the code, if both still exist.
    fn upgraded(&self) -> Option<(Arc<Compiler>, Arc<Current>)> {
        self.compiler.upgrade().zip(self.current.upgrade())
    }
}
