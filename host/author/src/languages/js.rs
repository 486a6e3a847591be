//! JavaScript and TypeScript: modules, the prebuilt runtime, a snapshot of it.
//!
//! A build has two steps. `modules` reads the entry file and everything that it imports, and strips
//! types. `snapshot` evaluates these modules once in a JavaScript engine that was compiled to
//! WebAssembly and is part of this crate, and stores the resulting memory in a component, so that a
//! call starts with the modules loaded. `trim` removes unused parts of that component, and
//! `machine` runs the WebAssembly modules that do this work. No other program is needed.

mod machine;
pub(crate) mod modules;
pub(crate) mod snapshot;
mod trim;
