//! Runs cases against a component.

use std::path::{Path, PathBuf};

use toolcell::Engine;
use toolcell_author::cases::{Cases, Options, Report};

/// Runs cases against a component.
pub(crate) fn run(component: &Path, files: &[PathBuf], options: &Options) -> Report {
    let engine = Engine::builder().cache(env!("CARGO_TARGET_TMPDIR"));
    let cases = Cases::read(engine, component, files).expect("cases");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(cases.run(options)).expect("they run")
}
