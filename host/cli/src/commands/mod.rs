//! The commands, one module each.
//!
//! `main` parses the command line and calls the function of the command's module with its options,
//! the printer and the global options. A command returns its exit status, or a `Failure`, which
//! `main` prints. Commands print through the printer only: results on standard output, notes on
//! standard error.

pub(crate) mod approve;
pub(crate) mod author;
pub(crate) mod batch;
pub(crate) mod check;
pub(crate) mod explain;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod learn;
pub(crate) mod list;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod tenant;
pub(crate) mod tools;
