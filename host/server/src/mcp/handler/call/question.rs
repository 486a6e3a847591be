//! Converts a tool's question to a person into MCP's formats, and its answers back.
//!
//! The module `call` uses it when a call ends with a [`Question`]. [`form`] makes a form that the
//! client shows its user: a flat object of texts, numbers, truth values and choices.
//! [`input_required`] makes the result of a request without a session, which carries the question
//! as sealed state (encrypted and authenticated) through the client. [`answer_of_retry`] and
//! [`parse_elicitation`] return the [`Resume`], with which the next call answers the question. A
//! client that can show no form gets the question as a result for the model, and answers in the
//! metadata of another request.
//!
//! State that passes through the client is sealed for its principal (the authenticated sender: a
//! key or user of a tenant), tool and arguments, and checked before it is used. Only the service
//! opens a tool's own state.

use std::collections::BTreeSet;

use rmcp::model::{
    ContentBlock, ElicitRequest, ElicitRequestParams, ErrorData, InputRequest, InputRequests,
    InputRequiredResult,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolcell::call::Resume;
use toolcell::outcome::ResumeFault;
use toolcell::{Json, Question, Refusal, ToolCall};

use super::tool_result::{META_ERROR, ToolResult};
use crate::artifacts::members::members;
use crate::mcp::handler::Handler;
use crate::mcp::message::meta::RESUME;
use crate::mcp::message::raw::Raw;
use crate::mcp::request::{self, Answer, tree_room};
use crate::mcp::session::client::TOO_MANY_QUESTIONS;
use crate::tenants::principal::Principal;

/// The name of a form's only field, and of the only input request.
const ANSWER: &str = "answer";
/// Members of an option that is an object; the first that is a text is its label.
const LABELS: [&str; 3] = ["label", "title", "name"];
/// Members of an option that name the member of the answer that it is about.
const MEMBERS: [&str; 2] = ["field", "name"];
/// The member of such an option that lists the texts to choose from.
const CHOICES: &str = "choices";
/// The formats of texts that a form has.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];
/// The reason why a question has no form.
const NO_FORM: &str =
    "its answer is neither one value nor an object of texts, numbers and truth values";
/// The most bytes of the schema and the options of a question with a form.
const MAX_FORM: usize = 64 << 10;

/// The most references that are followed one after another.
const MAX_REFERENCES: usize = 8;

/// The result of asking an earlier question, for the next call.
pub(super) enum Retry {
    /// The person answered.
    Answered(Resume),
    /// There is no answer yet.
    Unanswered(Question),
    /// The person declined to answer or dismissed the question.
    Refused(ToolResult),
}

/// Returns the question as a form, if the answer is one value or a flat object.
pub(in crate::mcp) fn form(question: &Question) -> Option<ElicitRequest> {
    if !is_short(question) {
        return None;
    }
    let schema = match (schema(question), options(question)) {
        // The schema is too large without its references.
        (None, _) if question.answer_schema.is_some() => return None,
        (Some(schema), options) if schema["type"] == "object" => {
            object_schema(schema, &options.unwrap_or_default())
        }
        (schema, options) => {
            let field = field(schema, options);
            json!({"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]})
        }
    };
    let params = json!({"mode": "form", "message": question.question, "requestedSchema": schema});
    serde_json::from_value::<ElicitRequestParams>(params).ok().map(ElicitRequest::new)
}

/// Returns true if the schema and the options are short enough to be read as trees.
fn is_short(question: &Question) -> bool {
    let parts = [&question.answer_schema, &question.options];
    parts.into_iter().flatten().map(|part| part.as_str().len()).sum::<usize>() <= MAX_FORM
}

/// Returns true if the form asks for the members of an object, and the answer is that object.
fn is_object(question: &Question) -> bool {
    schema(question).is_some_and(|schema| schema["type"] == "object")
}

/// Returns the schema of the answer, with references within it replaced by their targets, because a
/// form has no references. `None` if there is no schema, or if the copies would have more than
/// [`MAX_FORM`] bytes.
fn schema(question: &Question) -> Option<Value> {
    let mut schema = question.answer_schema.as_ref().map(Json::to_value)?;
    let (whole, mut room) = (schema.clone(), MAX_FORM);
    resolve(&mut schema, &whole, &mut room)?;
    for (_, field) in properties(&mut schema) {
        resolve(field, &whole, &mut room)?;
        for form in field.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten() {
            resolve(form, &whole, &mut room)?;
        }
    }
    if let Some(members) = schema.as_object_mut() {
        members.retain(|name, _| !["$defs", "definitions"].contains(&name.as_str()));
    }
    Some(schema)
}

/// Returns the properties of a schema.
fn properties(schema: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
}

/// Replaces a reference by its target, merged with the members beside it. `None` if that takes more
/// than `room` bytes.
fn resolve(schema: &mut Value, whole: &Value, room: &mut usize) -> Option<()> {
    for _ in 0..MAX_REFERENCES {
        let named = schema["$ref"].as_str().and_then(|name| whole.pointer(name.strip_prefix('#')?));
        let Some(named) = named else { return Some(()) };
        *room = room.checked_sub(named.to_string().len())?;
        let (mut named, own) = (named.clone(), schema.as_object_mut()?);
        own.remove("$ref");
        if let Some(members) = named.as_object_mut() {
            members.append(own);
        }
        *schema = named;
    }
    Some(())
}

/// Returns the schema of an object, with the fields of a form. A field that can be null becomes an
/// optional field: forms have no null, and derived schemas of optional members do. A field with a
/// few possible texts becomes an `enum`.
fn object_schema(mut schema: Value, options: &[Value]) -> Value {
    let required: Vec<String> =
        serde_json::from_value(schema["required"].clone()).unwrap_or_default();
    for (name, field) in properties(&mut schema) {
        if !required.contains(name) {
            without_null(field);
        }
        let is_about = |option: &&Value| MEMBERS.iter().any(|member| option[*member] == **name);
        with_choices(field, options.iter().find(is_about));
    }
    schema
}

/// Writes the possible texts of a field as `enum`: those of its schema, also if it has one
/// alternative for each, or those that the option for this field lists. A form has no other way to
/// express them. It has a type for each field, and only some formats.
fn with_choices(field: &mut Value, option: Option<&Value>) {
    let forms = ["oneOf", "anyOf"].into_iter().find_map(|word| {
        let forms = field[word].as_array()?;
        let texts: Option<Vec<&str>> = forms.iter().map(|form| form["const"].as_str()).collect();
        Some((word, json!(texts?), forms.iter().any(|form| form.get("title").is_some())))
    });
    let are_texts =
        |choices: &Vec<Value>| !choices.is_empty() && choices.iter().all(Value::is_string);
    let listed =
        option.and_then(|option| option[CHOICES].as_array()).filter(|list| are_texts(list));
    let Some(field) = field.as_object_mut() else { return };
    if field.get("enum").and_then(Value::as_array).is_some_and(are_texts) {
        field.entry("type").or_insert_with(|| json!("string"));
    }
    // The answer is checked against the schema, which has the format.
    if field.get("format").is_some_and(|format| !FORMATS.iter().any(|known| format == known)) {
        field.remove("format");
    }
    if let Some((word, texts, have_titles)) = forms {
        field.insert("type".into(), json!("string"));
        // An `enum` would lose the titles, and a form supports them.
        if !have_titles {
            field.remove(word);
            field.insert("enum".into(), texts);
        }
    } else if let Some(listed) = listed.filter(|_| field.get("type") == Some(&json!("string"))) {
        field.entry("enum").or_insert_with(|| json!(listed));
    }
    let label = option.and_then(|option| LABELS.iter().find_map(|name| option[*name].as_str()));
    if let Some(label) = label.filter(|label| option.is_none_or(|option| option["name"] != **label))
    {
        field.entry("title").or_insert_with(|| label.into());
    }
}

fn without_null(field: &mut Value) {
    if field["default"].is_null()
        && let Some(field) = field.as_object_mut()
    {
        field.remove("default");
    }
    if let Some(values) = field.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    if let Some(types) = field["type"].as_array() {
        let mut others = types.iter().filter(|kind| **kind != "null");
        if let (Some(only), None) = (others.next(), others.next()) {
            field["type"] = only.clone();
        }
    }
    if let Some(forms) = field["anyOf"].as_array() {
        let mut others = forms.iter().filter(|form| form["type"] != "null");
        if let (Some(Value::Object(only)), None) = (others.next().cloned(), others.next())
            && let Some(field) = field.as_object_mut()
        {
            field.remove("anyOf");
            field.extend(only);
        }
    }
}

/// Returns the only field of a form.
fn field(schema: Option<Value>, options: Option<Vec<Value>>) -> Value {
    match (options, schema) {
        (Some(options), _) => json!({"type": "string", "enum": labels(&options)}),
        (None, Some(mut schema)) => {
            with_choices(&mut schema, None);
            schema
        }
        (None, None) => json!({"type": "string"}),
    }
}

fn options(question: &Question) -> Option<Vec<Value>> {
    match question.options.as_ref().map(Json::to_value) {
        Some(Value::Array(options)) if !options.is_empty() => Some(options),
        _ => None,
    }
}

/// Returns the labels of the options: a text, or the label of an object. Labels differ: if two
/// would be equal, all are JSON.
fn labels(options: &[Value]) -> Vec<String> {
    let text = |option: &Value| option.as_str().map(str::to_owned);
    let named = |option: &Value| LABELS.iter().find_map(|name| text(&option[*name]));
    let shown = |option: &Value| text(option).or_else(|| named(option));
    let labels: Vec<String> = options.iter().filter_map(shown).collect();
    if labels.iter().collect::<BTreeSet<_>>().len() == options.len() {
        return labels;
    }
    options.iter().map(|option| text(option).unwrap_or_else(|| option.to_string())).collect()
}

/// Returns the person's answer, from a form's content.
fn answer(question: &Question, content: &Raw) -> Option<Json> {
    let json = |raw: &Raw| Json::parse(raw.as_str().to_owned()).ok();
    if is_object(question) {
        return content.is_object().then(|| json(content)).flatten();
    }
    let [answer] = members(content.as_str(), [ANSWER])?;
    let answer = answer?;
    match options(question) {
        Some(options) => {
            let label: String = serde_json::from_str(answer).ok()?;
            let at = labels(&options).into_iter().position(|shown| shown == label)?;
            options.into_iter().nth(at).map(Json::from)
        }
        None => Json::parse(answer.to_owned()).ok(),
    }
}

/// Converts the result of an elicitation: `{"action", "content"?}`. `None` if it has another form.
pub(super) fn parse_elicitation(question: Question, result: &Raw) -> Option<Retry> {
    let [action, content] = result.members(["action", "content"]);
    Some(match action?.text()?.as_str() {
        "accept" => match answer(&question, &content.unwrap_or_else(Raw::empty)) {
            Some(answer) => Retry::Answered(Resume { answer, state: question.state }),
            None => Retry::Unanswered(question),
        },
        "decline" => refused(&question, "declined", "the user declined to answer"),
        "cancel" => refused(&question, "dismissed", "the user dismissed the question"),
        _ => return None,
    })
}

fn refused(question: &Question, reason: &str, text: &str) -> Retry {
    let content = ContentBlock::text(format!("{text}: {}", question.question));
    let mut result = ToolResult::new(vec![content], true);
    result.add_meta(META_ERROR, &json!({"question": {"reason": reason, "message": text}}));
    Retry::Refused(result)
}

/// The content of the sealed state that passes through the client.
#[derive(Serialize, Deserialize)]
struct SealedQuestion {
    tool: String,
    /// The digest of the arguments.
    arguments: String,
    question: Question,
}

/// Returns the result that asks the client to repeat the request with the answer.
///
/// # Errors
/// If the system has no randomness, or the server's limit of trees is reached.
pub(super) async fn input_required(
    handler: &Handler,
    form: ElicitRequest,
    question: Question,
    call: &ToolCall,
) -> Result<Answer, ErrorData> {
    let (tool, arguments) = (call.name.clone(), digest(&handler.principal, call).await?);
    let text = serde_json::to_vec(&SealedQuestion { tool, arguments, question });
    let sealer = handler.service.sealer(&handler.principal);
    let sealed = text.ok().and_then(|text| sealer.seal_bytes(&text));
    let sealed =
        sealed.ok_or_else(|| ErrorData::internal_error("the question cannot be sealed", None))?;
    let requests = InputRequests::from([(ANSWER.to_owned(), InputRequest::Elicitation(form))]);
    request::to_raw_json(&InputRequiredResult::new(Some(requests), Some(sealed)))
}

/// Returns the digest of a call's arguments; equal values have equal digests, also if the client
/// writes `1` where it wrote `1.0` before.
async fn digest(principal: &Principal, call: &ToolCall) -> Result<String, ErrorData> {
    let _room = tree_room(principal, &call.arguments).await?;
    let arguments = Json::parse(call.arguments.clone()).unwrap_or_else(|_| Json::null());
    Ok(format!("{:x}", Sha256::digest(arguments.canonical_bytes())))
}

/// Returns the answer of a repeated request to its earlier question.
pub(super) async fn answer_of_retry(
    handler: &Handler,
    state: &str,
    responses: Option<&Raw>,
    call: &ToolCall,
) -> Result<Retry, ErrorData> {
    let sealer = handler.service.sealer(&handler.principal);
    let text = sealer.open_bytes(state).map_err(refusal)?;
    let SealedQuestion { tool, arguments, question } =
        serde_json::from_slice(&text).map_err(|_| refusal(ResumeFault::Tampered))?;
    if tool != call.name {
        return Err(refusal(ResumeFault::OtherTool));
    }
    if arguments != digest(&handler.principal, call).await? {
        return Err(refusal(ResumeFault::OtherArguments));
    }
    let Some(response) = responses.and_then(|responses| responses.member(ANSWER)) else {
        return Ok(Retry::Unanswered(question));
    };
    parse_elicitation(question, &response).ok_or_else(|| {
        let text =
            format!("the input response `{ANSWER}` is not the result of an elicitation: it has no known `action`");
        ErrorData::invalid_params(text, None)
    })
}

/// Returns the error of an answer that cannot be accepted.
pub(in crate::mcp) fn refusal(fault: ResumeFault) -> ErrorData {
    let refusal = Refusal::Resume(fault);
    let data = json!({"code": fault.kind(), "hint": refusal.hint()});
    ErrorData::invalid_params(refusal.to_string(), Some(data))
}

/// Returns the answer in the metadata of a request, from a client to which no question can be sent.
pub(super) fn in_meta(resume: Option<&Raw>) -> Result<Option<Resume>, ErrorData> {
    let Some(resume) = resume else { return Ok(None) };
    let [answer, state] = members(resume.as_str(), ["answer", "state"]).unwrap_or_default();
    let json = |text: &str| Json::parse(text.to_owned()).ok();
    let Some(answer) = answer.and_then(json) else {
        return Err(ErrorData::invalid_params(format!("`_meta` `{RESUME}` has no `answer`"), None));
    };
    Ok(Some(Resume { answer, state: state.and_then(json) }))
}

/// Returns the question for a client to which no question can be sent: a result for the model,
/// which explains how to answer. It is an error if the tool has an output schema, because clients
/// accept no other result without a value.
pub(super) fn as_result(question: &Question, is_promised: bool) -> ToolResult {
    let mut text = format!("The tool asks the user: {}", question.question);
    if let Some(options) = is_short(question).then(|| options(question)).flatten() {
        // The options of an object are its members' questions, not values to choose from.
        let what = if is_object(question) { "It asks for" } else { "Choices" };
        text = format!("{text}\n{what}: {}", labels(&options).join(", "));
    }
    if form(question).is_none() {
        text = format!("{text}\nIt has no form: {NO_FORM}");
    }
    let mut result = ToolResult::new(vec![ContentBlock::text(text)], is_promised);
    let answer_with = json!({"method": "tools/call", "_meta": {RESUME: {"answer": null, "state": question.state}}});
    result.add_meta("toolcell/question", &QuestionResult { question, answer_with });
    result
}

/// Returns the question for a client with too many open ones: a result that says so, with the state
/// for a later answer.
pub(super) fn refused_for_room(question: &Question, error: &ErrorData) -> ToolResult {
    let mut result = as_result(question, true);
    result.content.insert(0, ContentBlock::text(error.message.to_string()));
    let fault = json!({"question": {"reason": TOO_MANY_QUESTIONS, "message": error.message}});
    result.add_meta(META_ERROR, &fault);
    result
}

/// A question, and the request that answers it.
#[derive(Serialize)]
struct QuestionResult<'a> {
    #[serde(flatten)]
    question: &'a Question,
    answer_with: Value,
}
