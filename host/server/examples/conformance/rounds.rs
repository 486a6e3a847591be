//! Answers that come in rounds: each asks the client for input, until all of it is there.

use serde_json::{Value, json};
use toolcell_server::mcp::rmcp::model::{ClientCapabilities, ErrorData, InputRequiredResult, InputResponses};

/// What one round asks for, and its state.
struct Round {
    requests: Vec<(&'static str, Value)>,
    state: Option<&'static str>,
}

fn form(message: &str, field: &str, kind: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "mode": "form",
        "message": message,
        "requestedSchema": {"type": "object", "properties": {field: {"type": kind}}, "required": [field]},
    }})
}

fn sampling(text: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

fn rounds(name: &str, can: &ClientCapabilities) -> Option<Vec<Round>> {
    let one = |requests, state| vec![Round { requests, state }];
    let name_form = || form("What is your name?", "name", "string");
    let confirm = || form("Please confirm", "ok", "boolean");
    Some(match name.strip_prefix("test_input_required_result_").unwrap_or(name) {
        "elicitation" | "test_streaming_elicitation" => one(vec![("user_name", name_form())], None),
        "sampling" => one(vec![("capital_question", sampling("What is the capital of France?"))], None),
        "list_roots" => one(vec![("client_roots", roots())], None),
        "request_state" => one(vec![("confirm", confirm())], Some("confirm-state")),
        "tampered_state" => one(vec![("confirm", confirm())], Some("tamper-proof-state")),
        "multiple_inputs" => one(
            vec![("user_name", name_form()), ("greeting", sampling("Generate a greeting")), ("client_roots", roots())],
            Some("several-inputs"),
        ),
        "multi_round" => vec![
            Round {
                requests: vec![("step1", form("Step 1: What is your name?", "name", "string"))],
                state: Some("round-1"),
            },
            Round {
                requests: vec![("step2", form("Step 2: What is your favorite color?", "color", "string"))],
                state: Some("round-2"),
            },
        ],
        "capabilities" => {
            let mut requests = Vec::new();
            if can.elicitation.is_some() {
                requests.push(("user_name", name_form()));
            }
            if json!(can).get("sampling").is_some() {
                requests.push(("greeting", sampling("Generate a greeting")));
            }
            one(requests, None)
        }
        "prompt" => one(vec![("user_context", form("What context should the prompt use?", "context", "string"))], None),
        _ => return None,
    })
}

/// What comes next. `None`: there are no rounds of this name. The text is there once all input is.
pub(crate) fn next(
    name: &str,
    state: Option<&str>,
    responses: Option<&InputResponses>,
    can: &ClientCapabilities,
) -> Option<Result<Result<String, InputRequiredResult>, ErrorData>> {
    let rounds = rounds(name, can)?;
    let current = match state {
        None => 0,
        Some(state) => match rounds.iter().position(|round| round.state == Some(state)) {
            Some(current) => current,
            None => return Some(Err(ErrorData::invalid_params("the request state was changed", None))),
        },
    };
    let is_there = |round: &Round| {
        let fits = |(key, _): &(&str, Value)| {
            responses.and_then(|responses| responses.get(*key)).is_some_and(Value::is_object)
        };
        round.requests.iter().all(fits) && (round.state.is_none() || state == round.state)
    };
    let wanted = if is_there(&rounds[current]) { current + 1 } else { current };
    let Some(round) = rounds.get(wanted) else {
        return Some(Ok(Ok(format!("state-ok: {}", json!(responses)))));
    };
    let requests = round.requests.iter().map(|(key, request)| (key.to_string(), request.clone()));
    let requests = json!(requests.collect::<serde_json::Map<_, _>>());
    let result = json!({"resultType": "input_required", "inputRequests": requests, "requestState": round.state});
    Some(serde_json::from_value(result).map(Err).map_err(|error| ErrorData::internal_error(error.to_string(), None)))
}
