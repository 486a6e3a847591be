//! The checks of a case beyond its ending, and the published schema of case files.

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolcell_author::cases::{Options, read};
use toolcell_author::{Language, create};
use toolcell_test_guests::rows;

use crate::case_run::{project, tested};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A tool that answers with a list.
const LIST: &str = r#"import { tool } from "toolcell";
export default tool({ name: "list", description: "Lists.", handler: () => [1, "two"] });
"#;
/// A tool that ends in the way that its argument says.
const ENDS: &str = r#"import { tool, ToolFailure } from "toolcell";
const parameters = { type: "object", properties: { how: { enum: ["fails", "throws", "counts"] } }, required: ["how"] };
const handler = ({ how }) => {
  if (how === "fails") throw new ToolFailure("no city Atlantis in CH");
  if (how === "throws") throw new RangeError("too many: 17");
  return [17];
};
export default tool({ name: "list", description: "Lists.", parameters, handler });
"#;

/// Returns the rows of a table, each with the failures of its case for the tool of this module.
fn failures<T: DeserializeOwned>(module: &str, table: &str) -> Vec<(Value, T, Vec<String>)> {
    let (cases, told): (Vec<_>, Vec<_>) =
        rows::<(Value, T)>("author/kit", table).into_iter().unzip();
    let text = json!({ "cases": cases }).to_string();
    let place = project(&[("tool.js", module), ("cases.yaml", &text)]);
    let report = tested(place.path(), &Options::default());
    assert_eq!(report.cases.len(), cases.len());
    let rows = cases.into_iter().zip(told).zip(report.cases);
    rows.map(|((case, told), found)| (case, told, found.failures)).collect()
}

#[test]
fn case_over_any_part_of_its_budget_fails() {
    for (case, told, failures) in
        failures::<Vec<String>>(LIST, "case_over_any_part_of_its_budget_fails")
    {
        assert_eq!(failures.len(), told.len(), "{case}: {failures:?}");
        let is_told = |(failure, told): (&String, &String)| failure.ends_with(told);
        assert!(failures.iter().zip(&told).all(is_told), "{case}: {failures:?}");
    }
}

#[test]
fn result_not_fitting_its_schema_fails_the_case() {
    for (case, told, failures) in
        failures::<Option<String>>(LIST, "result_not_fitting_its_schema_fails_the_case")
    {
        assert_eq!(failures.first(), told.as_ref(), "{case}");
    }
}

#[test]
fn text_is_matched_against_a_regular_expression() {
    for (case, told, failures) in
        failures::<Option<String>>(ENDS, "text_is_matched_against_a_regular_expression")
    {
        assert_eq!(failures.first(), told.as_ref(), "{case}");
    }
}

#[test]
fn invalid_regular_expression_error_has_its_place() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("cases.yaml");
    fs::write(&file, "cases:\n  - name: a\n    expect: { message_matches: 'a(b' }\n")
        .expect("written");
    let error = read(&file).expect_err("it is refused").to_string();
    assert!(error.contains("`a(b` is not a regular expression: unclosed group"), "{error}");
    assert!(error.contains("cases[0].expect") && error.contains("line 3"), "{error}");
}

/// Returns the schema that `toolcell new` writes beside the cases.
fn published() -> jsonschema::Validator {
    let text = include_str!("../../src/templates/cases.schema.json");
    jsonschema::draft202012::new(&serde_json::from_str(text).expect("JSON")).expect("a schema")
}

/// Adds the files of cases below a folder.
fn below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && name != "target"
            && name != "node_modules"
        {
            below(&path, files);
        } else if name == "cases.yaml" || name == "cases.json" {
            files.push(path);
        }
    }
}

#[test]
fn every_file_of_cases_fits_the_published_schema() {
    let (schema, place) = (published(), tempfile::tempdir().expect("a folder"));
    let languages = ["js", "ts", "python", "rust", "c"];
    for name in languages {
        let language: Language = name.parse().expect("a language");
        create(&place.path().join(format!("a-{name}")), language).expect("a project");
    }
    let mut files = Vec::new();
    for folder in [
        place.path(),
        &Path::new(ROOT).join("example-tools"),
        &Path::new(ROOT).join("tests/languages"),
    ] {
        below(folder, &mut files);
    }
    assert!(files.len() > languages.len() + 10, "{files:?}");
    for file in files {
        read(&file).expect("cases");
        let text = fs::read_to_string(&file).expect("text");
        let cases: Value = serde_norway::from_str(&text).expect("YAML");
        let faults: Vec<_> = schema.iter_errors(&cases).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{}: {faults:?}", file.display());
    }
}

/// An editor marks as invalid whatever `toolcell test` refuses.
#[test]
fn invalid_case_does_not_fit_the_published_schema() {
    let (schema, place) = (published(), tempfile::tempdir().expect("a folder"));
    let file = place.path().join("cases.json");
    let is_read = |text: &str| {
        fs::write(&file, text).expect("written");
        read(&file).is_ok()
    };
    let all = r#"{"cases": [{"name": "all", "tool": "t", "arguments": {}, "context": {"session_id": "a", "request_id": "a",
        "thread_id": "a", "run_id": "a", "tenant": "a", "metadata": 1, "attempt": 1, "answer": 1, "state": 1},
        "http": [{"method": "PUT", "url": "https://a.example", "status": 201, "headers": {"a": "b"}, "json": 1}],
        "secrets": {"a": "b"}, "kv": {"a": 1}, "tools": [{"name": "b", "arguments": {}, "ok": null}],
        "now": "2026-01-31T12:00:00Z", "seed": 7, "budget": {"fuel": 1, "memory": 1, "time_ms": 1},
        "expect": {"ok": null, "ok_schema": true, "ok_contains": "a", "ok_matches": "a", "error": "a",
        "error_contains": "a", "error_matches": "a", "ask_user": "a", "halt": "a", "tool_error": "a", "refusal": "a",
        "message_contains": "a", "message_matches": "a"}}]}"#;
    let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert!(is_read(all) && schema.is_valid(&value(all)), "{:?}", schema.validate(&value(all)));
    for wrong in rows::<&str>("author/kit", "invalid_case_does_not_fit_the_published_schema") {
        assert!(!is_read(wrong), "it is read: {wrong}");
        assert!(!schema.is_valid(&value(wrong)), "it fits the schema: {wrong}");
    }
}
