//! Two tiers of compiled code: quick, so that a component answers soon, and optimised, for later
//! calls.
//!
//! With the default [`Optimise::Later`], a load compiles without the optimiser, and calls run on
//! this code until optimised code has been made in the background. An embedder (the program that
//! uses this library) can also choose optimised code at once, or never. [`CodeTier`] says which
//! code a component uses now.
//! The time of the compiler's optimiser grows with the square of the size of a function, and an
//! untrusted component can choose that size. Without the optimiser, the time grows roughly
//! linearly. Both tiers give the same answers on the same fuel (executed instructions). An
//! exception is a recursion without end: quick code has larger frames, so it ends at a smaller
//! depth. Each tier is an entry of its own in the cache.
//! Not here: how a tier is compiled (`compile/worker`), where its code is stored (`compile/cache`).

mod background;
mod current;
pub(super) mod optimise;

use serde::{Deserialize, Serialize};

pub(in crate::engine) use background::{Background, Job};
pub(super) use current::Current;

/// The time at which a component is optimised. Optimised code from the cache is always used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Optimise {
    /// In the background: the component answers calls as soon as it is compiled quickly, and faster
    /// once it is optimised.
    #[default]
    Later,
    /// While it is loaded: no call runs on slower code, and loading takes longer.
    First,
    /// Never: for components that are used once.
    Never,
}

/// The code that a component's calls run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CodeTier {
    /// Quickly compiled code, until the optimised code is ready.
    Quick,
    /// Optimised code.
    Optimised,
    /// Quickly compiled code for good: optimising failed, or was turned off.
    Unoptimised,
}
