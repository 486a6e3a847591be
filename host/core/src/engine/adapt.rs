//! Turns the exports of components that were not written for toolcell into tools.
//!
//! A component can export plain functions or a program instead of the interface `toolcell:tool`.
//! `component_kind` has the choice of the embedder (the program that uses this library) between the
//! three. `functions` makes a tool of each exported function and converts values between JSON and
//! its types. `command` runs a program with `wasi:cli/run` as one tool.
//! Not here: the search for the exports when a component is loaded (`engine/cell/exports`).

pub(super) mod command;
pub(crate) mod component_kind;
pub(super) mod functions;
