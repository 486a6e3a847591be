//! Runs all tests: the tour of the demo, the guests' own tests, then those of the workspace, whose
//! summary comes last.

use anyhow::Result;
use xtask::guests::{BARE_TARGET, COMPONENT_TARGET, ensure_target};

use crate::demo;
use crate::shell::{cargo, root};

/// Runs all tests; with a `filter`, only the tests of the workspace that it selects.
pub(crate) fn run(filter: &[&str]) -> Result<()> {
    ensure_target(COMPONENT_TARGET)?;
    ensure_target(BARE_TARGET)?;
    if filter.is_empty() {
        // The README's first command is a test as well. It builds what the tests need, so that
        // nothing is built twice.
        demo::tour()?;
        // In two steps, because a quiet build would show no progress.
        let examples = root().join("example-tools");
        cargo(&examples, &["test", "--locked", "--no-run"])?;
        cargo(&examples, &["test", "--locked", "--quiet"])?;
    }
    // Always the whole workspace: a smaller selection has other features, and would build the
    // engine a second time. Does not stop at the first failure.
    cargo(root(), &[&["test", "--workspace", "--locked", "--no-fail-fast"], filter].concat())
}
