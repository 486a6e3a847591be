//! A switch for tests: disables one security control, to show that the control's test fails without
//! it.
//!
//! A control is one protection of the host, such as the limit on fuel (executed instructions). Code
//! that enforces it writes `enforced!(Name)`, true while the control is enforced, or `bound!(Name,
//! MAX)`, the bound that applies. In a build for users the macros expand to `true` and to the
//! bound, so the compiler sees no condition and no name. Only a build with debug assertions and the
//! feature `controls`, which only the tests of this repository enable, reads the name of the
//! control to disable from an environment variable. It reads the variable once, so that one process
//! always gives one answer; an unknown name panics. A child process gets the variable of
//! [`inherited`].
//!
//! Source: docs/threat-model.md, sections 1 and 2. Section 2 names the test of each control.

#[cfg(all(feature = "controls", debug_assertions))]
mod switch;
#[cfg(feature = "controls")]
mod table;

#[cfg(all(feature = "controls", debug_assertions))]
pub use switch::{Unbounded, VARIABLE, bound_unless_down, down, inherited, is_enforced};
#[cfg(feature = "controls")]
pub use table::Control;

/// Evaluates to true if the control is enforced: `enforced!(Fuel)`.
#[cfg(not(all(feature = "controls", debug_assertions)))]
#[doc(hidden)]
#[macro_export]
macro_rules! enforced {
    ($control:ident) => {
        true
    };
}

/// Evaluates to true if the control is enforced: `enforced!(Fuel)`.
#[cfg(all(feature = "controls", debug_assertions))]
#[doc(hidden)]
#[macro_export]
macro_rules! enforced {
    ($control:ident) => {
        $crate::controls::is_enforced($crate::controls::Control::$control)
    };
}

/// Evaluates to the bound: `len > bound!(LineBytes, MAX)`. If the control is disabled, the value is
/// the largest of its type, or `None` for an option. Arithmetic with it must not overflow.
#[cfg(not(all(feature = "controls", debug_assertions)))]
#[doc(hidden)]
#[macro_export]
macro_rules! bound {
    ($control:ident, $bound:expr) => {
        $bound
    };
}

/// Evaluates to the bound: `len > bound!(LineBytes, MAX)`. If the control is disabled, the value is
/// the largest of its type, or `None` for an option. Arithmetic with it must not overflow.
#[cfg(all(feature = "controls", debug_assertions))]
#[doc(hidden)]
#[macro_export]
macro_rules! bound {
    ($control:ident, $bound:expr) => {
        $crate::controls::bound_unless_down($crate::controls::Control::$control, $bound)
    };
}

pub use crate::{bound, enforced};

/// Returns the control that is disabled.
#[cfg(all(feature = "controls", not(debug_assertions)))]
#[must_use]
pub const fn down() -> Option<Control> {
    None
}

/// Returns the environment variable, name and value, with which a child process disables the same
/// control.
#[cfg(not(all(feature = "controls", debug_assertions)))]
#[must_use]
pub const fn inherited() -> Option<(&'static str, &'static str)> {
    None
}
