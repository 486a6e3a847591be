//! The operating system: clocks, processors, private files, signals, child processes.

pub(crate) mod clock;
pub(crate) mod cores;
pub(crate) mod private;
pub(crate) mod signals;
pub(crate) mod spawn;
pub(crate) mod threads;
