//! The resources that grants give access to: HTTP, directories, keys and values.
//!
//! Not here: the imports through which a guest reaches them (`engine/cell/imports`).

pub(crate) mod files;
pub(crate) mod http;
pub mod kv;
