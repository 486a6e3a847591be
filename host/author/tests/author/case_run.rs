//! Projects from files, and runs of their cases.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toolcell::Engine;
use toolcell_author::cases::{Cases, Options, Report, find};
use toolcell_author::{Error, build};

/// Returns a folder with these files.
pub(crate) fn project(files: &[(&str, &str)]) -> TempDir {
    let place = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    place
}

/// Builds a project and runs its cases.
pub(crate) fn tested(project: &Path, options: &Options) -> Report {
    let built = build(project, None).expect("it builds");
    run(&built.component, &find(project).expect("cases"), options)
}

/// Checks that all cases pass. Returns their number.
#[track_caller]
pub(crate) fn all_passed(report: &Report) -> usize {
    let failures: Vec<_> = report.cases.iter().filter(|case| !case.passed).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    report.passed
}

/// Runs cases against a component.
pub(crate) fn run(component: &Path, files: &[PathBuf], options: &Options) -> Report {
    try_run(component, files, options).expect("they run")
}

/// As [`run`], and returns the error of cases that cannot be run.
pub(crate) fn try_run(
    component: &Path,
    files: &[PathBuf],
    options: &Options,
) -> Result<Report, Error> {
    let engine = Engine::builder().cache(env!("CARGO_TARGET_TMPDIR"));
    let cases = Cases::read(engine, component, files).expect("cases");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(cases.run(options))
}
