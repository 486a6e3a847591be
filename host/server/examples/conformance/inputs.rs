//! Requests for input that a tool of the service cannot make: to the client's model, for its roots,
//! several requests in one result, request names that the suite prescribes, and prompts. Tools that
//! ask the user one question at a time are in `main`.

use serde_json::{Value, json};
use toolcell_server::mcp::rmcp::model::{
    ClientCapabilities, ErrorData, InputRequiredResult, InputResponses,
};

/// The state of a result that has one.
const STATE: &str = "several-inputs";

fn form(message: &str, field: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "mode": "form",
        "message": message,
        "requestedSchema": {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]},
    }})
}

fn sampling(text: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

/// Requests by their names.
type Requests = Vec<(&'static str, Value)>;

/// Returns the input that a tool or a prompt requests, and its state.
fn wanted(name: &str, can: &ClientCapabilities) -> Option<(Requests, Option<&'static str>)> {
    let name_form = || ("user_name", form("What is your name?", "name"));
    let greeting = || ("greeting", sampling("Generate a greeting"));
    let client_roots = || ("client_roots", roots());
    Some(match name.strip_prefix("test_input_required_result_")? {
        "elicitation" => (vec![name_form()], None),
        "sampling" => {
            (vec![("capital_question", sampling("What is the capital of France?"))], None)
        }
        "list_roots" => (vec![client_roots()], None),
        "multiple_inputs" => (vec![name_form(), greeting(), client_roots()], Some(STATE)),
        "capabilities" => {
            let form = can.elicitation.is_some().then(name_form);
            let sampling = json!(can).get("sampling").map(|_| greeting());
            (form.into_iter().chain(sampling).collect(), None)
        }
        "prompt" => {
            (vec![("user_context", form("What context should the prompt use?", "context"))], None)
        }
        _ => return None,
    })
}

/// Returns the next result: a request for input, or the final text once all input is there. `None`:
/// nothing of this name asks for input.
pub(crate) fn next(
    name: &str,
    state: Option<&str>,
    responses: Option<&InputResponses>,
    can: &ClientCapabilities,
) -> Option<Result<Result<String, InputRequiredResult>, ErrorData>> {
    let (requests, own_state) = wanted(name, can)?;
    if state.is_some() && state != own_state {
        return Some(Err(ErrorData::invalid_params("the request state was changed", None)));
    }
    let is_there = |(key, _): &(&str, Value)| {
        responses.and_then(|responses| responses.get(*key)).is_some_and(Value::is_object)
    };
    if state == own_state && requests.iter().all(is_there) {
        return Some(Ok(Ok(json!(responses).to_string())));
    }
    let requests = requests.into_iter().map(|(key, request)| (key.to_owned(), request));
    let requests = json!(requests.collect::<serde_json::Map<_, _>>());
    let result = json!({"resultType": "input_required", "inputRequests": requests, "requestState": own_state});
    Some(
        serde_json::from_value(result)
            .map(Err)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None)),
    )
}
