//! Output: the one printer, errors, tables, units.

pub(crate) mod clean;
pub(crate) mod exit;
pub(crate) mod failure;
pub(crate) mod format;
pub(crate) mod printer;
pub(crate) mod schema;
pub(crate) mod table;
pub(crate) mod units;
