//! Stages 1 to 4 of a step: before a tool is dispatched.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcell::call::Resume;
use toolcell::step::{Deliberate, RawCall, StepConfig};
use toolcell::{Limits, ToolCall, Turn};
use toolcell_test_guests::rows;
use toolcell_tests::context;

use super::{Loop, allowing, calling, response, say, word};

#[test]
fn malformed_call_without_id_aborts() {
    let agent = Loop::new();
    let deep = format!("{}1{}", "[".repeat(1000), "]".repeat(1000));
    let calls = rows::<Value>("contract/step/before", "malformed_call_without_id_aborts");
    for call in calls.into_iter().chain([json!({"name": "say", "arguments": deep})]) {
        assert_eq!(word(&agent.first(&call)), "abort/error", "{call}");
    }
    assert_eq!(agent.dispatched(), 0);
}

#[test]
fn arguments_come_as_an_object_or_as_text() {
    let agent = Loop::new();
    for (call, expected) in [
        (RawCall::from(json!({"name": "say", "args": {"a": 1}})), json!({"a": 1})),
        (json!({"name": "say", "arguments": "{\"a\": 1}"}).into(), json!({"a": 1})),
        (ToolCall::new("1", "say", "{\"a\": 1}").into(), json!({"a": 1})),
        (ToolCall::new("1", "say", "").into(), json!({})),
        (json!({"name": "say"}).into(), json!({})),
    ] {
        let step = agent.first(call);
        assert_eq!(json!(step)["entry"]["functionCall"]["args"], expected);
        assert_eq!(response(&step), json!({"result": {"said": expected}}));
    }
}

#[test]
fn oversized_arguments_are_refused_and_omitted() {
    let agent = Loop::new();
    let mut turn = Turn::default();
    turn.call.limits = Limits { arguments: 100, ..Limits::unlimited() };
    for arguments in
        [json!({"x": "x".repeat(100)}), json!(format!("{{\"x\": \"{}\"}}", "x".repeat(100)))]
    {
        let step = agent.step(json!({"name": "say", "args": arguments}), &mut turn);
        assert_eq!(word(&step), "history/failed");
        assert_eq!(json!(step)["entry"]["functionCall"]["args"], json!({}));
        let error = response(&step)["result"]["error"].take();
        assert!(error.as_str().expect("words").contains("at most 100 bytes"));
    }
    assert_eq!(agent.dispatched(), 0);
}

/// Stage 2: no caller waits for the result any more.
#[test]
fn stop_is_checked_before_any_tool() {
    let agent = Loop::new();
    for name in ["say", "unknown"] {
        let mut turn = allowing(["say"]);
        turn.stop();
        assert_eq!(word(&agent.step(calling(name), &mut turn)), "abort/stopped_by_user");
    }
    let mut turn = Turn::default();
    turn.stop();
    let malformed = agent.step(calling(""), &mut turn);
    assert_eq!(word(&malformed), "abort/error", "a malformed call is judged first");
    turn.next_turn();
    assert_eq!(word(&agent.step(say(""), &mut turn)), "history/ok", "a stop is meant for its turn");
    assert_eq!(agent.dispatched(), 1);
}

/// Stage 3.
#[test]
fn handler_sees_the_turns_context() {
    let agent = Loop::configured(StepConfig { soft_warn_at: 2, ..StepConfig::default() });
    let mut turn = Turn::new(context(
        &json!({"session_id": "s", "tenant": "acme", "resume": {"answer": "stale"}}),
    ));
    Arc::make_mut(&mut turn.call.context).extensions.insert("own".into(), json!(1).into());
    turn.locale = Some("de-CH".into());
    for (iteration, extensions) in [
        (0, json!({"own": 1, "locale": "de-CH"})),
        (1, json!({"own": 1, "locale": "de-CH"})),
        (2, json!({"own": 1, "locale": "de-CH", "show_kill_hint": true})),
        (9, json!({"own": 1, "locale": "de-CH", "show_kill_hint": true})),
    ] {
        turn.iteration = iteration;
        let expected = json!({
            "id": "c1", "session": "s", "tenant": "acme", "extensions": extensions, "resumed": null,
            "time_is_left": true, "aborted": false,
        });
        let step = agent.step(json!({"id": "c1", "name": "context"}), &mut turn);
        assert_eq!(response(&step)["result"], expected, "{iteration}");
    }
    let answer = Resume { answer: json!("b").into(), state: None };
    let step = agent.first(RawCall::from(calling("context")).with_resume(answer));
    assert_eq!(response(&step)["result"]["resumed"], "b");
    assert_eq!(response(&step)["result"]["extensions"], json!({}), "nothing is invented");
}

/// Stage 4.
#[test]
fn deliberate_mode_without_list_allows_every_tool() {
    let agent = Loop::new();
    let mut turn = Turn::default();
    turn.deliberate = Some(Deliberate::unrestricted().with_trigger("context", "where"));
    for name in ["say", "context"] {
        assert_eq!(word(&agent.step(calling(name), &mut turn)), "history/ok", "{name}");
    }
    turn.next_turn();
    turn.deliberate = Some(Deliberate::new([""; 0]));
    assert_eq!(turn.allowed_names(), Some(["context", "say"].into()), "what succeeded stays open");
}

/// Stage 4.
#[test]
fn disallowed_tool_is_not_dispatched() {
    let agent = Loop::new();
    let mut turn = Turn::default();
    turn.deliberate = Some(Deliberate::new(["context"]).with_trigger("stuck", "wait"));
    for name in ["say", "there_is_none", "secret_plan"] {
        let step = agent.step(json!({"name": name, "args": {"a": 1}}), &mut turn);
        assert_eq!(word(&step), "history/failed");
        let blocked = json!({
            "status": "blocked_by_deliberate_tool_mode", "functionName": name,
            "allowedToolNames": ["context", "stuck"],
        });
        let expected = json!({
            "functionCall": {"name": name, "args": {"a": 1}},
            "functionResponse": {"name": name, "response": {"result": blocked}},
            "is_error": true,
        });
        assert_eq!(json!(step)["entry"], expected);
    }
    assert_eq!(agent.dispatched(), 0);
    assert_eq!(agent.registry.statistics("say").expect("it is there").count, 0);
    assert_eq!(word(&agent.step(calling("context"), &mut turn)), "history/ok");
    turn.deliberate = None;
    assert_eq!(word(&agent.step(say(""), &mut turn)), "history/ok");
}

#[test]
fn unknown_name_suggests_the_nearest_callable_tool() {
    let agent = Loop::new();
    let mut turn = Turn::default();
    for (deliberate, name, expected) in [
        (None, "contxt", "there is no tool `contxt`; did you mean `context`?"),
        (None, "weather", "there is no tool `weather`"),
        (None, "secret_plam", "there is no tool `secret_plam`"),
        (Some(Deliberate::new(["contxt"])), "contxt", "there is no tool `contxt`"),
    ] {
        turn.deliberate = deliberate;
        let step = agent.step(calling(name), &mut turn);
        assert_eq!(word(&step), "history/failed", "{name}");
        assert_eq!(response(&step), json!({"result": {"error": expected}}), "{name}");
    }
    assert_eq!(agent.dispatched(), 0);
}
