//! How far a cell is kept from the cells before it.

/// What an engine's cells are made of. Either way each call has a store of its own, and nothing of another call's in it:
/// they differ in what would be found by who breaks out of a cell, and in what a cell costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Isolation {
    /// Memory from slots that are used again, by the cells of any tenant, each cleared before. The quickest.
    #[default]
    Pooled,
    /// Memory and stack of each cell's own, from the operating system and back to it. No slot passes from one cell to the
    /// next. Source: docs/threat-model.md, rule 12.
    Strict,
}
