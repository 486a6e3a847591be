//! Grants for people: their text, their places in the configuration, advice.
//!
//! A grant allows a component an access, such as an HTTP host or a directory; `toolcell.toml` lists
//! them. The library decides about requests; the modules here explain its decisions for the
//! commands. They say which rule decided, in which line, which grants are missing or useless, and
//! which lines to paste. Nothing here changes a grant.

pub(crate) mod advice;
pub(crate) mod decision;
pub(crate) mod dry_run_files;
pub(crate) mod gaps;
pub(crate) mod grant_text;
pub(crate) mod offered;
pub(crate) mod rule_lines;
pub(crate) mod secrets;
pub(crate) mod uses;
