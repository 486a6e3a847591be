//! Outputs of filters, and the errors of those that fail.

use serde_json::json;

use super::*;

fn run_all(filter: &str, input: Value) -> Result<Vec<Value>, String> {
    run(filter, input, &BTreeMap::new(), 1000).map(|outputs| outputs.values)
}

#[test]
fn filters_give_the_results_of_jq() {
    let people =
        json!([{"name": "Ann", "age": 31}, {"name": "Bo", "age": 25}, {"name": "Çe", "age": 31}]);
    for (filter, expected) in [
        (".[] | .name", json!(["Ann", "Bo", "Çe"])),
        ("map(.age) | add / length", json!([29])),
        (
            "group_by(.age) | map({age: .[0].age, names: map(.name)})",
            json!([[
                {"age": 25, "names": ["Bo"]}, {"age": 31, "names": ["Ann", "Çe"]}
            ]]),
        ),
        ("sort_by(.name) | first.name, (max_by(.age) | .name)", json!(["Ann", "Çe"])),
        ("map(.name | ascii_downcase | test(\"^b\")) | any", json!([true])),
        (".[0] | keys", json!([["age", "name"]])),
        ("length / 2, length * 2", json!([1.5, 6])),
        ("[.[].age] | unique", json!([[25, 31]])),
        (".[] | [.name, .age] | @csv", json!(["\"Ann\",31", "\"Bo\",25", "\"Çe\",31"])),
        ("[[\"a\\tb\", null, true] | @tsv]", json!([["a\\tb\t\ttrue"]])),
        ("[\"say \\\"hi\\\"\", 1.5] | @csv", json!(["\"say \"\"hi\"\"\",1.5"])),
        ("try error(\"no\") catch .", json!(["no"])),
        ("[limit(3; repeat(1))]", json!([[1, 1, 1]])),
        ("1, halt, 2", json!([1])),
        ("nan, infinite", json!([null, f64::MAX])),
        (
            "9007199254740993 + 0, 18446744073709551615, 3.0",
            json!([9007199254740993_u64, 18446744073709551615_u64, 3]),
        ),
        ("0 | todate", json!(["1970-01-01T00:00:00Z"])),
        ("2147483648 | todate", json!(["2038-01-19T03:14:08Z"])),
        ("\"2024-02-29T12:00:00Z\" | fromdate", json!([1709208000])),
        ("empty", json!([])),
    ] {
        assert_eq!(
            run_all(filter, people.clone()),
            Ok(expected.as_array().unwrap().clone()),
            "{filter}"
        );
    }
}

#[test]
fn filters_see_no_environment_inputs_or_clock() {
    let outside = run_all(
        "env, $ENV, [inputs], (try input catch \"none\"), (try now catch \"none\")",
        json!(1),
    );
    assert_eq!(outside, Ok(vec![json!({}), json!({}), json!([]), json!("none"), json!("none")]));
    assert_eq!(
        run_all("import \"a\" as a; a::b", json!(1)),
        Err("modules cannot be imported here at column 9".to_owned())
    );
}

#[test]
fn compile_error_has_its_position() {
    for (filter, message) in [
        (".a |", "expected term, found the end at column 5"),
        (".[ | 1", "expected closing bracket, found the end at column 7"),
        ("map(.x", "expected closing parenthesis, found the end at column 7"),
        ("", "expected term, found the end at column 1"),
        ("foo", "undefined filter `foo` at column 1"),
        ("1 | map(.; 2)", "undefined filter `map` with 2 arguments at column 5"),
        ("\"é\" | $nope", "undefined variable `$nope` at column 7"),
        ("é", "expected token, found `é` at column 1"),
        (".a\n| .b\n| nope", "undefined filter `nope` at line 3, column 3"),
        ("1 2", "expected an operator or the end, found `2` at column 3"),
        ("if . then 1", "expected else or end, found the end at column 12"),
    ] {
        assert_eq!(run_all(filter, json!(null)), Err(message.to_owned()), "{filter}");
    }
    assert!(run_all(&"[".repeat(5000), json!(1)).unwrap_err().contains("nested deeper than 100"));
}

#[test]
fn raised_error_is_returned_as_message() {
    for (filter, message) in [
        (".a", "cannot index [1] with \"a\""),
        ("1, 2, error(\"enough\")", "enough (after 2 outputs)"),
        ("error({code: 7})", "{\"code\":7}"),
        ("\"x\" | tonumber", "cannot parse \"x\" as JSON: byte offset 0: value expected"),
        ("input", "no more inputs: there is one, and `.` holds it"),
        ("{(1): 2}", "an output has the key 1, and keys must be strings"),
        ("reduce range(200) as $i (0; [.])", "an output is nested deeper than 120 levels"),
        ("\"gone\" | halt_error", "gone"),
    ] {
        assert_eq!(run_all(filter, json!([1])), Err(message.to_owned()), "{filter}");
    }
    let long = run_all(".a", json!(["x".repeat(5000)])).unwrap_err();
    assert!(long.ends_with('…') && long.chars().count() == MAX_MESSAGE + 1);
}

#[test]
fn variables_are_used_and_outputs_limited() {
    let variables =
        BTreeMap::from([("least".to_owned(), json!(2)), ("tags".to_owned(), json!(["a"]))]);
    let outputs = run(".[] | select(. >= $least) | [., $tags[]]", json!([1, 2, 3]), &variables, 10);
    assert_eq!(
        outputs,
        Ok(Outputs { values: vec![json!([2, "a"]), json!([3, "a"])], more: false })
    );
    assert_eq!(
        run("repeat(1)", json!(0), &variables, 2),
        Ok(Outputs { values: vec![json!(1), json!(1)], more: true })
    );
    assert_eq!(
        run("1, 2", json!(0), &variables, 2),
        Ok(Outputs { values: vec![json!(1), json!(2)], more: false })
    );
    let odd = BTreeMap::from([("$x".to_owned(), json!(1))]);
    assert!(run(".", json!(0), &odd, 1).unwrap_err().starts_with("`$x` cannot be the name"));
}
