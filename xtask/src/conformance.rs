//! The public MCP conformance suite against the fixture of `toolcell-server`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::registries::Packages;
use crate::shell::{cargo, root, say};

/// The program of the suite.
const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";
/// The requirement sets: one for each era.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Runs both sets. Fails if a scenario fails that is not listed, or one passes that is.
pub(crate) fn run() -> Result<()> {
    let packages = Packages::install()?;
    cargo(root(), &["build", "--workspace", "--locked", "--example", "conformance"])?;
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let folder = own.parent().context("this program has no folder")?;
    let mut fixture = Command::new(folder.join("examples/conformance"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("the fixture does not start")?;
    let mut url = String::new();
    let output = fixture.stdout.take().context("the fixture has no output")?;
    BufReader::new(output).read_line(&mut url).context("the fixture does not say its URL")?;
    let results = REVISIONS.map(|revision| check(&packages, url.trim(), revision));
    // Closing its standard input ends it.
    drop(fixture.stdin.take());
    fixture.wait().context("the fixture does not end")?;
    results.into_iter().collect()
}

fn check(packages: &Packages, url: &str, revision: &str) -> Result<()> {
    say(&format!("MCP {revision}\n"));
    let expected = root().join(format!("host/server/conformance/{revision}.yaml"));
    let status = packages
        .node_program(SUITE)
        .args(["server", "--url", url, "--requirements", revision, "--expected-failures"])
        .arg(expected)
        .status()
        .context("the suite does not run")?;
    ensure!(status.success(), "the suite for {revision} ended with {status}");
    Ok(())
}
