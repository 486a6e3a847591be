//! The switch: an environment variable names the control that this process does not enforce.

use std::sync::OnceLock;
use std::time::Duration;

use super::Control;

/// The environment variable that names the control to disable.
pub const VARIABLE: &str = "TOOLCELL_DOWN";

/// A type of bounds.
pub trait Unbounded {
    /// The value that bounds nothing.
    const UNBOUNDED: Self;
}

macro_rules! unbounded {
    ($($bound:ty),*) => {
        $(impl Unbounded for $bound {
            const UNBOUNDED: Self = Self::MAX;
        })*
    };
}

unbounded!(u32, u64, usize, Duration);

impl<T> Unbounded for Option<T> {
    const UNBOUNDED: Self = None;
}

/// Returns true if a control is enforced. This is always so, except in a process that was started
/// to test the effect of its absence.
#[inline]
#[must_use]
pub fn is_enforced(control: Control) -> bool {
    down() != Some(control)
}

/// Returns the bound if the control is enforced.
#[inline]
#[must_use]
pub fn bound_unless_down<T: Unbounded>(control: Control, bound: T) -> T {
    if is_enforced(control) { bound } else { T::UNBOUNDED }
}

/// Returns the control that is disabled.
///
/// # Panics
/// If the environment variable names an unknown control: a test that disables nothing would prove
/// nothing.
#[must_use]
pub fn down() -> Option<Control> {
    static DOWN: OnceLock<Option<Control>> = OnceLock::new();
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
#[must_use]
pub fn inherited() -> Option<(&'static str, &'static str)> {
    down().map(|control| (VARIABLE, control.name()))
}
