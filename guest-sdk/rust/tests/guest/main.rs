//! Tests of the SDK for tools in Rust.

mod misuse;
mod reach;
mod tools;
mod wire;
