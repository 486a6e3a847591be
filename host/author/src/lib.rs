//! Tools for authors: creates projects ([`create`]), builds components ([`build`]), runs test cases
//! ([`cases`]), and finds the source lines of a trap ([`source_lines`]).
//!
//! ```text
//! modules → (types stripped) → evaluated once in the JavaScript runtime → snapshot → component
//! Cargo.toml → cargo → component
//! tool.py → componentize-py → component
//! tool.c → Zig or clang → core module → component
//! ```
//!
//! JavaScript and TypeScript need no other program. The author's source runs in a cell (a fresh
//! WebAssembly instance for one call) while it is built, as it does in a call, without access to
//! files and the network.

pub mod cases;
mod error;
mod languages;
mod lines;
mod project;

pub(crate) use error::Result;
pub use error::{Error, ErrorKind, Fault};
pub use lines::{SourceLine, shown_lines, source_lines};
pub use project::create::{NewProject, create};
pub use project::language::Language;
pub use project::{BuildOutput, build, build_with, component_of};
