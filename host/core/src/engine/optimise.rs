//! A component's second compilation, for speed, while the first already answers.
//!
//! In: a component that runs on quick code. Out: that it runs on optimised code, or stays as it is.
//! Invariants: nothing of the guest runs; what cannot be optimised within its bounds is tried once,
//! by this process and by the next; the engine is not kept alive.

use std::sync::{Arc, Weak};
use std::time::Instant;

use super::Inner;
use super::cache::{self, Alone};
use super::compile::{self, NoCode};
use super::config::Haste;
use super::invoke::Ready;
use super::load::{from_cache, keep, link_new};
use super::tier::{Code, Current, Job, Tier};
use crate::definition::Definition;
use crate::error::Error;

/// A component's entries in the cache.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) optimised: String,
    pub(super) quick: String,
    /// An entry without code: within so many seconds of processor time it could not be optimised.
    given_up: String,
}

impl Names {
    pub(super) fn new(optimised: String) -> Self {
        Self {
            quick: format!("{optimised}-quick"),
            given_up: format!("{optimised}-given-up"),
            optimised,
        }
    }

    pub(super) fn of(&self, tier: Tier) -> &str {
        match tier {
            Tier::Quick => &self.quick,
            Tier::Optimised => &self.optimised,
        }
    }

    /// What optimised code makes useless.
    pub(super) fn all_but_optimised(&self) -> impl Iterator<Item = &str> {
        [&self.quick, &self.given_up].into_iter().map(String::as_str)
    }
}

/// Seconds of processor time that there are to optimise a component; without a worker nothing ends
/// it.
fn seconds(inner: &Inner) -> u64 {
    inner.worker.as_ref().map_or(u64::MAX, |worker| worker.seconds(Haste::Background))
}

/// Whether it was tried with as much time as there is now.
fn is_given_up(inner: &Inner, names: &Names) -> bool {
    let kept = || {
        let entry = inner.cache.as_ref()?.get(&names.given_up)?;
        std::str::from_utf8(&entry.tools).ok()?.parse().ok()
    };
    inner.background.has_given_up(&names.given_up)
        || kept().is_some_and(|tried: u64| tried >= seconds(inner))
}

fn give_up(inner: &Inner, names: &Names) {
    inner.background.give_up(&names.given_up);
    let Some(cache) = &inner.cache else { return };
    if let Err(error) = cache.put(&names.given_up, b"", seconds(inner).to_string().as_bytes()) {
        tracing::warn!(
            %error,
            "the cache could not record that the component cannot be optimised; the next process will try again"
        );
    }
}

/// Has quick code replaced when there is better.
pub(super) fn later(
    inner: &Arc<Inner>,
    component: Vec<u8>,
    names: Names,
    ready: Arc<Ready>,
    definitions: Vec<Definition>,
    tenant: Option<&str>,
) -> Arc<Current> {
    if is_given_up(inner, &names) {
        return Arc::new(Current::settled(ready, Code::Unoptimised));
    }
    let (leash, watch) = compile::leash();
    let current = Arc::new(Current::quick(ready, leash));
    let (weak, worker) = (Arc::downgrade(inner), inner.worker.clone());
    inner.background.push(Job {
        component,
        tenant: tenant.map(str::to_owned),
        current: Arc::downgrade(&current),
        watch,
        work: Box::new(move |component, current, watch| {
            let compile = || {
                compile::compile(
                    worker.as_ref(),
                    Tier::Optimised,
                    Haste::Background,
                    component,
                    watch,
                )
            };
            optimise(&weak, current, &names, &definitions, compile);
        }),
    });
    current
}

fn optimise(
    inner: &Weak<Inner>,
    current: &Weak<Current>,
    names: &Names,
    definitions: &[Definition],
    compile: impl FnOnce() -> Result<Vec<u8>, NoCode>,
) {
    if is_done(inner, current, names) {
        return;
    }
    let turn = turn_of(inner, current, names);
    // Another process may have done it meanwhile.
    if turn.is_some() && is_done(inner, current, names) {
        return;
    }
    let compiled = compile();
    // A worker that was killed because its component was dropped says nothing about the component.
    let Some((inner, current)) = wanted(inner, current) else { return };
    let linked = compiled.and_then(|code| {
        let wiring = current.ready().wiring.clone();
        let (ready, _) = link_new(&inner, &code, &wiring).map_err(NoCode::Interrupted)?;
        Ok((code, ready))
    });
    match linked {
        Ok((code, ready)) => {
            // A load of this engine's is not to lose the quick code between finding and using it.
            let _alone = inner.flights.alone(&names.optimised);
            keep(&inner, Tier::Optimised, names, &code, definitions);
            current.replace(ready);
        }
        Err(none) => {
            if matches!(none, NoCode::Refused(_)) {
                give_up(&inner, names);
            }
            tracing::warn!(error = %Error::from(none), "a component stays unoptimised");
            current.keep();
        }
    }
}

/// Keeps other processes that share the cache from the same work. `None` where there is nothing to
/// lock, the code is not wanted any more, or another process takes longer than a compiler may.
fn turn_of(inner: &Weak<Inner>, current: &Weak<Current>, names: &Names) -> Option<Alone> {
    let (lock, seconds) = {
        let (inner, _) = wanted(inner, current)?;
        (inner.cache.as_ref()?.lock(&names.optimised), seconds(&inner))
    };
    let began = Instant::now();
    // Waited for no longer than it takes to do it here.
    cache::wait(&lock, || began.elapsed().as_secs() < seconds && wanted(inner, current).is_some())
}

/// Whether another compilation was faster, or failed before. Keeps nothing alive while the compiler
/// runs.
fn is_done(inner: &Weak<Inner>, current: &Weak<Current>, names: &Names) -> bool {
    let Some((inner, current)) = wanted(inner, current) else { return true };
    let wiring = current.ready().wiring.clone();
    match from_cache(&inner, &names.optimised, &wiring) {
        Some(found) => current.replace(found.ready),
        None if is_given_up(&inner, names) => current.keep(),
        None => return false,
    }
    true
}

/// Both, while both are there.
fn wanted(inner: &Weak<Inner>, current: &Weak<Current>) -> Option<(Arc<Inner>, Arc<Current>)> {
    inner.upgrade().zip(current.upgrade())
}
