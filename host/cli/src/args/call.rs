//! The operands of `run` and `learn`: a component, its tool, and the tool's arguments.
//!
//! clap, the parser, fills [`CallArgs`] from the words `[COMPONENT] [TOOL] [ARGS]…`. The component
//! defaults to the current folder, where the one that was built there is used. Components and tools
//! are completed in a shell.
//!
//! Not here: the division of the words into a tool's name and arguments, in `target.rs`; a word can
//! be either.

use std::path::PathBuf;

use clap::ValueHint;

use super::complete;
use crate::built::CURRENT_DIR;

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
