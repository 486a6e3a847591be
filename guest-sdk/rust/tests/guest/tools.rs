//! The expansion of `#[tool]` for functions of every form, called as the exports call them.

use std::time::Duration;

use toolcell_guest::__private::{Definition, Entry, Hints, Need, Tool};
use toolcell_guest::{
    Context, Failure, Halt, Outcome, Output, Part, Question, Value, json, tool, tools,
};

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Sum {
    /// The total
    total: f64,
}

/// Adds two numbers.
///
/// As `a + b`.
#[tool]
fn add(
    /// The first one
    a: f64,
    #[schemars(range(min = 0))] b: Option<f64>,
    #[serde(default)] _unit: String,
) -> f64 {
    a + b.unwrap_or_default()
}

fn not_equal(a: &i32, b: &u8) -> Vec<String> {
    if *a == i32::from(*b) { vec![format!("a and b are both {a}")] } else { Vec::new() }
}

/// Everything an option can say.
#[tool(
    name = "sum-of_2",
    title = "Sum",
    validate = not_equal,
    visible = |context| context.tenant() == Some("acme") && context.arguments().is_none_or(|given| given["a"] != 13),
    attributes = { "team": "math", "level": [1, 2] },
    max_execution = "2s",
    output,
    read_only,
    idempotent,
    needs = [http("GET https://a.example/v1", "to ask"), kv("write *", "to remember")],
)]
fn sum(a: i32, b: u8) -> Result<Sum, String> {
    Ok(Sum { total: f64::from(a) + f64::from(b) })
}

#[tool(description = "Nothing at all.")]
fn nothing() {}

#[tool(description = "Nothing of the host.", title = "Alone", needs = [])]
fn alone() {}

/// Echoes any object.
#[tool]
fn echo(args: Value, context: Context) -> Result<Value, Failure> {
    Ok(json!({ "args": args, "call": context.call_id() }))
}

/// Fails in every way.
#[tool(open_world, destructive)]
fn fail(kind: String) -> Result<(), Failure> {
    if kind == "number" {
        kind.parse::<i32>()?;
    }
    Err(Failure::new("busy").data(json!({ "kind": kind })).retry_after(Duration::from_secs(1)))
}

/// Asks, then ends.
#[tool(output = Sum)]
fn ask(Sum { total }: Sum, context: &Context) -> Result<Outcome, Failure> {
    let Some(answer) = context.answer::<bool>() else {
        return Ok(Question::new("Sure?")
            .options(["yes", "no"])
            .answer_schema::<bool>()
            .state(total)
            .into());
    };
    let state: f64 = context.state().unwrap_or_else(|| Err(Failure::new("no state")))?;
    Ok(if answer? {
        Halt::new("done", state).into()
    } else {
        Output::new(state).part(Part::text("kept")).into()
    })
}

/// Returns what cannot be JSON.
#[tool]
fn unwritable() -> std::collections::BTreeMap<Vec<u8>, u8> {
    [(vec![1], 1)].into()
}

mod elsewhere {
    use toolcell_guest::tool;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Hidden {
        r#type: String,
    }

    /// Is public and takes a type that is not.
    #[tool]
    #[expect(private_interfaces, reason = "what the test is about")]
    pub(crate) fn private_arguments(args: Hidden) -> String {
        args.r#type
    }

    /// Is private.
    #[tool]
    fn quiet(text: String) -> String {
        text.to_lowercase()
    }

    macro_rules! doubles {
        ($name:ident, $ty:ty) => {
            /// Doubles.
            #[tool(output)]
            pub(crate) fn $name(value: $ty, r#type: Option<$ty>) -> Result<$ty, String> {
                Ok(value * r#type.unwrap_or(2 as $ty))
            }
        };
    }

    doubles!(double, u32);
}

tools![
    add,
    sum,
    nothing,
    echo,
    fail,
    ask,
    unwritable,
    elsewhere::private_arguments,
    elsewhere::double,
    elsewhere::quiet
];

fn definition<T: Tool>() -> Definition {
    (T::ENTRY.definition)()
}

fn run<T: Tool>(arguments: &Value) -> Outcome {
    run_in::<T>(arguments, Context::default())
}

fn run_in<T: Tool>(arguments: &Value, context: Context) -> Outcome {
    let entry: Entry = T::ENTRY;
    (entry.execute)(&arguments.to_string(), context)
}

/// Returns the message of the failure of a call, or nothing if it does not fail.
fn message<T: Tool>(arguments: &Value) -> String {
    run::<T>(arguments).failure().map(Failure::message).unwrap_or_default().to_owned()
}

#[test]
fn function_parameters_become_tool_arguments() {
    let add_ = definition::<add>();
    assert_eq!((add_.name, add_.description), ("add", "Adds two numbers.\n\nAs `a + b`."));
    let expected = json!({
        "type": "object",
        "properties": {
            "a": { "description": "The first one", "type": "number" },
            "b": { "type": ["number", "null"], "minimum": 0 },
            "unit": { "type": "string", "default": "" },
        },
        "required": ["a"],
        "additionalProperties": false,
    });
    assert_eq!(add_.parameters, Some(expected));
    assert_eq!(add_.output, None);
    assert_eq!(run::<add>(&json!({ "a": 1, "b": 2, "unit": "m" })).value(), Some(json!(3.0)));
    let message = message::<add>(&json!({ "a": 1, "unknown": [] }));
    assert!(message.contains("unknown field `unknown`"), "{message}");
}

#[test]
fn tool_function_stays_callable() {
    assert!((add(1.0, None, String::new()) - 1.0).abs() < f64::EPSILON);
}

#[test]
fn options_reach_the_definition() {
    let sum = definition::<sum>();
    assert_eq!(sum.name, "sum-of_2");
    let attributes = [("level".to_owned(), json!([1, 2])), ("team".to_owned(), json!("math"))];
    assert_eq!(sum.attributes, attributes);
    assert_eq!(sum.extensions, [("title", json!("Sum"))]);
    assert_eq!(sum.max_execution_ms, Some(2_000));
    assert_eq!(sum.hints, Hints { read_only: true, idempotent: true, ..Hints::default() });
    assert_eq!(
        sum.needs,
        [
            Need { kind: "http", pattern: "GET https://a.example/v1", reason: "to ask" },
            Need { kind: "kv", pattern: "write *", reason: "to remember" },
        ]
    );
    // `needs = []` is declared by an extension; without `needs` there is none.
    let alone = definition::<alone>();
    let extensions = vec![("title", json!("Alone")), ("needs", json!([]))];
    assert_eq!((alone.needs, alone.extensions), (vec![], extensions));
    assert!(definition::<nothing>().extensions.is_empty());
    assert!(sum.validates && sum.hides);
    assert!(!definition::<add>().validates && !definition::<add>().hides);
    let total = json!({ "total": { "description": "The total", "type": "number" } });
    let expected = json!({ "type": "object", "properties": total, "required": ["total"] });
    assert_eq!(sum.output, Some(expected.clone()));
    assert_eq!(definition::<ask>().output, Some(expected));
    let hints = Hints { open_world: true, destructive: true, ..Hints::default() };
    assert_eq!(definition::<fail>().hints, hints);
    assert_eq!(
        sum.parameters.map(|schema| schema["properties"].clone()),
        Some(json!({
            "a": { "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX },
            "b": { "type": "integer", "minimum": 0, "maximum": 255 },
        }))
    );
}

#[test]
fn tool_takes_no_parameters_or_any_object() {
    let none = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    assert_eq!(definition::<nothing>().parameters, Some(none));
    assert_eq!(run::<nothing>(&json!({})).value(), Some(Value::Null));
    assert_eq!(definition::<echo>().parameters, None);
    let context = Context::default().with_call_id("c1");
    let expected = json!({ "args": { "x": 1 }, "call": "c1" });
    assert_eq!(run_in::<echo>(&json!({ "x": 1 }), context).value(), Some(expected));
}

/// Counts in every size.
#[tool]
fn count(
    a: i64,
    b: u64,
    c: Option<u32>,
    d: usize,
    #[serde(flatten)] rest: std::collections::BTreeMap<String, i16>,
) {
    let _ = (a, b, c, d, rest);
}

#[test]
fn integers_have_bounds_and_a_flat_map_takes_the_rest() {
    let expected = json!({
        "type": "object",
        "properties": {
            "a": { "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX },
            "b": { "type": "integer", "minimum": 0, "maximum": u64::MAX },
            "c": { "type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX },
            "d": { "type": "integer", "minimum": 0, "maximum": usize::MAX },
        },
        "required": ["a", "b", "d"],
        "additionalProperties": { "type": "integer", "minimum": i16::MIN, "maximum": i16::MAX },
    });
    assert_eq!(definition::<count>().parameters, Some(expected));
    assert_eq!(run::<count>(&json!({ "a": 1, "b": 2, "d": 3, "e": 4 })).value(), Some(Value::Null));
}

#[test]
fn validate_and_visible_run_the_authors_checks() {
    let validate = |text| (<sum as Tool>::ENTRY.validate)(text);
    assert_eq!(validate(r#"{"a":1,"b":2}"#), Vec::<String>::new());
    assert_eq!(validate(r#"{"a":1,"b":1}"#), ["a and b are both 1"]);
    let expected = "the arguments do not fit this tool: missing field `b`";
    assert!(validate(r#"{"a":1}"#)[0].starts_with(expected));
    let visible = <sum as Tool>::ENTRY.visible;
    let acme = || Context::default().with_tenant("acme");
    assert!(!visible(&Context::default()));
    assert!(visible(&acme()));
    assert!(visible(&acme().with_arguments(json!({"a": 1, "b": 2}))));
    assert!(!visible(&acme().with_arguments(json!({"a": 13, "b": 2}))));
}

#[test]
fn failures_carry_message_details_and_retry() {
    let told = message::<fail>(&json!({ "kind": "number" }));
    assert_eq!(told, "invalid digit found in string");
    let outcome = run::<fail>(&json!({ "kind": "x" }));
    let failure = outcome.failure().expect("a failure");
    assert_eq!(failure.details(), Some(json!({ "kind": "x" })));
    assert_eq!(failure.is_retryable(), Some(true));
    let told = message::<fail>(&json!({ "kind": 1 }));
    let expected = "the arguments do not fit this tool: invalid type: integer `1`";
    assert!(told.starts_with(expected), "{told}");
    let told = message::<unwritable>(&json!({}));
    assert_eq!(told, "the tool's result cannot be written as JSON: key must be a string");
}

#[test]
fn question_is_asked_and_resumed_with_answer() {
    let arguments = json!({ "total": 2.5 });
    let asked = run::<ask>(&arguments);
    let question = asked.question().expect("a question");
    assert!(asked.halt().is_none() && asked.value().is_none() && asked.failure().is_none());
    assert_eq!(question.text(), "Sure?");
    assert_eq!(question.offered(), Some(json!(["yes", "no"])));
    let resumed =
        |answer: Value| Context::default().with_answer(answer).with_state(question.left_state());
    let ended = run_in::<ask>(&arguments, resumed(json!(true)));
    let halt = ended.halt().expect("a halt");
    assert!(ended.question().is_none());
    assert_eq!((halt.reason(), halt.result()), ("done", Some(json!(2.5))));
    assert_eq!(run_in::<ask>(&arguments, resumed(json!(false))).value(), Some(json!(2.5)));
    let wrong = run_in::<ask>(&arguments, resumed(json!("maybe")));
    assert!(wrong.failure().is_some_and(|failure| {
        failure.message().starts_with("the answer has an unexpected shape")
    }));
}

#[test]
fn test_context_has_defaults_and_given_values() {
    let context = Context::default();
    assert_eq!((context.attempt(), context.remaining(), context.call_id()), (1, Duration::MAX, ""));
    assert!(
        context.answer::<Value>().is_none()
            && context.metadata().is_none()
            && context.session_id().is_none()
    );
    let context = context.with_metadata(json!({ "total": 1 })).with_extension("locale", "de");
    assert!(context.metadata_as::<Sum>().is_some_and(|sum| sum.is_ok_and(|sum| sum.total > 0.0)));
    assert!(context.metadata_as::<bool>().is_some_and(|wrong| wrong.is_err()));
    assert_eq!(context.extension("locale"), Some(json!("de")));
    assert_eq!(context.extension("colour"), None);
}

#[test]
fn private_function_can_be_a_tool() {
    assert_eq!(run::<elsewhere::quiet>(&json!({ "text": "A" })).value(), Some(json!("a")));
}

#[test]
fn tools_can_come_from_modules_and_macros() {
    let value = run::<elsewhere::private_arguments>(&json!({ "type": "t" })).value();
    assert_eq!(value, Some(json!("t")));
    let value = run::<elsewhere::double>(&json!({ "value": 4, "type": 3 })).value();
    assert_eq!(value, Some(json!(12)));
    assert!(definition::<elsewhere::double>().output.is_some());
}
