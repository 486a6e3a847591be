//! The command line of `batch`, which makes many calls, and its help.
//!
//! clap, the parser, fills [`BatchArgs`] from the command line; `commands/batch` takes it. The
//! comments of the fields are the text of `--help`. Two options are enums of this module:
//! [`OnFailure`] says if a failed call stops the loop of the agent, and [`Unknown`] says what
//! happens to a call of a tool that no component has. Both convert to the library's own types. The
//! long help describes the forms of calls that are read and the events that are printed.

use std::path::PathBuf;

use clap::{ValueEnum, ValueHint};
use toolcell::run::UnknownTools;
use toolcell::{Engine, OnToolError};

use super::{GrantArgs, LimitArgs, complete};
use crate::print::units::whole_number_parser;
use crate::print::{Format, format};

/// Make many calls and print a message for each
///
/// The calls run side by side, each in a cell of its own. The messages are in the order of the
/// calls, and a call that fails has a message too. If the list cannot be read, or two calls have
/// the same id, no call runs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = HELP)]
pub(crate) struct BatchArgs {
    /// The components, by name or by file [default: all of `toolcell.toml`]
    ///
    /// Two components with a tool of the same name are an error. Without names, a component that
    /// lacks a grant is left out with a warning, if there are other components.
    #[arg(value_name = "COMPONENT", value_hint = ValueHint::FilePath, add = complete::components())]
    pub(crate) components: Vec<PathBuf>,
    /// The file of the calls, in our form or a provider's; `-` for standard input
    ///
    /// At most 256 MiB and a million calls.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) calls: PathBuf,
    /// The form of the calls [default: detected]
    #[arg(long, value_name = "FORM", value_parser = format::parser("calls"))]
    pub(crate) calls_format: Option<Format>,
    /// What to do about a call of a tool that no component has
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = Unknown::Error)]
    pub(crate) unknown_tools: Unknown,
    /// Print events as they come, one JSON object a line
    ///
    /// Log lines and progress of the tools are among them.
    #[arg(long)]
    pub(crate) stream: bool,
    /// The form of the messages
    ///
    /// With `--stream` it is the form of the events: `messages` (our own) or `agui`.
    #[arg(long, default_value = "messages", value_parser = format::parser("messages"))]
    pub(crate) format: Format,
    /// Whether a failed call tells the agent's loop to stop
    ///
    /// All calls are made either way.
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = OnFailure::Continue)]
    pub(crate) on_tool_error: OnFailure,
    /// The most calls at once [default: two for each core]
    #[arg(long, value_name = "N", value_parser = whole_number_parser(1..=Engine::MAX_CELLS))]
    pub(crate) max_concurrency: Option<u32>,
    /// Print JSON also if the run cannot start: {"error"}
    ///
    /// All other output is JSON anyway.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) grants: GrantArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// The tenant that the calls are for; its section in `toolcell.toml` narrows what they can use
    #[arg(long, value_name = "NAME", help_heading = "Context")]
    pub(crate) tenant: Option<String>,
    /// The context of the calls: an object with any of session_id, request_id, thread_id, run_id,
    /// tenant, metadata, attempt
    #[arg(hide_short_help = true, long, value_name = "JSON", help_heading = "Context")]
    pub(crate) context: Option<String>,
}

/// What a failed call does to its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnFailure {
    /// The model reads the failure in the call's message
    Continue,
    /// The same, and `halt` in the output names the first failed call; exit status 20
    Halt,
}

impl From<OnFailure> for OnToolError {
    fn from(policy: OnFailure) -> Self {
        match policy {
            OnFailure::Continue => Self::Continue,
            OnFailure::Halt => Self::Halt,
        }
    }
}

/// What to do about a call of a tool that no component has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unknown {
    /// No call runs, exit status 1
    Error,
    /// That call ends as `not_found`, and its message names the nearest tool; the other calls run
    Answer,
}

impl From<Unknown> for UnknownTools {
    fn from(policy: Unknown) -> Self {
        match policy {
            Unknown::Error => Self::Refuse,
            Unknown::Answer => Self::Answer,
        }
    }
}

const HELP: &str = "\
Calls in our own form are a JSON array, or one JSON object a line:
  {\"id\": \"c1\", \"name\": \"greet\", \"arguments\": {\"name\": \"Ada\"}}
  id         the id that the call's message repeats; if missing, `call-N`, N the call's place from 1
  name       the tool's name
  arguments  an object, or JSON text of one; {} if missing

A provider's whole response, its message, or the bare list of its calls is read as well:
  openai            a response with `choices`, a message with `tool_calls`, or that list
  openai-responses  a response with `output`, or that list
  anthropic         a message with `content`, or that list
  gemini            a response with `candidates`, a content with `parts`, or that list
  mcp               a `tools/call` request, or a list of requests
  agui              a message with `toolCalls`, or a list of events
A line of a file can be such a document too. If a call in a document cannot be read, it counts as a failed call.

The output is {\"messages\": […]}, one message for each call. With a provider's `--format` you append the list to \
`messages`, `input` or `contents` of the next request to its API; a `note:` tells what that form cannot express. If an \
agent's loop must stop, the output has `halt` too: {\"halted_reason\", …} with the question, the halting tool's \
result, or the call that failed. If several calls halt the run, `halt` is about the first of them in the list. If log \
text of the tools was lost, `log_bytes` counts what was kept and `log_bytes_dropped` the rest.

With --stream each call has these events: `tool_execution_started`, any number of `tool_progress` and `tool_log`, \
`tool_execution_completed` with its usage, and one of `tool_result_encoded`, `ask_user_requested` and `tool_halt`. \
The last line is {\"type\": \"run_finished\", \"calls\", \"failed\"}, or {\"type\": \"run_halted\", \"halt\": {…}}. If the run \
cannot start, the only line is an event of type `error`.

Examples:
  toolcell batch calculator.wasm hello.wasm --calls calls.jsonl
  toolcell batch --calls response.json --unknown-tools answer --format anthropic
  toolcell batch calculator.wasm hello.wasm --calls - --timeout 2s --stream < calls.jsonl

Exit status: 0 every call ended, failed or not, 11 a tool asked a question, 12 a tool ended the agent's loop, 20 a call failed under `--on-tool-error halt`, 2 bad usage, \
1 anything else";
