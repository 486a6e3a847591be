//! A switch for tests: disables one security control, to show that the control's test fails without
//! it.
//!
//! A control is one protection of the host, such as the limit on fuel. Code that enforces it asks
//! [`enforced`] first and skips the check if the answer is false. In a build for users the answer
//! is always true. Only a build with debug assertions and the feature `controls`, which only the
//! tests of this repository enable, reads the name of the control to disable from an environment
//! variable. It reads the variable once, so that one process always gives one answer; an unknown
//! name panics. A child process gets the variable of [`inherited`].
//!
//! Source: docs/threat-model.md, sections 1 and 2. Section 2 names the test of each control.

mod table;

pub use table::Control;

/// The environment variable that names the control to disable.
#[cfg(all(feature = "controls", debug_assertions))]
pub const VARIABLE: &str = "TOOLCELL_DOWN";

/// Returns true if a control is enforced. This is always so, except in a process that was started
/// to test the effect of its absence.
#[inline]
#[must_use]
pub fn enforced(control: Control) -> bool {
    down() != Some(control)
}

/// Returns the control that is disabled.
#[cfg(not(all(feature = "controls", debug_assertions)))]
#[inline]
#[must_use]
pub const fn down() -> Option<Control> {
    None
}

/// Returns the control that is disabled.
///
/// # Panics
/// If the environment variable names an unknown control: a test that disables nothing would prove
/// nothing.
#[cfg(all(feature = "controls", debug_assertions))]
#[must_use]
pub fn down() -> Option<Control> {
    static DOWN: std::sync::OnceLock<Option<Control>> = std::sync::OnceLock::new();
    *DOWN.get_or_init(|| {
        let named = std::env::var(VARIABLE).ok()?;
        let found = Control::ALL.iter().find(|control| control.name() == named);
        let names =
            || Control::ALL.iter().map(|control| control.name()).collect::<Vec<_>>().join(", ");
        Some(*found.unwrap_or_else(|| {
            panic!("{VARIABLE}: there is no control `{named}`, only {}", names())
        }))
    })
}

/// Returns the environment variable, name and value, with which a child process disables the same
/// control.
#[cfg(not(all(feature = "controls", debug_assertions)))]
#[must_use]
pub const fn inherited() -> Option<(&'static str, &'static str)> {
    None
}

/// Returns the environment variable, name and value, with which a child process disables the same
/// control.
#[cfg(all(feature = "controls", debug_assertions))]
#[must_use]
pub fn inherited() -> Option<(&'static str, &'static str)> {
    down().map(|control| (VARIABLE, control.name()))
}
