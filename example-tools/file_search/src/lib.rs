//! Searches a directory that an operator granted.
//!
//! `search` walks and reads a folder with `std::fs`; `pattern` matches names. Only this file knows
//! that the folder is `/data`.

mod pattern;
mod search;

use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::Deserialize;
use toolcell_guest::{Failure, tool, tools};

use search::{Matches, Query};

/// Path at which the tool sees the operator's directory.
const ROOT: &str = "/data";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Find lines that have this text.
    #[schemars(length(min = 1, max = 500))]
    text: Option<String>,
    /// Look only at files of this name. `*` is any characters, `?` is any one: `*.md`.
    #[schemars(length(min = 1, max = 200))]
    name: Option<String>,
    /// Search below this folder only, for example `reports/2026`.
    #[schemars(length(max = 1_000))]
    folder: Option<String>,
    /// Whether `A` is the same as `a`, in the text and in names.
    #[serde(default)]
    ignore_case: bool,
    /// At most so many matches.
    #[serde(default = "default_most")]
    #[schemars(range(min = 1, max = 500))]
    max_results: u32,
}

fn default_most() -> u32 {
    50
}

fn complete(args: &Args) -> Vec<String> {
    let mut wrong = Vec::new();
    if args.text.is_none() && args.name.is_none() {
        wrong.push("say what to find: a `text`, a `name`, or both".to_owned());
    }
    let inside = |folder: &String| {
        Path::new(folder).components().all(|part| matches!(part, Component::Normal(_)))
    };
    if let Some(folder) = args.folder.as_ref().filter(|folder| !inside(folder)) {
        wrong.push(format!(
            "`{folder}` is no folder below the data: write it as `reports/2026`, without `..`"
        ));
    }
    wrong
}

/// Searches the granted files: by name, or line by line for a text. Files that are no text, or
/// larger than a MiB, are found by name only.
#[tool(
    title = "File search",
    validate = complete,
    read_only,
    idempotent,
    output,
    max_execution = "30s",
    needs = [filesystem("read /data", "to search the files in it")],
)]
fn file_search(args: Args) -> Result<Matches, Failure> {
    let query = Query {
        text: args.text.as_deref(),
        name: args.name.as_deref(),
        ignore_case: args.ignore_case,
        most: args.max_results as usize,
    };
    query.search(Path::new(ROOT), args.folder.as_deref().unwrap_or_default())
}

tools![file_search];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_and_empty_queries_are_faults() {
        for (text, folder, faults) in [
            (Some("x"), None, 0),
            (Some("x"), Some("a/b"), 0),
            (None, None, 1),
            (None, Some("../etc"), 2),
            (Some("x"), Some("/etc"), 1),
        ] {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let args = Args {
                text: owned(text),
                name: None,
                folder: owned(folder),
                ignore_case: false,
                max_results: 1,
            };
            assert_eq!(complete(&args).len(), faults, "{folder:?}");
        }
    }
}
