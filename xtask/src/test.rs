//! All tests: the tour of the demo, the guests' own tests, then the workspace's, whose summary
//! comes last.

use anyhow::Result;
use xtask::guests::{BARE_TARGET, COMPONENT_TARGET, ensure_target};

use crate::demo;
use crate::shell::{cargo, root};

/// Runs them; `filter` goes to the workspace's tests, and then runs these alone.
pub(crate) fn run(filter: &[&str]) -> Result<()> {
    ensure_target(COMPONENT_TARGET)?;
    ensure_target(BARE_TARGET)?;
    if filter.is_empty() {
        // The README's first command is a test as well. What it builds is what the tests need:
        // nothing is built twice.
        demo::tour()?;
        // In two steps, because a quiet build would not show that it goes on.
        let examples = root().join("example-tools");
        cargo(&examples, &["test", "--locked", "--no-run"])?;
        cargo(&examples, &["test", "--locked", "--quiet"])?;
    }
    // The whole workspace, always: a smaller selection has other features, and would build the
    // engine a second time. All failures of a run are wanted, not the first one.
    cargo(root(), &[&["test", "--workspace", "--locked", "--no-fail-fast"], filter].concat())
}
