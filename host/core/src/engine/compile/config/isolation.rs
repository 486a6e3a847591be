//! The isolation between the cells of an engine.

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
