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
//! The model reads the doc comment. [`tool`] lists all parameters, return types and options.
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
//! strip = "debuginfo" # keeps the function names that an error shows; `true` makes the component smaller
//! ```
//! `cargo build --release --target wasm32-wasip2` writes a component. It imports the `wasi:*`
//! functions that the standard library uses for a panic, and the toolcell functions that the code
//! calls: [`log`], [`progress`], [`abort`], [`budget`], which need no grant, and [`http`],
//! [`secrets`], [`kv`], which do. For `wasm32-unknown-unknown` the result is a module. `wasm-tools
//! component new` turns it into a component without imports; a panic then has no message.
//!
//! Then `toolcell run` in the folder of the crate finds the component that was built last.
//!
//! The heap grows by a page at a time, with a call into the host each time. If a tool always needs
//! more memory than it starts with, `.cargo/config.toml` can give it that memory at the start
//! (wasip2 only; it counts from the start):
//! ```toml
//! [target.wasm32-wasip2]
//! rustflags = ["-C", "link-arg=--initial-memory=4194304"] # bytes; a multiple of 65536
//! ```
//!
//! # A call
//! Each call runs in its own cell: a new instance, with new statics, which is dropped after the
//! call. The host checks the arguments against the schema first. To ask a person, a tool returns a
//! [`Question`]; it is called again with the answer in its [`Context`].
//!
//! Report an error with `Err`: the model reads the text. A panic ends the call with
//! `handler_raised`; the error has its message and the functions of the tool that were running, if
//! the component keeps its names: see `strip` above. `std::process::exit` ends the call with
//! `handler_exit`. WASI tells the host only whether the tool exited with success, so `exit(3)` and
//! `exit(1)` look the same.
//!
//! # Grants
//! A tool can use nothing outside of its cell until an operator grants it. `#[tool(needs = […])]`
//! declares what to grant, and why. With a grant, [`http`] sends requests, into which the host puts
//! [`secrets`] that the tool does not see; [`kv`] stores values between calls; `std::fs` reads
//! granted directories, and `std::env` granted variables. Without it, they return an error that
//! names the missing grant; with `?` the model reads it. If no tool of the component declares
//! needs, each tool gets everything that the operator grants. If one does, each tool gets what it
//! declares itself, and a tool without `needs` gets nothing. `needs = []` declares that a tool
//! needs nothing.
//!
//! # Native tests
//! The crate compiles for every target, so that tools have ordinary tests: log lines go to stderr,
//! no call is aborted, and the budget is unlimited. Start with [`Context::default`].
//! [`http::answer_with`] answers requests, [`secrets::set`] provides secrets, and [`kv`] stores
//! its keys in memory, separately for each thread. [`Outcome`] shows how to check an answer.

#[doc(hidden)]
pub mod bindings;
mod context;
mod host;
mod json;
mod outcome;
mod schema;
mod tool;

pub use context::Context;
pub use host::{abort, budget, http, invoke, kv, log, progress, secrets};
pub use outcome::{Content, Failure, Halt, Link, Outcome, Output, Part, Question};
pub use serde_json::{Value, json};
#[doc = include_str!("tool.md")]
pub use toolcell_guest_macros::tool;

/// Items that the expansions of `#[tool]` and `tools!` refer to. Not for authors: they change
/// without notice.
#[doc(hidden)]
pub mod __private {
    pub use std::format;

    pub use schemars;
    pub use serde;
    pub use serde_json::json;

    pub use crate::bindings::exports::toolcell::tool::tool as abi;
    pub use crate::tool::convert::{
        Argument, Arguments, Described, IntoFailure, IntoOutcome, argument,
    };
    pub use crate::tool::definition::{Definition, Hints, Need, output, pairs};
    pub use crate::tool::{Entry, Handler, Tool, unique, wire};
}
