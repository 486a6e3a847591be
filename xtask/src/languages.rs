//! Tools in Python from their source to their cases, with the componentize-py of the Python registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::registries::install_python;
use crate::shell::{cargo, root, say};

/// What is installed: the version that `host/build/src/python.rs` demands.
const REQUIREMENTS: &str = "tests/languages/requirements.txt";

/// Builds each project and runs its cases.
pub(crate) fn run() -> Result<()> {
    let place = root().join("target/languages");
    fs::create_dir_all(&place)?;
    let python = install_python(&place, &root().join(REQUIREMENTS))?;
    let programs = python.parent().context("the interpreter has no folder")?;
    cargo(root(), &["build", "--workspace", "--locked"])?;
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let toolcell = own.parent().context("this program has no folder")?.join("toolcell");

    let mut failed = Vec::new();
    let common = root().join("tests/languages");
    for project in projects(&common)?.into_iter().chain(projects(&root().join("example-tools/python"))?) {
        let name = project.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let component = place.join(format!("{name}.wasm"));
        let toolcell = |words: &[&str], path: &Path| -> Result<bool> {
            let mut command = Command::new(&toolcell);
            command.args(words).arg(path).env("PATH", crate::registries::path_with(programs)).env("HOME", &place);
            Ok(command.status().context("the command does not start")?.success())
        };
        say(&format!("{name}\n"));
        let component = component.to_string_lossy();
        let mut is_good = toolcell(&["build", "--output", &component], &project)?;
        // The cases of every language, and those of the project.
        let shared = project.starts_with(&common).then_some(common.as_path());
        for cases in shared.into_iter().chain(has_cases(&project).then_some(project.as_path())) {
            is_good = is_good && toolcell(&["test", "--component", &component], cases)?;
        }
        if !is_good {
            failed.push(name);
        }
    }
    ensure!(failed.is_empty(), "these projects failed, see above: {}", failed.join(", "));
    Ok(())
}

/// The folders in a folder.
fn projects(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} is missing", folder.display()))?;
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    Ok(folders)
}

fn has_cases(project: &Path) -> bool {
    ["cases.yaml", "cases.json", "cases"].iter().any(|name| project.join(name).exists())
}
