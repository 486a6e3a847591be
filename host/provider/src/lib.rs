//! Converts between the types of a call and the formats of model providers: definitions out, calls
//! in, results out.
//!
//! An embedder (the program that uses this library) names a [`Provider`], such as OpenAI or Gemini.
//! [`Provider::definitions`] writes the tools for a request, [`Provider::calls`] reads the calls
//! from the response, and [`Provider::results`] writes the messages of a run for the next request.
//! The output is JSON, with notes: a feature that an API lacks is described in text or refused, and
//! noted, never dropped silently. A tool that an API cannot express is left out, and the others
//! stay. The conversions are pure.
//!
//! Not here: transport and keys, which are the embedder's; fragments of a stream, in `assemble`.
//!
//! Source: docs/contract.md, section 5; each API's public reference.
//!
//! The crate `toolcell` re-exports all of it as its module `provider`.

mod assemble;
mod calls;
mod document;
mod form;
mod formats;
mod note;
mod part;
mod place;
mod schema;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use toolcell_contract::definition::{Definition, check_name};
use toolcell_contract::json::{Json, is_too_deep};
use toolcell_contract::message::Message;
use toolcell_contract::names;

use formats::{agui, anthropic, gemini, mcp, openai};

pub use assemble::{AssembleError, Assembler, Fragment, OpenCall};
pub use calls::{Calls, UnreadableCall};
pub use formats::agui::{agui_events, agui_run_end};
use note::Changes;
pub use note::{Conversion, Note};
use place::Place;

/// The API of a model provider, or a protocol for tools, in the version that its public reference
/// describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI, chat completions. Many other providers support it too.
    OpenAi,
    /// OpenAI, responses.
    OpenAiResponses,
    /// Anthropic, messages.
    Anthropic,
    /// Gemini, `generateContent`.
    Gemini,
    /// Model Context Protocol, revision 2025-06-18, server side.
    Mcp,
    /// Agent–User Interaction protocol.
    AgUi,
}

impl Provider {
    /// All providers: names and detection find only those in this list.
    pub const ALL: [Self; 6] =
        [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Mcp, Self::AgUi];

    /// Returns the name that [`FromStr`] accepts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
            Self::AgUi => "agui",
        }
    }

    /// Converts definitions to this API's format. A tool without parameters accepts any object. A
    /// tool that the API cannot express is left out, with a note, and the others stay. Gemini has
    /// no references: a recursive schema is expanded 3 times and cut there, with a note; once, if 3
    /// times would be too large.
    ///
    /// # Shape
    /// The list for `tools`: of a request, of the result of MCP's `tools/list`, of AG-UI's
    /// `RunAgentInput`.
    ///
    /// # Errors
    /// [`ProviderError::Inexpressible`] for the first tool, if there are tools and the API can
    /// express none of them.
    pub fn definitions<'a>(
        self,
        definitions: impl IntoIterator<Item = &'a Definition>,
    ) -> Result<Conversion, ProviderError> {
        let (converted, first) = self.listed(definitions);
        match first {
            Some(error) if converted.value.as_array().is_some_and(Vec::is_empty) => Err(error),
            Some(_) | None => Ok(converted),
        }
    }

    /// Converts one page of a longer list, as [`definitions`](Self::definitions) does. The page may
    /// be empty; it is never an error.
    pub fn page<'a>(self, definitions: impl IntoIterator<Item = &'a Definition>) -> Conversion {
        self.listed(definitions).0
    }

    /// Returns the list, and the error of the first tool that is left out.
    fn listed<'a>(
        self,
        definitions: impl IntoIterator<Item = &'a Definition>,
    ) -> (Conversion, Option<ProviderError>) {
        let (mut tools, mut notes, mut names, mut first) =
            (Vec::new(), Vec::new(), BTreeSet::new(), None);
        let mut places = schema::LIST_PLACES;
        for definition in definitions {
            let noted = notes.len();
            let mut changes = Changes::new(self, &definition.name, &mut notes, &mut places);
            let is_new = names.insert(&definition.name);
            match self.definition(definition, is_new, &mut changes) {
                Ok(tool) => tools.push(tool),
                Err(error) => {
                    notes.truncate(noted);
                    notes.extend(Note::omitted(&error));
                    first.get_or_insert(error);
                }
            }
        }
        let value = if self == Self::Gemini { gemini::tools(tools) } else { tools.into() };
        (Conversion { value, notes }, first)
    }

    /// Converts one tool of a list.
    fn definition(
        self,
        definition: &Definition,
        is_new: bool,
        changes: &mut Changes<'_>,
    ) -> Converted {
        if check_name(&definition.name).is_err() {
            return Err(changes
                .refusal("/name", "the name must be 1 to 64 of the characters A-Z a-z 0-9 _ -"));
        }
        if !is_new {
            return Err(changes.refusal("/name", "there are two tools of this name"));
        }
        for (pointer, schema) in
            [("/parameters", &definition.parameters), ("/output", &definition.output)]
        {
            let is_too_large = |schema: &Value| {
                is_too_deep(schema) || Json::from(schema.clone()).check_size().is_err()
            };
            if schema.as_ref().is_some_and(is_too_large) {
                return Err(changes
                    .refusal(pointer, "the schema is nested too deep or has too many values"));
            }
        }
        if definition.output.is_some() && self != Self::Mcp {
            changes.note(
                "/output",
                "the schema of results is left out, and the host still checks each result",
                "only MCP has a field for this schema",
            );
        }
        match self {
            Self::OpenAi => openai::chat_tool(definition, changes),
            Self::OpenAiResponses => openai::responses_tool(definition, changes),
            Self::Anthropic => anthropic::tool(definition, changes),
            Self::Gemini => gemini::tool(definition, changes),
            Self::Mcp => mcp::tool(definition, changes),
            Self::AgUi => agui::tool(definition, changes),
        }
    }

    /// Reads the tool calls in a response of this API, in their order. Items that are no function
    /// calls (text, thoughts, calls that the provider runs itself) are left out. A call in another
    /// API's form among them is an error. A call that cannot be read (without a name or unfinished,
    /// for instance) is returned separately and fails alone. Arguments are not validated here: text
    /// that is not JSON is kept, and the executor refuses that call alone; empty or blank text
    /// means no arguments.
    ///
    /// The last call of an answer that the provider reports as cut (`finish_reason: length`,
    /// `stop_reason: max_tokens`, `finishReason: MAX_TOKENS`, `status: incomplete`, a filter, an
    /// error, or `RUN_ERROR` after an open chunk) is [unreadable](UnreadableCall), even if its
    /// arguments are valid: a part of them may be missing. Only the whole response reports the cut,
    /// so pass the whole response, or the one choice or candidate that you use. The pieces of a
    /// stream are put together by an [`Assembler`]; a list of them is an error.
    ///
    /// # Shape
    /// A whole response, one of its choices or candidates, its message, or the list in it that
    /// holds the calls; as a tree. [`document`](Self::document) makes the tree from text so that
    /// one bad call does not affect the others. For MCP a `tools/call` request or its `params`; for
    /// AG-UI an assistant message or a whole list of events, `TOOL_CALL_CHUNK` among them. In APIs
    /// whose calls may have no id, such a call gets one from its index: `toolcell-call-0`.
    ///
    /// # Errors
    /// [`ProviderError::Malformed`] if the response as a whole does not have this API's form,
    /// contains no list of calls, or if an item of the list is a call in another form. For MCP also
    /// if its one call cannot be read.
    pub fn calls(self, response: &Value) -> Result<Calls, ProviderError> {
        let response = Place::root(self, response);
        match self {
            Self::OpenAi => openai::chat_calls(&response),
            Self::OpenAiResponses => openai::responses_calls(&response),
            Self::Anthropic => anthropic::calls(&response),
            Self::Gemini => gemini::calls(&response),
            Self::Mcp => Ok(Calls::of([Ok(mcp::call(&response)?)])),
            Self::AgUi => agui::calls(&response),
        }
    }

    /// Converts a run's messages to this API's format. A part whose bytes the API does not accept
    /// is described in the text.
    ///
    /// # Shape
    /// A list to be appended to the next request's `messages`, `input` or `contents`. For Anthropic
    /// and Gemini, one message holds all results. For MCP one `CallToolResult` per message, with
    /// the call's id at `_meta` `toolcell/tool_call_id`.
    #[must_use]
    pub fn results(self, messages: &[Message]) -> Conversion {
        let mut notes = Vec::new();
        let each = |result: fn(&Message, &mut Vec<Note>) -> Value, notes: &mut Vec<Note>| {
            messages.iter().map(|message| result(message, notes)).collect::<Vec<_>>()
        };
        let items = match self {
            Self::OpenAi => each(openai::chat_result, &mut notes),
            Self::OpenAiResponses => each(openai::responses_result, &mut notes),
            Self::Anthropic => anthropic::results(each(anthropic::result, &mut notes)),
            Self::Gemini => gemini::results(messages, &mut notes),
            Self::Mcp => each(mcp::result, &mut notes),
            Self::AgUi => each(agui::result, &mut notes),
        };
        Conversion { value: items.into(), notes }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Provider {
    type Err = ProviderError;

    fn from_str(name: &str) -> Result<Self, ProviderError> {
        let found = Self::ALL.into_iter().find(|provider| provider.name() == name);
        found.ok_or_else(|| ProviderError::Unknown { name: name.chars().take(80).collect() })
    }
}

/// The result of a conversion.
type Converted<T = Value> = Result<T, ProviderError>;

/// The reason why a conversion failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// No provider has this name.
    #[error("`{name}` is not a provider")]
    Unknown {
        /// The unknown name.
        name: String,
    },
    /// An API cannot express a definition.
    #[error("`{tool}` cannot be offered to {provider}: at `{pointer}`: {problem}")]
    Inexpressible {
        /// The API.
        provider: Provider,
        /// The tool.
        tool: String,
        /// The place in its definition, as a JSON pointer.
        pointer: String,
        /// The part that the API cannot express.
        problem: String,
    },
    /// No API sends a document of this form.
    #[error("this is neither a response nor a list of calls of a supported API")]
    UnknownForm,
    /// Several APIs send documents of this form.
    #[error("this could come from several APIs: {}", names_of(candidates))]
    AmbiguousForm {
        /// The APIs.
        candidates: Vec<Provider>,
    },
    /// The provider ended its answer early, and this is the last call in it.
    #[error(
        "this call was not made: {provider} cut the answer (`{reason}`), so the arguments may be incomplete; send the call again"
    )]
    Truncated {
        /// The API.
        provider: Provider,
        /// The provider's own reason, `max_tokens` for instance.
        reason: String,
    },
    /// The document does not have this API's form.
    #[error("not as {provider} sends it: {}: expected {expected}", describe_place(pointer))]
    Malformed {
        /// The API.
        provider: Provider,
        /// The place, as a JSON pointer. Empty for the whole document.
        pointer: String,
        /// The expected form.
        expected: &'static str,
    },
}

impl ProviderError {
    /// A hint for the caller, in one line.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { name } => {
                let listed = || format!("there are: {}", names_of(&Provider::ALL));
                names::did_you_mean(name, Provider::ALL.map(Provider::name), listed)
            }
            Self::Inexpressible { .. } => {
                "change the tool's definition, or offer the tool to other providers only".into()
            }
            Self::UnknownForm | Self::AmbiguousForm { .. } => {
                format!("say which API it comes from: {}", names_of(&Provider::ALL))
            }
            Self::Truncated { .. } => {
                "let the model send the call again with shorter arguments, or allow the answer more tokens".into()
            }
            Self::Malformed { .. } => "pass on the whole response as it came; put a streamed one together first".into(),
        }
    }
}

/// Describes a place in words.
fn describe_place(pointer: &str) -> String {
    if pointer.is_empty() { "the whole document".to_owned() } else { format!("at `{pointer}`") }
}

fn names_of(providers: &[Provider]) -> String {
    providers.iter().map(|provider| provider.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod cases {
    /// Returns the rows of a table in `cases/FILE.yaml`.
    pub(crate) fn rows<T: serde::Deserialize<'static>>(file: &str, table: &str) -> Vec<T> {
        let text = std::fs::read_to_string(format!("cases/{file}.yaml")).expect(file);
        // This type refuses a table that occurs twice.
        serde_norway::from_str::<serde_norway::Mapping>(&text).expect(file);
        let tables: serde_json::Value = serde_norway::from_str(&text).expect(file);
        let rows: Vec<T> =
            serde::Deserialize::deserialize(&Box::leak(Box::new(tables))[table]).expect(table);
        assert!(!rows.is_empty(), "`{table}` of `cases/{file}.yaml` has no rows");
        rows
    }
}

#[cfg(test)]
mod tests;
