//! The callback for the start of a compilation that a load waits for.
//!
//! Not here: compilations in the background, which no load waits for, and code that is in the
//! cache.

use std::fmt;
use std::sync::Arc;

use crate::engine::EngineBuilder;

/// The callback, if there is one.
#[derive(Clone, Default)]
pub(in crate::engine) struct OnCompile(Option<Arc<dyn Fn(u64) + Send + Sync>>);

impl OnCompile {
    /// Calls it with the size of the component.
    pub(super) fn call(&self, component: &[u8]) {
        if let Some(told) = &self.0 {
            told(component.len() as u64);
        }
    }
}

impl fmt::Debug for OnCompile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnCompile").field(&self.0.is_some()).finish()
    }
}

impl EngineBuilder {
    /// Calls this function when a compilation begins that the load of a component waits for, for
    /// programs that tell a person why. It is not called for code that is in the cache, nor when a
    /// component is optimised in the background. It is called on a thread of the load, which waits
    /// for it.
    ///
    /// # Units
    /// The function gets the size of the component in bytes.
    pub fn on_compile(mut self, told: impl Fn(u64) + Send + Sync + 'static) -> Self {
        self.on_compile = OnCompile(Some(Arc::new(told)));
        self
    }
}
