//! Names of a component's entries in the cache of compiled code, and the writing of code and
//! definitions.
//!
//! [`entry_name`] derives a name from the digest of the component, its kind and the compatibility
//! hash of the engine, so that no engine finds code that it cannot run. [`Names`] has the names for
//! quick code (compiled without the optimiser), optimised code, and the note that a component could
//! not be optimised. A load calls [`cache_code`] after it has compiled; optimised code removes the
//! other entries. [`add_definitions`] completes an entry that was written before the component had
//! described its tools.
//! A failed write is a warning in the log. It costs time at the next load, and never fails this
//! one.

use toolcell_contract::controls;
use toolcell_contract::definition::Definition;
use wasmtime::Engine;

use super::Cache;
use crate::engine::adapt::component_kind::ComponentKind;
use crate::engine::compile::config::Tier;

/// The names of a component's entries in the cache.
#[derive(Debug, Clone)]
pub(in crate::engine::compile) struct Names {
    pub(in crate::engine::compile) optimised: String,
    pub(in crate::engine::compile) quick: String,
    /// An entry without code: it records the seconds of CPU time within which the component could
    /// not be optimised.
    pub(in crate::engine::compile) given_up: String,
}

impl Names {
    pub(in crate::engine::compile) fn new(optimised: String) -> Self {
        Self {
            quick: format!("{optimised}-quick"),
            given_up: format!("{optimised}-given-up"),
            optimised,
        }
    }

    pub(in crate::engine::compile) fn of(&self, tier: Tier) -> &str {
        match tier {
            Tier::Quick => &self.quick,
            Tier::Optimised => &self.optimised,
        }
    }

    /// Returns the entries that optimised code replaces.
    pub(in crate::engine::compile) fn all_but_optimised(&self) -> impl Iterator<Item = &str> {
        [&self.quick, &self.given_up].into_iter().map(String::as_str)
    }
}

/// Returns the cache's name for a component of this digest that is used as this kind. The cached
/// definitions depend only on the word of the kind.
pub(in crate::engine::compile) fn entry_name(
    engine: &Engine,
    digest: &str,
    kind: &ComponentKind,
) -> String {
    let mut fingerprint = Fingerprint(blake3::Hasher::new());
    std::hash::Hash::hash(&engine.precompile_compatibility_hash(), &mut fingerprint);
    // Code that was compiled with a control off has a name of its own, so that no engine with all
    // controls finds it.
    std::hash::Hash::hash(&controls::inherited(), &mut fingerprint);
    if *kind != ComponentKind::Tools {
        std::hash::Hash::hash(kind.word(), &mut fingerprint);
    }
    let fingerprint = fingerprint.0.finalize();
    format!("{}-{}", digest.trim_start_matches("sha256:"), &fingerprint.to_hex()[..16])
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

/// Writes code and definitions to the cache, if there is one. Optimised code replaces the
/// component's other entries.
pub(in crate::engine::compile) fn cache_code(
    cache: Option<&Cache>,
    tier: Tier,
    names: &Names,
    code: &[u8],
    definitions: &[Definition],
) {
    let Some(cache) = cache else { return };
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
pub(in crate::engine::compile) fn add_definitions(
    cache: Option<&Cache>,
    name: &str,
    definitions: &[Definition],
) {
    let Some((cache, entry)) = cache.and_then(|cache| cache.get(name).map(|entry| (cache, entry)))
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
