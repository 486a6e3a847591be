//! The command line of `new`, `build`, `test` and `dev`, the commands for authors of tools.
//!
//! Each command has a struct that clap, the parser, fills from the command line, for example
//! [`TestArgs`]. The comments of structs and fields are the text of `--help`, with examples and
//! exit statuses. Values are only parsed here; the modules in `commands/author` take the structs
//! and do the work.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;

use crate::built::CURRENT_DIR;
use crate::print::Time;
use crate::print::units::{number, whole_number_parser};

/// Make a small project with one working tool
///
/// The project has the tool's source, its cases, a README and what an editor needs to know.
/// JavaScript and TypeScript need no other program; Python needs componentize-py, Rust needs cargo
/// and the target `wasm32-wasip2`, and C needs Zig or clang.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell new greeter --language js
  toolcell new tools/greeter --language rust
  toolcell new summary --language python
  toolcell new checksum --language c

Exit status: 0 the project was made, 1 its folder is not empty or cannot be written, 2 bad usage")]
pub(crate) struct NewArgs {
    /// The folder to make; its last part is the project's name
    #[arg(value_name = "NAME", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// The language: js, ts, python, rust or c
    #[arg(long, value_name = "LANGUAGE", default_value = "js")]
    pub(crate) language: String,
    /// Print one JSON object instead: {"directory", "language", "files", "next_commands"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Build the component of a project
///
/// JavaScript and TypeScript: the build evaluates `src/tool.js` or `src/tool.ts`, and the files
/// that it imports, once. Each call begins with the state after this evaluation. Types are
/// stripped, not checked. Python: componentize-py loads `tool.py` or `src/tool.py` once. Rust:
/// cargo builds the crate. C: Zig or clang compiles the C files of the folder of `tool.c`. The
/// component is `NAME.wasm` in the project's folder, where NAME is the name of the folder.
///
/// componentize-py, cargo and the C compiler run natively, with your rights: build only what you
/// trust. Of your environment they get a short list of variables, without credentials
/// (docs/security.md). JavaScript and TypeScript need no such program.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell build
  toolcell build greeter --output greeter.wasm
  toolcell build tool.ts                                   one file without a project

Exit status: 0 the component was written, 1 it was not, 2 bad usage")]
pub(crate) struct BuildArgs {
    /// The folder of the project, or a file of JavaScript, TypeScript, Python or C
    #[arg(default_value = CURRENT_DIR, value_hint = ValueHint::AnyPath)]
    pub(crate) project: PathBuf,
    /// Write the component to this file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Print one JSON object instead: {"component", "size", "language", "tools"?, "warnings"?,
    /// "seconds"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Build a project and run its cases
///
/// Cases are in `cases.yaml`, `cases.json` or the folder `cases`. A case is a call with the answers
/// to its requests, its secrets, stored keys and time, and the expected ending. The tool is granted
/// what it declares as needs. Requests are answered from the case only: nothing leaves the machine.
/// The build runs native programs, as `toolcell build --help` says.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell test
  toolcell test greeter --filter name --json
  toolcell test --junit report.xml
  toolcell test --update                                   write the endings that were seen into the files
  toolcell test --component greeter.wasm                   cases of a component that exists, in any language
  toolcell test --component sql.wasm --as command          cases of a program
  toolcell test --coverage                                 which endings, parameters and values no case has
  toolcell test --fuzz 200                                 arguments made from the schemas of the parameters

With `--fuzz`, a call fails if it ends in a way that no tool chooses: a trap, a panic, a timeout, or a value that does \
not match the output schema. A failure is printed with the smallest arguments that were found.

Exit status: 0 all cases passed, 1 a case or a call of `--fuzz` failed, or a case could not be run, 2 bad usage")]
pub(crate) struct TestArgs {
    /// The folder of the project
    #[arg(default_value = CURRENT_DIR, value_hint = ValueHint::DirPath)]
    pub(crate) project: PathBuf,
    /// Test this component, and build none
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) component: Option<PathBuf>,
    /// What the component is used as. `functions`: each exported function is a tool. `command`: the
    /// program is one tool, with the name of its file
    #[arg(long = "as", value_name = "KIND", value_parser = ["functions", "command"], requires = "component")]
    pub(crate) kind: Option<String>,
    /// Run the cases whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Write the ending that was seen into the file of each case that fails
    #[arg(long)]
    pub(crate) update: bool,
    /// Write a report in the form of JUnit to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) junit: Option<PathBuf>,
    /// List the endings, parameters and values of an `enum` that no case covers
    #[arg(long)]
    pub(crate) coverage: bool,
    /// After the cases, call each tool this many times with arguments made from its schema
    #[arg(long, value_name = "N", value_parser = whole_number_parser(1..=1_000_000_u32))]
    pub(crate) fuzz: Option<u32>,
    /// Make the arguments of `--fuzz` from this number: the same one makes the same arguments
    #[arg(long, value_name = "NUMBER", value_parser = number, default_value_t = 0, requires = "fuzz")]
    pub(crate) fuzz_seed: u64,
    /// Print one JSON object instead: {"passed", "failed", "updated", "cases", "coverage"?,
    /// "fuzz"?}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Build a project and run its cases after each change, until Ctrl-C
///
/// The build runs native programs, as `toolcell build --help` says.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  toolcell dev greeter")]
pub(crate) struct DevArgs {
    /// The folder of the project
    #[arg(default_value = CURRENT_DIR, value_hint = ValueHint::DirPath)]
    pub(crate) project: PathBuf,
    /// Check the files for changes this often
    #[arg(long, value_name = "TIME", default_value_t = Time(Duration::from_millis(300)))]
    pub(crate) watch_interval: Time,
}
