//! `toolcell batch`: makes many calls as one run, and prints messages, or events as they happen.
//!
//! [`batch`] reads the list of calls, loads the components, and makes the calls side by side, each
//! in its own cell (a fresh instance of the component). Without `--stream` it prints one JSON
//! object at the end, with a message for each call in the order of the list, in toolcell's own form
//! or a model provider's. With `--stream` it prints one event per line. A summary follows on
//! standard error. The exit status says if a call halted the run.
//!
//! No call runs before the whole list is read and, unless `--unknown-tools answer` is given, every
//! tool is known. Each call has its message, also if a signal ends the command; only a call that
//! cannot be read and has no id has none. If the reader of standard output goes away, the run ends.

mod calls;
mod forms;
mod summary;
mod watched;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use toolcell::message::Message;
use toolcell::provider::agui_events;
use toolcell::run::{RunEvent, RunFailure, RunHalt};
use toolcell::{CallContext, CallOptions, Event, Provider, Registry, RunOptions, Runner, Sealer};

use crate::args::{BatchArgs, WorkerArgs, context};
use crate::components::{self, OnUnusable};
use crate::host::Cli;
use crate::os::{interrupt, state};
use crate::print::{ExitStatus, Failure, Format, Printer, Result, Size, counted, format};
use crate::{config, host, worker_process};
use calls::List;
use summary::{Logged, Summary};
use watched::Watched;

/// Runs the command. With `--stream`, a failure is printed as an event too.
pub(crate) async fn batch(cli: &Cli, args: &BatchArgs) -> Result<ExitStatus> {
    // The options are checked before any file is read, and the calls are read before anything is
    // compiled.
    let events = Form::from_args(args)?;
    let ended = run(cli, args, events).await;
    if let (Some(form), Err(failure)) = (events, &ended) {
        // If standard output cannot be written, the error on standard error remains.
        let _ = form.failed(&cli.printer, failure);
    }
    ended
}

async fn run(cli: &Cli, args: &BatchArgs, events: Option<Form>) -> Result<ExitStatus> {
    let Cli { printer, interrupt, global, .. } = cli;
    let context = context(args)?;
    let config = cli.config(config::SecretSelection::All)?;
    let words = components::typed_components(&config, &args.components)?;
    let config = components::with_command_line_grants(config, &words, &args.grants.typed())?;
    let components = components::chosen(&config, &words)?;
    let context = config::for_tenant(&config, context, args.tenant.as_deref())?;
    context::warn_without_tenant(printer, &config, &context, &components);
    let isolation = config.isolation_of(context.tenant.as_deref());
    let components: Vec<_> =
        components.into_iter().map(|chosen| chosen.with_isolation(isolation)).collect();
    // A run has one budget for each of its calls: the smallest of the components' limits.
    let limits =
        components.iter().map(|chosen| chosen.limits).reduce(|one, other| one.tightened(&other));
    let limits = args.limits.over(limits.unwrap_or_default());
    let call = CallOptions {
        context: context.into(),
        stop_grace: interrupt::GRACE,
        ..CallOptions::default()
    };
    let mut options = RunOptions {
        call,
        tool_timeout: Some(limits.timeout),
        on_tool_error: args.on_tool_error.into(),
        unknown_tools: args.unknown_tools.into(),
        max_concurrency: args.max_concurrency.map(|calls| calls as usize),
        ..RunOptions::default()
    };
    let calls = calls::read(&args.calls, args.calls_format)?;
    if let silent @ 1.. = calls.unreadable.iter().filter(|call| call.id.is_none()).count() {
        let gets = if silent == 1 { "gets" } else { "get" };
        let silent = counted(silent, "call");
        printer.warning(format!("{silent} cannot be read and, without an id, {gets} no message"));
    }
    // If the key has no place, questions are sealed with a generated key, and no later command can
    // answer them.
    let (sealer, unkept) = match state::sealer(global.state_dir.as_deref()) {
        Ok(sealer) => (sealer, None),
        Err(failure) => (Sealer::generate()?, Some(failure)),
    };
    let at_once = options.concurrency(calls.calls.len()).min(calls.calls.len()).max(1);
    // A worker process serves one tenant or all calls, never a single component.
    let has_process = components.iter().any(|chosen| chosen.isolation.has_process());
    let are_named = !args.components.is_empty();
    let tools = if has_process {
        let options = WorkerArgs {
            components: words,
            tenant: options.call.context.tenant.clone(),
            calls: at_once,
            beside: true,
            all: !are_named,
            ..WorkerArgs::default()
        };
        worker_process::start(cli, &config, options).await?.tools().to_vec()
    } else {
        let engines = host::engines(cli, at_once, &config)?;
        let left_out = OnUnusable::unless(are_named);
        let tenant = options.call.context.tenant.as_deref();
        components::tools(&engines, &components, left_out, tenant).await?
    };
    let registry = Registry::new();
    registry.register_all(config::offered_tools(&config, &options.call.context, tools))?;
    if calls.ids().is_empty() {
        printer.note("the list has no calls: no tool was called");
    }
    let executor = config.executor().with_limits(limits).with_sealer(sealer);
    let summary = Arc::<Summary>::default();
    // Before this, a signal ends the command at once.
    options.call.abort = interrupt.abort_signal();
    let given_up = interrupt.give_up_signal();
    let unreadable = calls.unreadable.len();
    let executor = executor.with_additional_events(summary.counter());
    let runner = Runner::new(registry).with_executor(executor);
    let start = |calls| Watched::new(runner, calls, options, given_up);
    let halted = match events {
        None => {
            let printed = messages(printer, args.format, calls, start, &summary).await;
            printed.map_err(with_policy)?
        }
        Some(form) => match form.events(printer, calls, start).await? {
            ControlFlow::Continue(halted) => halted,
            ControlFlow::Break(status) => return Ok(status),
        },
    };
    summary.print(printer, unreadable);
    if let Some(Logged { log_bytes_dropped, .. }) = summary.lossy_logs() {
        let lost = Size(log_bytes_dropped).rounded();
        printer.warning(format!("the tools' logs exceeded their limits: {lost} were dropped"));
    }
    if let (Some(RunHalt::AskUser { .. }), Some(failure)) = (&halted, unkept) {
        printer.failure(&failure.about("this run's questions cannot be answered later"));
    }
    Ok(halted.as_ref().map_or(ExitStatus::Ok, ExitStatus::from))
}

/// The formats of events.
#[derive(Clone, Copy)]
enum Form {
    Own,
    AgUi,
}

impl Form {
    /// Returns the form of events, if `--stream` asks for them.
    fn from_args(args: &BatchArgs) -> Result<Option<Self>> {
        match args.format {
            _ if !args.stream => Ok(None),
            Format::Own => Ok(Some(Self::Own)),
            Format::Of(Provider::AgUi) => Ok(Some(Self::AgUi)),
            Format::Of(provider) => {
                let message = format!("there is no form of events for `--format {provider}`");
                let hint = "leave out `--stream`, or write `--format agui` or `--format messages`";
                Err(Failure::usage(message, hint))
            }
        }
    }
}

fn context(args: &BatchArgs) -> Result<CallContext> {
    let context = context::context(args.context.as_deref(), None, None)?;
    if context.resume.is_some() {
        let hint = "answer with `toolcell run COMPONENT TOOL ARGS --answer JSON --state TEXT`";
        let message = "a batch cannot answer a question, and `--context` contains an answer";
        return Err(Failure::usage(message, hint));
    }
    Ok(context)
}

/// Adds the option `--unknown-tools answer` to the hint of an unknown tool, which need not end the
/// run.
fn with_policy(failure: Failure) -> Failure {
    if !failure.is_unknown_tool() {
        return failure;
    }
    let joint = if failure.hint.ends_with('?') { "" } else { ";" };
    let hint = format!(
        "{}{joint} or pass `--unknown-tools answer`, so that such a call gets an error message and the others run",
        failure.hint
    );
    failure.with_hint(hint)
}

/// The result of a run, with its messages in one of the formats.
#[derive(Serialize)]
struct RunReport<T> {
    messages: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    halt: Option<RunHalt>,
    #[serde(flatten)]
    logged: Option<Logged>,
}

/// Prints all messages at the end. A progress bar counts the calls until then.
async fn messages(
    printer: &Printer,
    format: Format,
    calls: List,
    start: impl FnOnce(List) -> Watched,
    summary: &Summary,
) -> Result<Option<RunHalt>> {
    let bar = printer.bar(calls.calls.len() as u64, "calls");
    let (order, count) = (calls.ids(), bar.counter());
    let mut messages = HashMap::new();
    let mut run = start(calls);
    while let Some(event) = run.next().await {
        match event {
            // A call that a tool made is not in the list.
            RunEvent::Call(Event::Completed { parent: None, .. }) => count(),
            RunEvent::Settled { message, .. } => {
                drop(messages.insert(message.tool_call_id.clone(), message))
            }
            RunEvent::Error(RunFailure(error)) => return Err(error.into()),
            RunEvent::Call(_) | _ => {}
        }
    }
    drop(bar);
    let messages: Vec<Message> = order.iter().filter_map(|id| messages.remove(id)).collect();
    let (halted, logged) = (run.halted(), summary.lossy_logs());
    let halt = halted.clone();
    match format {
        Format::Own => printer.json(&RunReport { messages: &messages, halt, logged })?,
        Format::Of(provider) => {
            let converted = provider.results(&messages);
            printer.json(&RunReport { messages: converted.value, halt, logged })?;
            format::print_notes(printer, &converted.notes);
        }
    }
    Ok(halted)
}

/// The last event of a run that was not halted.
#[derive(Serialize)]
struct Finished {
    #[serde(rename = "type")]
    kind: &'static str,
    calls: usize,
    failed: usize,
}

impl Form {
    /// Prints events as they happen. Breaks if the run cannot start or the reader has gone away.
    async fn events(
        self,
        printer: &Printer,
        calls: List,
        start: impl FnOnce(List) -> Watched,
    ) -> Result<ControlFlow<ExitStatus, Option<RunHalt>>> {
        let gone = ControlFlow::Break(ExitStatus::Ok);
        let mut finished = Finished { kind: "run_finished", calls: calls.ids().len(), failed: 0 };
        let mut run = start(calls);
        while let Some(event) = run.next().await {
            if let RunEvent::Settled { message, .. } = &event {
                finished.failed += usize::from(message.is_error);
            }
            if self.print(printer, &event)?.is_break() {
                return Ok(gone);
            }
            if let RunEvent::Error(RunFailure(error)) = event {
                let failure = with_policy(Failure::from(error));
                printer.failure(&failure);
                return Ok(ControlFlow::Break(failure.status));
            }
        }
        let halted = run.halted();
        if halted.is_none() && self.finish(printer, &finished)?.is_break() {
            return Ok(gone);
        }
        Ok(ControlFlow::Continue(halted))
    }

    fn print(self, printer: &Printer, event: &RunEvent) -> Result<ControlFlow<()>> {
        match self {
            Self::Own => printer.event(event),
            Self::AgUi => {
                for event in agui_events(event) {
                    if printer.event(&event)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Prints the only event of a run that cannot start, in the form of [`RunFailure`].
    fn failed(self, printer: &Printer, failure: &Failure) -> Result<ControlFlow<()>> {
        let (reason, message, hint) = (failure.kind, failure.message(), &failure.hint);
        match self {
            Self::Own => printer.event(
                &json!({"type": "error", "reason": reason, "message": message, "hint": hint}),
            ),
            Self::AgUi => {
                printer.event(&json!({"type": "RUN_ERROR", "message": message, "code": reason}))
            }
        }
    }

    fn finish(self, printer: &Printer, finished: &Finished) -> Result<ControlFlow<()>> {
        let Finished { kind, calls, failed } = finished;
        match self {
            Self::Own => printer.event(finished),
            // `RUN_FINISHED` would end the agent's run, of which this run is a part.
            Self::AgUi => {
                let value = json!({ "calls": calls, "failed": failed });
                printer.event(&json!({ "type": "CUSTOM", "name": kind, "value": value }))
            }
        }
    }
}
