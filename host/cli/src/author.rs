//! `toolcell new`, `build`, `test` and `dev`: what the author of a tool types.
//!
//! Not here: how a project is made, built and tested (`toolcell_build`).

mod dev;
mod test;

use std::path::Path;

use serde_json::json;
use toolcell_build::{Built, Language};
use toolcell_config::quoted;

use crate::args::{BuildArgs, NewArgs};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::units::Size;

pub(crate) use dev::dev;
pub(crate) use test::test;

/// Makes a project, and tells the next commands.
pub(crate) fn create(printer: &Printer, args: &NewArgs) -> Result<ExitStatus, Failure> {
    let language: Language = args.lang.parse()?;
    let created = toolcell_build::create(&args.folder, language)?;
    let folder = quoted(&created.folder.to_string_lossy()).to_string();
    let next = ["build", "test", "dev"].map(|command| format!("toolcell {command} {folder}"));
    if args.json {
        let folder = created.folder.to_string_lossy();
        let written = json!({ "folder": folder, "language": language.name(), "files": created.files, "next": next });
        printer.json(&written)?;
        return Ok(ExitStatus::Ok);
    }
    printer.note("note", &format!("made `{}`: {}", created.folder.display(), created.files.join(", ")));
    printer.text(&next.join("\n"))?;
    Ok(ExitStatus::Ok)
}

/// Builds a project.
pub(crate) fn build(printer: &Printer, args: &BuildArgs) -> Result<ExitStatus, Failure> {
    let built = built(printer, &args.project, args.output.as_deref())?;
    if args.json {
        printer.json(&json!({
            "component": built.component.to_string_lossy(),
            "bytes": built.bytes,
            "language": built.language.name(),
            "tools": built.tools,
            "seconds": built.time.as_secs_f64(),
        }))?;
        return Ok(ExitStatus::Ok);
    }
    let size = Size(built.bytes).rounded();
    printer.note("note", &format!("built {size} in {:.1} s", built.time.as_secs_f64()));
    printer.text(&built.component.to_string_lossy())?;
    Ok(ExitStatus::Ok)
}

fn built(printer: &Printer, project: &Path, output: Option<&Path>) -> Result<Built, Failure> {
    let spinner = printer.spinner("building");
    let built = toolcell_build::build(project, output)?;
    drop(spinner);
    if !built.warnings.is_empty() {
        printer.note("warning", &built.warnings);
    }
    Ok(built)
}
