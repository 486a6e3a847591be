//! The processes, files and limits of commands.

mod archives;
mod bad_input;
pub(crate) mod interrupt;
mod keys;
mod shared;
mod source_lines;
mod unprivileged;
mod worker_process;
