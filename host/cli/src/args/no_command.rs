//! Parses the command line, and handles one without a command to run: help, the version, or a usage
//! error.
//!
//! `main` calls [`read`]. If the parser returns an error, `main` passes it to [`show`], which
//! prints the help or version that was asked for, or the error with a hint of this command in place
//! of the parser's last line; `--json` prints it as JSON. It returns the exit status: 0 for help, 1
//! for help that cannot be written, 2 for a usage error. Two usual mistakes are handled: a negative
//! number after an option is read as its value, and a tool's argument entered as an option
//! (`--name Ada`) gets a hint with the right form. The hidden commands are not mentioned.

use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use crate::args::{Args, HIDDEN};
use crate::config::quoted;
use crate::os::{env, stdout};
use crate::print::{ExitStatus, Failure, Printer};

/// The parser's last line. Our hint replaces it, because the line does not name the command.
const LAST_LINE: &str = "For more information, try '--help'.";
/// The prefix of the parser's tips.
const TIP: &str = "tip: ";

/// Parses the command line. Returns it with true if `--json` was typed. The parser takes a word
/// such as `-5` for an option; after an option, it is parsed again as that option's value.
pub(crate) fn read(words: Vec<OsString>) -> Result<(Args, bool), clap::Error> {
    let parsed = Args::command().try_get_matches_from(&words).and_then(|matches| {
        let args = Args::from_arg_matches(&matches)?;
        Ok((args, is_json(&matches)))
    });
    parsed.or_else(|error| {
        let Some(joined) = with_negative(&words, &error) else { return Err(error) };
        // A flag takes no value.
        read(joined).map_err(|with_value| {
            if with_value.kind() == ErrorKind::TooManyValues { error } else { with_value }
        })
    })
}

fn is_json(matches: &ArgMatches) -> bool {
    matches.try_get_one("json").is_ok_and(|json| json == Some(&true))
        || matches.subcommand().is_some_and(|(_, command)| is_json(command))
}

/// Joins an unexpected negative number with the option before it. None if that is not the error.
fn with_negative(words: &[OsString], error: &clap::Error) -> Option<Vec<OsString>> {
    let wrong = unknown_option(error)?;
    wrong.strip_prefix('-')?.chars().next().filter(char::is_ascii_digit)?;
    let at =
        words.iter().position(|word| word.to_str().is_some_and(|word| word.starts_with(wrong)))?;
    let option = words
        .get(at.checked_sub(1)?)?
        .to_str()
        .filter(|word| word.starts_with("--") && !word.contains('='))?;
    let joined = OsString::from(format!("{option}={}", words.get(at)?.to_str()?));
    Some([&words[..at - 1], &[joined], &words[at + 1..]].concat())
}

/// Returns the word that the parser took for an unknown option.
fn unknown_option(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(wrong)) if error.kind() == ErrorKind::UnknownArgument => {
            Some(wrong)
        }
        _ => None,
    }
}

/// Returns the hint for a tool's argument that was typed as an option: `--name Ada` of `run` and
/// `learn`.
fn as_member(error: &clap::Error) -> Option<String> {
    let words: Vec<_> = env::args().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_call = command().first().is_some_and(|name| ["run", "learn"].contains(&name.as_str()));
    // A word that is similar to an option is that option misspelt.
    let is_near = error.get(ContextKind::SuggestedArg).is_some();
    let wrong = unknown_option(error).filter(|_| is_call && !is_near)?;
    let name = wrong.strip_prefix("--").filter(|name| !name.is_empty())?;
    let (at, typed) =
        words.iter().enumerate().find(|(_, word)| word.split('=').next() == Some(wrong))?;
    // Before the component there can be no argument of a tool.
    let named = words.iter().position(|word| ["run", "learn"].contains(&word.as_str()))?;
    words.get(named + 1..at)?.iter().find(|word| !word.starts_with('-'))?;
    let value = typed.split_once('=').map(|(_, value)| value.to_owned());
    let value = value.or_else(|| words.get(at + 1).filter(|next| !next.starts_with('-')).cloned());
    let member = quoted(&format!("{name}={}", value.unwrap_or_else(|| "VALUE".to_owned())));
    Some(format!(
        "an argument of the tool is written as NAME=VALUE, after the component: `{member}`"
    ))
}

/// Prints the error: all of it as text; with `--json`, its message and the advice.
pub(crate) fn show(printer: &Printer, mut error: clap::Error) -> ExitStatus {
    if !error.use_stderr() {
        if let Some(failure) = stdout::fault() {
            return printer.show_failure(&failure, false);
        }
        // The parser's own printing handles colours and terminals.
        return match Printer::written(error.print().and_then(|()| io::stdout().flush())) {
            Ok(_) => ExitStatus::Ok,
            Err(failure) => printer.show_failure(&failure, false),
        };
    }
    forget_hidden(&mut error);
    let member = as_member(&error);
    if member.is_some() {
        // The tip to write `--` before the word would make it the tool's name.
        error.remove(ContextKind::Suggested);
    }
    let hint = member.unwrap_or_else(hint);
    let text = error.render().to_string();
    let text = text.trim_end().trim_end_matches(LAST_LINE).trim_end();
    if env::args().any(|arg| arg == "--json") {
        let message = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        let tips = text.lines().filter_map(|line| line.trim_start().strip_prefix(TIP));
        let advice: Vec<_> = tips.map(str::to_owned).chain([hint.clone()]).collect();
        return printer.show_failure(&Failure::usage(message, advice.join("; ")), true);
    }
    match text.strip_prefix("error: ") {
        Some(text) => printer.error_lines(&format!("{text}\n")),
        None => printer.lines(&format!("{text}\n")),
    }
    printer.hint(&hint);
    ExitStatus::BadUsage
}

/// Returns the hint with the help of the command, if the command is recognisable.
fn hint() -> String {
    let names = command();
    match names.first() {
        Some(first) if !HIDDEN.contains(&first.as_str()) => {
            format!("`toolcell {} --help` shows its arguments and options", names.join(" "))
        }
        Some(_) | None => "`toolcell --help` shows the commands".to_owned(),
    }
}

/// Returns the names of the command and its subcommands, as far as they are recognisable.
fn command() -> Vec<String> {
    // If its errors are ignored, the parser still finds the command among options that have values.
    let seen = Args::command().ignore_errors(true).try_get_matches_from(env::args()).ok();
    let mut names = Vec::new();
    let mut within = seen.as_ref();
    while let Some((name, inner)) = within.and_then(ArgMatches::subcommand) {
        names.push(name.to_owned());
        within = Some(inner);
    }
    names
}

/// Removes the hidden commands from the parser's lists.
fn forget_hidden(error: &mut clap::Error) {
    for kind in [ContextKind::ValidSubcommand, ContextKind::SuggestedSubcommand] {
        if let Some(ContextValue::Strings(names)) = error.remove(kind) {
            let visible: Vec<_> =
                names.into_iter().filter(|name| !HIDDEN.contains(&name.as_str())).collect();
            if !visible.is_empty() {
                error.insert(kind, ContextValue::Strings(visible));
            }
        }
    }
}
