//! The process: environment, signals, files, standard streams, the diagnostic log.
//!
//! The commands reach the operating system through these modules. Each hides one subject:
//! environment variables (`env`), bounded reads (`files`), signals (`interrupt`), the state
//! directory (`state`), source lines from a child process (`lines`), the log (`logging`), exported
//! spans (`traces`), systemd (`supervisor`), and two checks at the start of the process
//! (`core_dumps`, `stdout`).

pub(crate) mod core_dumps;
pub(crate) mod env;
pub(crate) mod files;
pub(crate) mod interrupt;
pub(crate) mod lines;
pub(crate) mod logging;
pub(crate) mod state;
pub(crate) mod stdout;
pub(crate) mod supervisor;
pub(crate) mod traces;
