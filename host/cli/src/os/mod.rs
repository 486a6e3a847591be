//! The process: environment, signals, files, standard streams, the diagnostic log.

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
