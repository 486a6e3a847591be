//! Runs cases against a component.

use std::path::{Path, PathBuf};

use toolcell::Engine;
use toolcell_author::Error;
use toolcell_author::cases::{Cases, Options, Report};

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
