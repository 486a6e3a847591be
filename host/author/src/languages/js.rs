//! JavaScript and TypeScript: modules, the prebuilt runtime, a snapshot of it.

mod machine;
pub(crate) mod modules;
pub(crate) mod snapshot;
mod trim;
