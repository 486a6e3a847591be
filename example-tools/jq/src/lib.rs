//! jq, a query language for JSON, without access to anything but its input.
//!
//! Flow: filter → `filter` (compile, run) → `value` (jq values to JSON); `complaint` words the
//! compile errors.

mod complaint;
mod filter;
mod value;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolcell_guest::{Output, tool, tools};

/// Default number of outputs: more than a model reads, far fewer than would fill the memory of the
/// cell.
const DEFAULT_LIMIT: u32 = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The filter, for example `.items[] | select(.price > 10) | {name, price}`.
    #[schemars(length(min = 1, max = 10_000))]
    filter: String,
    /// The JSON value that `.` stands for.
    input: Value,
    /// Values for `$names` in the filter, without the `$`: `{"least": 10}` for `$least`.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    variables: BTreeMap<String, Value>,
    /// At most so many outputs. The message says so when there would have been more.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100_000))]
    limit: u32,
}

fn default_limit() -> u32 {
    DEFAULT_LIMIT
}

/// Runs a jq filter over a JSON value and returns the list of all its outputs. Use it to pick,
/// reshape, group, count or sort parts of large JSON. The filter sees its input and variables only:
/// no environment, clock, files or modules.
#[tool(
    title = "jq",
    read_only,
    idempotent,
    output = Vec<Value>,
    max_execution = "5s",
    attributes = { "category": "json" }
)]
fn jq(args: Args) -> Result<Output, String> {
    let outputs = filter::run(&args.filter, args.input, &args.variables, args.limit as usize)?;
    let output = Output::new(outputs.values);
    Ok(if outputs.more {
        output
            .message(format!("stopped at the limit of {} outputs; the filter has more", args.limit))
    } else {
        output
    })
}

tools![jq];
