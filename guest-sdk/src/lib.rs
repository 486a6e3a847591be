//! Write a tool for toolcell as a plain Rust function.
//!
//! ```
//! use toolcell_guest::{tool, tools};
//!
//! /// Adds two numbers.
//! #[tool]
//! fn add(a: f64, b: f64) -> f64 {
//!     a + b
//! }
//!
//! tools![add];
//!
//! # fn main() {
//! assert_eq!(add(1.0, 2.0), 3.0); // still a function, so that it is tested as one
//! # }
//! ```
//!
//! The doc comment is what the model reads. [`tool`] has all parameters, return types and options.
//!
//! # Build
//! ```toml
//! [lib]
//! crate-type = ["cdylib"]
//!
//! [dependencies]
//! toolcell-guest = "0.1"
//! serde = { version = "1", features = ["derive"] } # for structs of your own
//! schemars = "1"                                   # the same
//!
//! [profile.release]
//! opt-level = "s"
//! lto = true
//! codegen-units = 1
//! panic = "abort"
//! strip = true
//! ```
//! `cargo build --release --target wasm32-wasip2` writes a component. It imports of `wasi:*` what the standard library
//! wants for a panic, and of toolcell only what the code calls: [`log`], [`progress`], [`abort`], [`budget`], and what an
//! operator has to grant: [`http`], [`secrets`], [`kv`].
//! For `wasm32-unknown-unknown` the result is a module, which `wasm-tools component new` turns into a component that
//! imports no function at all; a panic then has no message.
//!
//! A heap grows page by page, each time with a call into the host. For a tool that is known to need more than the few
//! pages it starts with, `.cargo/config.toml` gives it memory at once (wasip2; there it counts from the start):
//! ```toml
//! [target.wasm32-wasip2]
//! rustflags = ["-C", "link-arg=--initial-memory=4194304"] # bytes; a multiple of 65536
//! ```
//!
//! # A call
//! Each call runs in a cell of its own: a fresh instance that nothing survives, statics included. The host has checked
//! the arguments against the schema before. A tool that wants to ask a person returns a [`Question`], ends, and is called
//! again with the answer in its [`Context`].
//!
//! # What a tool reaches
//! Nothing, until an operator grants it. `#[tool(needs = […])]` says what to grant, and why; then [`http`] sends requests,
//! into which the host puts [`secrets`] that the tool never sees; [`kv`] keeps what outlives the call; `std::fs` reads
//! granted directories and `std::env` granted variables. What was not granted is an error whose text says so, and `?`
//! takes it to the model. A tool that declares no needs has what its component imports and the operator grants.
//!
//! # Off wasm
//! The crate compiles for every target, so that tools have ordinary tests: log lines then go to stderr, nobody asks for
//! an abort and the budget has no end. [`Context::default`] is a context to start from. [`http::answer_with`] and
//! [`secrets::keep`] give a test what it needs, and [`kv`] keeps its keys in memory, for each thread its own.

pub mod abort;
#[doc(hidden)]
pub mod bindings;
pub mod budget;
mod context;
mod convert;
mod definition;
mod exports;
pub mod http;
mod imports;
mod json;
pub mod kv;
pub mod log;
mod outcome;
pub mod progress;
mod schema;
pub mod secrets;
mod tool;
#[doc(hidden)]
pub mod wire;

pub use context::Context;
pub use outcome::{Failure, Halt, Link, Outcome, Output, Part, Question};
pub use serde_json::{Value, json};
#[doc = include_str!("tool.md")]
pub use toolcell_guest_macros::tool;

/// What the expansions of `#[tool]` and `tools!` name. Not for authors: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use std::format;

    pub use schemars;
    pub use serde;
    pub use serde_json::json;

    pub use crate::bindings::exports::toolcell::tool::tool as abi;
    pub use crate::convert::{Arguments, Described, IntoFailure, IntoOutcome};
    pub use crate::definition::{Definition, Hints, Need, output, pairs};
    pub use crate::tool::{Entry, Handler, Tool, unique};
    pub use crate::wire;
}
