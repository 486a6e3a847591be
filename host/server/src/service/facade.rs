//! Three tools that replace a long list: `tools_search`, `tools_describe` and `tools_call`.
//!
//! A list of hundreds of definitions fills a model's context. If a tenant sees more tools than
//! [`ManyTools::threshold`], its list has only these three, unless one of its own tools has one of
//! the three names; then the list stays complete. A model searches by words, reads the definitions
//! of the results, and calls a tool by its name. Each of the other tools can still be called by its
//! own name. The view of a tenant calls [`facade`] to create the three tools when a version is
//! built.
//!
//! They show a tool only to principals (authenticated senders, each a key or user of a tenant)
//! that see it. `tools_call` becomes a call of the tool itself before admission, with that tool's
//! limits, rights, events and usage. Answers of the first two have a limit of tokens. Not here: the
//! index, in `service/search.rs`.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolcell::step::RawCall;
use toolcell::tool::Invocation;
use toolcell::{CallContext, Definition, Error, Executor, Json, Outcome, Tool, ToolCall};

use super::search::Index;
use crate::artifacts::members::is_object;

/// The tool that finds tools by words.
pub(crate) const SEARCH: &str = "tools_search";
/// The tool that returns whole definitions.
pub(crate) const DESCRIBE: &str = "tools_describe";
/// The tool that calls a tool by its name.
pub(crate) const CALL: &str = "tools_call";
/// The names of the three tools.
pub(crate) const NAMES: [&str; 3] = [SEARCH, DESCRIBE, CALL];

/// The most tools in one search result, and in one call of `tools_describe`.
const MAX_RESULTS: usize = 20;
/// Tools in a search result if the call gives no limit.
const DEFAULT_RESULTS: usize = 5;
/// Candidates for each result, because some may not be visible in the context.
const CANDIDATES: usize = 4;
/// Characters of a description in search results.
const SUMMARY: usize = 300;
/// Bytes of JSON that count as one token. Model providers' tokenizers need one token for three to
/// four bytes of JSON.
const BYTES_PER_TOKEN: usize = 4;

/// Limits of the list of tools: when a search replaces it, and how much the search may return.
///
/// # Defaults
/// More than 100 tools; 2,000 tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManyTools {
    /// The most tools that a principal's list contains. With more, `tools_search`, `tools_describe`
    /// and `tools_call` take their place. `usize::MAX` always returns the whole list.
    pub threshold: usize,
    /// The most tokens of one answer of `tools_search` or `tools_describe`, at four bytes a token.
    /// The first result is always complete.
    pub tokens: usize,
}

impl Default for ManyTools {
    fn default() -> Self {
        Self { threshold: 100, tokens: 2000 }
    }
}

/// Returns the three tools for these tools, in order of their names. `executor` asks tools if they
/// are visible. `None` if the list is short enough, or if a tool has one of the three names: the
/// existing tool takes precedence.
pub(crate) fn facade(
    many: ManyTools,
    tools: &BTreeMap<String, Tool>,
    executor: &Executor,
) -> Option<[Tool; 3]> {
    if tools.len() <= many.threshold {
        return None;
    }
    if let Some(taken) = tools.keys().find(|name| is_part(name)) {
        tracing::warn!(tool = %taken, "all tools are listed, and not the search tools in their place: this tool has the name of one of them");
        return None;
    }
    let (tools, executor, bytes) = (tools.clone(), executor.clone(), many.tokens * BYTES_PER_TOKEN);
    let catalogue = Arc::new(Catalogue { tools, executor, index: OnceLock::new(), bytes });
    let made = catalogue.facade();
    made.inspect_err(
        |error| tracing::error!(%error, "the search tools cannot be set up, so clients get the whole list of tools"),
    )
    .ok()
}

/// Returns true if this is the name of one of the three tools.
pub(crate) fn is_part(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Converts a call of `tools_call` with readable arguments to a call of the tool that it names.
/// Returns other calls unchanged.
pub(crate) fn resolve_call(mut call: ToolCall) -> ToolCall {
    if call.name == CALL
        && let Some((name, arguments)) = called(&call.arguments)
    {
        (call.name, call.arguments) = (name, arguments);
    }
    call
}

/// Like [`resolve_call`], for a call as a model wrote it.
pub(crate) fn resolve_raw_call(mut call: RawCall) -> RawCall {
    if call.name.as_deref() == Some(CALL)
        && let Some(arguments) = &call.arguments
        && let Some((name, arguments)) = called(&text(arguments))
    {
        (call.name, call.arguments) = (Some(name), Some(Value::String(arguments)));
    }
    call
}

/// Returns the text of arguments, which a model may have sent as a string instead of JSON.
pub(crate) fn text(arguments: &Value) -> String {
    arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned)
}

/// Returns the name and the arguments of the tool that these arguments of `tools_call` name. `None`
/// for other arguments: checking against the schema of `tools_call` reports their fault.
fn called(arguments: &str) -> Option<(String, String)> {
    let Called { name, arguments } = serde_json::from_str(arguments).ok()?;
    is_object(arguments.as_str()).then(|| (name, arguments.into_string()))
}

/// Arguments of `tools_call`. Those of the tool stay text: a tree would round long numbers, and
/// takes many times the bytes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    name: String,
    #[serde(default = "no_arguments")]
    arguments: Json,
}

fn no_arguments() -> Json {
    Json::from(json!({}))
}

/// All tools of a view, searchable.
#[derive(Debug)]
struct Catalogue {
    tools: BTreeMap<String, Tool>,
    executor: Executor,
    index: OnceLock<Option<Index>>,
    /// The most bytes of an answer.
    bytes: usize,
}

impl Catalogue {
    fn facade(self: Arc<Self>) -> Result<[Tool; 3], Error> {
        let text = format!(
            "Finds tools by what they do. There are many tools; search before you conclude that something cannot be done. \
             Describe what you need in a few words. Then call {CALL} with the name of a result, or {DESCRIBE} first to see its \
             parameters."
        );
        let properties = json!({
            "query": {"type": "string", "description": "What the tool should do, in a few words"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "description": format!("The most results; {DEFAULT_RESULTS} by default")},
        });
        let mut search = definition(SEARCH, text, "query", properties)?;
        search.hints.read_only = true;
        let text = format!(
            "Shows the whole definitions of tools that {SEARCH} found: descriptions and JSON Schemas."
        );
        let properties = json!({
            "names": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_RESULTS, "description": "Names of tools"},
        });
        let mut describe = definition(DESCRIBE, text, "names", properties)?;
        describe.hints.read_only = true;
        let text = format!("Calls a tool that {SEARCH} found, and returns what the tool returns.");
        let properties = json!({
            "name": {"type": "string", "description": "The name of the tool"},
            "arguments": {"type": "object", "description": format!("The tool's arguments, as {DESCRIBE} shows them")},
        });
        let call = definition(CALL, text, "name", properties)?;
        let (searched, described) = (Arc::clone(&self), self);
        Ok([
            // Calls of it are converted to calls of other tools.
            Tool::manual(call)?,
            Tool::native(describe, move |arguments: Value, invocation: Arc<Invocation>| {
                let catalogue = Arc::clone(&described);
                async move { catalogue.describe(arguments, &invocation.context).await }
            })?,
            Tool::native(search, move |arguments: Value, invocation: Arc<Invocation>| {
                let catalogue = Arc::clone(&searched);
                async move { catalogue.search(arguments, &invocation.context).await }
            })?,
        ])
    }

    async fn search(self: Arc<Self>, arguments: Value, context: &CallContext) -> Outcome {
        let query = arguments["query"].as_str().unwrap_or_default().to_owned();
        // A whole number, also if it is written as `5.0`.
        let limit = arguments["limit"].as_f64().map_or(DEFAULT_RESULTS, |limit| limit as usize);
        let most = limit.clamp(1, MAX_RESULTS);
        let catalogue = Arc::clone(&self);
        let names =
            tokio::task::spawn_blocking(move || catalogue.names(&query, most * CANDIDATES)).await;
        let Ok(Some(names)) = names else {
            let text = "the tool search failed: do not repeat it, and tell the operator; the server's log says why";
            return Outcome::error(text);
        };
        let mut found = Budget::new(self.bytes);
        let mut left_out = 0;
        for tool in names.iter().filter_map(|name| self.tools.get(name)) {
            if found.results.len() + left_out < most
                && self.executor.is_visible(tool, None, context).await == Some(true)
            {
                left_out += usize::from(!found.add(summary(tool.definition())));
            }
        }
        let hint = "no tool has one of these words: try other words";
        let hint = found.results.is_empty().then(|| json!(hint));
        found.answer([("omitted", (left_out > 0).then(|| json!(left_out))), ("hint", hint)])
    }

    async fn describe(self: Arc<Self>, arguments: Value, context: &CallContext) -> Outcome {
        let names: Vec<String> =
            serde_json::from_value(arguments["names"].clone()).unwrap_or_default();
        let mut described = Budget::new(self.bytes);
        let (mut left_out, mut unknown) = (Vec::new(), Vec::new());
        for name in names {
            match self.tools.get(&name) {
                Some(tool) if self.executor.is_visible(tool, None, context).await == Some(true) => {
                    let Definition { name, description, parameters, output, .. } =
                        tool.definition();
                    let mut shown =
                        json!({"name": name, "description": description, "parameters": parameters});
                    if let Some(output) = output {
                        shown["output"] = output.clone();
                    }
                    if !described.add(shown) {
                        left_out.push(name.clone());
                    }
                }
                Some(_) | None => unknown.push(name),
            }
        }
        let list = |names: Vec<String>| (!names.is_empty()).then(|| json!(names));
        described.answer([("omitted", list(left_out)), ("unknown", list(unknown))])
    }

    fn names(&self, query: &str, most: usize) -> Option<Vec<String>> {
        let made = || {
            let index = Index::new(self.tools.values().map(Tool::definition));
            index.inspect_err(|error| tracing::error!(%error, "the tool tools_search does not work: the index of the tools could not be made")).ok()
        };
        let index = self.index.get_or_init(made).as_ref()?;
        index.search(query, most).inspect_err(|error| tracing::error!(%error, "the tool tools_search failed: the index of the tools could not be searched")).ok()
    }
}

/// Results, within a budget of bytes.
struct Budget {
    results: Vec<Value>,
    bytes: usize,
}

impl Budget {
    fn new(bytes: usize) -> Self {
        Self { results: Vec::new(), bytes }
    }

    /// Adds a result if it fits. The first always fits. Returns true if it was added.
    fn add(&mut self, result: Value) -> bool {
        let bytes = result.to_string().len();
        let fits = self.results.is_empty() || bytes <= self.bytes;
        if fits {
            self.bytes = self.bytes.saturating_sub(bytes);
            self.results.push(result);
        }
        fits
    }

    /// Returns the answer: the results and further members.
    fn answer(self, also: [(&str, Option<Value>); 2]) -> Outcome {
        let mut answer = json!({"tools": self.results});
        for (name, value) in also {
            if let Some(value) = value {
                answer[name] = value;
            }
        }
        Outcome::ok(answer)
    }
}

/// Returns the definition of one of the three tools, with one required parameter.
fn definition(
    name: &str,
    description: String,
    required: &str,
    properties: Value,
) -> Result<Definition, Error> {
    Ok(Definition::new(name, description)?.with_parameters(json!({
        "type": "object",
        "properties": properties,
        "required": [required],
        "additionalProperties": false,
    })))
}

/// Returns a tool as a search result shows it. The names of parameters that are not required end
/// with `?`.
fn summary(definition: &Definition) -> Value {
    let schema = definition.parameters.as_ref();
    let required = schema.and_then(|schema| schema["required"].as_array());
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    let properties = schema.and_then(|schema| schema["properties"].as_object());
    let names = properties.into_iter().flat_map(Map::keys);
    let parameters: Vec<_> = names
        .map(|name| if is_required(name) { name.clone() } else { format!("{name}?") })
        .collect();
    let mut description: String = definition.description.chars().take(SUMMARY).collect();
    if description.len() < definition.description.len() {
        description.push('…');
    }
    json!({"name": definition.name, "description": description, "parameters": parameters})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn called_tool_gets_the_text_of_its_arguments() {
        let arguments = r#"{"id": 123456789012345678901, "rate": 1.10, "at": 0}"#;
        let text = format!(r#"{{"arguments": {arguments}, "name": "find"}}"#);
        let call = ToolCall::new("1", CALL, text);
        let raw = resolve_raw_call(RawCall::from(call.clone()));
        let call = resolve_call(call);
        assert_eq!((call.name.as_str(), call.arguments.as_str()), ("find", arguments));
        assert_eq!((raw.name.as_deref(), raw.arguments), (Some("find"), Some(json!(arguments))));
        let tree = json!({"name": CALL, "args": {"name": "find", "arguments": {"id": 7}}});
        assert_eq!(resolve_raw_call(RawCall::from(tree)).arguments, Some(json!(r#"{"id":7}"#)));
        for other in
            [r#"{"name": "find", "arguments": [1]}"#, r#"{"name": "find", "arguments": null}"#]
        {
            assert_eq!(resolve_call(ToolCall::new("1", CALL, other)).name, CALL, "{other}");
        }
        let without = resolve_call(ToolCall::new("1", CALL, r#"{"name": "find"}"#));
        assert_eq!((without.name.as_str(), without.arguments.as_str()), ("find", "{}"));
    }
}
