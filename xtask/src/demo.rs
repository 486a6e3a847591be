//! The first command of the README: builds what is missing, then gives a tour of good and hostile
//! tools.
//!
//! Invariants: the tour runs the real command on real components; a step with another ending than
//! its table says fails the demo.

mod fixture;
mod steps;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use xtask::guests::{COMPONENT_TARGET, build, ensure_target};

use crate::shell::{cargo, guest_workspaces, print, root};
use fixture::{Fixture, TOKEN, TOKEN_VARIABLE};
use steps::{SERVER, STATE, STEPS, Step, StepAccess};

/// Lines that are shown of an approval: the component, its imports, the beginning of its first
/// tool.
const APPROVED_LINES: usize = 9;

/// Builds, runs the tour, and prints how to go on.
pub(crate) fn run() -> Result<()> {
    tour()?;
    let tour = DemoPaths::new()?;
    print(&format!(
        "Yours to try:\n\n  {} inspect {}\n\nNext: README.md, \"First tool\".\n",
        display_path(&tour.toolcell),
        display_path(&tour.component("calculator")?),
    ));
    Ok(())
}

/// Builds and runs the tour.
pub(crate) fn tour() -> Result<()> {
    print("1/3  The WebAssembly target and the example tools\n");
    ensure_target(COMPONENT_TARGET)?;
    for workspace in guest_workspaces() {
        build(&workspace, &[], COMPONENT_TARGET)?;
    }
    print(
        "2/3  toolcell itself; the first time this compiles the WebAssembly engine, which takes some minutes\n",
    );
    // Builds the whole workspace with the features that the tests need, so that nothing is built
    // twice.
    cargo(root(), &["build", "--workspace", "--locked"])?;
    print("3/3  The tour\n");
    DemoPaths::new()?.run()
}

/// The paths of the command and of its cache, which also holds the key that seals states.
struct DemoPaths {
    toolcell: PathBuf,
    cache: PathBuf,
}

impl DemoPaths {
    fn new() -> Result<Self> {
        let own = std::env::current_exe().context("where am I?")?;
        let folder = own.parent().context("a folder")?;
        let toolcell = folder.join("toolcell").with_extension(std::env::consts::EXE_EXTENSION);
        ensure!(toolcell.is_file(), "{} was not built", toolcell.display());
        Ok(Self { toolcell, cache: folder.join("demo-cache") })
    }

    /// Runs all steps; fails at the first with another ending than expected.
    fn run(&self) -> Result<()> {
        let start = Instant::now();
        let world =
            Fixture::new(&self.cache.with_file_name("demo-world"), |name| self.component(name))?;
        let mut state = None;
        for step in STEPS {
            state = self.step(step, state, &world)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        print(&format!(
            "\n{} calls in {seconds:.1} s, each in a cell of its own, and the host is well.\n",
            STEPS.len()
        ));
        Ok(())
    }

    /// Returns the command with the options that this step needs.
    fn command(&self, step: &Step, world: &Fixture) -> Command {
        let mut command = Command::new(&self.toolcell);
        command
            .arg("--cache-dir")
            .arg(&self.cache)
            .env("XDG_STATE_HOME", &self.cache)
            .env(TOKEN_VARIABLE, TOKEN);
        if step.access != StepAccess::Nothing {
            command.arg("--config").arg(&world.config).arg("--state-dir").arg(&world.state);
        }
        command
    }

    fn component(&self, name: &str) -> Result<PathBuf> {
        guest_workspaces()
            .iter()
            .map(|workspace| {
                workspace
                    .join("target")
                    .join(COMPONENT_TARGET)
                    .join("release")
                    .join(format!("{name}.wasm"))
            })
            .find(|path| path.is_file())
            .with_context(|| format!("{name}.wasm was not built"))
    }

    /// Runs one step as a person would type it, and prints it. Returns the state of its question,
    /// which the next step may pass back.
    fn step(&self, step: &Step, state: Option<String>, world: &Fixture) -> Result<Option<String>> {
        let component = self.component(step.component)?;
        let state = state.as_deref().unwrap_or_default();
        let words = step.arguments.iter().map(|&word| if word == STATE { state } else { word });
        let words: Vec<String> = words.map(|word| word.replace(SERVER, &world.server)).collect();
        let arguments: Vec<&str> =
            [step.tool].into_iter().chain(words.iter().map(String::as_str)).collect();
        // With a grant, a component is called by its name in the configuration.
        let file = format!("{}.wasm", step.component);
        let (typed, named) = match step.access {
            StepAccess::Nothing => (file.as_str(), component.as_os_str()),
            StepAccess::Granted | StepAccess::Approved => (step.component, step.component.as_ref()),
        };
        print(&format!("\n-- {}\n", step.title));
        if step.access == StepAccess::Approved {
            print(&format!("$ toolcell approve {typed} --yes\n"));
            let output = self.command(step, world).args(["approve", typed, "--yes"]).output()?;
            let shown = String::from_utf8_lossy(&output.stdout)
                .replace(&component.display().to_string(), &file);
            for line in shown.lines().take(APPROVED_LINES).chain(["  …"]) {
                print(&format!("   {line}\n"));
            }
            ensure!(output.status.success(), "`{typed}` should have been approved");
        }
        print(&format!("$ toolcell run {typed} {}\n", quoted(&arguments)));
        let mut command = self.command(step, world);
        // The options for the tour's own configuration and state are left out of hints.
        let own =
            format!(" --config {} --state-dir {}", world.config.display(), world.state.display());
        let output = command.arg("run").arg(named).args(&arguments).arg("--usage").output()?;
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(text)
                .replace(&own, "")
                .replace(&component.display().to_string(), &file)
                .replace(&world.config.display().to_string(), "toolcell.toml")
                .replace(&self.toolcell.display().to_string(), "toolcell");
            for line in text.lines() {
                print(&format!("   {line}\n"));
            }
        }
        let code = output.status.code();
        print(&format!("   exit code {}\n", code.map_or("none".into(), |code| code.to_string())));
        ensure!(!String::from_utf8_lossy(&output.stdout).contains(TOKEN), "the secret came back");
        ensure!(
            code == Some(step.exit),
            "\"{}\" should have ended with exit code {}",
            step.title,
            step.exit
        );
        let printed = String::from_utf8_lossy(&output.stderr);
        Ok(printed
            .split_whitespace()
            .skip_while(|word| *word != "--state")
            .nth(1)
            .map(str::to_owned))
    }
}

/// Returns a path as a user in the repository would type it.
fn display_path(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn quoted(arguments: &[&str]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.=".contains(c);
    let quote = |word: &&str| {
        if word.chars().all(plain) {
            (*word).to_owned()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    arguments.iter().map(quote).collect::<Vec<_>>().join(" ")
}
