//! `toolcell serve`: serves the approved tools of a configuration over HTTP and MCP.
//!
//! [`serve`] reads the configuration, loads its components through `toolcell-config`, and runs the
//! server of `toolcell-server` until a signal ends it: an HTTP listener or, with `--stdio`, the
//! Model Context Protocol on standard input and output for one client. It watches the files. A
//! changed configuration is loaded beside the running one and replaces it; a reload that fails
//! changes nothing and is reported on standard error. With `--check` it only loads everything and
//! prints the problems.
//!
//! Only approved tools are served, or those of components in development mode, with a warning. At a
//! signal, running calls get the time of `--drain` to finish.

mod heap;
mod problems;

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use toolcell_config::LoadedTools;
use toolcell_server::artifacts::{ArtifactOptions, Artifacts};
use toolcell_server::configured::IssuerError;
use toolcell_server::listener::{BindError, MetricsError, MetricsServer, Tls};
use toolcell_server::mcp::{self, McpOptions};
use toolcell_server::service::ManyTools;
use toolcell_server::{
    Authenticator, ConfigServer, HttpOptions, HttpServer, ListenOptions, Notice, Principal,
    Service, ServiceBuilder,
};

use super::tenant;
use crate::args::ServeArgs;
use crate::config::{self, SecretSelection};
use crate::host::{self, Cli};
use crate::os::interrupt::Interrupt;
use crate::os::{state, supervisor};
use crate::print::{ExitStatus, Failure, Printer, Result, counted};
use problems::{print_problems, summary};

/// Serves until a signal ends it.
pub(crate) fn serve(cli: &Cli, args: &ServeArgs) -> Result<ExitStatus> {
    allow_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let ended = serving(cli, args).await;
        cli.traces.finish().await;
        ended
    });
    // Ends without waiting for components that are being optimised.
    runtime.shutdown_background();
    ended
}

/// Raises the limit on open files to the system's maximum: each connection is one, and the usual
/// limit is 1,024.
fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // If that fails, the server takes as many connections as the limit allows.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

async fn serving(cli: &Cli, args: &ServeArgs) -> Result<ExitStatus> {
    let Cli { printer, interrupt, global, .. } = cli;
    let configuration = cli.config(SecretSelection::All)?;
    let Some(file) = configuration.file.clone() else {
        return Err(configuration.missing("create a configuration with `toolcell init`, or name one with `--config FILE`: the server serves the components that the file lists").into());
    };
    let keys = tenant::store(&configuration)?;
    let add_key = configuration.hint.command("tenant", &["add-key"], &["NAME"]);
    let engines = host::of_configuration(cli, &configuration)?;
    let has_cache = host::cache_dir(cli).is_some();
    let engines = engines.with(|builder| {
        let builder = builder.cells(args.max_cells);
        if has_cache { builder } else { builder.without_cache() }
    });
    let engines = engines.build()?;
    let many = ManyTools { threshold: args.search_threshold, ..ManyTools::default() };
    let configured = ConfigServer::start(configuration, engines).await?.with_many_tools(many);
    let loaded = configured.loaded();
    if args.stdio {
        check_tenant(args, &file, &loaded)?;
    }
    let problems = print_problems(printer, args, &loaded)?;
    let auth = configured.authenticator(keys).map_err(no_issuer)?;
    if args.check {
        drop(state::sealer(global.state_dir.as_deref())?);
        check_artifacts(args)?;
        // A single client on standard input and output needs no token, no metrics and no address.
        if !args.stdio {
            configured.check_issuer().await.map_err(no_issuer)?;
            if let Some(address) = args.metrics {
                MetricsServer::check(address).map_err(no_metrics)?;
            }
            options(args)?.check(&auth).map_err(not_listening)?;
        }
        return Ok(if problems == 0 { ExitStatus::Ok } else { ExitStatus::Failed });
    }
    let service = configured.service().sealer(state::sealer(global.state_dir.as_deref())?);
    let service = state::dir(global.state_dir.as_deref())
        .into_iter()
        .fold(service, ServiceBuilder::state_directory);
    let service = service.artifacts(artifacts(args)?).build()?;
    cli.traces.report_to(&service);
    if args.stdio {
        let principal = Principal::new(args.tenant.as_deref(), "stdio");
        return on_stdio(printer, interrupt, args, &configured, service, principal).await;
    }
    let options = ListenOptions {
        protected: mcp::routes(service.clone(), McpOptions::default()),
        ..options(args)?
    };
    let server =
        HttpServer::bind(service.clone(), auth.clone(), options).await.map_err(not_listening)?;
    let metrics = match args.metrics {
        Some(address) => {
            Some(MetricsServer::bind(service.clone(), address).await.map_err(no_metrics)?)
        }
        None => None,
    };
    let metrics_url =
        metrics.as_ref().map(|metrics| format!("http://{}/metrics", metrics.address()));
    let scheme = if args.tls_cert.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", server.address());
    let is_open = auth.is_open();
    let tools = loaded.registry().toolbox().tools().count();
    // Set before the line that announces the server: a signal after that line must end the server
    // in order.
    let stop = interrupt.drain(args.drain_timeout.0);
    if args.json {
        let mut listening = json!({ "url": url, "tools": tools });
        if let Some(metrics) = &metrics_url {
            listening["metrics_url"] = metrics.as_str().into();
        }
        printer.json(&listening)?;
    } else {
        if let Some(metrics) = &metrics_url {
            printer.labelled("metrics", metrics);
        }
        let access =
            if is_open { "for this machine only" } else { "each request needs a key or a token" };
        let tools = counted(tools, "tool");
        printer.labelled("serving", format!("{tools} at {url}/v1 and {url}/mcp, {access}"));
    }
    drop(loaded);
    supervisor::notify(printer, supervisor::READY);
    let serving = server.serve(async {
        stop.raised().await;
        supervisor::notify(printer, supervisor::STOPPING);
    });
    tokio::select! {
        () = serving => {}
        () = configured.follow(&service, Some(&auth), args.watch_interval.0, |notice| print_notice(printer, args, notice)) => {}
        () = keyed(printer, &auth, args, &add_key), if is_open => {}
        () = measured(metrics) => {}
        () = heap::trimmed(&service) => {}
    }
    interrupt.drained();
    Ok(ExitStatus::Ok)
}

/// Serves one client on standard input and output, until the client closes them or a signal ends
/// the server.
async fn on_stdio(
    printer: &Printer,
    interrupt: &Interrupt,
    args: &ServeArgs,
    configured: &ConfigServer,
    service: Service,
    principal: Principal,
) -> Result<ExitStatus> {
    let stop = interrupt.drain(args.drain_timeout.0);
    let stopped = async { stop.raised().await };
    let ended = tokio::select! {
        ended = mcp::serve_stdio(service.clone(), principal, McpOptions::default(), stopped, args.drain_timeout.0) => ended,
        // No authenticator: it serves one principal, whatever keys exist.
        () = configured.follow(&service, None, args.watch_interval.0, |notice| print_notice(printer, args, notice)) => Ok(()),
        () = sweep_artifacts(&service) => Ok(()),
        () = heap::trimmed(&service) => Ok(()),
    };
    interrupt.drained();
    ended.map_err(|error| {
        let hint =
            "check that the client speaks MCP, and that it keeps standard input and output open";
        Failure::environment(error, hint)
    })?;
    Ok(ExitStatus::Ok)
}

/// Removes expired artifacts, as a listening server does. Never returns.
async fn sweep_artifacts(service: &Service) {
    match service.artifacts() {
        Some(artifacts) => artifacts.sweep_periodically().await,
        None => std::future::pending().await,
    }
}

/// Checks that this tenant exists, or that there are no tenants and none is given.
fn check_tenant(args: &ServeArgs, file: &str, loaded: &LoadedTools) -> Result<()> {
    let tenants = loaded.tenants();
    match &args.tenant {
        Some(tenant) if tenants.contains_key(tenant) => Ok(()),
        Some(tenant) => Err(config::unknown_tenant(file, tenants.keys(), tenant)),
        None if tenants.is_empty() => Ok(()),
        None => {
            let message = format!("`{file}` names tenants, and no tenant was given");
            Err(Failure::usage(message, "say which tenant's tools to serve: `--tenant NAME`"))
        }
    }
}

/// Serves metrics, if the option is given. Never returns.
async fn measured(metrics: Option<MetricsServer>) {
    match metrics {
        Some(metrics) => metrics.serve().await,
        None => std::future::pending().await,
    }
}

fn no_metrics(error: MetricsError) -> Failure {
    let hint = error.hint();
    Failure::environment(error, hint)
}

/// Opens the store of artifacts.
fn artifacts(args: &ServeArgs) -> Result<Artifacts> {
    let threshold = usize::try_from(args.artifact_threshold.0).unwrap_or(usize::MAX);
    let options = ArtifactOptions {
        threshold,
        quota: args.artifact_quota.0,
        lifetime: args.artifact_lifetime.0,
        ..ArtifactOptions::default()
    };
    let opened = match &args.artifact_dir {
        Some(directory) => Artifacts::open(directory, options),
        None => Artifacts::temporary(options),
    };
    opened.map_err(no_artifacts)
}

/// Checks that the directory for artifacts can be used. A server that uses it now is not a problem
/// of the configuration.
fn check_artifacts(args: &ServeArgs) -> Result<()> {
    let Some(directory) = &args.artifact_dir else { return Ok(()) };
    match Artifacts::open(directory, ArtifactOptions::default()) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(no_artifacts(error)),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn no_artifacts(error: io::Error) -> Failure {
    let hint =
        "give `--artifact-dir` a directory that you can write to and that no other server uses";
    Failure::environment(error, hint)
}

/// Prints a warning once a server without keys starts to require them, and `add_key`, the command
/// that makes one. Never returns.
async fn keyed(printer: &Printer, auth: &Authenticator, args: &ServeArgs, add_key: &str) {
    while auth.is_open() {
        tokio::time::sleep(args.watch_interval.0).await;
    }
    printer.warning("there are tenants or keys now: from now on each request needs a key");
    printer.hint(format!("{add_key} makes one"));
    std::future::pending().await
}

fn not_listening(error: BindError) -> Failure {
    let hint = error.hint();
    Failure::environment(error, hint)
}

/// Returns the options of the listener.
fn options(args: &ServeArgs) -> Result<ListenOptions> {
    let http = HttpOptions {
        hosts: args.hosts.clone(),
        origins: args.origins.clone(),
        ..HttpOptions::default()
    };
    let mut options = ListenOptions {
        address: args.listen,
        http,
        drain_timeout: args.drain_timeout.0,
        shutdown_delay: args.shutdown_delay.as_ref().map_or(Duration::ZERO, |delay| delay.0),
        behind_proxy: args.behind_proxy,
        ..ListenOptions::default()
    };
    if let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let hint = "give the certificate chain and its key as PEM files that you can read";
        let tls = Tls::from_files(cert, key).map_err(|error| Failure::file(error, hint))?;
        options.tls = Some(tls);
    }
    Ok(options)
}

/// Prints a notice about a reload or a failed one.
fn print_notice(printer: &Printer, args: &ServeArgs, notice: Notice) {
    match notice {
        Notice::Reloaded { changes, loaded } => {
            printer.labelled("reloaded", summary(&changes, &loaded));
            // A reader of standard output that went away does not end the server.
            let _ = print_problems(printer, args, &loaded);
        }
        Notice::NotReloaded(error) => {
            printer.warning(
                "the changed configuration is not used: the server keeps the previous one",
            );
            printer.failure(&Failure::from(error));
        }
        Notice::IssuerKeysLost { error, has_earlier } => {
            let until =
                if has_earlier { "the earlier ones stay in use" } else { "every token is refused" };
            printer.warning(format!("the keys of the issuer cannot be used: {until}"));
            printer.failure(&no_issuer(error));
        }
        Notice::IssuerKeysFound => {
            printer.note("the keys of the issuer can be fetched and used again")
        }
    }
}

fn no_issuer(error: IssuerError) -> Failure {
    let hint = error.hint();
    match error {
        IssuerError::Keys { .. } => Failure::file(error, hint),
        IssuerError::Fetch(_) => Failure::environment(error, hint),
    }
}
