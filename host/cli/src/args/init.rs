//! The command line of `init`, which writes a commented `toolcell.toml`.
//!
//! clap, the parser, fills [`InitArgs`], whose only own option is `--json`; the file to write is
//! the global option `--config`. The comments are the text of `--help`. Not here: the writing of
//! the file, in `commands/init.rs`.

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
