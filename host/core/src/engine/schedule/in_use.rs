//! Snapshot of the resources that an engine has in use, for metrics.
//!
//! `Engine::in_use` returns an [`InUse`]: cells (running calls) and calls that wait for one,
//! connections that are open, their limits, and the number of connections since the engine was
//! built. The values are read one after the other, so together they need not be exact. The server
//! exports them as metrics.

/// The resources that an engine has in use at one moment. The values are read one after the other,
/// not all at once.
///
/// ```
/// # fn main() -> Result<(), toolcell::Error> {
/// let engine = toolcell::Engine::builder().cells(8).build()?;
/// let now = engine.in_use();
/// assert_eq!((now.cells, now.max_cells, now.calls_waiting), (0, 8, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InUse {
    /// Cells that calls have now.
    pub cells: usize,
    /// Cells that can exist at the same time.
    pub max_cells: usize,
    /// Calls that wait for a cell.
    pub calls_waiting: usize,
    /// Connections to other hosts that requests of tools have now.
    pub connections: usize,
    /// Connections that can exist at the same time.
    pub max_connections: usize,
    /// Connections since the engine was built: one for each request that reached the point of
    /// connecting.
    pub connections_total: u64,
}
