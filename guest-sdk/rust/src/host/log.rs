//! Writes lines to the operator's log.
//!
//! ```
//! use toolcell_guest::log;
//! let rows = 3;
//! log::info!("read {rows} rows");
//! log::line(log::Level::Warn, "the same, for a text that exists already");
//! ```
//!
//! The host limits the bytes per call; it counts and drops the lines beyond the limit. In native
//! tests the lines go to stderr.

use super::imports;

pub use crate::{
    __debug as debug, __error as error, __info as info, __trace as trace, __warn as warn,
};

/// The severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Every step.
    Trace,
    /// For debugging the tool.
    Debug,
    /// Worth knowing.
    Info,
    /// Unexpected, but the tool continues.
    Warn,
    /// Something failed.
    Error,
}

/// Logs one line without formatting.
pub fn line(level: Level, message: &str) {
    imports::log(level, message);
}

/// Logs a line at level `Trace`. Takes the arguments of `format!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __trace {
    ($($arguments:tt)+) => {
        $crate::log::line($crate::log::Level::Trace, &$crate::__private::format!($($arguments)+))
    };
}

/// Logs a line at level `Debug`. Takes the arguments of `format!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __debug {
    ($($arguments:tt)+) => {
        $crate::log::line($crate::log::Level::Debug, &$crate::__private::format!($($arguments)+))
    };
}

/// Logs a line at level `Info`. Takes the arguments of `format!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __info {
    ($($arguments:tt)+) => {
        $crate::log::line($crate::log::Level::Info, &$crate::__private::format!($($arguments)+))
    };
}

/// Logs a line at level `Warn`. Takes the arguments of `format!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __warn {
    ($($arguments:tt)+) => {
        $crate::log::line($crate::log::Level::Warn, &$crate::__private::format!($($arguments)+))
    };
}

/// Logs a line at level `Error`. Takes the arguments of `format!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __error {
    ($($arguments:tt)+) => {
        $crate::log::line($crate::log::Level::Error, &$crate::__private::format!($($arguments)+))
    };
}
