//! The code of a loaded component: linked for as long as the component lives, or at its first call
//! and released when others need the memory.
//!
//! A call asks its component's [`ComponentCode`] for the current code. A host with many components
//! loads them with a source, a function that reads the bytes again. Then [`ComponentCode`] links
//! the code from the cache on a thread of the engine; if it is gone, it reads the bytes from the
//! source and compiles them. [`Resident`] keeps the sum of linked bytes of these components within
//! the budget of the engine: it releases the code that was not called for the longest time.
//! Invariants: code that a call uses lives until the call ends. One thread at a time links a
//! component. Bytes of another digest are never linked. The code of the component that was linked
//! last may exceed the budget.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use toolcell_contract::error::Error;

use super::tier::{CodeTier, Current};
use super::{Compiler, code, on_a_thread, preview1};
use super::{cache::entries::Artifact, config::Tier, inspection::digest};
use crate::engine::cell::invoke::LinkOptions;

/// A function that reads the bytes of a component again.
pub(in crate::engine) type Source = Arc<dyn Fn() -> io::Result<Vec<u8>> + Send + Sync>;

/// The code of a component.
pub(in crate::engine) struct ComponentCode {
    digest: String,
    artifact: Artifact,
    wiring: LinkOptions,
    /// `None` if the code stays linked.
    source: Option<Source>,
    /// The kind of the code when the component was loaded.
    known: CodeTier,
    linked: RwLock<Option<Arc<Current>>>,
    linking: Arc<tokio::sync::Mutex<()>>,
    /// The engine's count of uses at the last use of this component.
    used: AtomicU64,
    bytes: AtomicU64,
}

/// The components of an engine whose code can be released.
pub(in crate::engine) struct Resident {
    budget: u64,
    uses: AtomicU64,
    linked: Mutex<Vec<Weak<ComponentCode>>>,
}

impl ComponentCode {
    /// Builds one whose code is `found` linked already, or is in the cache as this kind.
    pub(super) fn new(
        resident: &Resident,
        digest: String,
        artifact: Artifact,
        wiring: LinkOptions,
        source: Option<Source>,
        found: Result<Arc<Current>, CodeTier>,
    ) -> Arc<Self> {
        let code = Arc::new(Self {
            digest,
            artifact,
            wiring,
            source,
            known: found.as_ref().map_or_else(|known| *known, |current| current.code()),
            linked: RwLock::default(),
            linking: Default::default(),
            used: AtomicU64::default(),
            bytes: AtomicU64::default(),
        });
        if let Ok(current) = found {
            code.install(resident, current);
        }
        code
    }

    /// Returns the kind of code that a call uses which begins now.
    pub(in crate::engine) fn tier(&self) -> CodeTier {
        self.linked.read().as_ref().map_or(self.known, |current| current.code())
    }

    /// Returns the linked code; links it first if necessary.
    ///
    /// # Cancel safety
    /// May be dropped: a link that has begun goes on, and its result is kept.
    pub(in crate::engine) async fn current(
        self: &Arc<Self>,
        compiler: &Arc<Compiler>,
    ) -> Result<Arc<Current>, Error> {
        if self.source.is_some() {
            let uses = compiler.resident.uses.fetch_add(1, Ordering::Relaxed);
            self.used.store(uses, Ordering::Relaxed);
        }
        if let Some(current) = self.linked() {
            return Ok(current);
        }
        let alone = Arc::clone(&self.linking).lock_owned().await;
        if let Some(current) = self.linked() {
            return Ok(current);
        }
        let core = Arc::clone(&compiler.links).acquire_owned().await;
        let (compiler, this) = (Arc::clone(compiler), Arc::clone(self));
        on_a_thread("toolcell-link", move || {
            let _held = (core, alone);
            this.link(&compiler)
        })
        .await
    }

    fn linked(&self) -> Option<Arc<Current>> {
        self.linked.read().clone()
    }

    fn link(self: &Arc<Self>, compiler: &Arc<Compiler>) -> Result<Arc<Current>, Error> {
        // Optimised code needs nothing else. To optimise quick code, the component itself is
        // needed.
        let optimised = compiler.link_cached(&self.artifact, Tier::Optimised, &self.wiring);
        let current = match optimised {
            Some(found) => Arc::new(Current::settled(found.code, CodeTier::Optimised)),
            None => self.loaded(compiler)?,
        };
        self.install(&compiler.resident, Arc::clone(&current));
        Ok(current)
    }

    fn loaded(&self, compiler: &Arc<Compiler>) -> Result<Arc<Current>, Error> {
        let gone = || Error::engine("the component cannot be read again");
        let source = self.source.as_ref().ok_or_else(gone)?;
        let bytes = source().map_err(|error| gone().with_source(error))?;
        if digest(&bytes) != self.digest {
            return Err(Error::engine(
                "the component's file has changed since it was loaded, and its compiled code is no longer in the cache",
            ));
        }
        let bytes = preview1::component(&bytes)?.into_owned();
        Ok(code::linked(compiler, bytes, &self.artifact, &self.wiring, None)?.code)
    }

    fn install(self: &Arc<Self>, resident: &Resident, current: Arc<Current>) {
        self.bytes.store(current.ready().code_bytes(), Ordering::Relaxed);
        *self.linked.write() = Some(current);
        if self.source.is_some() {
            resident.add(self);
        }
    }
}

impl Resident {
    pub(in crate::engine) fn new(budget: u64) -> Self {
        Self { budget, uses: AtomicU64::default(), linked: Mutex::default() }
    }

    /// Returns the bytes of code that are linked now.
    pub(in crate::engine) fn bytes(&self) -> u64 {
        let linked = self.linked.lock();
        linked.iter().filter_map(Weak::upgrade).map(|code| code.bytes.load(Ordering::Relaxed)).sum()
    }

    /// Adds a component that was linked now. Over the budget, releases the code of components that
    /// were not called for the longest time.
    fn add(&self, new: &Arc<ComponentCode>) {
        let mut linked = self.linked.lock();
        linked.retain(|other| other.upgrade().is_some_and(|other| !Arc::ptr_eq(&other, new)));
        let mut others: Vec<_> = linked.iter().filter_map(Weak::upgrade).collect();
        others.sort_by_key(|other| std::cmp::Reverse(other.used.load(Ordering::Relaxed)));
        let size = |code: &ComponentCode| code.bytes.load(Ordering::Relaxed);
        let mut total: u64 = size(new) + others.iter().map(|other| size(other)).sum::<u64>();
        while total > self.budget
            && let Some(oldest) = others.pop()
        {
            total -= size(&oldest);
            *oldest.linked.write() = None;
        }
        *linked = others.iter().chain([new]).map(Arc::downgrade).collect();
    }
}
