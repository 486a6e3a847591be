//! Links the code of a component at its first call, and releases it when others need the memory.
//!
//! A host with many components loads them with a source, a function that reads the bytes again.
//! Each gets a [`CodeHandle`], which a call asks for the current code. [`OnDemand`] links the code
//! from the cache on a thread of the engine; if it is gone, it reads the bytes from the source and
//! compiles them. [`Resident`] keeps the sum of linked bytes within the budget of the engine: it
//! releases the code that was not called for the longest time.
//! Invariants: code that a call uses lives until the call ends. One thread at a time links a
//! component. Bytes of another digest are never linked. The code of the component that was linked
//! last may exceed the budget.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use toolcell_contract::error::Error;

use super::cache::entries::{Names, entry_name};
use super::config::Tier;
use super::inspection::digest;
use super::tier::{CodeTier, Current};
use super::{Compiler, code, on_a_thread, preview1};
use crate::engine::cell::invoke::LinkOptions;

/// A function that reads the bytes of a component again.
pub(in crate::engine) type Source = Arc<dyn Fn() -> io::Result<Vec<u8>> + Send + Sync>;

/// The code of a component.
pub(in crate::engine) enum CodeHandle {
    /// Linked for as long as the component lives.
    Always(Arc<Current>),
    /// Linked when the component is called.
    OnDemand(Arc<OnDemand>),
}

/// Code that is linked when its component is called.
pub(in crate::engine) struct OnDemand {
    digest: String,
    wiring: LinkOptions,
    source: Source,
    /// The kind of code that was in the cache when the component was loaded.
    known: CodeTier,
    linked: RwLock<Option<Arc<Current>>>,
    linking: tokio::sync::Mutex<()>,
    /// The engine's count of uses at the last use of this component.
    used: AtomicU64,
    bytes: AtomicU64,
}

/// The components of an engine whose code can be released.
pub(in crate::engine) struct Resident {
    budget: u64,
    uses: AtomicU64,
    linked: Mutex<Vec<Weak<OnDemand>>>,
}

impl CodeHandle {
    /// Returns the kind of code that a call uses which begins now.
    pub(in crate::engine) fn code(&self) -> CodeTier {
        match self {
            Self::Always(current) => current.code(),
            Self::OnDemand(demand) => {
                demand.linked.read().as_ref().map_or(demand.known, |current| current.code())
            }
        }
    }

    /// Returns the linked code; links it first if necessary.
    ///
    /// # Cancel safety
    /// May be dropped: a link that has begun goes on, and its result is kept.
    pub(in crate::engine) async fn current(
        &self,
        compiler: &Arc<Compiler>,
    ) -> Result<Arc<Current>, Error> {
        match self {
            Self::Always(current) => Ok(Arc::clone(current)),
            Self::OnDemand(demand) => demand.current(compiler).await,
        }
    }
}

impl OnDemand {
    /// Builds one whose code is `linked` already, or is in the cache as `known`.
    pub(in crate::engine) fn new(
        resident: &Resident,
        digest: String,
        wiring: LinkOptions,
        source: Source,
        found: Result<Arc<Current>, CodeTier>,
    ) -> Arc<Self> {
        let known = found.as_ref().map_or_else(|known| *known, |current| current.code());
        let (used, bytes, linked) = (AtomicU64::default(), AtomicU64::default(), RwLock::default());
        let demand = Arc::new(Self {
            digest,
            wiring,
            source,
            known,
            linked,
            linking: Default::default(),
            used,
            bytes,
        });
        if let Ok(current) = found {
            demand.install(resident, current);
        }
        demand
    }

    async fn current(self: &Arc<Self>, compiler: &Arc<Compiler>) -> Result<Arc<Current>, Error> {
        let now = compiler.resident.uses.fetch_add(1, Ordering::Relaxed);
        self.used.store(now, Ordering::Relaxed);
        if let Some(current) = self.linked() {
            return Ok(current);
        }
        let _one = self.linking.lock().await;
        if let Some(current) = self.linked() {
            return Ok(current);
        }
        let core = Arc::clone(&compiler.loads).acquire_owned().await;
        let (compiler, demand) = (Arc::clone(compiler), Arc::clone(self));
        on_a_thread("toolcell-link", move || {
            let linked = demand.link(&compiler);
            drop(core);
            linked
        })
        .await
    }

    fn linked(&self) -> Option<Arc<Current>> {
        self.linked.read().clone()
    }

    fn link(self: &Arc<Self>, compiler: &Arc<Compiler>) -> Result<Arc<Current>, Error> {
        let names = Names::new(entry_name(
            &compiler.linker.on_demand.engine,
            &self.digest,
            &self.wiring.kind,
        ));
        // Optimised code needs nothing else. To optimise quick code, the component itself is
        // needed.
        let optimised = compiler.link_cached(names.of(Tier::Optimised), &self.wiring);
        let current = match optimised {
            Some(found) => Arc::new(Current::settled(found.ready, CodeTier::Optimised)),
            None => self.loaded(compiler)?,
        };
        self.install(&compiler.resident, Arc::clone(&current));
        Ok(current)
    }

    fn loaded(&self, compiler: &Arc<Compiler>) -> Result<Arc<Current>, Error> {
        let gone = |error| Error::engine("the component cannot be read again").with_source(error);
        let bytes = (self.source)().map_err(gone)?;
        if digest(&bytes) != self.digest {
            return Err(Error::engine(
                "the component's file has changed since it was loaded, and its compiled code is no longer in the cache",
            ));
        }
        let bytes = preview1::component(&bytes)?.into_owned();
        Ok(code::linked(compiler, bytes, &self.digest, &self.wiring, None)?.current)
    }

    fn install(self: &Arc<Self>, resident: &Resident, current: Arc<Current>) {
        let bytes = current.ready().code_bytes();
        self.bytes.store(bytes, Ordering::Relaxed);
        *self.linked.write() = Some(current);
        resident.add(self);
    }
}

impl Resident {
    pub(in crate::engine) fn new(budget: u64) -> Self {
        Self { budget, uses: AtomicU64::default(), linked: Mutex::default() }
    }

    /// Returns the bytes of code that are linked now.
    pub(in crate::engine) fn bytes(&self) -> u64 {
        let linked = self.linked.lock();
        linked
            .iter()
            .filter_map(Weak::upgrade)
            .map(|demand| demand.bytes.load(Ordering::Relaxed))
            .sum()
    }

    /// Adds a component that was linked now. Over the budget, releases the code of components that
    /// were not called for the longest time.
    fn add(&self, new: &Arc<OnDemand>) {
        let mut linked = self.linked.lock();
        linked.retain(|other| other.upgrade().is_some_and(|other| !Arc::ptr_eq(&other, new)));
        let mut others: Vec<_> = linked.iter().filter_map(Weak::upgrade).collect();
        others.sort_by_key(|other| std::cmp::Reverse(other.used.load(Ordering::Relaxed)));
        let size = |demand: &OnDemand| demand.bytes.load(Ordering::Relaxed);
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
