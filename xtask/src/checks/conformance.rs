//! Runs the public MCP conformance suite against the example server `conformance` of
//! `toolcell-server`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::build::registries::Packages;
use crate::checks;
use crate::shell::{cargo, print, root};

/// The program of the suite.
const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";
/// The requirement sets, one for each protocol era, with the number of scenarios that must pass at
/// least: if fewer pass, the suite did not run them.
const SETS: [(&str, usize); 2] = [("2025-11-25", 30), ("2026-07-28", 37)];

/// Runs both sets. Fails if an unlisted scenario fails, or one that is listed as an expected
/// failure passes.
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
    let results = SETS.map(|set| check(&packages, url.trim(), set));
    // The fixture ends when its standard input is closed.
    drop(fixture.stdin.take());
    fixture.wait().context("the fixture does not end")?;
    results.into_iter().collect()
}

fn check(packages: &Packages, url: &str, (revision, least): (&str, usize)) -> Result<()> {
    print(&format!("MCP {revision}\n"));
    let expected = root().join(format!("host/server/conformance/{revision}.yaml"));
    let mut suite = packages.node_program(SUITE);
    suite
        .args(["server", "--url", url, "--requirements", revision, "--expected-failures"])
        .arg(expected);
    let seen = checks::run(&mut suite).context("the suite does not run")?;
    print(&format!("{}\n", seen.all_output()));
    ensure!(seen.success, "the suite for {revision} failed");
    let passed = count_passed(&seen.stdout);
    ensure!(passed >= least, "{passed} scenarios of {revision} passed; {least} are the least");
    Ok(())
}

/// Counts the scenarios of a summary that passed a check: "✓ ping: 1 passed, 0 failed".
fn count_passed(output: &str) -> usize {
    let (_, summary) = output.split_once("SUMMARY").unwrap_or_default();
    let counts = summary.lines().filter_map(|line| line.strip_prefix("✓ ")?.split_once(": "));
    counts.filter(|(_, counts)| !counts.starts_with("0 passed")).count()
}

#[cfg(test)]
mod tests {
    use super::count_passed;

    #[test]
    fn scenario_without_checks_does_not_pass() {
        let output = "✓ before: 1 passed, 0 failed\n=== SUMMARY ===\n✓ ping: 2 passed, 0 failed\n✗ caching: 1 passed, 1 failed\n\
                      ✓ tasks: 0 passed, 0 failed\n\nTotal: 3 passed, 1 failed\n";
        assert_eq!(count_passed(output), 1);
        assert_eq!(count_passed("✓ ping: 2 passed, 0 failed\n"), 0, "without a summary");
    }
}
