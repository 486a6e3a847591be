//! The command line of the worker process, a hidden command that this program starts as its own
//! child.
//!
//! A worker process runs the tools of one tenant apart from the host. Parent and child agree on the
//! options in [`WorkerArgs`]: the number of calls at once, the tenant, the names of its secrets,
//! the grants and components as the user entered them. [`WorkerArgs::words`] and `Global::words`
//! write the options of the parent as words of a command line, so that the child parses to equal
//! ones. Not here: starting the child, and its work, in `worker_process.rs`.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::Global;

/// Host the tools of components for the process that started this one.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct WorkerArgs {
    /// The most calls at once
    #[arg(long)]
    pub(crate) calls: usize,
    /// The tenant whose calls these are
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// A secret whose value this process may read
    #[arg(long = "secret")]
    pub(crate) secrets: Vec<String>,
    /// A grant that the user typed for the parent process
    #[arg(long = "grant", value_name = "KIND=RULE")]
    pub(crate) grants: Vec<String>,
    /// A word of the call that the user typed for the parent process, for hints that repeat it
    #[arg(long = "call", value_name = "WORD")]
    pub(crate) call: Vec<String>,
    /// What to print where a request of a tool gets no connection
    #[arg(long, value_name = "TEXT")]
    pub(crate) proxy_hint: Option<String>,
    /// Offer the tools of all components together
    #[arg(long)]
    pub(crate) beside: bool,
    /// The components are all of the configuration: leave out one that lacks a grant
    #[arg(long)]
    pub(crate) all: bool,
    /// The components, as the user typed them for the parent process
    #[arg(required = true)]
    pub(crate) components: Vec<PathBuf>,
}

impl WorkerArgs {
    /// Returns the options as words of a command line.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let Self { calls, tenant, secrets, grants, call, proxy_hint, beside, all, components } =
            self;
        let mut words = vec![format!("--calls={calls}").into()];
        for (option, values) in [
            ("--tenant", tenant.as_slice()),
            ("--secret", secrets.as_slice()),
            ("--grant", grants.as_slice()),
            ("--call", call.as_slice()),
            ("--proxy-hint", proxy_hint.as_slice()),
        ] {
            words.extend(values.iter().map(|value| format!("{option}={value}").into()));
        }
        words.extend(beside.then(|| "--beside".into()));
        words.extend(all.then(|| "--all".into()));
        words.push("--".into());
        words.extend(components.iter().map(|component| component.into()));
        words
    }
}

impl Global {
    /// Returns the options as words of a command line.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let Self {
            config,
            cache_dir,
            cache_size,
            no_cache,
            state_dir,
            seed,
            now,
            max_compile_time: compile_time,
            verbose,
            quiet,
        } = self;
        let mut words = Vec::new();
        for (option, path) in
            [("--config", config), ("--cache-dir", cache_dir), ("--state-dir", state_dir)]
        {
            // Option and value in one word: a path may begin with `-`.
            words.extend(path.iter().map(|path| {
                [OsStr::new(option), OsStr::new("="), path.as_os_str()].into_iter().collect()
            }));
        }
        words.extend(no_cache.then(|| "--no-cache".into()));
        words.extend(seed.map(|seed| format!("--seed={seed}").into()));
        words.extend(now.map(|date| format!("--now={date}").into()));
        words.push(format!("--cache-size={cache_size}").into());
        words.push(format!("--max-compile-time={compile_time}").into());
        words.extend(quiet.then(|| "--quiet".into()));
        words.extend((0..*verbose).map(|_| "--verbose".into()));
        words
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use toolcell_test_guests::rows;

    use crate::args::Args;

    /// The options of the parent, as words, parse to the same options in the child.
    #[test]
    fn global_options_round_trip_to_worker() {
        let begin = ["toolcell", "list", "x.wasm"];
        for words in rows::<Vec<&str>>("worker", "global_options_round_trip_to_worker") {
            let global = Args::try_parse_from([&begin[..], &words].concat()).unwrap().global;
            let again = begin.map(Into::into).into_iter().chain(global.words());
            assert_eq!(
                format!("{:?}", Args::try_parse_from(again).unwrap().global),
                format!("{global:?}"),
                "{words:?}"
            );
        }
    }
}
