//! Schemathesis over the OpenAPI document of `toolcell serve`: requests made from the document, whose answers must be what it
//! says, and never a failure of the server.

use anyhow::{Context as _, Result, ensure};

use crate::checks::{Checks, run as ended};
use crate::registries::Packages;
use crate::served::Served;
use crate::shell::{root, say};

/// What all requests are made from.
const SEED: &str = "1";
/// Requests made up for each operation and phase.
const EXAMPLES: &str = "30";
/// Fewer than this would mean that the document is not understood.
const LEAST: usize = 500;

/// Runs it.
pub(crate) fn run() -> Result<()> {
    let packages = Packages::install()?;
    let served = Served::start("openapi", &["acme"])?;
    let mut command = std::process::Command::new(packages.python.with_file_name("schemathesis"));
    command.arg("--config-file").arg(root().join("host/server/conformance/schemathesis.toml"));
    command.args(["run", &format!("{}/openapi.json", served.url)]);
    command.args(["--header", &format!("Authorization: Bearer {}", served.keys[0])]);
    command.args(["--seed", SEED, "--max-examples", EXAMPLES, "--phases", "coverage,fuzzing,stateful"]);
    command.args(["--continue-on-failure", "--no-color", "--generation-database", "none", "--warnings", "off"]);
    // Its own files go there too.
    let seen = ended(served.environment(command.current_dir(&served.folder)))?;
    say(&seen.stdout);
    // "Test cases:\n  1540 generated, …"
    let (_, summary) = seen
        .stdout
        .split_once("Test cases:")
        .with_context(|| format!("Schemathesis printed no summary: {}", seen.told()))?;
    let generated = summary.split_whitespace().next().and_then(|number| number.parse::<usize>().ok()).unwrap_or(0);
    let mut checks = Checks::default();
    let told = seen.told();
    checks.note(&format!("schemathesis: {generated} requests"), (!seen.success).then_some(&*told));
    ensure!(generated >= LEAST, "only {generated} requests were made; {LEAST} are the least");
    checks.finish()
}
