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
use crate::engine::compile::cache::EntryLock;
use crate::engine::compile::cache::entries::Artifact;
use crate::engine::compile::config::{Priority, Tier};
use crate::engine::compile::worker::{self, NoCode};

/// Returns the seconds of CPU time for optimising a component; unlimited without a worker.
fn seconds(compiler: &Compiler) -> u64 {
    compiler.worker.as_ref().map_or(u64::MAX, |worker| worker.seconds(Priority::Background))
}

/// Returns true if an attempt with at least as much time has failed.
fn is_given_up(compiler: &Compiler, artifact: &Artifact) -> bool {
    compiler.background.has_given_up(artifact.key())
        || artifact.given_up_after().is_some_and(|tried| tried >= seconds(compiler))
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
    if is_given_up(compiler, &artifact) {
        return Arc::new(Current::settled(ready, CodeTier::Unoptimised));
    }
    let (leash, watch) = worker::leash();
    let current = Arc::new(Current::unoptimised(ready, leash));
    let (weak, worker) = (Arc::downgrade(compiler), compiler.worker.clone());
    compiler.background.push(Job {
        component,
        tenant: tenant.map(str::to_owned),
        current: Arc::downgrade(&current),
        watch,
        work: Box::new(move |component, current, watch| {
            let compile = || {
                worker::compile(
                    worker.as_ref(),
                    Tier::Optimised,
                    Priority::Background,
                    component,
                    watch,
                )
            };
            optimise(&weak, current, &artifact, &definitions, compile);
        }),
    });
    current
}

fn optimise(
    compiler: &Weak<Compiler>,
    current: &Weak<Current>,
    artifact: &Artifact,
    definitions: &[Definition],
    compile: impl FnOnce() -> Result<Vec<u8>, NoCode>,
) {
    if is_done(compiler, current, artifact) {
        return;
    }
    let turn = lock_entry(compiler, current, artifact);
    // Another process may have done it meanwhile.
    if turn.is_some() && is_done(compiler, current, artifact) {
        return;
    }
    let compiled = compile();
    // If the component was dropped, its worker was killed, which tells nothing about the component.
    let Some((compiler, current)) = upgraded(compiler, current) else { return };
    let linked = compiled.and_then(|code| {
        let wiring = current.ready().wiring.clone();
        let (ready, _) = compiler.linker.link_new(&code, &wiring).map_err(NoCode::Interrupted)?;
        Ok((code, ready))
    });
    match linked {
        Ok((code, ready)) => {
            // A load of this engine must not lose the quick code between finding and using it.
            let _alone = compiler.single_flight.alone(artifact.key());
            artifact.put(Tier::Optimised, &code, definitions);
            current.replace(ready);
        }
        Err(none) => {
            if matches!(none, NoCode::Refused(_)) {
                compiler.background.give_up(artifact.key());
                artifact.give_up(seconds(&compiler));
            }
            tracing::warn!(error = %Error::from(none), "a component stays unoptimised");
            current.settle_unoptimised();
        }
    }
}

/// Locks the cache entry, so that other processes that share the cache do not do the same work.
/// Returns `None` if there is nothing to lock, if the code is not needed any more, or if another
/// process takes longer than a compiler may.
fn lock_entry(
    compiler: &Weak<Compiler>,
    current: &Weak<Current>,
    artifact: &Artifact,
) -> Option<EntryLock> {
    let seconds = seconds(&upgraded(compiler, current)?.0);
    let began = Instant::now();
    // Waits no longer than the compilation would take here.
    artifact.lock(Tier::Optimised, || {
        began.elapsed().as_secs() < seconds && upgraded(compiler, current).is_some()
    })
}

/// Returns true if another compilation has finished first, or has failed. Keeps nothing alive while
/// the compiler runs.
fn is_done(compiler: &Weak<Compiler>, current: &Weak<Current>, artifact: &Artifact) -> bool {
    let Some((compiler, current)) = upgraded(compiler, current) else { return true };
    let wiring = current.ready().wiring.clone();
    match compiler.link_cached(artifact, Tier::Optimised, &wiring) {
        Some(found) => current.replace(found.code),
        None if is_given_up(&compiler, artifact) => current.settle_unoptimised(),
        None => return false,
    }
    true
}

/// Returns both, if both still exist.
fn upgraded(
    compiler: &Weak<Compiler>,
    current: &Weak<Current>,
) -> Option<(Arc<Compiler>, Arc<Current>)> {
    compiler.upgrade().zip(current.upgrade())
}
