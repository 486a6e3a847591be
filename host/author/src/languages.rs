//! The languages that a tool can be written in: each one's way from sources to a component.

pub(crate) mod c;
pub(crate) mod js;
mod native;
pub(crate) mod python;
pub(crate) mod rust;
mod scratch;
pub(crate) mod step;
pub(crate) mod tools;
pub(crate) mod venv;
