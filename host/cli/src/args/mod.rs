//! The command line: its options and its help.
//!
//! [`Args`] is the whole command line as clap, the parser, fills it: the options of every command
//! in [`Global`], and one [`Command`] with a struct of its own options. `main` parses it and passes
//! the struct to the module of that command in `commands`. The structs of the most used commands
//! are here, the others in the modules of this folder. The comments of structs and fields are the
//! text of the help: `-h` fits on one screen, `--help` is complete. Each limit shows its default,
//! which is the library's, with its unit. Three commands are hidden: this program starts itself
//! with them as a child process.

mod author;
mod batch;
pub(crate) mod complete;
pub(crate) mod context;
mod grants;
pub(crate) mod json_repair;
mod limits;
pub(crate) mod no_command;
mod serve;
pub(crate) mod target;
mod worker;

use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand, ValueHint};
use toolcell::Engine;

use crate::built::CURRENT_DIR;
use crate::os::lines;
use crate::print::units::{Date, number};
use crate::print::{Format, Size, Time, exit, format};

pub(crate) use author::{BuildArgs, DevArgs, NewArgs, TestArgs};
pub(crate) use batch::BatchArgs;
pub(crate) use grants::{ApproveArgs, CheckArgs, ExplainArgs, GrantArgs, LearnArgs, RollbackArgs};
pub(crate) use limits::LimitArgs;
pub(crate) use serve::{ServeArgs, TenantArgs, TenantCommand};
pub(crate) use worker::WorkerArgs;

/// Runs the tools of AI agents, each call in its own sandboxed cell.
///
/// A tool is a WebAssembly component that its user need not trust. It sees its arguments, and no
/// file, network or environment variable unless `toolcell.toml` grants it. Each call has limits on
/// instructions, time and memory, and starts with fresh memory.
#[derive(Debug, Parser)]
#[command(name = "toolcell", version, arg_required_else_help = true, after_long_help = help_topics(), after_help = SHORT)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const SHORT: &str = "`toolcell --help` shows examples, exit statuses and the environment, `toolcell COMMAND --help` a command";

/// The id of a call without `--id`.
pub(crate) const DEFAULT_ID: &str = "call-1";

const TOUR: &str = "\
Examples:
  toolcell new greeter --language js                       a small project with a tool of your own
  toolcell build greeter                                   its component
  toolcell test greeter                                    its cases
  toolcell list *.wasm                                     the tools of components
  toolcell inspect calculator.wasm                         a component's tools, parameters and needs
  toolcell run calculator.wasm expression='6 * 7'          one call
  toolcell run desk.wasm book_table '{\"party_size\": 2}'    one of several tools
  toolcell tools hello.wasm --format openai                definitions for a model's provider
  toolcell batch calculator.wasm hello.wasm --calls calls.jsonl   many calls
  toolcell learn notes.wasm action=list                    the grants that a tool asks for
  toolcell init                                            a commented `toolcell.toml` for the components here
  toolcell check                                           the configuration, and each tool's grants
  toolcell approve                                         what is new or changed, for your approval
  toolcell rollback notes                                  the version that you approved before
  toolcell serve                                           the approved tools, for agents
  toolcell tenant add acme                                 an API key for one of several tenants

Results are on standard output, everything else is on standard error. `--json` is for programs.";

const VARIABLES: &str = "\
Environment:
  TOOLCELL_CONFIG  the configuration, unless `--config` names one
  TOOLCELL_LOG     filter of the diagnostic log, for instance `toolcell=debug`; overrides -v
  XDG_CACHE_HOME   directory of the cache [default: ~/.cache]
  XDG_STATE_HOME   directory of approvals and `kv` data [default: ~/.local/state]
  NO_COLOR         if set, no colours; CLICOLOR_FORCE=1 colours errors without a terminal";

fn help_topics() -> String {
    [TOUR, exit::HELP, VARIABLES].join("\n\n")
}

/// The options of every command.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// The configuration [default: `toolcell.toml` in this directory or above]
    ///
    /// It names components, and says what they are granted.
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    /// Keep compiled components in this directory [default: the user's cache]
    #[arg(long, global = true, hide_short_help = true, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Global options")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Limit on disk space for compiled components; the least recently used are removed first
    #[arg(long, global = true, hide_short_help = true, value_name = "SIZE", default_value_t = Size(Engine::DEFAULT_CACHE_BYTES), help_heading = "Global options")]
    pub(crate) cache_size: Size,
    /// Neither read nor write the cache of compiled components
    #[arg(long, global = true, hide_short_help = true, help_heading = "Global options")]
    pub(crate) no_cache: bool,
    /// Directory for approvals, the `kv` data of tools, and the key that encrypts the `--state`
    /// text of a question [default: the user's state directory]
    #[arg(long, global = true, hide_short_help = true, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Global options")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Derive the tools' random numbers from this number and the call's id, to repeat a run
    #[arg(long, global = true, hide_short_help = true, value_name = "NUMBER", value_parser = number, help_heading = "Global options")]
    pub(crate) seed: Option<u64>,
    /// Start the clock of every call at this date, for instance `2026-01-31T12:00:00Z`, to repeat a
    /// run
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "DATE",
        help_heading = "Global options"
    )]
    pub(crate) now: Option<Date>,
    /// Limit on the processor time to compile a component that is not in the cache. A component of
    /// more than 8 MiB has more in proportion. A second, optimising compilation runs in the
    /// background; its limit is twice this
    #[arg(long, global = true, hide_short_help = true, value_name = "TIME", default_value_t = Time(Engine::DEFAULT_COMPILE_TIME), help_heading = "Global options")]
    pub(crate) max_compile_time: Time,
    /// Log to standard error; -vv logs more
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet", help_heading = "Global options")]
    pub(crate) verbose: u8,
    /// Print results and errors only
    ///
    /// No notes, warnings, hints, progress or log lines.
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Batch(BatchArgs),
    Inspect(InspectArgs),
    List(ListArgs),
    Tools(ToolsArgs),
    Approve(ApproveArgs),
    Rollback(RollbackArgs),
    Check(CheckArgs),
    Explain(ExplainArgs),
    Learn(LearnArgs),
    Init(InitArgs),
    Serve(ServeArgs),
    Tenant(TenantArgs),
    New(NewArgs),
    Build(BuildArgs),
    Test(TestArgs),
    Dev(DevArgs),
    /// Print a script that completes commands, options, components and tools in a shell
    ///
    /// The script asks the command itself what there is: components are those of `toolcell.toml`,
    /// tools those that you have approved.
    #[command(
        after_long_help = "Example:\n  toolcell completions bash > ~/.local/share/bash-completion/completions/toolcell"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Host a tenant's tools: this command's own child process
    #[command(name = WORKER_PROCESS, hide = true)]
    WorkerProcess(WorkerArgs),
    /// Compile the component on standard input: this command's own child process
    #[command(name = COMPILE_WORKER, hide = true)]
    CompileWorker {
        /// The order of the parent process: how to compile
        order: String,
    },
    /// Look up source lines in the component on standard input: this command's own child process
    #[command(name = lines::WORKER, hide = true)]
    LinesWorker {
        /// Positions in the code: `FUNCTION:OFFSET`
        frames: Vec<String>,
    },
}

/// Name of the hidden command that compiles a component in a process of its own.
pub(crate) const COMPILE_WORKER: &str = "compile-worker";
/// Name of the hidden command that runs a tenant's tools in a process of their own.
pub(crate) const WORKER_PROCESS: &str = "worker-process";
/// The hidden commands, which only this program starts.
pub(crate) const HIDDEN: [&str; 3] = [COMPILE_WORKER, WORKER_PROCESS, lines::WORKER];

impl Command {
    /// Returns the address of the collector of spans, if `serve` got one.
    pub(crate) fn collector(&self) -> Option<&str> {
        #[cfg(feature = "otlp")]
        if let Self::Serve(args) = self {
            return args.otlp.as_deref();
        }
        None
    }
}

// The first word after the component can be the tool's name or an argument: `target.rs` decides.
/// One call: `[COMPONENT] [TOOL] [ARGS]...`.
#[derive(Debug, clap::Args)]
pub(crate) struct CallArgs {
    /// The component: its name in `toolcell.toml`, its file, or the folder of its project
    ///
    /// `.` is the component that was built in this folder or, if there is none, the only component
    /// of `toolcell.toml`.
    #[arg(default_value = CURRENT_DIR, value_hint = ValueHint::FilePath, add = complete::components())]
    pub(crate) component: PathBuf,
    /// The tool's name; not needed for a component with one tool
    #[arg(add = complete::tools())]
    pub(crate) tool: Option<String>,
    /// The arguments: NAME=VALUE and NAME:=JSON, a JSON object, `@FILE`, or `-` [default: {}]
    ///
    /// `@FILE` is the file of a JSON object, `-` standard input; both at most 1 MiB.
    #[arg(value_name = "ARGS")]
    pub(crate) arguments: Vec<String>,
}

/// Call a tool and print its result
///
/// A result that is a string is printed as text, any other result as JSON, and an error that the
/// tool reports as `{"error": …}`. Log lines and progress of the tool go to standard error. If the
/// tool asks a question and you are at a terminal, you can answer there.
#[derive(Debug, clap::Args)]
#[command(after_long_help = [RUN_HELP, grants::EXAMPLES, RUN_STATUS].concat())]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) call: CallArgs,
    /// Print one JSON object instead
    ///
    /// It is {"id", "tool", "outcome", "usage", "attributes"}.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print what the call used, as one line on standard error
    #[arg(long)]
    pub(crate) usage: bool,

    #[command(flatten)]
    pub(crate) grants: GrantArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// The tenant that the call is for; its section in `toolcell.toml` narrows what it can use
    #[arg(long, value_name = "NAME", help_heading = "Context")]
    pub(crate) tenant: Option<String>,
    /// The call's id
    #[arg(hide_short_help = true, long, default_value = DEFAULT_ID, help_heading = "Context")]
    pub(crate) id: String,
    /// Where the call comes from: an object with any of session_id, request_id, thread_id, run_id,
    /// tenant, metadata, attempt, resume
    #[arg(hide_short_help = true, long, value_name = "JSON", help_heading = "Context")]
    pub(crate) context: Option<String>,
    /// Your answer to the question of an earlier call; needs `--state`
    ///
    /// Text that is not JSON counts as a string.
    #[arg(long, value_name = "JSON", help_heading = "Context")]
    pub(crate) answer: Option<String>,
    /// The state that came with the question, unchanged
    ///
    /// It is encrypted, and valid for the same call for a day.
    #[arg(long, value_name = "TEXT", requires = "answer", help_heading = "Context")]
    pub(crate) state: Option<String>,
}

const RUN_HELP: &str = "\
Examples:
  toolcell run                                             what was built in this folder
  toolcell run hello.wasm name=Ada
  toolcell run hello.wasm greet '{\"name\": \"Ada\"}'
  toolcell run jq.wasm @request.json --timeout 2s --memory 16MiB
  echo '{\"text\": \"one two\"}' | toolcell run text_stats.wasm text_stats - --json
  toolcell run notes.wasm action=list --grant 'kv=write notes/*'
  toolcell run desk.wasm book_table --answer '{\"party_size\": 2}' --state tc2.…

The first word after the component is the tool's name, unless it has the form of arguments: `{…}`, `@FILE`, `-`, or \
NAME=VALUE. NAME=VALUE is text, unless the tool's schema wants a number, a boolean, a list or an object there: then it is \
read as JSON. NAME:=JSON is JSON in any case: `n:=3`, `tags:='[\"a\"]'`.

";

const RUN_STATUS: &str = "\
A text result is printed exactly, plus a newline. On a terminal, control characters and invisible characters are left \
out.

Exit status: 0 ok, 10 the tool's error, 11 question, 12 halt, 20 tool error, 21 refusal, 2 bad usage, 1 anything else";

/// Print definitions of tools for a model's provider
///
/// Put the printed list into `tools` of a request to the provider. If the provider's API cannot
/// express a part of a definition, a `note:` tells what was changed. A tool that it cannot express
/// at all is left out with a note. If no tool is left, that is an error.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell tools calculator.wasm hello.wasm --format anthropic
  toolcell tools desk.wasm --format json | jq '.[].name'")]
pub(crate) struct ToolsArgs {
    /// The components, by name or by file [default: all of `toolcell.toml`]
    ///
    /// Two components with a tool of the same name are an error. Without names, a component that
    /// lacks a grant is left out with a warning, if there are other components.
    #[arg(value_name = "COMPONENT", value_hint = ValueHint::FilePath, add = complete::components())]
    pub(crate) components: Vec<PathBuf>,
    /// The format: our own, which is complete, or a provider's
    #[arg(long, default_value = "json", value_parser = format::parser("json"))]
    pub(crate) format: Format,
    /// If there is an error, print it as JSON on standard output: {"error"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show a component's tools, what they need, and what they are granted
///
/// Calls no tool: the component is compiled and asked for its definitions, in a cell that is
/// granted nothing. So a component whose imports are not granted is shown too, with the grants that
/// it declares. Texts in a definition that seem to be written to steer a model are warnings. The
/// exit status is 1 if the component cannot be loaded.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell inspect desk.wasm
  toolcell inspect desk.wasm submit_plan
  toolcell inspect desk.wasm --json | jq '.tools[].parameters'

Each import is one of these:
  inert        WASI interfaces of a language runtime, in one line: no access by themselves
  offered      a service of the host that needs no grant
  needs_grant  access outside of the cell, which `toolcell.toml` has to grant
  unknown      not known to this host: the component cannot be loaded

Each line of `lint` is one of these:
  unused_need        a need that no import can use; not judged for JavaScript and Python
  undeclared_import  an import of a kind that no tool declares; not judged for Python
  no_description     a tool or a parameter without a description
  provider           the API of a model provider changes or refuses a schema
  debug_information  debug information that makes the component larger
  large              a component of more than 20 MiB")]
pub(crate) struct InspectArgs {
    /// The component: its name in `toolcell.toml`, its file, or a folder: `.` is what was built
    /// here
    #[arg(default_value = CURRENT_DIR, value_hint = ValueHint::FilePath, add = complete::components())]
    pub(crate) component: PathBuf,
    /// Show only this tool of the component
    #[arg(add = complete::tools())]
    pub(crate) tool: Option<String>,
    /// Print one JSON object instead
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the tools of components, one a line
///
/// Tools are listed whether their imports are granted or not. Texts in a definition that seem to be
/// written to steer a model are warnings on standard error, and so is what the author can improve.
/// If a component cannot be loaded, an error is printed there, the other components are listed, and
/// the exit status is that of the first error: 2 if nothing has the name, 1 otherwise.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  toolcell list *.wasm")]
pub(crate) struct ListArgs {
    /// The components, by name in `toolcell.toml` or by file [default: all of `toolcell.toml`]
    #[arg(value_name = "COMPONENT", value_hint = ValueHint::FilePath, add = complete::components())]
    pub(crate) components: Vec<PathBuf>,
    /// Print one JSON object instead: {"tools", "lint", "errors"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a commented `toolcell.toml` that names the components of this folder
///
/// Each component file `*.wasm` of the folder gets a section under its file's name, without grants,
/// and so does each program for WASI preview 1. What does not describe its tools itself gets `as`.
/// The most used settings are there as examples that are commented out; `toolcell check --schema`
/// has all. `--config FILE` writes another file, for the components of its folder. A file that
/// exists is not changed. The next commands are printed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell init
  toolcell init --config tools/toolcell.toml               for the components in `tools`

Exit status: 0 the file was written, 1 it exists or cannot be written, 2 bad usage")]
pub(crate) struct InitArgs {
    /// Print one JSON object instead: {"file", "components", "next_commands"}
    #[arg(long)]
    pub(crate) json: bool,
}
