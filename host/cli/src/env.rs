//! The environment, read here and nowhere else.
//!
//! | variable | meaning |
//! |---|---|
//! | `TOOLCELL_LOG` | filter of the diagnostic log, as `tracing` writes it (`toolcell=debug`); wins over `-v` |
//! | `TOOLCELL_CONFIG` | the configuration, where `--config` does not name one |
//! | `XDG_CACHE_HOME` | where the user's caches are; ignored unless absolute |
//! | `XDG_STATE_HOME` | where what is to stay is kept; ignored unless absolute |
//! | `HTTPS_PROXY`, `ALL_PROXY` | never used; named in a hint where a tool's request gets no connection and `[network]` has no proxy |
//! | `NOTIFY_SOCKET` | where a supervisor hears that the server takes calls, and that it ends |
//! | `CARGO_TARGET_DIR` | where cargo writes what it builds, for a component that is named by the folder of its crate |
//! | `HOME` | its `.cache` and `.local/state` are used where those are not set |
//!
//! A configuration names further ones, for the values of secrets.
//!
//! The libraries for help, colours and spinner look at `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`,
//! `COLUMNS` and `TERM` by themselves, that for completions at `TOOLCELL_COMPLETE`.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// What was typed, the program's own name first.
pub(crate) fn args() -> impl Iterator<Item = OsString> {
    std::env::args_os()
}

/// The program's name as it was typed.
pub(crate) fn program() -> String {
    args().next().map_or_else(|| "toolcell".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// What this command reads itself, for a child that is to find the same.
pub(crate) fn own() -> impl Iterator<Item = (OsString, OsString)> {
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

/// The file of this very program, to start it again as its own child.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Where cargo writes what it builds, if that is set.
pub(crate) fn cargo_target_dir() -> Option<PathBuf> {
    std::env::var_os("CARGO_TARGET_DIR").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The filter of the diagnostic log, if one is set.
pub(crate) fn log_filter() -> Option<String> {
    std::env::var("TOOLCELL_LOG").ok().filter(|filter| !filter.is_empty())
}

/// The configuration that the environment names.
pub(crate) fn config() -> Option<PathBuf> {
    std::env::var_os("TOOLCELL_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A variable that other programs take a proxy from, and its value. Requests of tools do not.
pub(crate) fn proxy() -> Option<(&'static str, String)> {
    let names = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    names
        .into_iter()
        .find_map(|name| Some((name, std::env::var(name).ok().filter(|value| !value.is_empty())?)))
}

/// Where the supervisor that started the command hears of it.
pub(crate) fn notify_socket() -> Option<OsString> {
    std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty())
}

/// The directory that the command was started in.
pub(crate) fn current_dir() -> io::Result<PathBuf> {
    std::env::current_dir()
}

/// Where compiled components are kept unless the command line says otherwise.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    absolute("XDG_CACHE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".cache")))
        .map(|dir| dir.join("toolcell"))
}

/// Where the key of open questions is kept unless the command line says otherwise.
pub(crate) fn state_dir() -> Option<PathBuf> {
    absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .map(|dir| dir.join("toolcell"))
}

fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
