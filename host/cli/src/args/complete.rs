//! Names that a shell completes: the components of `toolcell.toml`, and the tools of a component.
//!
//! In: the command line so far, from the shell. Out: names.
//! Invariants: nothing is compiled and nothing is printed; a configuration that cannot be read has
//! no names.
//! Not here: commands and options, which the parser knows, and files.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{ArgMatches, CommandFactory as _, Parser as _};
use clap_complete::env::Shells;
use clap_complete::{ArgValueCompleter, CompleteEnv, CompletionCandidate, PathCompleter, Shell};

use super::{Args, Global};
use crate::config::{self, Config, Lock, Wanted};
use crate::env;
use crate::failure::Failure;

/// The variable by which the script in the shell asks for completions.
const VARIABLE: &str = "TOOLCELL_COMPLETE";

/// Answers a shell that asks for completions, and ends the process then.
pub(crate) fn answer() {
    CompleteEnv::with_factory(Args::command).var(VARIABLE).bin("toolcell").complete();
}

/// The script that has a shell ask.
pub(crate) fn script(shell: Shell) -> Result<String, Failure> {
    let mut script = Vec::new();
    let name = shell.to_string();
    if let Some(completer) = Shells::builtins().completer(&name) {
        completer.write_registration(VARIABLE, "toolcell", "toolcell", "toolcell", &mut script)?;
    }
    Ok(String::from_utf8_lossy(&script).trim_end().to_owned())
}

/// Completes a component: its name in the configuration, or its file.
pub(crate) fn components() -> ArgValueCompleter {
    use clap_complete::engine::ValueCompleter as _;
    ArgValueCompleter::new(|typed: &OsStr| {
        let config = config(&matches());
        let names = config.iter().flat_map(|config| config.components.keys());
        let mut found: Vec<_> = names.filter_map(|name| candidate(name, typed)).collect();
        found.extend(PathCompleter::file().complete(typed));
        found
    })
}

/// Completes a tool of the component that was typed before it, as far as it was approved.
pub(crate) fn tools() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let matches = matches();
        let (Some(config), Some(component)) = (config(&matches), component(&matches)) else {
            return Vec::new();
        };
        let lock = Lock::beside(&config).ok();
        let approved = lock.as_ref().and_then(|lock| lock.components.get(component.to_str()?));
        approved
            .into_iter()
            .flat_map(|approved| approved.tools.keys())
            .filter_map(|name| candidate(name, typed))
            .collect()
    })
}

fn candidate(name: &str, typed: &OsStr) -> Option<CompletionCandidate> {
    name.starts_with(typed.to_str()?).then(|| CompletionCandidate::new(name))
}

/// What was typed so far, as far as it can be parsed. The shell's script puts it after `--`.
fn matches() -> Option<ArgMatches> {
    let typed: Vec<OsString> = env::args().skip_while(|word| word != "--").skip(1).collect();
    Args::command().ignore_errors(true).try_get_matches_from(typed).ok()
}

fn component(matches: &Option<ArgMatches>) -> Option<PathBuf> {
    let (_, command) = matches.as_ref()?.subcommand()?;
    command.try_get_one::<PathBuf>("component").ok()?.cloned()
}

/// The configuration that the command would use; no secret's value is read for it.
fn config(matches: &Option<ArgMatches>) -> Option<Config> {
    let named =
        |command: &ArgMatches| command.try_get_one::<PathBuf>("config").ok().flatten().cloned();
    let (_, command) = matches.as_ref()?.subcommand()?;
    let Args { global, .. } = Args::try_parse_from(["toolcell", "check"]).ok()?;
    let global = Global { config: named(command), ..global };
    config::read_with(&global, Wanted::None).ok()
}
