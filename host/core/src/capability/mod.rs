//! Resources that grants give access to: HTTP requests, host directories, and stored keys and
//! values.
//!
//! A grant is a permission that an operator gives to a component. Each submodule has the resource
//! of one kind of grant, without WebAssembly: `http` sends requests, `files` opens directories and
//! counts their content, `kv` stores key-value data. The engine calls them when a guest (the
//! WebAssembly code of a tool) uses an import, after or together with the check of the call's
//! rights.
//! Not here: the functions that a guest imports (`engine/cell/imports`), and the decision what a
//! call may do (`contract::grants`).

pub(crate) mod files;
pub(crate) mod http;
pub mod kv;
