//! `toolcell test`: runs the test cases of a project or of a component.
//!
//! A test case is a call with recorded answers and an expected ending, written in a file such as
//! `cases.yaml`. `test` reads the case files first, builds the project unless a component is named,
//! and runs the cases through `toolcell-author`. With `--fuzz` it also calls the tools with
//! generated arguments. The result is printed as one line for each case, as JSON, or as a JUnit
//! file. The exit status is 1 if a case or a fuzzed call failed; running no case at all is a usage
//! error. `dev` uses [`run`] and [`show`] too.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde::Serialize;
use toolcell::Engine;
use toolcell::component::{Command, ComponentKind};
use toolcell_author::cases::{
    self, Cases, Coverage, FuzzOptions, FuzzReport, Options, Report, junit,
};
use toolcell_config::file::name_of_file;

use super::built;
use crate::args::TestArgs;
use crate::host::{self, Cli};
use crate::os::env;
use crate::print::{ExitStatus, Failure, Printer, Result, clean, counted, table};

/// The output of `--json`.
#[derive(Serialize)]
struct JsonReport<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    fuzz: Option<&'a [FuzzReport]>,
}

/// Builds the project unless a component is named, and runs its cases.
pub(crate) async fn test(cli: &Cli, args: &TestArgs) -> Result<ExitStatus> {
    let printer = &cli.printer;
    // Files that cannot be read are an error before anything is built.
    let files = cases::find(&args.project)?;
    for file in &files {
        cases::read(file)?;
    }
    let component = match &args.component {
        Some(component) => component.clone(),
        None => built(printer, &args.project, None)?.component,
    };
    let kind = match args.kind.as_deref() {
        Some("functions") => ComponentKind::Functions,
        Some(_) => ComponentKind::Command(Command::new(name_of_file(&component))),
        None => ComponentKind::Tools,
    };
    let component = (component.as_path(), kind);
    let options =
        Options { filter: args.filter.clone(), update: args.update, coverage: args.coverage };
    let report = run(cli, component.clone(), &files, &options).await?;
    let fuzzed = match args.fuzz {
        Some(calls) => {
            let mut options = FuzzOptions::new(calls as usize);
            options.seed = args.fuzz_seed;
            let cases = cases(cli, component, &[])?;
            let all = options.calls * cases.tools().await?.len();
            printer.step(format!("making {} with generated arguments", counted(all, "call")));
            let bar = printer.bar(all as u64, "calls with generated arguments");
            Some(cases.fuzz(&options, bar.counter()).await?)
        }
        None => None,
    };
    if let Some(path) = &args.junit {
        let report = junit(&report, fuzzed.as_deref().unwrap_or_default());
        fs::write(path, report).map_err(|error| {
            let message = anyhow!(error).context(format!("cannot write `{}`", path.display()));
            Failure::file(message, "name a file in a folder that you can write to")
        })?;
    }
    if args.json {
        printer.json(&JsonReport { report: &report, fuzz: fuzzed.as_deref() })?;
    } else {
        show(printer, &report)?;
        let covered = report.coverage.iter().flatten().map(coverage);
        let lines: Vec<_> = covered.chain(fuzzed.iter().flatten().map(fuzz_summary)).collect();
        if !lines.is_empty() {
            printer.text(&lines.join("\n"))?;
        }
    }
    let has_failed =
        report.failed > 0 || fuzzed.iter().flatten().any(|tool| !tool.failures.is_empty());
    Ok(if has_failed { ExitStatus::Failed } else { ExitStatus::Ok })
}

/// Runs the cases of these files.
pub(super) async fn run(
    cli: &Cli,
    component: (&Path, ComponentKind),
    files: &[PathBuf],
    options: &Options,
) -> Result<Report> {
    let report = cases(cli, component, files)?.run(options).await?;
    if report.cases.is_empty() {
        let message = "no case was run: the files have no cases, or no name of a case contains the text of `--filter`";
        let hint = "add a case to the files, or run `toolcell test` without `--filter`";
        return Err(Failure::usage(message, hint));
    }
    Ok(report)
}

/// Returns the names of the component's tools.
pub(super) async fn tools(cli: &Cli, component: &Path) -> Result<Vec<String>> {
    Ok(cases(cli, (component, ComponentKind::Tools), &[])?.tools().await?)
}

/// Reads the cases of these files, for an engine that uses the command's cache.
fn cases(cli: &Cli, (component, kind): (&Path, ComponentKind), files: &[PathBuf]) -> Result<Cases> {
    let global = &cli.global;
    let worker = host::compile_worker(env::own_program(), global.max_compile_time.0)?;
    let engine = host::with_compile_notes(&cli.printer, worker(Engine::builder()));
    let engine = match host::cache_dir(cli) {
        Some(dir) => engine.cache(dir).cache_bytes(global.cache_size.0),
        None => engine,
    };
    Ok(Cases::read(engine, component, files)?.with_kind(kind))
}

/// Returns the coverage of a tool's cases, as lines.
fn coverage(of: &Coverage) -> String {
    let (seen, unseen): (Vec<_>, Vec<_>) = of.outcomes.iter().partition(|(_, count)| **count > 0);
    let seen: Vec<_> = seen.iter().map(|(ending, count)| format!("{ending} {count}")).collect();
    let unseen: Vec<_> = unseen.iter().map(|(ending, _)| (**ending).to_owned()).collect();
    let escaped = |texts: &[String]| texts.iter().map(|text| clean::escaped(text)).collect();
    let rows = [
        ("outcomes", seen),
        ("no case ends in", unseen),
        ("no case gives", escaped(&of.uncovered_parameters)),
        ("no case has", escaped(&of.uncovered_values)),
    ];
    let rows = rows.iter().filter(|(_, what)| !what.is_empty());
    let rows: Vec<_> = rows.map(|(name, what)| vec![(*name).to_owned(), what.join(", ")]).collect();
    format!("coverage of {}\n{}", of.tool, table::columns(2, usize::MAX, &rows))
}

/// Returns the result of the calls with generated arguments, as lines.
fn fuzz_summary(of: &FuzzReport) -> String {
    let (calls, failures) = (counted(of.calls, "call"), counted(of.failures.len(), "failure"));
    let mut lines = vec![format!("fuzz {}: {calls}, {failures} (seed {})", of.tool, of.seed)];
    if of.calls == 0 {
        let none = "         no arguments were found that match the tool's schema: give `examples` in the schema";
        lines.push(none.to_owned());
    }
    for failure in &of.failures {
        let message = failure.message_with_lines();
        let message: Vec<_> = message.lines().map(clean::escaped).collect();
        let message = message.join("\n         ");
        lines.push(format!("FAILED   {message}\n         arguments: {}", failure.arguments));
    }
    lines.join("\n")
}

/// Prints a line for each case, and one for all of them.
pub(super) fn show(printer: &Printer, report: &Report) -> Result<()> {
    let mut lines = Vec::new();
    for case in &report.cases {
        let ended = match (case.passed, case.updated) {
            (true, true) => "written",
            (true, false) => "ok",
            (false, _) => "FAILED",
        };
        let fuel = case.fuel.map_or_else(String::new, |fuel| format!(" ({fuel} fuel)"));
        lines.push(format!("{ended:<7}  {}: {}{fuel}", case.tool, case.name));
        let failures = case.failures.iter().filter(|_| !case.passed);
        lines.extend(failures.map(|failure| format!("         {failure}")));
    }
    let written =
        if report.updated > 0 { format!(", {} written", report.updated) } else { String::new() };
    lines.push(format!("{} passed, {} failed{written}", report.passed, report.failed));
    printer.text(&lines.join("\n"))
}
