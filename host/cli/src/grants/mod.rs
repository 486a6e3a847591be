//! Grants for people: their text, their places in the configuration, advice.

pub(crate) mod advice;
pub(crate) mod decision;
pub(crate) mod dry_run_files;
pub(crate) mod gaps;
pub(crate) mod grant_text;
pub(crate) mod offered;
pub(crate) mod rule_lines;
pub(crate) mod secrets;
pub(crate) mod unset;
pub(crate) mod uses;
