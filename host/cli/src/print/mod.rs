//! Output: the one printer, errors, tables, units.
//!
//! Commands build text or JSON and print it with `printer`. The other modules serve it: harmless
//! text for terminals (`clean`), exit statuses (`exit`), errors with hints (`failure`), formats of
//! providers (`format`), JSON Schemas in words (`schema`), columns (`table`), numbers with units
//! (`units`).

pub(crate) mod clean;
pub(crate) mod exit;
pub(crate) mod failure;
pub(crate) mod format;
pub(crate) mod printer;
pub(crate) mod schema;
pub(crate) mod table;
pub(crate) mod units;

pub(crate) use exit::ExitStatus;
pub(crate) use failure::{Failure, Result};
pub(crate) use format::Format;
pub(crate) use printer::{Listener, Printer};
pub(crate) use units::{Count, Size, Time, counted};
