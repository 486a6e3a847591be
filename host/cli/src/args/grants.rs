//! What can be typed about grants: `approve`, `check`, `explain`, `learn`.

use std::path::PathBuf;

use clap::ValueHint;

use super::LimitArgs;

/// Show what is new or changed in the components of `toolcell.toml`, and have it approved
///
/// A component that the configuration names is used only as it was approved: its tools' definitions and its imports stand
/// in `toolcell.lock`, beside the configuration, to be kept under version control. What has changed since is shown line by
/// line, with what the grants come to; with a yes the lock is written. A configuration that was found, not named, is approved
/// in the same way, as a whole, for this user and with this content. A component that is used by its file, and that no
/// configuration names, needs no approval: it is granted nothing.
///
/// Nobody is asked about what they cannot see: where a change is too long to be shown whole, or standard output is no
/// terminal, look at `--json` and say `--yes`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell approve
  toolcell approve notes
  toolcell approve --json | jq '.components[] | select(.state == \"changed\")'
  toolcell approve --yes                                   in a script, for somebody who has looked

Exit status: 0 all is approved, 21 something is not, 2 bad usage, 1 anything else")]
pub(crate) struct ApproveArgs {
    /// The components, by name in `toolcell.toml`; otherwise all of them, and the configuration where it was found
    #[arg(value_name = "NAME")]
    pub(crate) components: Vec<String>,
    /// Approve without being asked: where there is no terminal, or not all could be shown, nothing is approved otherwise
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print one JSON object instead, and ask nobody
    #[arg(long)]
    pub(crate) json: bool,
}

/// Judge `toolcell.toml`, and show what it grants to every tool
///
/// Everything that is wrong is told at once, each thing with its line. Then every component is loaded, and for each of its
/// tools, and each tenant, what is left of the grants is printed: what the tool declares, of what the file grants, of what
/// the tenant is left. A tool that declares nothing gets all that its component is granted. Waits until the components are
/// optimised, for every command that uses them later.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell check
  toolcell check --config server/toolcell.toml --json | jq '.components[].tools[]'
  toolcell check --schema > toolcell.schema.json           for an editor

Exit status: 0 all is well, 1 something is wrong, 2 bad usage")]
pub(crate) struct CheckArgs {
    /// Print the file's JSON Schema instead
    #[arg(long)]
    pub(crate) schema: bool,
    /// Print one JSON object instead
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say whether a tool may do something, and if not, who says no and what would allow it
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell explain fetch 'GET https://api.example.com/v1/users'
  toolcell explain search 'read /data/notes.txt' --tenant acme
  toolcell explain --component notes.wasm save 'kv write notes/1'

A request is one of:
  GET https://example.com/x    or another method
  read /data/x, write /data/x  paths as the tool sees them
  environment NAME, secret NAME, reveal NAME
  kv read KEY, kv write KEY, kv list PREFIX

Exit status: 0 it is allowed, 21 it is denied, 2 bad usage, 1 anything else")]
pub(crate) struct ExplainArgs {
    /// The tool's name
    pub(crate) tool: String,
    /// What it would ask for
    pub(crate) request: String,
    /// The component that offers it, by name or by file; otherwise all of `toolcell.toml` are looked at
    #[arg(long, value_hint = ValueHint::FilePath)]
    pub(crate) component: Option<PathBuf>,
    /// On whose behalf
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Print one JSON object instead
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run a tool with everything denied, and print the grants that it wanted
///
/// The tool is called once. Whatever it asks for is denied and written down, whatever `toolcell.toml` says; then the
/// smallest grants are printed that would have allowed it, to be pasted. A tool may give up at its first denial: what it
/// declares that it needs is printed too.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell learn fetch '{\"path\": \"/v1/users\"}'
  toolcell learn --component notes.wasm save @note.json

Exit status: 0 it ran, whatever it answered, 21 it refused the arguments, 2 bad usage, 1 anything else")]
pub(crate) struct LearnArgs {
    /// The tool's name
    pub(crate) tool: String,
    /// The arguments: a JSON object, `@FILE` to read it from a file, `-` from standard input (at most 1 MiB)
    #[arg(value_name = "ARGS", default_value = "{}")]
    pub(crate) arguments: String,
    /// The component that offers it, by name or by file; otherwise all of `toolcell.toml` are looked at
    #[arg(long, value_hint = ValueHint::FilePath)]
    pub(crate) component: Option<PathBuf>,
    /// Print one JSON object instead
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}
