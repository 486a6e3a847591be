//! All tests: the guests' own, then the workspace's, which builds the guests first.

use anyhow::Result;
use xtask::guests::{BARE_TARGET, COMPONENT_TARGET, ensure_target};

use crate::shell::{cargo, root};

/// Runs them; `filter` goes to the workspace's tests.
pub(crate) fn run(filter: &[&str]) -> Result<()> {
    ensure_target(COMPONENT_TARGET)?;
    ensure_target(BARE_TARGET)?;
    if filter.is_empty() {
        cargo(&root().join("example-tools"), &["test", "--locked", "--quiet"])?;
    }
    // The whole workspace, always: a smaller selection has other features, and would build the engine a second time.
    cargo(root(), &[&["test", "--workspace", "--locked"], filter].concat())
}
