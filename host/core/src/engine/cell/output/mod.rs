//! Output that a guest prints: lines for the log, and the captured standard output of a command.
//!
//! A guest (the WebAssembly code of a tool) writes to standard output and standard error through
//! WASI. `lines` sends both as log events within the log limit of the call. `captured` keeps the
//! standard output of a command, a program that runs as a tool, because it is the result of the
//! call.

pub(in crate::engine) mod captured;
pub(in crate::engine) mod lines;
