//! Compiled twice: quickly, so that a tool is of use at once, and optimised, for every call after that.
//!
//! The compiler's optimiser takes time that grows with the square of a function, and a stranger can write the function.
//! Without it the time stays near the size. Both give the same answers on the same fuel.
//! Not here: how a tier is compiled (`compile`), where its code is kept (`cache`).

mod background;
mod current;

use serde::{Deserialize, Serialize};

pub(super) use background::{Background, Job};
pub(super) use current::Current;

/// How a component is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    /// Without optimising.
    Quick,
    /// For speed.
    Optimised,
}

impl Tier {
    /// Its name between a compiler's process and its parent.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Optimised => "optimised",
        }
    }

    /// The tier of this name.
    pub(super) fn of(word: &str) -> Option<Self> {
        [Self::Quick, Self::Optimised].into_iter().find(|tier| tier.word() == word)
    }
}

/// When a component is optimised. Optimised code that the cache has is used in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Optimise {
    /// In the background: it answers calls as soon as it is compiled quickly, and faster once it is optimised.
    #[default]
    Later,
    /// Before it answers: no call runs on slower code, and the first one waits for the optimiser.
    First,
    /// Never: for components that are used once.
    Never,
}

/// What a component's calls run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// Quickly compiled code, until the optimised code is there.
    Quick,
    /// Optimised code.
    Optimised,
    /// Quickly compiled code for good: it could not be optimised, or was not to be.
    Unoptimised,
}
