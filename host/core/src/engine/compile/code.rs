//! Gets the linked code of a component: from the cache, or by compiling it now.
//!
//! A load calls [`linked`] on a thread that may block, with the bytes, their entries in the cache
//! and the settings of the link. It takes optimised code from the cache if there is some, else
//! quick code, else it compiles, as the engine's setting `Optimise` says. Then it calls `describe`
//! for the tools' definitions unless the cache has them, writes both to the cache, and returns a
//! [`LinkedCode`].
//! Invariants: only `describe` runs code of the guest, in a cell (a fresh store) without grants. If
//! no cell is free for `describe`, the compiled code is still cached. A load waits for another
//! load, of any process, that compiles this component. A compilation counts against the tenant's
//! quota, unless it failed for a reason outside of the component and left nothing in the cache. A
//! cached component that cannot be used now stays.
//! Not here: the second compilation, for speed (`tier/optimise`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcell_contract::definition::Definition;
use toolcell_contract::error::Error;

use super::Compiler;
use super::cache::EntryLock;
use super::cache::entries::Artifact;
use super::config::{Priority, Tier};
use super::describe::describe;
use super::link::LinkedCode;
use super::tier::optimise::optimise_later;
use super::tier::{CodeTier, Current, Optimise};
use super::worker;
use crate::engine::cell::invoke::LinkOptions;
use crate::tenant::compile_quota::LoadPermit;

/// The wait for another process that compiles, if nothing bounds its time.
const UNBOUNDED_COMPILER: Duration = Duration::from_mins(5);

/// Links the code of a component, which comes from the cache or is compiled now, and calls
/// `describe` unless the definitions are known.
pub(super) fn linked(
    compiler: &Arc<Compiler>,
    bytes: Vec<u8>,
    artifact: &Artifact,
    wiring: &LinkOptions,
    turn: Option<&LoadPermit>,
) -> Result<LinkedCode<Current>, Error> {
    let kept = |tier| compiler.link_cached(artifact, tier, wiring);
    let compiled = |tier, known| {
        turn.map_or(Ok(()), LoadPermit::compile)?;
        compiled(compiler, tier, artifact, &bytes, wiring, known).inspect_err(|failed| {
            if failed.is_environment() && artifact.get(tier).is_none() {
                turn.into_iter().for_each(LoadPermit::refund);
            }
        })
    };
    let tiers: &[Tier] = match compiler.optimise {
        Optimise::First => &[Tier::Optimised],
        // Once more, because the optimiser may have replaced quick code during the look at it.
        Optimise::Later | Optimise::Never => &[Tier::Optimised, Tier::Quick, Tier::Optimised],
    };
    let find = || tiers.iter().find_map(|tier| Some((kept(*tier)?, *tier)));
    let found = find();
    let _lock = if found.is_none() { lock_entry(compiler, artifact, bytes.len()) } else { None };
    // Another load may have compiled it during the wait.
    let (found, tier) = match found.or_else(find) {
        Some(cached) => cached,
        None if compiler.optimise == Optimise::First => {
            // Reuses the cached definitions; does not call `describe` again.
            let known = kept(Tier::Quick).map(|quick| quick.definitions);
            let known = known.filter(|known| !known.is_empty());
            (compiled(Tier::Optimised, known)?, Tier::Optimised)
        }
        None => (compiled(Tier::Quick, None)?, Tier::Quick),
    };
    let LinkedCode { code: ready, mut definitions, compile_time } = found;
    if definitions.is_empty() {
        definitions = describe(&compiler.scheduler, &ready)?;
        artifact.add_definitions(tier, &definitions);
    }
    let code = match tier {
        Tier::Optimised => Arc::new(Current::settled(ready, CodeTier::Optimised)),
        Tier::Quick if compiler.optimise == Optimise::Never => {
            Arc::new(Current::settled(ready, CodeTier::Unoptimised))
        }
        Tier::Quick => {
            let (artifact, definitions) = (artifact.clone(), definitions.clone());
            let tenant = turn.map(LoadPermit::tenant);
            optimise_later(compiler, bytes, artifact, ready, definitions, tenant)
        }
    };
    Ok(LinkedCode { code, definitions, compile_time })
}

/// Locks the cache entry, so that other loads, of any process that shares the cache, wait for this
/// compilation and use its result. Returns `None` if there is nothing to lock, or if another load
/// takes longer than a compiler may.
fn lock_entry(compiler: &Compiler, artifact: &Artifact, bytes: usize) -> Option<EntryLock> {
    let wanted = if compiler.optimise == Optimise::First { Tier::Optimised } else { Tier::Quick };
    let wall = compiler.worker.as_ref().map(|worker| worker.wall(Priority::Foreground, bytes));
    let until = Instant::now().checked_add(wall.unwrap_or(UNBOUNDED_COMPILER));
    artifact.lock(wanted, || until.is_none_or(|until| Instant::now() < until))
}

/// Compiles a component, calls `describe` unless the definitions are known, and caches both.
fn compiled(
    compiler: &Compiler,
    tier: Tier,
    artifact: &Artifact,
    bytes: &[u8],
    wiring: &LinkOptions,
    known: Option<Vec<Definition>>,
) -> Result<LinkedCode, Error> {
    compiler.on_compile.call(bytes);
    let started = Instant::now();
    let worker = compiler.worker.as_ref();
    let code = worker::compile(worker, tier, Priority::Foreground, bytes, || true)?;
    let compile_time = Some(started.elapsed());
    let ready = compiler.linker.link_new(&code, wiring)?;
    let asked = known.map_or_else(|| describe(&compiler.scheduler, &ready), Ok);
    let definitions = asked.inspect_err(|error| {
        // All cells are busy: the code is cached, so that the next load only calls `describe`.
        if error.is_environment() {
            artifact.put(tier, &code, &[]);
        }
    })?;
    artifact.put(tier, &code, &definitions);
    Ok(LinkedCode { code: ready, definitions, compile_time })
}
