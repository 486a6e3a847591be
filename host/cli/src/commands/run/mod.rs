//! `toolcell run`: makes one call and prints its result.
//!
//! [`run`] takes a component, a tool and its arguments from the command line. It loads the
//! component, in this process or in a worker process if the configuration asks for that, makes the
//! call with the limits and the tenant's rules, and prints the result for a person or, with
//! `--json`, the whole completion. Log lines of the tool are printed while it runs. If the tool
//! asks a question and a person is at the terminal, the answer is read there and the call is made
//! again. The exit status tells how the call ended.
//!
//! All options are checked and all files are read before anything is compiled.

mod answer;
pub(crate) mod argument_faults;
pub(crate) mod live;
mod report;
mod resume;
mod ungranted;

use std::path::PathBuf;
use std::sync::Arc;

use toolcell::call::Resume;
use toolcell::component::Contents;
use toolcell::grants::{Denial, Rights};
use toolcell::outcome::CrashKind;
use toolcell::{
    CallContext, CallOptions, CallResult, Completion, Executor, Limits, Outcome, Refusal, Registry,
    Tool, ToolCall, ToolError,
};
use toolcell_author::SourceLine;

use crate::args::target::{self, Target};
use crate::args::{RunArgs, WorkerArgs, context};
use crate::components::{self, OnUnusable};
use crate::config::{self, Config, ResolvedComponent, SecretSelection};
use crate::grants::advice::{self, RequestOrigin};
use crate::host::{self, Cli};
use crate::os::files::Arguments;
use crate::os::{interrupt, lines, state};
use crate::print::{ExitStatus, Result, Size};
use crate::worker_process;
use live::Live;

/// One call: the command line, and the values derived from it.
struct TypedCall<'a> {
    args: &'a RunArgs,
    tool: &'a Tool,
    /// The arguments as JSON text.
    arguments: &'a str,
    limits: Limits,
    origin: RequestOrigin<'a>,
    /// True if a request of the call was denied.
    is_denied: bool,
}

/// Runs the command: makes the call, again after each answer at the terminal, and prints the
/// result.
pub(crate) async fn run(cli: &Cli, args: &RunArgs) -> Result<ExitStatus> {
    let Cli { printer, interrupt, .. } = cli;
    // The options are checked before any file is read, and all files are read before anything is
    // compiled.
    let context =
        context::context(args.context.as_deref(), args.answer.as_deref(), args.state.as_deref())?;
    let is_program = args.grants.typed().iter().any(|grant| grant == "as=command");
    let target = Target::of_call(&args.call, is_program)?;
    let mut config = cli.config(SecretSelection::All)?;
    config.hint = config.hint.with_call(args.call.tool.iter().chain(&args.call.arguments).cloned());
    let config = components::with_command_line_grants(
        config,
        std::slice::from_ref(&args.call.component),
        &args.grants.typed(),
    )?;
    let chosen = components::resolve_for_use(&config, &args.call.component)?;
    let context = config::for_tenant(&config, context, args.tenant.as_deref())?;
    context::warn_without_tenant(printer, &config, &context, std::slice::from_ref(&chosen));
    let chosen = chosen.with_isolation(config.isolation_of(context.tenant.as_deref()));
    let limits = args.limits.over(chosen.limits);
    // An answer needs the sealer at once, a question at the end; any other call does without it.
    let (sealer, mut unsealed) = match state::sealer(cli.global.state_dir.as_deref()) {
        Ok(sealer) => (Some(sealer), None),
        Err(failure) if context.resume.is_some() => return Err(failure),
        Err(failure) => (None, Some(failure)),
    };
    let found = tool(cli, (args, target.tool), &config, &chosen, &context).await;
    let (tool, rights) =
        &found.map_err(|failure| target::not_found(failure, &args.call, &chosen.kind()))?;
    let arguments = target.arguments.of(tool.definition());

    let executor = config.executor().with_limits(limits);
    let executor = sealer.into_iter().fold(executor, Executor::with_sealer);
    let executor = if tool.rights().is_some_and(|rights| !rights.granted().invoke.is_empty()) {
        let others = callable(cli, &config, &context).await?;
        executor.with_callable(move |name| others.get(name))
    } else {
        executor
    };
    let mut context = context;
    loop {
        let (completion, denials) =
            complete(cli, args, &executor, tool, &arguments, context.clone()).await;
        let question = if let CallResult::Outcome(Outcome::AskUser(question)) = &completion.result {
            Some(question)
        } else {
            None
        };
        if question.is_some()
            && let Some(failure) = unsealed.take()
        {
            return Err(failure.about("the tool asks a question that cannot be sealed"));
        }
        let (tenant, definition) = (context.tenant.as_deref(), tool.definition());
        let typed = TypedCall {
            args,
            tool,
            arguments: &arguments.text,
            limits,
            origin: RequestOrigin { config: &config, chosen: &chosen, tenant, definition, rights },
            is_denied: !denials.is_empty(),
        };
        if let Some(question) = question.filter(|_| !args.json) {
            report::question(printer, question)?;
            interrupt.stop_listening();
            if let Some(answer) = answer::ask(printer, question) {
                context.resume = Some(Resume { answer, state: question.state.clone() });
                continue;
            }
            printer.hint(resume::hint(&typed, question));
        } else if args.json {
            printer.json(&completion)?;
        } else {
            let (shown, lines) = for_a_person(&chosen, completion.result.clone());
            report::show(printer, &typed, &shown, &lines)?;
            // A tool that succeeded did not need such a file.
            let is_ok = completion.output().is_some();
            let denials: Vec<_> =
                denials.into_iter().filter(|denial| !is_ok || !live::is_top_file(denial)).collect();
            if !denials.is_empty() {
                let is_known = |name: &str| advice::is_known(definition, &arguments.text, name);
                typed.origin.remedy(&denials, is_known, None).await.print(printer);
            }
        }
        if args.usage {
            printer.labelled("usage", usage_line(&completion));
        }
        return Ok(ExitStatus::from(&completion.result));
    }
}

/// Returns the tools that a tool can call: those of each usable component of the configuration, if
/// the tenant is offered them.
async fn callable(cli: &Cli, config: &Config, context: &CallContext) -> Result<Registry> {
    let words: Vec<_> = config.components.keys().map(PathBuf::from).collect();
    let components = components::chosen(config, &words)?;
    let engines = host::engines(cli, 1, config)?.inline();
    let registry = Registry::new();
    let tenant = context.tenant.as_deref();
    let tools = components::tools(&engines, &components, OnUnusable::Unusable, tenant).await?;
    registry.register_all(config::offered_tools(config, context, tools))?;
    Ok(registry)
}

/// Returns the result without functions that are not the author's, and the source lines of a trap,
/// if the component has debug information.
fn for_a_person(
    chosen: &ResolvedComponent<'_>,
    mut result: CallResult,
) -> (CallResult, Vec<SourceLine>) {
    let mut lines = Vec::new();
    // A component that cannot be read any more has no lines to show.
    if let CallResult::ToolError(ToolError::HandlerRaised(raised)) = &mut result
        && let Ok((bytes, _)) = chosen.bytes()
    {
        // An exception in Python ends with `abort()` after its traceback was written: the functions
        // on the stack are those of CPython.
        let is_exception = raised.kind == CrashKind::Unreachable && raised.panic_message.is_some();
        if is_exception && Contents::of(&bytes).is_ok_and(|contents| contents.is_python()) {
            raised.backtrace.clear();
        } else {
            lines = lines::find(bytes, &raised.frames);
        }
    }
    (result, lines)
}

/// Makes the call. Returns its completion with the denials.
async fn complete(
    cli: &Cli,
    args: &RunArgs,
    executor: &Executor,
    tool: &Tool,
    arguments: &Arguments,
    context: CallContext,
) -> (Completion, Vec<Denial>) {
    let live = Live::start(&cli.printer);
    let call = ToolCall::new(&args.id, &*tool.definition().name, arguments.text.clone());
    let options = CallOptions {
        context: Arc::new(context),
        abort: cli.interrupt.abort_signal(),
        stop_grace: interrupt::GRACE,
        ..CallOptions::default()
    };
    let executor = executor.clone().with_events(live.sink());
    let mut completion = executor.call(tool, call, options).await;
    let denials = live.finish(&completion.result);
    if let lost @ 1.. = completion.usage.log_bytes_dropped {
        let lost = Size(lost).rounded();
        cli.printer.warning(format!("the tool's log exceeded its limit: {lost} were dropped"));
    }
    // The refusal of arguments that were not read to their end gets their true size.
    if let (Some(size), CallResult::Refusal(Refusal::InvalidArguments(faults))) =
        (&arguments.oversize, &mut completion.result)
        && let [fault] = faults.as_mut_slice()
    {
        fault.actual = Some(size.clone());
    }
    (completion, denials)
}

/// Loads the tool, in this process or in a worker process. Returns it with its rights. For a tenant
/// only the offered tools exist.
async fn tool(
    cli: &Cli,
    (args, name): (&RunArgs, Option<&str>),
    config: &Config,
    chosen: &ResolvedComponent<'_>,
    context: &CallContext,
) -> Result<(Tool, Rights)> {
    if chosen.isolation.has_process() {
        let options = WorkerArgs {
            components: vec![args.call.component.clone()],
            tenant: context.tenant.clone(),
            calls: 1,
            ..WorkerArgs::default()
        };
        let worker = worker_process::start(cli, config, options).await?;
        let offered = config::offered_tools(config, context, worker.tools().iter().cloned());
        let tool = target::tool(&offered, name, &chosen.display_path())?.clone();
        // The worker process does not send the rights of its tools. They are computed from the same
        // grants here.
        let definitions: Vec<_> =
            worker.tools().iter().map(|tool| tool.definition().clone()).collect();
        let rights = Rights::in_component(chosen.grants().into(), tool.definition(), &definitions);
        return Ok((tool, rights.unwrap_or_default()));
    }
    let engines = host::engines(cli, 1, config)?.inline();
    let component = components::alone(&engines, chosen).await?;
    let offered = config::offered_tools(config, context, component.tools().iter().cloned());
    let tool = target::tool(&offered, name, &chosen.display_path())?.clone();
    let limits = chosen.limits_of(&tool.definition().name);
    let rights = tool.rights().cloned().unwrap_or_default();
    Ok((config.stopped(tool.with_limits(limits)), rights))
}

/// Returns what the call used, in one line.
fn usage_line(completion: &Completion) -> String {
    let usage = &completion.usage;
    let fuel = usage.fuel.map_or_else(|| "no fuel".to_owned(), |fuel| format!("{fuel} fuel"));
    let wall = usage.wall.as_secs_f64() * 1000.0;
    format!("{fuel}, {wall:.1} ms, {} peak memory", Size(usage.peak_memory).rounded())
}
