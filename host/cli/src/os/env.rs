//! Reads the environment of the process for the whole command: variables, words, own program.
//!
//! Other modules of the command call these functions and do not read the environment themselves,
//! so that this list is complete. Each returns the value of one variable, or `None` if it is not
//! set or not usable; [`args`] returns the command line, [`own_program`] the file to start as a
//! child. [`own_variables`] returns the variables that a worker process, this command's own child,
//! needs too.
//!
//! | variable | meaning |
//! |---|---|
//! | `TOOLCELL_LOG` | filter of the diagnostic log, such as `toolcell=debug`; wins over `-v` |
//! | `TOOLCELL_CONFIG` | the configuration, if `--config` does not name one |
//! | `XDG_CACHE_HOME` | directory of the user's caches; ignored unless absolute |
//! | `XDG_STATE_HOME` | directory of the user's persistent state; ignored unless absolute |
//! | `HTTPS_PROXY`, `ALL_PROXY` | never used; named in a hint, see below |
//! | `NOTIFY_SOCKET` | socket of the supervisor, which is notified of the server's start and end |
//! | `CARGO_TARGET_DIR` | directory of cargo's output, for a component named by its folder |
//! | `HOME` | its `.cache` and `.local/state` are used if those variables are not set |
//!
//! The hint about a proxy is printed if a tool's request gets no connection and `[network]` names
//! no proxy. A configuration names further variables, for the values of secrets.
//!
//! The libraries for help, colours and spinner read `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`,
//! `COLUMNS` and `TERM` themselves; the one for completions reads `TOOLCELL_COMPLETE`.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Returns the words of the command line, the program's own name first.
pub(crate) fn args() -> impl Iterator<Item = OsString> {
    std::env::args_os()
}

/// Returns the program's name as it was typed.
pub(crate) fn program() -> String {
    args().next().map_or_else(|| "toolcell".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Returns the variables that this command reads itself, for a child that needs the same ones.
pub(crate) fn own_variables() -> impl Iterator<Item = (OsString, OsString)> {
    let names = [
        "CARGO_TARGET_DIR",
        "HOME",
        "TOOLCELL_CONFIG",
        "TOOLCELL_LOG",
        "XDG_CACHE_HOME",
        "XDG_STATE_HOME",
    ];
    names.into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
}

/// Returns the file of this program, to start it again as a child.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Returns cargo's target directory, if the variable is set.
pub(crate) fn cargo_target_dir() -> Option<PathBuf> {
    not_empty("CARGO_TARGET_DIR").map(PathBuf::from)
}

/// Returns the filter of the diagnostic log, if one is set.
pub(crate) fn log_filter() -> Option<String> {
    std::env::var("TOOLCELL_LOG").ok().filter(|filter| !filter.is_empty())
}

/// Returns the configuration that `TOOLCELL_CONFIG` names.
pub(crate) fn config() -> Option<PathBuf> {
    not_empty("TOOLCELL_CONFIG").map(PathBuf::from)
}

/// Returns a variable that other programs take a proxy from, and its value. Requests of tools do
/// not use it.
pub(crate) fn proxy() -> Option<(&'static str, String)> {
    let names = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    names
        .into_iter()
        .find_map(|name| Some((name, std::env::var(name).ok().filter(|value| !value.is_empty())?)))
}

/// Returns the socket on which the supervisor that started the command is notified.
pub(crate) fn notify_socket() -> Option<OsString> {
    not_empty("NOTIFY_SOCKET")
}

/// Returns the current directory.
pub(crate) fn current_dir() -> io::Result<PathBuf> {
    std::env::current_dir()
}

/// Returns the default directory of compiled components.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    own_dir("XDG_CACHE_HOME", ".cache")
}

/// Returns the default directory of persistent state, for example the key of open questions.
pub(crate) fn state_dir() -> Option<PathBuf> {
    own_dir("XDG_STATE_HOME", ".local/state")
}

/// Returns this command's directory in the one that the variable names, or in one below `HOME`.
fn own_dir(variable: &str, below_home: &str) -> Option<PathBuf> {
    let dir = absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)));
    dir.map(|dir| dir.join("toolcell"))
}

fn not_empty(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
