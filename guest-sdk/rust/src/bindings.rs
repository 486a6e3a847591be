//! The generated bindings of `wit/toolcell.wit`, the only module with `unsafe` code.
//!
//! Not here: conversion to the author's types (`tool::wire`), calls of the imports (`host`).

#![allow(missing_docs, unreachable_pub, rust_2018_idioms, reason = "generated")]
#![allow(
    clippy::all,
    clippy::unwrap_used,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]

wit_bindgen::generate!({
    path: "wit",
    world: "toolbox-with-grants",
    pub_export_macro: true,
    default_bindings_module: "toolcell_guest::bindings",
    generate_all,
});
