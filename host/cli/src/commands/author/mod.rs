//! `toolcell new`, `build`, `test` and `dev`: the commands for authors of tools.
//!
//! [`create`] makes a project from a template and prints the next commands. [`build`] builds the
//! component of a project (the WebAssembly file with its tools) and prints its path, or a JSON
//! object with its size and tools. The other two are in the modules [`test`](mod@test) and
//! [`dev`](mod@dev). While a build runs, its steps are shown on the terminal; its warnings are
//! printed as notes.
//!
//! Not here: the creation, build and test of a project, which the package `toolcell-author` does.

pub(crate) mod dev;
pub(crate) mod test;

use std::path::Path;

use serde::Serialize;
use serde_json::json;
use toolcell_author::{BuildOutput, Language};
use toolcell_config::text::quoted;

use crate::args::{BuildArgs, NewArgs};
use crate::host::Cli;
use crate::print::{ExitStatus, Printer, Result, Size};

pub(crate) use dev::dev;
pub(crate) use test::test;

/// Creates a project and prints the next commands.
pub(crate) fn create(printer: &Printer, args: &NewArgs) -> Result<ExitStatus> {
    let language: Language = args.language.parse()?;
    let created = toolcell_author::create(&args.folder, language)?;
    let folder = quoted(&created.directory.to_string_lossy()).to_string();
    let next = ["build", "test", "dev"].map(|command| format!("toolcell {command} {folder}"));
    if args.json {
        printer.json(&json!({
            "directory": created.directory.to_string_lossy(), "language": language.name(),
            "files": created.files, "next_commands": next,
        }))?;
        return Ok(ExitStatus::Ok);
    }
    printer.note(format!("made `{}`: {}", created.directory.display(), created.files.join(", ")));
    printer.labelled("next", "type these commands");
    printer.text(&next.join("\n"))?;
    Ok(ExitStatus::Ok)
}

/// The output of `toolcell build --json`.
#[derive(Serialize)]
struct BuiltJson<'a> {
    component: &'a str,
    size: u64,
    language: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<String>,
    seconds: f64,
}

/// Builds a project.
pub(crate) async fn build(cli: &Cli, args: &BuildArgs) -> Result<ExitStatus> {
    let printer = &cli.printer;
    let built = built(printer, &args.project, args.output.as_deref())?;
    if args.json {
        // The tools of a Python component are left out: to list them, the component would have to
        // be compiled, which takes long and happens at its first call.
        let tools = match built.language {
            Language::JavaScript | Language::TypeScript => Some(built.tools),
            Language::Rust | Language::C => Some(test::tools(cli, &built.component).await?),
            Language::Python | _ => None,
        };
        let warnings = Some(built.warnings).filter(|warnings| !warnings.is_empty());
        printer.json(&BuiltJson {
            component: &built.component.to_string_lossy(),
            size: built.size,
            language: built.language.name(),
            tools,
            warnings,
            seconds: built.time.as_secs_f64(),
        })?;
        return Ok(ExitStatus::Ok);
    }
    let size = Size(built.size).rounded();
    printer.note(format!("built {size} in {:.1} s", built.time.as_secs_f64()));
    printer.text(&built.component.to_string_lossy())?;
    Ok(ExitStatus::Ok)
}

fn built(printer: &Printer, project: &Path, output: Option<&Path>) -> Result<BuildOutput> {
    let spinner = printer.spinner("building");
    let built = toolcell_author::build_with(project, output, &|step| printer.step(step))?;
    drop(spinner);
    if !built.warnings.is_empty() {
        printer.warning(&built.warnings);
    }
    Ok(built)
}
