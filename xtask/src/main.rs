//! The command `cargo xtask`: checks, measurements and set-up of the repository.

mod attack;
mod build;
mod checks;
mod demo;
mod lint;
mod measure;
mod shell;
mod test;

use std::process::ExitCode;

use build::{js_runtime, package};
use checks::{clients, conformance, languages, openapi, packaging, suites};

const HELP: &str = "\
cargo xtask demo    build everything that is missing, then a tour of good and hostile tools
cargo xtask test    all tests
cargo xtask attack  a campaign of attacks on the library; `--help` tells more
cargo xtask conformance  the public MCP conformance suite against a fixture server
cargo xtask clients  agents in Python and TypeScript, and the MCP Inspector, against `toolcell serve`
cargo xtask languages  tools in Python, C and Rust built with their compilers, and published programs
cargo xtask openapi  the OpenAPI document: a validator, generated clients, and requests made from it, against `toolcell serve`
cargo xtask suites DIR  how much of JSON-Schema-Test-Suite and of the URL data in DIR is answered as it says; `--verbose` prints the rest
cargo xtask platform  the answers of tests/platform, compared with those of Node and CPython, and the work of packages
cargo xtask packaging  the systemd unit by `systemd-analyze`, the container file by hadolint
cargo xtask lint    formatting, lints, documentation, packages, and the licences and sources of the dependencies
cargo xtask measure  sizes, module cycles, names and pages against their goals; `--json` prints them as JSON
cargo xtask js-runtime  the JavaScript runtime of `toolcell build`, built anew with Zig and Binaryen
cargo xtask package the packages as a registry would get them, compiled from their own files
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["demo"] => demo::run(),
        ["test", rest @ ..] => test::run(rest),
        ["lint"] => lint::run(),
        ["conformance"] => conformance::run(),
        ["clients"] => clients::run(),
        ["languages"] => languages::run(),
        ["openapi"] => openapi::run(),
        ["suites", rest @ ..] => suites::run(rest),
        ["package"] => package::run(),
        ["packaging"] => packaging::run(),
        ["platform"] => languages::platform::run(),
        ["measure", rest @ ..] => measure::run(rest),
        ["js-runtime"] => js_runtime::run(),
        ["attack", rest @ ..] => match attack::run(rest) {
            Ok(code) => return code.into(),
            Err(error) => Err(error),
        },
        [] | ["help" | "-h" | "--help"] => {
            shell::print(HELP);
            return ExitCode::SUCCESS;
        }
        [unknown, ..] => {
            shell::print_error(&format!("there is no task `{unknown}`\n\n{HELP}"));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            shell::print_error(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
