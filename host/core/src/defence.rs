//! The defences by name, and the switch that takes one of them down to show that its test would
//! notice.
//!
//! In: a [`Defence`] where it is about to act. Out: whether it [`stands`]; it does, but in a test
//! of its test.
//! Invariants: only a build with debug assertions and the feature `controls` has the switch, which
//! the tests of this repository turn on, and no other package; the name is read once, so that a
//! process has one answer.
//! Source: docs/threat-model.md, section 1; SPECIFICATION.md names each one's test.

mod table;

pub use table::Defence;

/// The variable of the environment that names the defence to take down.
#[cfg(all(feature = "controls", debug_assertions))]
pub const VARIABLE: &str = "TOOLCELL_DOWN";

/// Whether a defence is up. Always, but in a process that was started to see what happens without
/// it.
#[inline]
#[must_use]
pub fn stands(defence: Defence) -> bool {
    down() != Some(defence)
}

/// The defence that is down.
#[cfg(not(all(feature = "controls", debug_assertions)))]
#[inline]
#[must_use]
pub const fn down() -> Option<Defence> {
    None
}

/// The defence that is down.
///
/// # Panics
/// When the environment names one that there is not: a test that took nothing down would prove
/// nothing.
#[cfg(all(feature = "controls", debug_assertions))]
#[must_use]
pub fn down() -> Option<Defence> {
    static DOWN: std::sync::OnceLock<Option<Defence>> = std::sync::OnceLock::new();
    *DOWN.get_or_init(|| {
        let named = std::env::var(VARIABLE).ok()?;
        let found = Defence::ALL.iter().find(|defence| defence.name() == named);
        let names =
            || Defence::ALL.iter().map(|defence| defence.name()).collect::<Vec<_>>().join(", ");
        Some(*found.unwrap_or_else(|| {
            panic!("{VARIABLE}: there is no defence `{named}`, only {}", names())
        }))
    })
}

/// What a child process of ours is told of it.
#[cfg(not(all(feature = "controls", debug_assertions)))]
#[must_use]
pub const fn inherited() -> Option<(&'static str, &'static str)> {
    None
}

/// What a child process of ours is told of it.
#[cfg(all(feature = "controls", debug_assertions))]
#[must_use]
pub fn inherited() -> Option<(&'static str, &'static str)> {
    down().map(|defence| (VARIABLE, defence.name()))
}
