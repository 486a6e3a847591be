//! Loads a component: checks its imports, gets its code and the definitions of its tools.
//!
//! The engine calls [`load`] on a thread of its own, with untrusted bytes, the grants of the
//! component and the settings of the link. The result is a [`LoadedComponent`]: definitions, code,
//! and the state that the scheduler keeps for the component. If the caller can supply the bytes
//! again (a source), code that is in the cache is linked only at the first call (`on_demand`).
//! Imports are checked before the compiler runs; those that need a grant, once the tools have
//! declared their needs. If one is not granted, the load fails with a hint for the operator, unless
//! [`OnMissingGrant::Denied`] is set: then each use of the import is denied.
//! Not here: how the code is compiled, cached and linked (`code`).

use std::sync::Arc;
use std::time::Duration;

use toolcell_contract::{controls::enforced, definition::Definition, error::Error, grants::Grants};

use super::inspection::{Inspection, how_to_grant};
use super::on_demand::{ComponentCode, Source};
use super::tier::{CodeTier, Optimise};
use super::{Compiler, cache::entries::Artifact, code::linked, config::Tier};
use crate::engine::adapt::component_kind::ComponentKind;
use crate::engine::cell::invoke::LinkOptions;
use crate::engine::schedule::latency_class::Habits;
use crate::engine::schedule::quarantine::Quarantine;
use crate::tenant::compile_quota::LoadPermit;

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
pub(in crate::engine) struct LoadedComponent {
    pub(in crate::engine) inspection: Inspection,
    pub(in crate::engine) kind: Arc<ComponentKind>,
    pub(in crate::engine) definitions: Vec<Definition>,
    pub(in crate::engine) code: Arc<ComponentCode>,
    pub(in crate::engine) quarantine: Arc<Quarantine>,
    pub(in crate::engine) latency_classes: Habits,
    pub(in crate::engine) pooled: bool,
    /// The time until the component could answer; `None` if its code came from the cache.
    pub(in crate::engine) compile_time: Option<Duration>,
    pub(in crate::engine) compiler: Arc<Compiler>,
}

/// Loads a component, in the tenant's turn if it is for a tenant. Blocks for as long as the
/// compiler takes, so it runs on a thread of its own. With a source, code that is in the cache is
/// linked at the first call.
pub(in crate::engine) fn load(
    compiler: Arc<Compiler>,
    bytes: Vec<u8>,
    grants: &Grants,
    wiring: LinkOptions,
    missing: OnMissingGrant,
    turn: Option<&LoadPermit>,
    source: Option<Source>,
) -> Result<LoadedComponent, Error> {
    let (inspection, bytes) = Inspection::prepared(bytes, &wiring.kind)?;
    let artifact = compiler.artifact(&inspection.digest, &wiring.kind);
    let cached = source.as_ref().and_then(|_| described(compiler.optimise, &artifact));
    let (definitions, found, pooled, compile_time) = match cached {
        Some((definitions, known)) => {
            (definitions, Err(known), compiler.linker.pool.is_some(), None)
        }
        None => {
            let linked = linked(&compiler, bytes, &artifact, &wiring, turn)?;
            let pooled = compiler.linker.is_pooled(&linked.code.ready());
            (linked.definitions, Ok(linked.code), pooled, linked.compile_time)
        }
    };
    // The cached definitions of a command are of the settings that it had when it was cached.
    let definitions = match &*wiring.kind {
        ComponentKind::Command(command) => vec![command.definition()?],
        ComponentKind::Tools | ComponentKind::Functions => definitions,
    };
    let denied: Vec<_> =
        inspection.missing(&definitions, grants).map(|(name, _)| name.clone()).collect();
    let is_refused = !denied.is_empty() && missing == OnMissingGrant::Refused;
    if is_refused && enforced!(UngrantedImports) {
        let hint = how_to_grant(&definitions, &denied);
        return Err(Error::not_granted(denied, hint));
    }
    let (resident, digest) = (&compiler.resident, inspection.digest.clone());
    let (panics, clock) = (compiler.scheduler.panics, Arc::clone(&compiler.scheduler.clock));
    Ok(LoadedComponent {
        kind: Arc::clone(&wiring.kind),
        code: ComponentCode::new(resident, digest, artifact, wiring, source, found),
        inspection,
        definitions,
        quarantine: Arc::new(Quarantine::after(panics, clock)),
        latency_classes: Habits::default(),
        pooled,
        compile_time,
        compiler,
    })
}

/// Returns the definitions of a component whose code is in the cache, and the kind of that code.
fn described(optimise: Optimise, artifact: &Artifact) -> Option<(Vec<Definition>, CodeTier)> {
    let quick = if optimise == Optimise::Never { CodeTier::Unoptimised } else { CodeTier::Quick };
    let tiers = [(Tier::Optimised, CodeTier::Optimised), (Tier::Quick, quick)];
    // With `First` no call runs on quick code.
    let tiers = tiers.into_iter().take(if optimise == Optimise::First { 1 } else { 2 });
    let mut found = tiers.filter_map(|(tier, code)| Some((artifact.definitions(tier)?, code)));
    found.find(|(definitions, _)| !definitions.is_empty())
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
        let builder = crate::engine::Engine::builder().cells(1).cache(dir.path());
        let builder = builder.compile_in("/bin/sh", ["-c", "exit 4"], Duration::from_secs(1));
        let engine = builder.optimise(Optimise::Never).build().unwrap();
        let cache = engine.compiler.cache.as_ref().unwrap();
        let artifact = engine.compiler.artifact(&digest(&empty_instance()), &ComponentKind::Tools);
        cache.put(&artifact.name(Tier::Quick), b"no code", b"[]").unwrap();
        let (compiler, missing) = (Arc::clone(&engine.compiler), OnMissingGrant::Refused);
        let (bytes, grants, link) = (empty_instance(), Grants::default(), LinkOptions::default());
        let loaded = load(compiler, bytes, &grants, link, missing, None, None);
        let failed = loaded.err().expect("it is not loaded").to_string();
        assert!(failed.contains("the compiler process failed"), "{failed}");
        assert!(artifact.get(Tier::Quick).is_some(), "it is gone");
        artifact.put(Tier::Quick, b"other code", &[]);
        assert_eq!(std::fs::read(artifact.get(Tier::Quick).unwrap().code).unwrap(), b"other code");
    }
}
