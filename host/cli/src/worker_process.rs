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

/// Starts the child and waits for its tools. Adds the secrets, the grants, the words of the call
/// and the hint to the options.
pub(crate) async fn start(
    cli: &Cli,
    config: &Config,
    options: WorkerArgs,
) -> Result<WorkerProcess> {
    let program = host::program_path(env::own_program(), "run tools in a separate process")?;
    let chosen = components::chosen(config, &options.components)?;
    let tenant = options.tenant.clone();
    let secrets = config.secrets_of(tenant.as_deref(), &chosen);
    let call = config.hint.call();
    let is_short = call.iter().map(String::len).sum::<usize>() <= MAX_CALL;
    let options = WorkerArgs {
        secrets: secrets.iter().cloned().collect(),
        grants: config.typed.clone(),
        call: call.iter().filter(|_| is_short).cloned().collect(),
        // The child does not get the variable that the hint names.
        proxy_hint: host::proxy_hint(config),
        ..options
    };
    let words = [vec![WORKER_PROCESS.into()], cli.global.words(), options.words()].concat();
    // Temporary files go to this process's directory, which is removed with its content: a killed
    // child does not remove its files.
    let mut worker_process = WorkerProcess::builder(program)
        .arguments(words)
        .variable("TMPDIR", tempfile::env::temp_dir());
    let variables = config.variables_of(tenant.as_deref(), &secrets);
    for (name, value) in env::own_variables().chain(variables) {
        worker_process = worker_process.variable(name, value);
    }
    let started = worker_process.start().await;
    started.map_err(|error| match std::error::Error::source(&error).filter(|_| error.is_worker()) {
        Some(words) => Failure::of_words(&words.to_string()),
        None => error.into(),
    })
}

/// Runs in the child: hosts the tools until the parent is gone.
pub(crate) fn work(cli: &Cli, args: &WorkerArgs, waiting: &Runtime) -> Result<ExitStatus> {
    let ward = Worker::begin()?;
    match waiting.block_on(tools(cli, args)) {
        Ok(tools) => ward.serve(tools)?,
        Err(failure) => ward.refuse(failure.to_json().to_string())?,
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
