//! `toolcell dev`: builds and tests a project after each change.
//!
//! [`dev`] takes the folder of a project. It builds, runs the project's test cases (calls with
//! expected endings), prints the result, and waits until a file changes; then it starts again. It
//! polls the modification time and size of the files; components and the folders that builds write
//! to are not watched. A failed build is printed and does not end the command. It runs until a
//! signal ends the process.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use toolcell::component::ComponentKind;
use toolcell_author::cases::{self, Options};

use super::{built, test};
use crate::args::DevArgs;
use crate::host::Cli;
use crate::print::{ExitStatus, Result};

/// Folders that builds write to and that hold no source.
const SKIPPED: [&str; 3] = ["target", "node_modules", ".git"];
/// The most levels of folders that are searched.
const DEPTH: usize = 16;

/// The state of a file that shows a change: its modification time in seconds and nanoseconds, and
/// its size.
type Mark = (i64, i64, u64);

/// Builds and tests now and after each change. A signal ends the process.
pub(crate) async fn dev(cli: &Cli, args: &DevArgs) -> Result<ExitStatus> {
    let printer = &cli.printer;
    // An error here: without a project there is nothing to watch.
    toolcell_author::component_of(&args.project)?;
    loop {
        // Taken before the build, so that a change during the build starts the next one.
        let seen = marks(&args.project);
        if let Err(failure) = build_and_test(cli, &args.project).await {
            printer.failure(&failure);
        }
        printer.note("waiting for a change; Ctrl-C ends");
        while marks(&args.project) == seen {
            tokio::time::sleep(args.watch_interval.0).await;
        }
    }
}

async fn build_and_test(cli: &Cli, project: &Path) -> Result<()> {
    let printer = &cli.printer;
    let built = built(printer, project, None)?;
    printer.labelled("built", built.component.to_string_lossy());
    let files = cases::find(project)?;
    let report =
        test::run(cli, (&built.component, ComponentKind::Tools), &files, &Options::default())
            .await?;
    test::show(printer, &report)
}

/// Returns the files of the project, without components.
fn marks(project: &Path) -> BTreeMap<PathBuf, Mark> {
    let mut marks = BTreeMap::new();
    let mut open = vec![(project.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        // A folder that was removed in the meantime has no files.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(found) = entry.metadata() else { continue };
            let is_skipped = SKIPPED.iter().any(|skipped| name == *skipped);
            if found.is_dir() && !is_skipped && depth < DEPTH {
                open.push((path, depth + 1));
            } else if found.is_file() && !name.to_string_lossy().contains(".wasm") {
                marks.insert(path, (found.mtime(), found.mtime_nsec(), found.len()));
            }
        }
    }
    marks
}
