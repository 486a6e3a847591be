//! `toolcell batch` with documents of providers, and with unknown tools.

use serde_json::{Value, json};

use crate::typed::{CommandResult, fed};

const HEAD: [&str; 5] = ["batch", "calculator.wasm", "hello.wasm", "--calls", "-"];

fn batch(document: &Value, words: &[&str]) -> CommandResult {
    fed(&[&HEAD[..], words].concat(), document.to_string().as_bytes())
}

/// Whole responses and bare lists, each answered in its own provider's form.
#[test]
fn provider_form_is_detected_and_answered() {
    let arguments = r#"{"expression": "6 * 7"}"#;
    let input = json!({"expression": "6 * 7"});
    let function = json!({"id": "c1", "type": "function", "function": {"name": "calculator", "arguments": arguments}});
    let item = json!({"type": "function_call", "call_id": "c1", "name": "calculator", "arguments": arguments});
    let block = json!({"type": "tool_use", "id": "c1", "name": "calculator", "input": input});
    let part = json!({"functionCall": {"id": "c1", "name": "calculator", "args": input}});
    let request = json!({"jsonrpc": "2.0", "id": "c1", "method": "tools/call",
        "params": {"name": "calculator", "arguments": input}});
    let event = json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c1", "toolCallName": "calculator", "delta": arguments});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [function]});
    for (format, whole, list, pointer) in [
        (
            "openai",
            json!({"choices": [{"message": message}]}),
            json!([function]),
            "/messages/0/tool_call_id",
        ),
        (
            "openai-responses",
            json!({"object": "response", "output": [item]}),
            json!([item]),
            "/messages/0/call_id",
        ),
        (
            "anthropic",
            json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hm"}, block]}),
            json!([block]),
            "/messages/0/content/0/tool_use_id",
        ),
        (
            "gemini",
            json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]}),
            json!([part]),
            "/messages/0/parts/0/functionResponse/id",
        ),
        ("mcp", request.clone(), json!([request]), "/messages/0/_meta/toolcell~1tool_call_id"),
        (
            "agui",
            json!({"role": "assistant", "toolCalls": [function]}),
            json!([event]),
            "/messages/0/toolCallId",
        ),
    ] {
        for document in [whole, list] {
            for words in [
                &["-q", "--format", format][..],
                &["-q", "--format", format, "--calls-format", format],
            ] {
                // AG-UI and OpenAI write a bare list in the same form, and the library reads MCP
                // requests one a line.
                let shown = batch(&document, words);
                assert_eq!((shown.status, shown.stderr.as_str()), (0, ""), "{document}\n{shown}");
                assert_eq!(
                    shown.json().pointer(pointer),
                    Some(&json!("c1")),
                    "{document}\n{shown}"
                );
                assert!(shown.stdout.contains("42"), "{shown}");
            }
        }
    }
}

/// Arguments that no JSON tree can hold are refused with the call's id, and the other calls of the
/// document run.
#[test]
fn bad_arguments_do_not_stop_other_calls() {
    let good = r#"{"type": "tool_use", "id": "b", "name": "calculator", "input": {"expression": "6 * 7"}}"#;
    for bad in [r#"{"expression": 1e400}"#, r#"{"expression": "\ud83d"}"#] {
        let call =
            format!(r#"{{"type": "tool_use", "id": "a", "name": "calculator", "input": {bad}}}"#);
        let document =
            format!(r#"{{"type": "message", "role": "assistant", "content": [{call},{good}]}}"#);
        let shown = fed(&[&HEAD[..], &["-q"]].concat(), document.as_bytes());
        let told = shown.json();
        let messages: Vec<_> = told["messages"].as_array().expect("messages").iter().collect();
        let ids: Vec<_> = messages
            .iter()
            .map(|it| (it["tool_call_id"].as_str(), it["is_error"] == true))
            .collect();
        assert_eq!(
            (shown.status, ids),
            (0, vec![(Some("a"), true), (Some("b"), false)]),
            "{shown}"
        );
        assert!(
            messages[0]["content"].as_str().is_some_and(|text| text.contains("not valid JSON")),
            "{shown}"
        );
    }
}

#[test]
fn unrecognised_form_error_lists_the_forms() {
    let unknown = json!({"answer": "hi"});
    let shown = fed(&HEAD, format!("[{unknown}]").as_bytes());
    assert_eq!((shown.status, shown.stdout.as_str()), (1, ""), "{shown}");
    for form in [
        "calls (our own)",
        "openai",
        "openai-responses",
        "anthropic",
        "gemini",
        "mcp",
        "agui",
        "--calls-format",
    ] {
        assert!(shown.stderr.contains(form), "no {form}: {shown}");
    }
    let both = batch(&json!({"choices": [], "candidates": []}), &[]);
    assert!(
        both.status == 1 && both.stderr.contains("could come from several APIs: openai, gemini"),
        "{both}"
    );
    let whole = batch(&unknown, &["--calls-format", "openai"]);
    let told = "not as openai sends it: the whole document: expected a response with `choices`";
    assert!(whole.status == 1 && whole.stderr.contains(told), "{whole}");
    for (document, said, form) in [
        (json!([{"name": "greet"}]), "anthropic", "calls"),
        (json!([{"id": "a", "name": "greet", "arguments": {"name": "Ada"}}]), "mcp", "calls"),
        (json!({"name": "greet", "arguments": {"name": "Ada"}}), "mcp", "calls"),
        (
            json!([{"type": "tool_use", "id": "a", "name": "greet", "input": {}}]),
            "gemini",
            "anthropic",
        ),
    ] {
        let other = batch(&document, &["--calls-format", said]);
        let told = format!(
            "the calls have the form `{form}`, not `{said}`\nhint: write `--calls-format {form}`"
        );
        assert!(other.status == 1 && other.stderr.contains(&told), "{told}: {other}");
        assert_ne!(
            batch(&document, &["--calls-format", form]).json()["messages"],
            json!([]),
            "as the hint says"
        );
    }
}

/// A model's message without a call is an empty list, with a typed form or without.
#[test]
fn response_without_calls_is_no_error() {
    for (document, form) in [
        (json!({"role": "assistant", "content": "hi"}), "openai"),
        (json!({"role": "assistant", "content": null}), "openai"),
        (json!({"choices": [{"message": {"content": "hi"}}]}), "openai"),
        (
            json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}]}),
            "openai",
        ),
        (json!({"output": [{"type": "message", "content": []}]}), "openai-responses"),
        (json!({"role": "assistant", "content": [{"type": "text", "text": "hi"}]}), "anthropic"),
        (
            json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}}]}),
            "gemini",
        ),
        (json!({"role": "assistant", "content": "hi"}), "agui"),
    ] {
        for words in [&[][..], &["--calls-format", form]] {
            let shown = batch(&document, words);
            let told = (shown.status, shown.stdout.as_str(), shown.stderr.as_str());
            let expected =
                (0, "{\"messages\":[]}\n", "note: the list has no calls: no tool was called\n");
            assert_eq!(told, expected, "{document} {words:?}");
        }
    }
}

/// A call in another form than the rest is never left out: both are read, or an error names its
/// place.
#[test]
fn mixed_list_never_drops_a_call() {
    let own = json!({"id": "b", "name": "greet", "arguments": {"name": "Bob"}});
    let bare = json!({"name": "greet", "arguments": {"name": "Bob"}});
    let input = json!({"name": "Ada"});
    let arguments = input.to_string();
    let block = json!({"type": "tool_use", "id": "a", "name": "greet", "input": input});
    let item =
        json!({"type": "function_call", "call_id": "a", "name": "greet", "arguments": arguments});
    let part = json!({"functionCall": {"id": "a", "name": "greet", "args": input}});
    let request = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "greet", "arguments": input}});
    let event = json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "a", "toolCallName": "greet", "delta": arguments});
    let function = json!({"index": 0, "id": "a", "type": "function", "function": {"name": "greet", "arguments": arguments}});
    for (form, theirs) in [
        ("anthropic", &block),
        ("openai-responses", &item),
        ("gemini", &part),
        ("mcp", &request),
        ("agui", &event),
        ("openai", &function),
    ] {
        for other in [&own, &bare, &json!(5)] {
            for (list, at) in [(json!([theirs, other]), 1), (json!([other, theirs]), 0)] {
                let typed = batch(&list, &["--calls-format", form]);
                assert_eq!((typed.status, typed.stdout.as_str()), (1, ""), "{list}: {typed}");
                let place = format!("at `/{at}");
                let is_named =
                    typed.stderr.contains(&place) || typed.stderr.contains("unknown field `index`");
                assert!(is_named, "{place}: {list}: {typed}");
                let found = batch(&list, &[]);
                assert_eq!((found.status, found.stdout.as_str()), (1, ""), "{list}: {found}");
            }
        }
    }
    // Also within a whole response.
    let message =
        json!({"role": "assistant", "content": [{"type": "text", "text": "hm"}, block, own]});
    let shown = batch(&message, &[]);
    assert!(
        shown.status == 1
            && shown.stderr.contains("at `/content/2`: expected an item of this form"),
        "{shown}"
    );
    // With one document a line, each is read in its own form.
    let other = request.to_string().replace(r#""id":"a""#, r#""id":"c""#);
    let lines = format!("{block}\n{own}\n{other}\n");
    let shown = fed(&HEAD, lines.as_bytes());
    let messages = &shown.json()["messages"];
    assert_eq!((shown.status, messages.as_array().map(Vec::len)), (0, Some(3)), "{shown}");
}

/// It keeps its place, and the other calls are made.
#[test]
fn unreadable_call_fails_alone() {
    let list = json!([
        {"type": "tool_use", "id": "a"},
        {"type": "tool_use", "id": "b", "name": "greet", "input": {"name": "Ada"}},
    ]);
    let messages = batch(&list, &[]).json()["messages"].clone();
    assert_eq!(
        (&messages[0]["tool_call_id"], &messages[0]["is_error"]),
        (&json!("a"), &json!(true)),
        "{messages}"
    );
    assert_eq!(
        (&messages[1]["tool_call_id"], &messages[1]["content"]),
        (&json!("b"), &json!("Hello, Ada!"))
    );
    let stream = batch(&list, &["--stream"]);
    let events: Vec<Value> =
        stream.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&events[0]["type"], &events[0]["id"]),
        (&json!("tool_result_encoded"), &json!("a")),
        "{stream}"
    );
    assert_eq!(
        events.last(),
        Some(&json!({"type": "run_finished", "calls": 2, "failed": 1})),
        "{stream}"
    );
}

/// Like any failed call: the first call of the list that halts the run is named, and all calls are
/// made.
#[test]
fn unreadable_call_halts_run_under_halt_policy() {
    let unreadable = json!({"type": "tool_use", "id": "a"});
    let nameless = json!({"type": "tool_use"});
    let fails = json!({"type": "tool_use", "id": "b", "name": "greet", "input": {}});
    let greets = json!({"type": "tool_use", "id": "c", "name": "greet", "input": {"name": "Ada"}});
    for (list, halt) in [
        (json!([greets, unreadable]), Some("a")),
        (json!([unreadable, fails, greets]), Some("a")),
        (json!([fails, unreadable, greets]), Some("b")),
        (json!([nameless, greets]), Some("")),
        (json!([greets]), None),
    ] {
        let shown = batch(&list, &["--on-tool-error", "halt"]);
        let told = shown.json();
        assert_eq!(told["halt"]["halt_tool_call_id"].as_str(), halt, "{list}: {shown}");
        assert_eq!(shown.status, if halt.is_some() { 20 } else { 0 }, "{shown}");
        let greeted = told["messages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|message| message["content"] == "Hello, Ada!");
        assert!(greeted, "all calls are made: {shown}");
        let stream = batch(&list, &["--on-tool-error", "halt", "--stream"]);
        let last: Value = serde_json::from_str(stream.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(
            (last["halt"]["halt_tool_call_id"].as_str(), stream.status),
            (halt, shown.status),
            "{stream}"
        );
        assert_eq!(batch(&list, &[]).status, 0, "by default it does not halt");
    }
}

#[test]
fn unknown_tool_is_error_or_answer_by_option() {
    let calls = json!([{"id": "a", "name": "gret"}, {"id": "b", "name": "greet", "arguments": {"name": "Ada"}}]);
    let refused = batch(&calls, &[]);
    assert_eq!((refused.status, refused.stdout.as_str()), (1, ""), "{refused}");
    let answered = batch(&calls, &["--unknown-tools", "answer"]);
    let messages = &answered.json()["messages"];
    assert_eq!(answered.status, 0, "{answered}");
    let said = r#"{"error":"there is no tool `gret`; did you mean `greet`?"}"#;
    assert_eq!(
        (&messages[0]["content"], &messages[0]["is_error"]),
        (&json!(said), &json!(true)),
        "{answered}"
    );
    assert_eq!(messages[1]["content"], "Hello, Ada!", "{answered}");
    let stream =
        batch(&calls, &["--unknown-tools", "answer", "--stream", "--max-concurrency", "1"]);
    let second: Value = serde_json::from_str(stream.stdout.lines().nth(1).unwrap()).unwrap();
    assert_eq!(second["result"]["tool_error"]["reason"], "not_found", "{stream}");
    let halted = batch(&calls, &["--unknown-tools", "answer", "--on-tool-error", "halt"]);
    assert_eq!(
        (halted.status, &halted.json()["halt"]["halt_tool_call_id"]),
        (20, &json!("a")),
        "{halted}"
    );
}

/// Text without JSON around it for a person, an object as JSON for a model.
#[test]
fn results_use_native_types_of_provider_form() {
    let calls = json!([
        {"id": "a", "name": "calculator", "arguments": {"expression": "1/0"}},
        {"id": "b", "name": "jq", "arguments": {"filter": ".", "input": {"deep": [1, {"n": 9007199254740993_u64}]}}},
    ]);
    let head = ["batch", "calculator.wasm", "jq.wasm", "--calls", "-", "--format"];
    let of =
        |format: &str| fed(&[&head[..], &[format]].concat(), calls.to_string().as_bytes()).json();
    let agui = of("agui");
    let error = agui["messages"][0]["error"].as_str().expect("text");
    assert!(!error.contains('{') && !error.is_empty(), "{agui}");
    let gemini = of("gemini");
    let response =
        gemini.pointer("/messages/0/parts/1/functionResponse/response/output").expect("a response");
    assert!(response.is_object() || response.is_array(), "{gemini}");
    assert!(response.to_string().contains(r#""9007199254740993""#), "{gemini}");
}
