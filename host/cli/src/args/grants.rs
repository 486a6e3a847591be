//! The command line of `approve`, `rollback`, `check`, `explain` and `learn`, the commands about
//! grants.
//!
//! clap, the parser, fills one struct for each command, and the modules in `commands` take them.
//! The comments of structs and fields are the text of `--help`. [`GrantArgs`] holds the options
//! `--grant` and `--as`, which `run` and `batch` share: grants that are entered on the command line
//! for a component that no configuration names. `explain` ends with a request, such as `GET
//! https://example.com/x`, that a shell splits into words; [`ExplainArgs::words`] puts it together
//! again.

use std::path::PathBuf;

use clap::ValueHint;
use toolcell::grants::Request;

use super::{CallArgs, LimitArgs, complete};
use crate::built::CURRENT_DIR;

/// The examples of grants in the help of `run`.
pub(super) const EXAMPLES: &str = "\
Grants for development, in the short form; a value of `toolcell.toml` is understood too:
  --grant 'http=GET https://api.example.com/v1'      --grant 'kv=write notes/*'
  --grant 'directory=read /data=./data'              --grant variable=LANG=C
  --grant secret=token=https://api.example.com       the value is in the variable `token`
  --grant reveal=token                               the tool reads the value itself
  --grant scratch

";

/// Grants for development.
#[derive(Debug, clap::Args)]
pub(crate) struct GrantArgs {
    /// For development: grant this to a component that no configuration names; may be repeated.
    /// KIND is `http`, `directory`, `variable`, `secret`, `reveal`, `kv`, `invoke` or `scratch`;
    /// RULE is as in `toolcell.toml`
    #[arg(long = "grant", value_name = "KIND=RULE")]
    pub(crate) rules: Vec<String>,
    /// What a component is used as. `functions`: each exported function is a tool. `command`: the
    /// program is one tool. Only for a component that no configuration names and that does not
    /// describe its tools itself
    #[arg(long = "as", value_name = "KIND", value_parser = ["functions", "command"])]
    pub(crate) kind: Option<String>,
}

impl GrantArgs {
    /// Returns the typed grants and `as=KIND`, each in the form `KIND=RULE`.
    pub(crate) fn typed(&self) -> Vec<String> {
        self.rules
            .iter()
            .cloned()
            .chain(self.kind.iter().map(|kind| format!("as={kind}")))
            .collect()
    }
}

/// Show what is new or changed in the components of `toolcell.toml`, and approve it
///
/// A component of the configuration is used only in the form that was approved. `toolcell.lock`,
/// beside the configuration, records that form: the definitions of its tools, its imports, its
/// digest. Keep this file under version control. A new component is shown as `inspect` shows it, a
/// changed one as a difference. The effective grants follow, then the warnings. If you answer yes,
/// the lock is written.
///
/// A configuration that was found, not named with `--config`, is approved together with its
/// components, for this user. A change of comments, white space or the order of keys needs no new
/// approval; any other change does. A component that no configuration names needs no approval: it
/// has only the grants that you type with `--grant`.
///
/// Approval covers exactly what was shown. If the page is too long for a terminal, or standard
/// output is not a terminal, read `--json` and approve with `--yes`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell approve
  toolcell approve notes
  toolcell approve --json | jq '.components[] | select(.state == \"changed\")'
  toolcell approve --yes                                   without a question, after reading it

Exit status: 0 everything is approved, 21 something is not, 2 bad usage, 1 anything else")]
pub(crate) struct ApproveArgs {
    /// The components, by name in `toolcell.toml`; default: all of them
    #[arg(value_name = "NAME", add = complete::components())]
    pub(crate) components: Vec<String>,
    /// Approve without a question. Required without a terminal, or if there are more than 2000
    /// lines to approve
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print one JSON object instead, without a question: nothing is approved unless `--yes` is
    /// given too
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make the previously approved version of a component current again
///
/// The state directory keeps the last eight approved versions of each component. The version before
/// the current one becomes current: in `toolcell.lock`, and as the component's file. If the file is
/// missing, or is a version that was never approved, the current version is put back in its place
/// first, and a copy of the other file is kept beside it. A second rollback goes back one version
/// more. To go forward, put the newer file in place and run `toolcell approve`.
///
/// The versions are those that you approved or used on this machine. The demands of
/// `toolcell.toml`, a signature or a digest, apply to an earlier version too.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell rollback notes
  toolcell rollback notes --json | jq .to

Exit status: 0 done, 21 the configuration or the component is not approved, 2 bad usage, 1 anything else")]
pub(crate) struct RollbackArgs {
    /// The component: its name in `toolcell.toml`
    #[arg(value_name = "NAME", add = complete::components())]
    pub(crate) component: String,
    /// Print one JSON object instead: {"component", "from", "to", "replaced_file", "backup"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Validate `toolcell.toml` and show the effective grants of each tool
///
/// Prints all errors at once, each with its line. Then loads every component and prints the
/// effective grants of each tool, for each tenant: what the tool declares, reduced to what the file
/// grants, then reduced by the sections of the tool and the tenant. If no tool of a component
/// declares needs, each tool gets everything that the component is granted. If any tool declares
/// needs, a tool without needs gets nothing. Also prints what a tool declares and is not granted,
/// rules that allow nothing, and secrets without a value. Waits until the components are optimised,
/// so that later commands start faster.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell check
  toolcell check --config server/toolcell.toml --json | jq '.components[].tools[]'
  toolcell check --schema > toolcell.schema.json           for an editor

Exit status: 0 no errors, 1 errors, 2 bad usage")]
pub(crate) struct CheckArgs {
    /// Print the JSON Schema of the configuration instead
    #[arg(long)]
    pub(crate) schema: bool,
    /// Print one JSON object instead
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say whether a tool may do something, which rule decides, and what would allow it
///
/// The decision is the same as in a call. The name of a host is looked up, because private networks
/// are denied unless the grant names them; nothing is sent to the host. The rule that decides is
/// shown with its line in `toolcell.toml`. Where no grant can help, the hint shows what the tool's
/// author has to declare.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "toolcell explain [OPTIONS] [COMPONENT] [TOOL] <REQUEST>",
    after_long_help = "\
Examples:
  toolcell explain fetch 'GET https://example.com/menu/today'
  toolcell explain notes notes 'kv write notes/tea' --tenant acme
  toolcell explain file_search.wasm 'read /data/plan.md'

A request is one of:
  GET https://example.com/x    or another method
  read /data/x, write /data/x  paths as the tool sees them
  environment NAME, secret NAME, reveal NAME
  kv read KEY, kv write KEY, kv list PREFIX, invoke TOOL, invoke own TOOL
The kind of the need may be in front, as in `filesystem read /data/x`.

Exit status: 0 it is allowed, 21 it is denied, 2 bad usage, 1 anything else"
)]
pub(crate) struct ExplainArgs {
    /// The component: its name in `toolcell.toml`, its file, or a folder [default: the component
    /// that was built in this folder]
    #[arg(value_hint = ValueHint::FilePath, add = complete::components())]
    component: Option<PathBuf>,
    /// The tool's name; not needed for a component with one tool
    #[arg(add = complete::tools())]
    tool: Option<String>,
    /// The access to check; always the last word, and required
    request: Vec<String>,
    /// The tenant of the call
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Print one JSON object instead
    #[arg(long)]
    pub(crate) json: bool,
}

impl ExplainArgs {
    /// Returns the component, the tool if one was typed, and the request, which is the last word.
    /// Without quotes the shell splits the request into several words. None if no words were typed.
    pub(crate) fn words(&self) -> Option<(PathBuf, Option<String>, String)> {
        let component =
            self.component.as_ref().map(|component| component.to_string_lossy().into_owned());
        let words: Vec<_> =
            component.into_iter().chain(self.tool.clone()).chain(self.request.clone()).collect();
        let is_request = |at: &usize| Request::parse(&words[*at..].join(" ")).is_ok();
        let (last, before) = words.split_last()?;
        let from = if last.contains(' ') {
            None
        } else {
            (0..before.len()).find(is_request).filter(|from| *from <= 2)
        };
        let from = from.unwrap_or(before.len().min(2));
        // As it was typed: the name of a file need not be UTF-8.
        let component = self.component.clone().filter(|_| from > 0);
        Some((
            component.unwrap_or_else(|| CURRENT_DIR.into()),
            words.get(1).filter(|_| from > 1).cloned(),
            words[from..].join(" "),
        ))
    }
}

/// Run a tool without effects, and print the grants that this call needs
///
/// A dry run. What is not granted is noted and answered by a stand-in: a request by status 200 and
/// `{}`, a file by an empty one, a secret by a handle without a value. Keys and files that the tool
/// writes are kept for the dry run only. What is granted and approved is used for reading only:
/// directories, variables, and servers by GET, HEAD and OPTIONS without a secret. The tool is run
/// again as long as it looks for more files, at most 16 times in all.
///
/// Standard output gets the smallest grants that are missing, as lines for `toolcell.toml`.
/// Standard error gets what is granted already, what you have to fill in, what to write in a
/// section that narrows the tool, and warnings. A host name is looked up only if the tool declares
/// it or the arguments have it: a lookup tells others what is looked up.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell learn fetch url=https://example.com/menu
  toolcell learn notes.wasm notes @note.json

Exit status: 0 it ran, whatever it answered, 21 the arguments were refused, 2 bad usage, 1 anything else")]
pub(crate) struct LearnArgs {
    #[command(flatten)]
    pub(crate) call: CallArgs,
    /// The tenant of the call
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// What a component is used as. `functions`: each exported function is a tool. `command`: the
    /// program is one tool. Only for a component that no configuration names and that does not
    /// describe its tools itself
    #[arg(long = "as", value_name = "KIND", value_parser = ["functions", "command"])]
    pub(crate) kind: Option<String>,
    /// Print one JSON object instead
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}
