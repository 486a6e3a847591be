//! `toolcell new`, `build` and `test`: from an empty folder to an answer.

use std::fs;

use serde_json::json;

use crate::place::Place;

#[test]
fn three_commands_lead_from_nothing_to_an_answer() {
    for language in ["js", "ts"] {
        let place = Place::new("");
        let made = place.typed(&["new", "greeter", "--lang", language, "--json"]).json();
        assert_eq!(made["next"][0], "toolcell build greeter", "{made}");
        let built = place.typed(&["build", "greeter", "--json"]).json();
        assert_eq!(built["tools"], json!(["greet"]), "{built}");
        let tested = place.typed(&["test", "greeter", "--json", "--junit", "report.xml"]).json();
        assert_eq!((&tested["passed"], &tested["failed"]), (&json!(2), &json!(0)), "{tested}");
        let report = fs::read_to_string(place.path().join("report.xml")).expect("a report");
        assert!(report.contains("tests=\"2\" failures=\"0\""), "{report}");
        let answer = place.typed(&["run", "greeter/greeter.wasm", "greet", "name=Ada"]);
        assert_eq!(answer.stdout, "Hello, Ada!\n", "{answer:?}");
    }
}

#[test]
fn arguments_at_which_a_tool_fails_are_found_and_told() {
    const FAULTY: &str = r#"import { tool } from "toolcell";
const parameters = { type: "object", properties: { list: { type: "array", items: { type: "integer" }, maxItems: 4 } } };
const handler = ({ list = [] }) => { if (list.length > 1) throw new RangeError("too many"); return list; };
export default tool({ name: "greet", description: "Counts.", parameters, handler });
"#;
    let place = Place::new("");
    assert_eq!(place.typed(&["new", "greeter", "--lang", "js"]).status, 0);
    let fine = place.typed(&["test", "greeter", "--fuzz", "20", "--coverage", "--json"]);
    let json = fine.json();
    assert_eq!((fine.status, &json["fuzz"][0]["calls"], &json["fuzz"][0]["failures"]), (0, &json!(20), &json!([])));
    assert_eq!(json["coverage"][0]["unseen_parameters"], json!([]), "{json}");
    fs::write(place.path().join("greeter/src/tool.js"), FAULTY).expect("a file");
    fs::write(place.path().join("greeter/cases.yaml"), "cases: [{ name: none, expect: { ok: [] } }]").expect("a file");
    let found = place.typed(&["test", "greeter", "--fuzz", "40", "--fuzz-seed", "3", "--coverage"]);
    assert_eq!(found.status, 1, "{found}");
    for told in ["1 passed, 0 failed", "no case gives    list", "RangeError: too many", "arguments: {\"list\":[0,0]}"] {
        assert!(found.stdout.contains(told), "{told}: {found}");
    }
}

#[test]
fn faults_are_told_with_their_place_and_a_hint() {
    let place = Place::new("");
    let told = |words: &[&str], status: i32, part: &str| {
        let typed = place.typed(words);
        assert_eq!(typed.status, status, "{typed:?}");
        assert!(typed.stderr.contains(part) && typed.stderr.contains("hint: "), "{words:?}: {typed:?}");
    };
    told(&["new", "x", "--lang", "cobol"], 2, "there is no language `cobol`");
    told(&["build", "nowhere"], 1, "nowhere");
    assert_eq!(place.typed(&["new", "greeter", "--lang", "js"]).status, 0);
    told(&["new", "greeter", "--lang", "js"], 1, "is not empty, and was not changed");
    fs::write(place.path().join("greeter/src/tool.js"), "let x = ;").expect("a file");
    told(&["build", "greeter"], 1, "tool.js:1:9: ");
}
