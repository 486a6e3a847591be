//! A tool that runs a script of file operations in `/data`. The same operations are compiled for
//! the machine itself, to be compared.

mod operations;

use std::path::Path;

use toolcell_guest::{tool, tools};

/// Runs the script and returns what came of each line.
#[tool]
fn scribe(script: Vec<String>) -> Vec<String> {
    operations::run(Path::new("/data"), &script)
}

tools![scribe];
