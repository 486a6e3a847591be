//! The entries of one component in the artifact cache: code of two tiers, and the note that it
//! cannot be optimised.
//!
//! [`Compiler::artifact`] derives their names from the digest of the component, its kind and the
//! compatibility hash of the engine, so that no engine finds code that it cannot run. A load calls
//! `get`, and `put` after it has compiled; optimised code removes the other entries.
//! `add_definitions` completes an entry that was written before the component had described its
//! tools. `give_up` records that the component could not be optimised. Without a cache nothing is
//! found and nothing is written.
//! A failed write is a warning in the log. It costs time at the next load, and never fails this
//! one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use toolcell_contract::controls;
use toolcell_contract::definition::Definition;

use super::entry_lock::{EntryLock, wait};
use super::{Cache, Entry};
use crate::engine::adapt::component_kind::ComponentKind;
use crate::engine::compile::Compiler;
use crate::engine::compile::config::Tier;

/// The entries of a component in the cache, if there is one.
#[derive(Debug, Clone)]
pub(in crate::engine::compile) struct Artifact {
    pub(in crate::engine::compile) cache: Option<Arc<Cache>>,
    /// The name that all its entries begin with.
    pub(in crate::engine::compile) key: String,
}

impl Compiler {
    /// Returns the entries of a component of this digest that is used as this kind. The cached
    /// definitions depend only on the word of the kind.
    pub(in crate::engine::compile) fn artifact(
        &self,
        digest: &str,
        kind: &ComponentKind,
    ) -> Artifact {
        // It gives the same hash in each process of one build. Rust may change the hash in a later
        // release; then the entry is not found, and is made again.
        let mut fingerprint = DefaultHasher::new();
        self.linker.on_demand.engine.precompile_compatibility_hash().hash(&mut fingerprint);
        // Code that was compiled with a control off has a name of its own, so that no engine with
        // all controls finds it.
        controls::inherited().hash(&mut fingerprint);
        if *kind != ComponentKind::Tools {
            kind.word().hash(&mut fingerprint);
        }
        let fingerprint = fingerprint.finish();
        let key = format!("{}-{fingerprint:016x}", digest.trim_start_matches("sha256:"));
        Artifact { cache: self.cache.clone(), key }
    }
}

impl Artifact {
    /// Returns the name of the entry for code of this tier.
    pub(in crate::engine::compile) fn name(&self, tier: Tier) -> String {
        match tier {
            Tier::Quick => format!("{}-quick", self.key),
            Tier::Optimised => self.key.clone(),
        }
    }

    /// Returns the name of an entry without code, with the seconds of CPU time within which the
    /// component could not be optimised.
    fn given_up_name(&self) -> String {
        format!("{}-given-up", self.key)
    }

    /// Returns the entry of this tier, if it is whole.
    pub(in crate::engine::compile) fn get(&self, tier: Tier) -> Option<Entry> {
        self.cache.as_ref()?.get(&self.name(tier))
    }

    /// Returns the definitions of the entry of this tier, without reading its code.
    pub(in crate::engine::compile) fn definitions(&self, tier: Tier) -> Option<Vec<Definition>> {
        serde_json::from_slice(&self.cache.as_ref()?.tools(&self.name(tier))?).ok()
    }

    /// Writes code and definitions. Optimised code replaces the component's other entries.
    pub(in crate::engine::compile) fn put(
        &self,
        tier: Tier,
        code: &[u8],
        definitions: &[Definition],
    ) {
        let Some(cache) = &self.cache else { return };
        let tools = serde_json::to_vec(definitions).unwrap_or_default();
        match (cache.put(&self.name(tier), code, &tools), tier) {
            (Ok(()), Tier::Quick) => {}
            (Ok(()), Tier::Optimised) => {
                cache.remove(&self.name(Tier::Quick));
                cache.remove(&self.given_up_name());
            }
            (Err(error), _) => {
                tracing::warn!(%error, "the compiled component could not be kept in the cache")
            }
        }
    }

    /// Adds to an entry the definitions that were missing when it was written.
    pub(in crate::engine::compile) fn add_definitions(
        &self,
        tier: Tier,
        definitions: &[Definition],
    ) {
        let (Some(cache), Some(entry)) = (&self.cache, self.get(tier)) else { return };
        let tools = serde_json::to_vec(definitions).unwrap_or_default();
        let kept =
            std::fs::read(&entry.code).and_then(|code| cache.put(&self.name(tier), &code, &tools));
        let _ = kept.inspect_err(|error| {
            tracing::warn!(
                %error,
                "the component's tools could not be kept in the cache: the next load asks the component for them again"
            );
        });
    }

    /// Records that the component could not be optimised within this CPU time.
    pub(in crate::engine::compile) fn give_up(&self, seconds: u64) {
        let Some(cache) = &self.cache else { return };
        if let Err(error) = cache.put(&self.given_up_name(), b"", seconds.to_string().as_bytes()) {
            tracing::warn!(
                %error,
                "the cache could not record that the component cannot be optimised; the next process will try again"
            );
        }
    }

    /// Returns the seconds within which the component could not be optimised, if it was given up.
    pub(in crate::engine::compile) fn given_up_after(&self) -> Option<u64> {
        let entry = self.cache.as_ref()?.get(&self.given_up_name())?;
        std::str::from_utf8(&entry.tools).ok()?.parse().ok()
    }

    /// Locks the entry of this tier against other loads. Waits for as long as `goes_on` returns
    /// true.
    pub(in crate::engine::compile) fn lock(
        &self,
        tier: Tier,
        goes_on: impl FnMut() -> bool,
    ) -> Option<EntryLock> {
        wait(&self.cache.as_ref()?.path(&self.name(tier), "lock"), goes_on)
    }
}
