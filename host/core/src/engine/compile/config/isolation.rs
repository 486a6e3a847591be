//! Setting that says how the memory of an engine's cells is separated.
//!
//! An embedder (the program that uses this library) chooses an [`Isolation`] when it builds an
//! engine. `Pooled`, the default, takes the memory of each call from slots that are cleared and
//! reused, for all tenants. `Strict` takes it from the operating system and gives it back, so that
//! nothing passes from one call to the next. In both cases each call has a fresh wasmtime store;
//! the values differ in what a guest (the WebAssembly code of a tool) that escapes from it could
//! find, and in the cost of a call.

/// The isolation of an engine's cells in memory. In either case each call has a store of its own,
/// which contains nothing of other calls. The values differ in what a guest that escapes from its
/// cell could find, and in the cost of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Isolation {
    /// Cells take their memory from slots, which are cleared and used again, for all tenants. This
    /// is the fastest.
    #[default]
    Pooled,
    /// Each cell gets its memory and stack from the operating system, and gives them back. No slot
    /// passes from one cell to the next. Source: docs/threat-model.md, rule 12.
    Strict,
}
