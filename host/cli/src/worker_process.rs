//! Runs a tenant's tools in a process of their own, for `isolation = "process"`: this command
//! starts itself again, as the child.
//!
//! `run` and `batch` call [`start`] if the configuration asks for this isolation. It starts the
//! child with the same options, components and grants, and returns its tools, whose calls run
//! there; no WebAssembly code of such a call runs in this process. In the child, `main` calls
//! [`work`], which reads the configuration, loads the components with all checks, and serves calls
//! until the parent is gone; a failure is sent to the parent.
//!
//! The child's environment has the variables that this command reads itself, and those of the
//! secrets that the tenant may use.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use tokio::runtime::Runtime;
use toolcell::Tool;
use toolcell::process::{Worker, WorkerProcess};

use crate::args::{WORKER_PROCESS, WorkerArgs};
use crate::components::{self, OnUnusable};
use crate::config::{Config, Isolation, SecretSelection};
use crate::host::{self, Cli};
use crate::os::env;
use crate::print::{ExitStatus, Failure, Result};

/// Bytes of a call's words that a child gets for its hints: a longer command is not repeated.
const MAX_CALL: usize = 16 << 10;

/// The parameters of a child process.
pub(crate) struct ChildOptions<'a> {
    /// The components as they were typed.
    pub(crate) components: &'a [PathBuf],
    pub(crate) tenant: Option<&'a str>,
    /// The most concurrent calls.
    pub(crate) calls: usize,
    pub(crate) together: ToolUse,
}

/// The use of the tools: all beside each other, for a model, or a single one that was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolUse {
    Several,
    /// Beside each other, as all components of the configuration.
    All,
    Single,
}

/// Starts the child and waits for its tools.
pub(crate) async fn start(
    cli: &Cli,
    config: &Config,
    hosted: &ChildOptions<'_>,
) -> Result<WorkerProcess> {
    let program = host::program_path(env::own_program(), "run tools in a separate process")?;
    let chosen = components::chosen(config, hosted.components)?;
    let secrets = config.secrets_of(hosted.tenant, &chosen);
    let typed = config.typed.iter().map(|grant| format!("--grant={grant}").into()).collect();
    let call = config.hint.call();
    let is_short = call.iter().map(String::len).sum::<usize>() <= MAX_CALL;
    let call =
        call.iter().filter(|_| is_short).map(|word| format!("--call={word}").into()).collect();
    // The child does not get the variable that the hint names.
    let hint = host::proxy_hint(config)
        .map(|hint| format!("--proxy-hint={hint}").into())
        .into_iter()
        .collect();
    let words = [
        vec![WORKER_PROCESS.into()],
        cli.global.words(),
        typed,
        call,
        hint,
        hosted.words(&secrets),
    ]
    .concat();
    // Temporary files go to this process's directory, which is removed with its content: a killed
    // child does not remove its files.
    let mut worker_process = WorkerProcess::builder(program)
        .arguments(words)
        .variable("TMPDIR", tempfile::env::temp_dir());
    for (name, value) in env::own_variables().chain(config.variables_of(hosted.tenant, &secrets)) {
        worker_process = worker_process.variable(name, value);
    }
    let started = worker_process.start().await;
    started.map_err(|error| match std::error::Error::source(&error).filter(|_| error.is_worker()) {
        Some(words) => Failure::of_words(&words.to_string()),
        None => error.into(),
    })
}

impl ChildOptions<'_> {
    fn words(&self, secrets: &BTreeSet<String>) -> Vec<OsString> {
        let Self { components, tenant, calls, together } = self;
        let mut words = vec![format!("--calls={calls}").into()];
        words.extend(tenant.map(|name| format!("--tenant={name}").into()));
        words.extend(secrets.iter().map(|name| format!("--secret={name}").into()));
        words.extend((*together != ToolUse::Single).then(|| "--beside".into()));
        words.extend((*together == ToolUse::All).then(|| "--all".into()));
        words.push("--".into());
        words.extend(components.iter().map(|component| component.into()));
        words
    }
}

/// Runs in the child: hosts the tools until the parent is gone.
pub(crate) fn work(cli: &Cli, args: &WorkerArgs, waiting: &Runtime) -> Result<ExitStatus> {
    let ward = Worker::begin()?;
    match waiting.block_on(tools(cli, args)) {
        Ok(tools) => ward.serve(tools)?,
        Err(failure) => ward.refuse(failure.to_words())?,
    }
    Ok(ExitStatus::Ok)
}

async fn tools(cli: &Cli, args: &WorkerArgs) -> Result<Vec<Tool>> {
    let wanted = SecretSelection::Only { names: args.secrets.clone(), tenant: args.tenant.clone() };
    let mut config = cli.config(wanted)?;
    config.hint = config.hint.with_call(args.call.iter().cloned());
    let config = components::with_command_line_grants(config, &args.components, &args.grants)?;
    let engines = host::engines(cli, args.calls, &config)?;
    let engines = engines.with_proxy_hint(args.proxy_hint.clone());
    let chosen = components::chosen(&config, &args.components)?;
    let chosen: Vec<_> =
        chosen.into_iter().map(|chosen| chosen.with_isolation(Isolation::Process)).collect();
    match chosen.as_slice() {
        [only] if !args.beside => {
            let component = components::alone(&engines, only).await?;
            let limited = |tool: &Tool| {
                config.stopped(tool.clone().with_limits(only.limits_of(&tool.definition().name)))
            };
            Ok(component.tools().iter().map(limited).collect())
        }
        several => {
            let (left_out, tenant) = (OnUnusable::unless(!args.all), args.tenant.as_deref());
            components::tools(&engines, several, left_out, tenant).await
        }
    }
}
