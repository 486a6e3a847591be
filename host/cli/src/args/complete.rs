//! Shell completion for names of components in `toolcell.toml`, and of the tools of a component.
//!
//! When the user presses Tab, the shell starts this program with an environment variable set.
//! `main` calls [`answer`] first, which prints the possible words for the command line so far and
//! ends the process; without that variable it returns. [`components`] offers the names in the
//! configuration and files, [`tools`] the approved tools that the lock file (the approvals, with
//! the digests of approved components) records. [`script`] gives the text that a user installs for
//! a shell. Nothing is compiled, and a configuration that cannot be read yields no names.
//!
//! Not here: commands and options, which the parser completes by itself.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{ArgMatches, CommandFactory as _};
use clap_complete::env::Shells;
use clap_complete::{ArgValueCompleter, CompleteEnv, CompletionCandidate, PathCompleter, Shell};
use toolcell_config::ReadOptions;

use super::Args;
use crate::config::{Config, Lock, SecretSelection};
use crate::os::env;
use crate::print::Result;

/// The environment variable by which the shell's script requests completions.
const VARIABLE: &str = "TOOLCELL_COMPLETE";
/// The end of the function in bash's script. Only the name of a file has such a character; bash
/// then quotes it, so that a name such as `$(…)` is not run.
const BASH_QUOTES: &str = r#"
    if [[ "${COMPREPLY[*]-}" == *[!A-Za-z0-9_./=:"$IFS"-]* ]]; then
        compopt -o filenames
    fi
}
"#;

/// Answers a shell's request for completions and ends the process. Returns if there is no request.
pub(crate) fn answer() {
    CompleteEnv::with_factory(Args::command).var(VARIABLE).bin("toolcell").complete();
}

/// Returns the script that makes a shell request completions.
pub(crate) fn script(shell: Shell) -> Result<String> {
    let mut script = Vec::new();
    let name = shell.to_string();
    if let Some(completer) = Shells::builtins().completer(&name) {
        completer.write_registration(VARIABLE, "toolcell", "toolcell", "toolcell", &mut script)?;
    }
    let script = String::from_utf8_lossy(&script).trim_end().to_owned();
    Ok(if shell == Shell::Bash { script.replacen("\n}\n", BASH_QUOTES, 1) } else { script })
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

/// Completes an approved tool of the component that was typed before it.
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

/// Parses the command line so far and ignores errors. The shell's script puts it after `--`.
fn matches() -> Option<ArgMatches> {
    let typed: Vec<OsString> = env::args().skip_while(|word| word != "--").skip(1).collect();
    Args::command().ignore_errors(true).try_get_matches_from(typed).ok()
}

fn component(matches: &Option<ArgMatches>) -> Option<PathBuf> {
    let (_, command) = matches.as_ref()?.subcommand()?;
    command.try_get_one::<PathBuf>("component").ok()?.cloned()
}

/// Reads the configuration that the command would use, without values of secrets.
fn config(matches: &Option<ArgMatches>) -> Option<Config> {
    let named =
        |command: &ArgMatches| command.try_get_one::<PathBuf>("config").ok().flatten().cloned();
    let (_, command) = matches.as_ref()?.subcommand()?;
    let options = ReadOptions::from_environment().with_wanted(SecretSelection::None);
    match named(command).or_else(env::config) {
        Some(file) => Config::read_with(file, options).ok(),
        None => Config::find(options).ok(),
    }
}
