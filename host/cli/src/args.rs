//! What can be typed, and the help that teaches it.
//!
//! In: the command line. Out: [`Args`].
//! Invariants: every limit shows its default and its unit; defaults are the library's.
//! Not here: what the words mean (`run`, `batch`, `inspect`, and so on).

mod grants;
mod worker;

use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand, ValueEnum, ValueHint, value_parser};
use toolcell::{
    DEFAULT_CACHE_BYTES, DEFAULT_COMPILE_TIME, DEFAULT_FUEL, DEFAULT_MEMORY, DEFAULT_TIMEOUT, Limits, MAX_CELLS,
};

use crate::exit;
use crate::format::{self, Format};
use crate::units::{Count, Date, Size, Time};

pub(crate) use grants::{ApproveArgs, CheckArgs, ExplainArgs, LearnArgs};
pub(crate) use worker::WorkerArgs;

/// Runs the tools of AI agents, each call in its own sandboxed cell.
///
/// A tool is a WebAssembly component written by a stranger. It reaches nothing but its arguments, and what `toolcell.toml`
/// grants it: no file, no network, no environment otherwise. It runs under a budget of fuel, time and memory, and every call starts afresh.
#[derive(Debug, Parser)]
#[command(name = "toolcell", version, arg_required_else_help = true, after_long_help = tour(), after_help = exit::HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The id of a call that was given none.
pub(crate) const DEFAULT_ID: &str = "call-1";

const TOUR: &str = "\
Examples:
  toolcell list *.wasm                                     what there is
  toolcell inspect calculator.wasm                         what it takes, what it asks of the host
  toolcell run calculator.wasm calculator '{\"expression\": \"6 * 7\"}'
  toolcell tools *.wasm --format openai                    their definitions, for a model's provider
  toolcell batch *.wasm --calls calls.jsonl                many calls at once
  toolcell learn notes '{\"text\": \"milk\"}'                  what a tool would ask for
  toolcell check                                           what is granted, and to which tool
  toolcell approve                                         what is new or changed, for a yes

Results are on standard output, everything else is on standard error. `--json` is for programs.";

const VARIABLES: &str = "\
Environment:
  TOOLCELL_CONFIG  the configuration, where `--config` names none
  TOOLCELL_LOG     filter of the diagnostic log, for instance `toolcell=debug`; wins over -v
  XDG_CACHE_HOME   where caches are kept; `~/.cache` otherwise
  XDG_STATE_HOME   where keys and approvals are kept; `~/.local/state` otherwise";

fn tour() -> String {
    [TOUR, exit::HELP, VARIABLES].join("\n\n")
}

/// What every command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// The configuration: components by name, and what they may reach; otherwise the nearest `toolcell.toml` from here
    /// upwards
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    /// Keep compiled components in this directory instead of the user's cache
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Global options")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Bytes of disk for compiled components; those not used for longest make room
    #[arg(long, global = true, value_name = "SIZE", default_value_t = Size(DEFAULT_CACHE_BYTES), help_heading = "Global options")]
    pub(crate) cache_size: Size,
    /// Compile anew and keep nothing, whatever `--cache-dir` says
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) no_cache: bool,
    /// Keep in this directory instead of the user's own what outlives a call: the key that seals questions, the
    /// tools' keys, and what was approved
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Global options")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Derive what tools take for random from this number and the call's id, so that a run can be repeated
    #[arg(long, global = true, value_name = "NUMBER", help_heading = "Global options")]
    pub(crate) seed: Option<u64>,
    /// Have every call begin at this date, for instance `2026-01-31T12:00:00Z`, so that a run can be repeated
    #[arg(long, global = true, value_name = "DATE", help_heading = "Global options")]
    pub(crate) now: Option<Date>,
    /// Processor time for compiling a component that is not kept yet; to optimise it there is twice as much
    #[arg(long, global = true, value_name = "TIME", default_value_t = Time(DEFAULT_COMPILE_TIME), help_heading = "Global options")]
    pub(crate) compile_time: Time,
    /// Say more on standard error; twice for still more
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Global options")]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Batch(BatchArgs),
    Inspect(InspectArgs),
    List(ListArgs),
    Tools(ToolsArgs),
    Approve(ApproveArgs),
    Check(CheckArgs),
    Explain(ExplainArgs),
    Learn(LearnArgs),
    /// Print a script that completes commands and options in a shell
    #[command(
        after_help = "Example:\n  toolcell completions bash > ~/.local/share/bash-completion/completions/toolcell"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Host a tenant's tools: this command's own child process
    #[command(name = CORDON_WORKER, hide = true)]
    CordonWorker(WorkerArgs),
    /// Compile the component on standard input: this command's own child process
    #[command(name = COMPILE_WORKER, hide = true)]
    CompileWorker {
        /// What the parent's library tells its worker
        order: String,
    },
}

/// The hidden command by which `toolcell` compiles in a process of its own.
pub(crate) const COMPILE_WORKER: &str = "compile-worker";
/// The one by which it runs a tenant's tools in a process of their own.
pub(crate) const CORDON_WORKER: &str = "cordon-worker";
/// What nobody types.
pub(crate) const HIDDEN: [&str; 2] = [COMPILE_WORKER, CORDON_WORKER];

impl Command {
    /// Whether a program reads the answer.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::Run(args) => args.json,
            Self::Batch(args) => args.json,
            Self::Tools(args) => args.json,
            Self::Inspect(args) => args.json,
            Self::List(args) => args.json,
            Self::Approve(args) => args.json,
            Self::Check(args) => args.json,
            Self::Explain(args) => args.json,
            Self::Learn(args) => args.json,
            Self::Completions { .. } | Self::CompileWorker { .. } | Self::CordonWorker(_) => false,
        }
    }
}

/// Call a tool once and print its result
///
/// A result that is a string is printed as text, every other as JSON; an error that the tool reports as
/// `{"error": …}`. Log lines and progress of the tool are on standard error.
#[derive(Debug, clap::Args)]
#[command(after_long_help = RUN_HELP)]
pub(crate) struct RunArgs {
    /// The component: its name in `toolcell.toml`, or its file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) component: PathBuf,
    /// The tool's name
    pub(crate) tool: String,
    /// The arguments: a JSON object, `@FILE` to read it from a file, `-` from standard input (at most 1 MiB)
    #[arg(value_name = "ARGS", default_value = "{}")]
    pub(crate) arguments: String,
    /// Print one JSON object instead: {"id", "tool", "outcome", "usage", "attributes"}
    #[arg(long)]
    pub(crate) json: bool,
    /// Print what the call used, in one line on standard error
    #[arg(long)]
    pub(crate) receipt: bool,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// On whose behalf: what `toolcell.toml` leaves this tenant
    #[arg(long, value_name = "NAME", help_heading = "Context")]
    pub(crate) tenant: Option<String>,
    /// The call's id
    #[arg(long, default_value = DEFAULT_ID, help_heading = "Context")]
    pub(crate) id: String,
    /// Where the call comes from: an object with any of session_id, request_id, thread_id, run_id, tenant, metadata,
    /// attempt, resume
    #[arg(long, value_name = "JSON", help_heading = "Context")]
    pub(crate) context: Option<String>,
    /// A person's answer to the question of an earlier call; text that is not JSON counts as a string
    #[arg(long, value_name = "JSON", help_heading = "Context")]
    pub(crate) answer: Option<String>,
    /// The state that came with the question, as it came: it is sealed, and good for the same call for a day
    #[arg(long, value_name = "TEXT", requires = "answer", help_heading = "Context")]
    pub(crate) state: Option<String>,
}

/// How much one call may use. What is typed wins over `toolcell.toml`, and that over the defaults; a tool's and a tenant's
/// own are on top.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    #[arg(long, value_name = "TIME", help = limit_help(
        "Wall time, waiting included: `500ms`, `2s`, `1m`; a tool's own bound can be shorter", Time(DEFAULT_TIMEOUT)
    ))]
    pub(crate) timeout: Option<Time>,
    #[arg(long, value_name = "N", help = limit_help(
        "Instruction units, about one a wasm instruction: `1000000`, `500M`, `10G`", Count(DEFAULT_FUEL)
    ))]
    pub(crate) fuel: Option<Count>,
    #[arg(long, value_name = "SIZE", help = limit_help(
        "All memories and tables of the cell together: `512KiB`, `64MiB`, `1GiB`", Size(DEFAULT_MEMORY)
    ))]
    pub(crate) memory: Option<Size>,
}

fn limit_help(meaning: &str, default: impl std::fmt::Display) -> String {
    format!("{meaning} [default: {default}]")
}

impl LimitArgs {
    /// What was typed, and these for the rest.
    pub(crate) fn over(&self, mut limits: Limits) -> Limits {
        if let Some(Time(timeout)) = self.timeout {
            limits = limits.with_timeout(timeout);
        }
        if let Some(Count(fuel)) = self.fuel {
            limits = limits.with_fuel(fuel);
        }
        match self.memory {
            Some(Size(memory)) => limits.with_memory(memory),
            None => limits,
        }
    }
}

const RUN_HELP: &str = "\
Examples:
  toolcell run hello.wasm greet '{\"name\": \"Ada\"}'
  toolcell run jq.wasm jq @request.json --timeout 2s --memory 16MiB
  echo '{\"text\": \"one two\"}' | toolcell run text_stats.wasm text_stats - --json
  toolcell run desk.wasm book_table --answer '{\"party_size\": 2}' --state tc1.…

A text result is exact, plus a newline; on a terminal control and invisible characters are left out.

Exit status: 0 ok, 10 the tool's error, 11 question, 12 halt, 20 tool error, 21 refusal, 2 bad usage, 1 anything else";

/// Make many calls at once and print a message for each
///
/// Calls run side by side, each in a cell of its own; messages have the order of the calls. A call that fails is a
/// message too. Nothing runs unless every call can be read, has an id of its own and names a tool that is there.
#[derive(Debug, clap::Args)]
#[command(after_long_help = BATCH_HELP)]
pub(crate) struct BatchArgs {
    /// The components, by name in `toolcell.toml` or by file; a tool's name may stand in one of them only
    #[arg(required = true, value_name = "COMPONENT", value_hint = ValueHint::FilePath)]
    pub(crate) components: Vec<PathBuf>,
    /// The calls: a JSON array, or one JSON object a line; `-` for standard input (at most 256 MiB, a million calls)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) calls: PathBuf,
    /// Print events as they come, one JSON object a line, log lines and progress of the tools among them
    #[arg(long)]
    pub(crate) stream: bool,
    /// The form of messages; of events there are `messages`, our own, and `agui`
    #[arg(long, default_value = "messages", value_parser = format::parser("messages"))]
    pub(crate) format: Format,
    /// Whether a failed call halts the run; the calls beside it run to their end either way
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = OnFailure::Continue)]
    pub(crate) on_tool_error: OnFailure,
    /// Calls at once [default: two for each core]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=i64::from(MAX_CELLS)))]
    pub(crate) max_concurrency: Option<u16>,
    /// Where the run cannot start, say so in JSON on standard output: {"error"}
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// On whose behalf: what `toolcell.toml` leaves this tenant
    #[arg(long, value_name = "NAME", help_heading = "Context")]
    pub(crate) tenant: Option<String>,
    /// Where the calls come from: an object with any of session_id, request_id, thread_id, run_id, tenant, metadata,
    /// attempt
    #[arg(long, value_name = "JSON", help_heading = "Context")]
    pub(crate) context: Option<String>,
}

/// What a failed call does to its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnFailure {
    /// The model reads of it
    Continue,
    /// The same, and the run ends halted: `halt` names the call, exit status 20
    Halt,
}

const BATCH_HELP: &str = "\
A call is {\"id\": \"c1\", \"name\": \"greet\", \"arguments\": {\"name\": \"Ada\"}}:
  id         stands in its result; a call without one is `call-N`, N its place from 1
  arguments  an object, or JSON text as models write it; {} if missing
OpenAI's {\"id\", \"type\": \"function\", \"function\": {\"name\", \"arguments\"}} is understood too.

Printed is {\"messages\": […]}, one message for each call. With a provider's `--format` it is what goes into \
`messages`, `input` or `contents` of its API; what that form cannot say is told in `note:` lines. Where an agent's loop \
is not to go on there is `halt` beside it: {\"halted_reason\", …} with the question, the halting tool's result, or the \
call that failed; of several calls the earliest in the list. Where log text of the tools was lost there are `log_bytes`, \
what was kept of it, and `log_bytes_lost`.

With --stream each call is a `tool_execution_started`, any number of `tool_progress` and `tool_log`, a \
`tool_execution_completed` with its receipt, and one of `tool_result_encoded`, `ask_user_requested` and `tool_halt`. \
Only a halted run has one line more, the last: {\"type\": \"run_halted\", \"halt\": {…}}. A run that cannot start is \
one line of type `error`.

Examples:
  toolcell batch calculator.wasm hello.wasm --calls calls.jsonl
  toolcell batch *.wasm --calls - --timeout 2s --stream < calls.jsonl
  toolcell batch *.wasm --calls calls.json --on-tool-error halt --format anthropic

Exit status: 0 every call ended, failed or not, 11 halted by a question, 12 by a tool, 20 by a failure, 2 bad usage, \
1 anything else";

/// Print definitions of tools, to offer them to a model
///
/// The list goes as it is to `tools` of the provider's request. Where its API cannot say what a definition says, a
/// `note:` tells what was changed; a tool that it has no form for at all is an error.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell tools calculator.wasm hello.wasm --format anthropic
  toolcell tools *.wasm --format json | jq '.[].name'")]
pub(crate) struct ToolsArgs {
    /// The components, by name in `toolcell.toml` or by file; a tool's name may stand in one of them only
    #[arg(required = true, value_name = "COMPONENT", value_hint = ValueHint::FilePath)]
    pub(crate) components: Vec<PathBuf>,
    /// The form: our own, which leaves nothing out, or what a provider's API takes
    #[arg(long, default_value = "json", value_parser = format::parser("json"))]
    pub(crate) format: Format,
    /// Where there is nothing to print, say so in JSON on standard output: {"error"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what a component offers and what it asks for
///
/// Runs no tool: the component is compiled and asked for its definitions, in a cell that is granted nothing. One that
/// cannot be loaded is shown as far as it can be, with the reason and exit status 1. Waits until the component is
/// optimised, for every command that uses it later.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell inspect desk.wasm
  toolcell inspect desk.wasm --json | jq '.tools[].parameters'

Imports stand in one of four ways:
  inert        language runtimes ask for it at their start; it reaches nothing
  offered      a service of the host that needs no grant
  needs_grant  would reach out of the cell; `toolcell.toml` would have to grant it
  unknown      not known to this host")]
pub(crate) struct InspectArgs {
    /// The component: its name in `toolcell.toml`, or its file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) component: PathBuf,
    /// Print one JSON object instead
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the tools of components, one a line
///
/// A component that cannot be used is reported on standard error, the others are listed; the exit status is then 1.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  toolcell list tools/*.wasm")]
pub(crate) struct ListArgs {
    /// The components, by name in `toolcell.toml` or by file
    #[arg(required = true, value_name = "COMPONENT", value_hint = ValueHint::FilePath)]
    pub(crate) components: Vec<PathBuf>,
    /// Print one JSON object instead: {"tools", "errors"}
    #[arg(long)]
    pub(crate) json: bool,
}
