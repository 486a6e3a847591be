//! A tool that runs a script of file operations in `/data`. A test compiles the same operations
//! natively and compares the results.

mod operations;

use std::path::Path;

use toolcell_guest::{tool, tools};

/// Runs the script and returns what came of each line.
#[tool]
fn scribe(script: Vec<String>) -> Vec<String> {
    operations::run(Path::new("/data"), &script)
}

tools![scribe];
