//! Fuzzing of tools.

use std::fs;

use toolcell::Engine;
use toolcell_author::build;
use toolcell_author::cases::{Cases, FuzzOptions, FuzzReport};

/// Builds this module and calls each of its tools this many times.
fn fuzz(module: &str, calls: usize) -> Vec<FuzzReport> {
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("tool.js"), module).expect("written");
    let built = build(place.path(), None).expect("it builds");
    let engine = Engine::builder().cache(env!("CARGO_TARGET_TMPDIR"));
    let cases = Cases::read(engine, &built.component, &[]).expect("a component");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(cases.fuzz(&FuzzOptions::new(calls), || ())).expect("it is called")
}

#[test]
fn secrets_have_values_during_fuzzing() {
    const SOURCE: &str = r#"import { secrets, tool } from "toolcell";
const needs = [
  { kind: "http", pattern: "GET https://api.example.com/v1", reason: "to look up" },
  { kind: "secret", pattern: "api_key", reason: "to authenticate there" },
  { kind: "reveal", pattern: "password", reason: "to sign" },
];
const problem = async (use) => { try { await use(); return ""; } catch (error) { return error.message; } };
const handler = async () => {
  const revealed = await problem(() => { if (secrets.reveal("password").length < 8) throw new Error("it is short"); });
  if (revealed) throw new RangeError(revealed);
  // No request is answered, but a secret can be put into it.
  const sent = await problem(() => fetch("https://api.example.com/v1", { secret: secrets.get("api_key") }));
  if (!sent || sent.includes("secret")) throw new RangeError(sent);
  return null;
};
export default tool({ name: "signs", description: "Signs.", needs, handler });
"#;
    let reports = fuzz(SOURCE, 3);
    assert_eq!((reports[0].calls, &reports[0].failures[..]), (3, &[][..]));
}

#[test]
fn fuzzing_finds_the_smallest_failing_arguments() {
    const SOURCE: &str = r#"import { tool, ToolFailure } from "toolcell";
const parameters = { type: "object", properties: {
  text: { type: "string", maxLength: 40 }, list: { type: "array", items: { type: "integer" }, maxItems: 8 } } };
const handler = ({ text = "", list = [] }) => {
  if (list.length > 2) throw new RangeError("too many");
  if (text.startsWith("x")) throw new ToolFailure("the tool's own error is none");
  return list.length;
};
export default tool({ name: "picky", description: "Counts.", parameters, handler });
"#;
    let reports = fuzz(SOURCE, 60);
    let [report] = &reports[..] else { panic!("one tool: {reports:?}") };
    let [failure] = &report.failures[..] else { panic!("one failure: {reports:?}") };
    assert_eq!((&*report.tool, report.calls), ("picky", 60));
    assert_eq!(
        (&*failure.reason, failure.arguments.to_string()),
        ("handler_raised", r#"{"list":[0,0,0]}"#.to_owned())
    );
    assert!(failure.message.contains("too many"), "{failure:?}");
}
