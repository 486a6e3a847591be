//! Callback that an embedder (the program that uses this library) sets to learn that a load now
//! waits for a compilation.
//!
//! `EngineBuilder::on_compile` takes a function. A load calls it on its own thread before it
//! compiles, with the size of the component in bytes, so that a program can tell its user why it
//! takes long. The load waits for the function.
//! It is not called for code that comes from the cache, nor for compilations in the background.

use std::fmt;
use std::sync::Arc;

/// The callback, if there is one.
#[derive(Clone, Default)]
pub(in crate::engine) struct OnCompile(Option<Arc<dyn Fn(u64) + Send + Sync>>);

impl OnCompile {
    pub(in crate::engine) fn new(callback: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(callback)))
    }

    /// Calls it with the size of the component.
    pub(super) fn call(&self, component: &[u8]) {
        if let Some(callback) = &self.0 {
            callback(component.len() as u64);
        }
    }
}

impl fmt::Debug for OnCompile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnCompile").field(&self.0.is_some()).finish()
    }
}
