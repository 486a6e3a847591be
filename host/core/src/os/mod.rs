//! The operating system: clocks, processors, private files, signals, child processes, threads.
//!
//! The layers above use these modules wherever they need the operating system for more than a plain
//! call: exact deadlines, files that no other user can access, the start of a worker process (a
//! child that compiles components or runs tools), the priority of threads. Nothing here knows tools
//! or WebAssembly.

pub(crate) mod clock;
pub(crate) mod cores;
pub(crate) mod private;
pub(crate) mod signals;
pub(crate) mod spawn;
pub(crate) mod threads;
