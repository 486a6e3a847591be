//! Tools for authors: creates projects ([`create`]), builds components ([`build`]), runs cases
//! ([`cases`]), and finds the source lines of a trap ([`source_lines`]).
//!
//! ```text
//! modules → (types stripped) → evaluated once in the JavaScript runtime → snapshot → component
//! Cargo.toml → cargo → component
//! tool.py → componentize-py → component
//! tool.c → Zig or clang → core module → component
//! ```
//!
//! JavaScript and TypeScript need no other program. The author's source runs in a cell while it is
//! built, as it does in a call, without access to files and the network.

mod c;
pub mod cases;
mod create;
mod error;
mod language;
mod lines;
mod machine;
mod modules;
mod native;
mod project;
mod python;
mod rust;
mod scratch;
mod snapshot;
mod step;
mod tools;
mod trim;
mod venv;

pub use create::{Created, create};
pub use error::{Error, ErrorKind, Fault};
pub use language::Language;
pub use lines::{SourceLine, shown_lines, source_lines};
pub use project::{Built, build, build_with, component_of};
pub use step::Step;
