//! A command line that is no call of a command: help, the version, or what was wrong with it.
//!
//! In: the parser's error. Out: its words, tips included, and a hint in the place of its last line.
//! Invariants: the hidden command is not spoken of.

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue};

use crate::args::{Args, HIDDEN};
use crate::env;
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::printer::Printer;

/// The parser's last line, which our hint replaces: it does not say of which command.
const LAST_LINE: &str = "For more information, try '--help'.";
/// How the parser begins its tips.
const TIP: &str = "tip: ";

/// Prints it: a person gets all of it, a program the fault and what to do.
pub(crate) fn show(printer: &Printer, mut error: clap::Error) -> ExitStatus {
    if !error.use_stderr() {
        if let Some(failure) = crate::unprintable() {
            return failure.show(printer, false);
        }
        // Its own printing knows about colours and terminals. A reader who went away is no failure.
        let _ = error.print();
        return ExitStatus::Ok;
    }
    forget_hidden(&mut error);
    let text = error.render().to_string();
    let text = text.trim_end().trim_end_matches(LAST_LINE).trim_end();
    if env::args().any(|arg| arg == "--json") {
        let message = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        let tips = text.lines().filter_map(|line| line.trim_start().strip_prefix(TIP));
        let advice: Vec<_> = tips.map(str::to_owned).chain([hint()]).collect();
        return Failure::usage(message, advice.join("; ")).show(printer, true);
    }
    match text.strip_prefix("error: ") {
        Some(text) => printer.error_lines(&format!("{text}\n")),
        None => printer.lines(&format!("{text}\n")),
    }
    printer.note("hint", &hint());
    ExitStatus::BadUsage
}

/// Where to read on: the help of the command that was meant, as far as one can be seen.
fn hint() -> String {
    // With its errors ignored the parser still finds the command among options that have values.
    let seen = Args::command().ignore_errors(true).try_get_matches_from(env::args()).ok();
    let mut names = Vec::new();
    let mut within = seen.as_ref();
    while let Some((name, inner)) = within.and_then(clap::ArgMatches::subcommand) {
        names.push(name);
        within = Some(inner);
    }
    match names.first() {
        Some(first) if !HIDDEN.contains(first) => {
            format!("`toolcell {} --help` shows its arguments and options", names.join(" "))
        }
        Some(_) | None => "`toolcell --help` shows the commands".to_owned(),
    }
}

/// Takes the hidden command out of lists of commands.
fn forget_hidden(error: &mut clap::Error) {
    for kind in [ContextKind::ValidSubcommand, ContextKind::SuggestedSubcommand] {
        if let Some(ContextValue::Strings(names)) = error.remove(kind) {
            let visible: Vec<_> = names.into_iter().filter(|name| !HIDDEN.contains(&name.as_str())).collect();
            if !visible.is_empty() {
                error.insert(kind, ContextValue::Strings(visible));
            }
        }
    }
}
