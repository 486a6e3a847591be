//! A tour.
pub(crate) fn run() -> anyhow::Result<()> {
    Ok(())
}
