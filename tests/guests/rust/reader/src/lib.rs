//! A tool that reads a file passed with its call.

use std::fs;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcell_guest::{Failure, tool, tools};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file.
    #[schemars(extend("format" = "toolcell-file"))]
    file: String,
}

/// Returns the text of a file.
#[tool]
fn reader(args: Args) -> Result<String, Failure> {
    fs::read_to_string(&args.file).map_err(|error| Failure::new(format!("{}: {error}", args.file)))
}

tools![reader];
