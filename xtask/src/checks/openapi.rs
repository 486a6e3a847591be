//! Checks the OpenAPI document of `toolcell serve`: it must be valid; external generators make
//! clients from it in Python and in TypeScript, which must read the server's answers; and
//! Schemathesis makes requests from it, whose answers must match the document.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::build::registries::Packages;
use crate::checks::served::Served;
use crate::checks::{self, Checks};
use crate::shell::{print, root};

/// The seed of all generated requests.
const SEED: &str = "1";
/// Requests that are generated for each operation and phase.
const EXAMPLES: &str = "30";
/// Requests that must be made at least: fewer would mean that the document was not understood.
const LEAST: usize = 500;

/// Raises an error for a document that is not OpenAPI 3.1.
const VALIDATE: &str = "import sys, openapi_spec_validator as v; v.validate_url(sys.argv[1])";
/// The folder with the programs that use the generated clients.
const PROGRAMS: &str = "host/server/conformance/generated";

/// Runs all checks.
pub(crate) fn run() -> Result<()> {
    let packages = Packages::install()?;
    let served = Served::start("openapi", &["acme"])?;
    let mut checks = Checks::default();
    generated(&mut checks, &packages, &served)?;
    requests(&mut checks, &packages, &served)?;
    checks.finish()
}

/// Validates the document, and runs a program with each generated client.
fn generated(checks: &mut Checks, packages: &Packages, served: &Served) -> Result<()> {
    let document = format!("{}/openapi.json", served.url);
    let mut step = |name: &str, command: &mut Command| -> Result<bool> {
        let seen = checks::run(served.environment(command))?;
        checks.note(name, (!seen.success).then(|| seen.all_output()).as_deref());
        Ok(seen.success)
    };
    let mut validator = Command::new(&packages.python);
    step("openapi-spec-validator", validator.args(["-c", VALIDATE, &document]))?;

    let mut generator = Command::new(packages.python.with_file_name("openapi-python-client"));
    generator.args([
        "generate",
        "--url",
        &document,
        "--meta",
        "none",
        "--overwrite",
        "--fail-on-warning",
    ]);
    generator.arg("--config").arg(root().join(PROGRAMS).join("python.yaml"));
    generator.args(["--output-path", "generated_client"]).current_dir(&served.folder);
    let has_python = step("openapi-python-client", &mut generator)?;

    let typescript = packages.typescript.join("generated");
    fs::create_dir_all(&typescript)?;
    for name in ["client.ts", "tsconfig.json"] {
        fs::copy(root().join(PROGRAMS).join(name), typescript.join(name))?;
    }
    let mut generator = packages.node_program("openapi-typescript/bin/cli.js");
    let has_types = step(
        "openapi-typescript",
        generator.args([&document, "--output", "generated/openapi.ts"]),
    )?;
    let mut types = packages.node_program("typescript/bin/tsc");
    let has_types = has_types && step("typescript: types", types.args(["--project", "generated"]))?;

    if has_python {
        let mut python = Command::new(&packages.python);
        python.arg(root().join(PROGRAMS).join("client.py")).env("PYTHONPATH", &served.folder);
        python.env("PYTHONDONTWRITEBYTECODE", "1");
        program(checks, "python", &mut python, served)?;
    }
    if has_types {
        let mut node = packages.node_program("../generated/client.ts");
        program(checks, "typescript", &mut node, served)?;
    }
    Ok(())
}

fn program(checks: &mut Checks, title: &str, command: &mut Command, served: &Served) -> Result<()> {
    checks.program(
        title,
        served.environment(command.arg(&served.url).env("TOOLCELL_KEY", &served.keys[0])),
    )
}

/// Runs Schemathesis and counts its requests.
fn requests(checks: &mut Checks, packages: &Packages, served: &Served) -> Result<()> {
    let mut command = Command::new(packages.python.with_file_name("schemathesis"));
    command.arg("--config-file").arg(root().join("host/server/conformance/schemathesis.toml"));
    command.args(["run", &format!("{}/openapi.json", served.url)]);
    command.args(["--header", &format!("Authorization: Bearer {}", served.keys[0])]);
    command.args([
        "--seed",
        SEED,
        "--max-examples",
        EXAMPLES,
        "--phases",
        "coverage,fuzzing,stateful",
    ]);
    command.args([
        "--continue-on-failure",
        "--no-color",
        "--generation-database",
        "none",
        "--warnings",
        "off",
    ]);
    // Schemathesis writes its own files there too.
    let seen = checks::run(served.environment(command.current_dir(&served.folder)))?;
    print(&seen.stdout);
    // "Test cases:\n  1540 generated, …"
    let (_, summary) = seen
        .stdout
        .split_once("Test cases:")
        .with_context(|| format!("Schemathesis printed no summary: {}", seen.all_output()))?;
    let generated = summary
        .split_whitespace()
        .next()
        .and_then(|number| number.parse::<usize>().ok())
        .unwrap_or(0);
    let told = seen.all_output();
    checks.note(&format!("schemathesis: {generated} requests"), (!seen.success).then_some(&*told));
    ensure!(generated >= LEAST, "only {generated} requests were made; {LEAST} are the least");
    Ok(())
}
