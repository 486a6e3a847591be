//! The data of web-platform-tests for URLs: `urltestdata.json` and `setters_tests.json`, in a
//! JavaScript tool.
//!
//! Prints how many cases give what the suite says, and how many do not.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use toolcell::{CallOptions, Component, Engine, Executor, Limits, ToolCall};
use toolcell_author::build;

/// Cases of one call.
const CASES: usize = 100;

pub(crate) fn run(folder: &Path, is_verbose: bool) -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    fs::write(place.path().join("tool.js"), include_str!("urls.js"))?;
    let built = build(place.path(), None)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let component = runtime
        .block_on(Component::load(&Engine::builder().build()?, fs::read(built.component)?))?;
    let executor = Executor::new().with_limits(Limits { fuel: u64::MAX, ..Limits::default() });

    let read = |name: &str| -> Result<Value, Box<dyn Error>> {
        Ok(serde_json::from_slice(&fs::read(folder.join(name))?)?)
    };
    let parsed = read("urltestdata.json")?.as_array().cloned().unwrap_or_default();
    let mut set = Vec::new();
    for (name, cases) in read("setters_tests.json")?.as_object().into_iter().flatten() {
        for case in cases.as_array().into_iter().flatten().filter(|case| case.is_object()) {
            let mut case = case.clone();
            case["name"] = json!(name);
            set.push(case);
        }
    }
    let mut out = std::io::stdout().lock();
    for (name, cases) in [("urltestdata", parsed), ("setters_tests", set)] {
        // Texts between the cases are comments.
        let cases: Vec<_> = cases.into_iter().filter(Value::is_object).collect();
        let mut wrong = 0;
        for cases in cases.chunks(CASES) {
            let call = ToolCall::with_value("1", "urls", &json!({ "cases": cases }));
            let answer = runtime.block_on(executor.call(
                &component.tools()[0],
                call,
                CallOptions::default(),
            ));
            let value = answer.result.value().ok_or_else(|| format!("{:?}", answer.result))?;
            let judged: Vec<Option<String>> = serde_json::from_str(value.as_str())?;
            for (case, fault) in
                cases.iter().zip(judged).filter_map(|(case, fault)| Some((case, fault?)))
            {
                wrong += 1;
                if is_verbose {
                    writeln!(out, "{name}: {case}: {fault}")?;
                }
            }
        }
        writeln!(out, "{name}: {} cases right, {wrong} wrong", cases.len() - wrong)?;
    }
    Ok(())
}
