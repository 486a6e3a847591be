//! Loads a component: checks imports, compiles it or reads the cache, links, calls `describe`.
//!
//! In: untrusted bytes.
//! Out: a [`Loaded`] component, which answers calls.
//! Invariants:
//! - Imports are checked before the compiler runs.
//! - Only `describe` runs code of the guest, in a cell without grants, and once however often the
//!   component is compiled.
//! - If no cell is free for `describe`, the compiled code is still cached.
//! - A load waits for another load, of any process, that compiles the same component.
//! - A cached component that cannot be used now stays until it is replaced, since its MAC shows
//!   that it was made here and is complete.
//!
//! Not here: the second compilation, for speed (`optimise`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::Engine;
use wasmtime::component::Component;

use super::cache::{self, Entry, EntryLock};
use super::config::Priority;
use super::describe::describe;
use super::inspection::{Inspection, how_to_grant};
use super::on_demand::{CodeHandle, OnDemand, Source};
use super::tier::optimise::{self, Names};
use super::tier::{Code, Current, Optimise, Tier};
use super::worker::{self, Watch};
use crate::contract::controls::{self, Control, enforced};
use crate::contract::definition::Definition;
use crate::contract::error::Error;
use crate::contract::grants::Grants;
use crate::engine::adapt::component_kind::ComponentKind;
use crate::engine::cell::exports::Exports;
use crate::engine::cell::invoke::{LinkOptions, Ready};
use crate::engine::schedule::latency_class::Habits;
use crate::engine::schedule::quarantine::Quarantine;
use crate::engine::{Allocator, Inner};
use crate::tenant::compile_quota::LoadPermit;

/// The wait for another process that compiles, if nothing bounds its time.
const UNBOUNDED_COMPILER: Duration = Duration::from_mins(5);
/// Tells what to do with a component that imports something that is not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnMissingGrant {
    /// It is not loaded.
    #[default]
    Refused,
    /// It is loaded, and each use of the import is denied: for finding out what the component asks
    /// for.
    Denied,
}

/// A component that answers calls.
pub(in crate::engine) struct Loaded {
    pub(in crate::engine) inspection: Inspection,
    pub(in crate::engine) definitions: Vec<Definition>,
    pub(in crate::engine) code: CodeHandle,
    pub(in crate::engine) quarantine: Arc<Quarantine>,
    pub(in crate::engine) latency_classes: Habits,
    pub(in crate::engine) pooled: bool,
    /// The time until the component could answer; `None` if its code came from the cache.
    pub(in crate::engine) compile_time: Option<Duration>,
}

impl Loaded {
    /// Builds a component that was not compiled now.
    fn new(
        inner: &Inner,
        examination: Inspection,
        kind: &ComponentKind,
        definitions: Vec<Definition>,
        code: CodeHandle,
    ) -> Result<Self, Error> {
        // The cached definitions of a command are of the settings that it had when it was cached.
        let definitions = match kind {
            ComponentKind::Command(command) => vec![command.definition()?],
            ComponentKind::Tools | ComponentKind::Functions => definitions,
        };
        let quarantine = Arc::new(Quarantine::after(inner.panics, Arc::clone(&inner.clock)));
        let pooled = inner.pool.is_some();
        let (habits, compile_time) = (Habits::default(), None);
        Ok(Self {
            inspection: examination,
            definitions,
            code,
            quarantine,
            latency_classes: habits,
            pooled,
            compile_time,
        })
    }
}

/// The linked code of a component, and its tools.
pub(super) struct Linked {
    pub(in crate::engine) current: Arc<Current>,
    definitions: Vec<Definition>,
    pooled: bool,
    compile_time: Option<Duration>,
}

/// Loads a component, in the tenant's turn if it is for a tenant. Blocks for as long as the
/// compiler takes, so it runs on a thread of its own. With a source, code that is in the cache is
/// linked at the first call.
pub(in crate::engine) fn load(
    inner: &Arc<Inner>,
    bytes: Vec<u8>,
    grants: &Grants,
    wiring: &LinkOptions,
    missing: OnMissingGrant,
    turn: Option<&LoadPermit>,
    source: Option<Source>,
) -> Result<Loaded, Error> {
    let loaded = match source {
        None => loaded(inner, bytes, wiring, turn)?,
        Some(source) => on_demand(inner, bytes, wiring, turn, source)?,
    };
    let denied: Vec<_> = (loaded.inspection.missing(&loaded.definitions, grants))
        .map(|(name, _)| name.clone())
        .collect();
    if denied.is_empty()
        || missing == OnMissingGrant::Denied
        || !enforced(Control::UngrantedImports)
    {
        return Ok(loaded);
    }
    let hint = how_to_grant(&loaded.definitions, &denied);
    Err(Error::not_granted(denied, hint))
}

fn loaded(
    inner: &Arc<Inner>,
    bytes: Vec<u8>,
    wiring: &LinkOptions,
    turn: Option<&LoadPermit>,
) -> Result<Loaded, Error> {
    let (examination, bytes) = Inspection::prepared(bytes, &wiring.kind)?;
    let linked = linked(inner, bytes, &examination.digest, wiring, turn)?;
    let Linked { current, definitions, pooled, compile_time } = linked;
    Ok(Loaded {
        pooled,
        compile_time,
        ..Loaded::new(inner, examination, &wiring.kind, definitions, CodeHandle::Always(current))?
    })
}

/// As `loaded`, but code that is in the cache is linked later.
fn on_demand(
    inner: &Arc<Inner>,
    bytes: Vec<u8>,
    wiring: &LinkOptions,
    turn: Option<&LoadPermit>,
    source: Source,
) -> Result<Loaded, Error> {
    let (examination, bytes) = Inspection::prepared(bytes, &wiring.kind)?;
    let digest = examination.digest.clone();
    let demand = |found| {
        CodeHandle::OnDemand(OnDemand::new(inner, digest.clone(), wiring.clone(), source, found))
    };
    if let Some((definitions, known)) = described(inner, &digest, &wiring.kind) {
        return Loaded::new(inner, examination, &wiring.kind, definitions, demand(Err(known)));
    }
    let linked = linked(inner, bytes, &digest, wiring, turn)?;
    let Linked { current, definitions, pooled, compile_time } = linked;
    Ok(Loaded {
        pooled,
        compile_time,
        ..Loaded::new(inner, examination, &wiring.kind, definitions, demand(Ok(current)))?
    })
}

/// Returns the definitions of a component whose code is in the cache, and the kind of that code.
fn described(inner: &Inner, digest: &str, kind: &ComponentKind) -> Option<(Vec<Definition>, Code)> {
    let cache = inner.cache.as_ref()?;
    let names = Names::new(entry_name(&inner.on_demand.engine, digest, kind));
    let quick = if inner.optimise == Optimise::Never { Code::Unoptimised } else { Code::Quick };
    let tiers = [(Tier::Optimised, Code::Optimised), (Tier::Quick, quick)];
    // With `First` no call runs on quick code.
    let tiers = tiers.into_iter().take(if inner.optimise == Optimise::First { 1 } else { 2 });
    let found = tiers.filter_map(|(tier, code)| {
        Some((serde_json::from_slice(&cache.tools(names.of(tier))?).ok()?, code))
    });
    found.into_iter().find(|(definitions, _): &(Vec<Definition>, Code)| !definitions.is_empty())
}

/// Links the code of a component, which comes from the cache or is compiled now, and calls
/// `describe` unless the definitions are known.
pub(super) fn linked(
    inner: &Arc<Inner>,
    bytes: Vec<u8>,
    digest: &str,
    wiring: &LinkOptions,
    turn: Option<&LoadPermit>,
) -> Result<Linked, Error> {
    let names = Names::new(entry_name(&inner.on_demand.engine, digest, &wiring.kind));
    // Without a cache there would be nothing to find after the wait.
    let _alone = inner.cache.is_some().then(|| inner.single_flight.alone(&names.optimised));
    let _turn = lock_entry(inner, &names);
    let kept = |name: &str| from_cache(inner, name, wiring);
    let compiled = |tier, known| {
        turn.map_or(Ok(()), LoadPermit::compile)?;
        compiled(inner, tier, &names, &bytes, wiring, known).inspect_err(|failed| {
            if failed.is_environment()
                && inner.cache.as_ref().is_none_or(|cache| cache.get(names.of(tier)).is_none())
            {
                turn.into_iter().for_each(LoadPermit::refund);
            }
        })
    };
    let quick = || kept(&names.quick).map_or_else(|| compiled(Tier::Quick, None), Ok);
    let (found, code) = match (kept(&names.optimised), inner.optimise) {
        (Some(found), Optimise::Later | Optimise::First | Optimise::Never) => {
            (found, Code::Optimised)
        }
        (None, Optimise::First) => {
            // Reuses the cached definitions; does not call `describe` again.
            let known =
                kept(&names.quick).map(|quick| quick.definitions).filter(|known| !known.is_empty());
            (compiled(Tier::Optimised, known)?, Code::Optimised)
        }
        (None, Optimise::Never) => (quick()?, Code::Unoptimised),
        (None, Optimise::Later) => (quick()?, Code::Quick),
    };
    let LinkedCode { ready, mut definitions, pooled, compile_time } = found;
    if definitions.is_empty() {
        definitions = describe(inner, &ready)?;
        let tier = if code == Code::Optimised { Tier::Optimised } else { Tier::Quick };
        add_definitions(inner, names.of(tier), &definitions);
    }
    let current = match code {
        Code::Optimised | Code::Unoptimised => Arc::new(Current::settled(ready, code)),
        Code::Quick => optimise::optimise_later(
            inner,
            bytes,
            names,
            ready,
            definitions.clone(),
            turn.map(LoadPermit::tenant),
        ),
    };
    Ok(Linked { current, definitions, pooled, compile_time })
}

/// Locks the cache entry, so that other processes that share the cache wait for this compilation
/// and use its result. Returns `None` if the entry exists, if there is nothing to lock, or if
/// another process takes longer than a compiler may.
fn lock_entry(inner: &Inner, names: &Names) -> Option<EntryLock> {
    let cache = inner.cache.as_ref()?;
    let wanted = if inner.optimise == Optimise::First { &names.optimised } else { &names.quick };
    if cache.has(wanted) || cache.has(&names.optimised) {
        return None;
    }
    let patience =
        inner.worker.as_ref().map_or(UNBOUNDED_COMPILER, |worker| worker.wall(Priority::Awaited));
    let until = Instant::now() + patience;
    cache::wait(&cache.lock(wanted), || Instant::now() < until)
}

/// Linked code and its tools.
pub(super) struct LinkedCode {
    pub(in crate::engine) ready: Arc<Ready>,
    pooled: bool,
    /// Empty if the code was cached when there was no free cell for `describe`.
    definitions: Vec<Definition>,
    compile_time: Option<Duration>,
}

/// Compiles a component, calls `describe` unless the definitions are known, and caches both.
fn compiled(
    inner: &Arc<Inner>,
    tier: Tier,
    names: &Names,
    bytes: &[u8],
    wiring: &LinkOptions,
    known: Option<Vec<Definition>>,
) -> Result<LinkedCode, Error> {
    inner.on_compile.call(bytes);
    let started = Instant::now();
    let code = worker::compile(
        inner.worker.as_ref(),
        tier,
        Priority::Awaited,
        bytes,
        Watch::unattended(),
    )?;
    let compile_time = Some(started.elapsed());
    let (ready, pooled) = link_new(inner, &code, wiring)?;
    let asked = known.map_or_else(|| describe(inner, &ready), Ok);
    let definitions = asked.inspect_err(|error| {
        // All cells are busy: the code is cached, so that the next load only calls `describe`.
        if error.is_environment() {
            cache_code(inner, tier, names, &code, &[]);
        }
    })?;
    cache_code(inner, tier, names, &code, &definitions);
    Ok(LinkedCode { ready, pooled, definitions, compile_time })
}

/// Writes code and definitions to the cache, if there is one. Optimised code replaces the
/// component's other entries.
pub(super) fn cache_code(
    inner: &Inner,
    tier: Tier,
    names: &Names,
    code: &[u8],
    definitions: &[Definition],
) {
    let Some(cache) = &inner.cache else { return };
    let tools = serde_json::to_vec(definitions).unwrap_or_default();
    match (cache.put(names.of(tier), code, &tools), tier) {
        (Ok(()), Tier::Quick) => {}
        (Ok(()), Tier::Optimised) => names.all_but_optimised().for_each(|name| cache.remove(name)),
        (Err(error), _) => {
            tracing::warn!(%error, "the compiled component could not be kept in the cache")
        }
    }
}

/// Adds to an entry the definitions that were missing when it was written.
fn add_definitions(inner: &Inner, name: &str, definitions: &[Definition]) {
    let Some((cache, entry)) =
        inner.cache.as_ref().and_then(|cache| cache.get(name).map(|entry| (cache, entry)))
    else {
        return;
    };
    let tools = serde_json::to_vec(definitions).unwrap_or_default();
    let kept = std::fs::read(&entry.code).and_then(|code| cache.put(name, &code, &tools));
    let _ = kept.inspect_err(|error| {
        tracing::warn!(
            %error,
            "the component's tools could not be kept in the cache: the next load asks the component for them again"
        );
    });
}

/// Returns the entry, if there is one that works. One that does not is no error: it is compiled
/// again and replaced.
pub(super) fn from_cache(
    inner: &Arc<Inner>,
    name: &str,
    wiring: &LinkOptions,
) -> Option<LinkedCode> {
    let cache = inner.cache.as_ref()?;
    let Entry { code, tools, reading: _reading } = cache.get(name)?;
    // SAFETY: the content was checked against a MAC with a key that only this user can read.
    #[expect(
        unsafe_code,
        reason = "artifacts are made by this engine and never leave its keyed cache"
    )]
    let make = |engine: &Engine| unsafe { Component::deserialize_file(engine, &code) };
    let linked = link(inner, wiring, make).and_then(|(ready, pooled)| {
        let definitions: Vec<Definition> = serde_json::from_slice(&tools)
            .map_err(|error| Error::cache("unreadable definitions").with_source(error))?;
        Ok(LinkedCode { ready, pooled, definitions, compile_time: None })
    });
    let warn = |error: &Error| {
        tracing::warn!(%error, "a component in the cache could not be used and is compiled again");
    };
    linked.inspect_err(warn).ok()
}

/// Links code that was compiled now.
pub(super) fn link_new(
    inner: &Arc<Inner>,
    code: &[u8],
    wiring: &LinkOptions,
) -> Result<(Arc<Ready>, bool), Error> {
    // SAFETY: `code` was compiled a moment ago, here or by this program's own worker.
    #[expect(
        unsafe_code,
        reason = "artifacts are made by this engine and never leave its keyed cache"
    )]
    let make = |engine: &Engine| unsafe { Component::deserialize(engine, code) };
    link(inner, wiring, make)
}

/// Links code for the pool. A component that is larger than a slot, or an engine without a pool,
/// gets memory on demand.
fn link(
    inner: &Arc<Inner>,
    wiring: &LinkOptions,
    make: impl Fn(&Engine) -> wasmtime::Result<Component>,
) -> Result<(Arc<Ready>, bool), Error> {
    let on = |allocator: &Allocator| -> Result<Arc<Ready>, Error> {
        let malformed = |error: wasmtime::Error| Error::malformed(format!("{error:#}"));
        let component = make(&allocator.engine).map_err(malformed)?;
        let pre = allocator.linker()?.instantiate_pre(&component).map_err(malformed)?;
        // All imports exist, so anything missing now is a fault of the component.
        let engine = allocator.engine.clone();
        let exports = Exports::find(&engine, &pre, &wiring.kind)?;
        let (ticker, world) = (Arc::clone(&inner.ticker), Arc::clone(&inner.resources));
        Ok(Arc::new(Ready {
            engine,
            pre,
            exports,
            ticker,
            resources: world,
            wiring: wiring.clone(),
            apart: Default::default(),
        }))
    };
    if let Some(pool) = &inner.pool {
        match on(pool) {
            Ok(ready) => return Ok((ready, true)),
            Err(error) => {
                tracing::info!(%error, "the component cannot use the pool: it gets memory on demand")
            }
        }
    }
    Ok((on(&inner.on_demand)?, false))
}

/// Returns the cache's name for a component of this digest that is used as this kind. The cached
/// definitions depend only on the word of the kind.
pub(super) fn entry_name(engine: &Engine, digest: &str, kind: &ComponentKind) -> String {
    let mut fingerprint = Fingerprint(blake3::Hasher::new());
    std::hash::Hash::hash(&engine.precompile_compatibility_hash(), &mut fingerprint);
    // Code that was compiled with a control off has a name of its own, so that no engine with all
    // controls finds it.
    std::hash::Hash::hash(&controls::down().map(Control::name), &mut fingerprint);
    if *kind != ComponentKind::Tools {
        std::hash::Hash::hash(kind.word(), &mut fingerprint);
    }
    let fingerprint = fingerprint.0.finalize();
    format!("{}-{}", digest.trim_start_matches("sha256:"), hex(&fingerprint.as_bytes()[..8]))
}

/// A hasher for the engine's fingerprint that gives the same hash in each process.
struct Fingerprint(blake3::Hasher);

impl std::hash::Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::compile::inspection::digest;

    /// Builds a component that exports an empty instance under the name of the tool interface.
    fn empty_instance() -> Vec<u8> {
        let name = b"toolcell:tool/tool@0.1.0";
        let instance = [5, 3, 1, 1, 0];
        let export =
            [&[11, name.len() as u8 + 6, 1, 0, name.len() as u8], &name[..], &[5, 0, 0]].concat();
        [&b"\0asm\x0d\0\x01\0"[..], &instance, &export].concat()
    }

    /// An entry whose MAC fits but that cannot be used now may be usable later, for example if
    /// there was no memory for it.
    #[test]
    fn valid_unusable_entry_is_replaced_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let builder =
            crate::engine::Engine::builder().cells(1).cache(dir.path()).optimise(Optimise::Never);
        let engine = builder
            .compile_in("/bin/sh", ["-c", "exit 4"], Duration::from_secs(1))
            .build()
            .unwrap();
        let cache = engine.0.cache.as_ref().unwrap();
        let names = Names::new(entry_name(
            &engine.0.on_demand.engine,
            &digest(&empty_instance()),
            &ComponentKind::Tools,
        ));
        cache.put(&names.quick, b"no code", b"[]").unwrap();
        let loaded = load(
            &engine.0,
            empty_instance(),
            &Grants::default(),
            &LinkOptions::default(),
            OnMissingGrant::Refused,
            None,
            None,
        );
        assert!(
            loaded
                .err()
                .is_some_and(|error| error.to_string().contains("the compiler process failed"))
        );
        assert!(cache.get(&names.quick).is_some(), "it is gone");
        cache_code(&engine.0, Tier::Quick, &names, b"other code", &[]);
        assert_eq!(std::fs::read(cache.get(&names.quick).unwrap().code).unwrap(), b"other code");
    }
}
