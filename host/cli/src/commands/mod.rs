//! The commands, one module each.

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
