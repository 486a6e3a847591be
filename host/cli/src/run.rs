//! `toolcell run`: one call, from what was typed to what is printed.

mod live;
mod report;
mod resume;

use toolcell::{CallOptions, CallResult, Completion, DEFAULT_ARGUMENTS, Limits, Outcome, Refusal, Tool, ToolCall};

use crate::args::{Global, RunArgs};
use crate::config::{Chosen, Config};
use crate::cordon::{self, Hosted, Together};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::paste::Again;
use crate::printer::Printer;
use crate::units::Size;
use crate::{components, context, files, host, state};
use live::Live;

/// What was typed, and what it came to.
struct Typed<'a> {
    args: &'a RunArgs,
    /// As text.
    arguments: &'a str,
    limits: Limits,
    /// The tool's own section of the configuration, where it has one.
    section: Option<String>,
    /// What the next command needs too.
    again: &'a Again,
}

/// Makes the call.
pub(crate) async fn run(
    printer: &Printer,
    interrupt: &Interrupt,
    global: &Global,
    args: &RunArgs,
) -> Result<ExitStatus, Failure> {
    // Everything that was typed is judged before anything is read, and everything is read before anything is compiled.
    let context = context::context(args.context.as_deref(), args.answer.as_deref(), args.state.as_deref())?;
    let arguments = files::arguments(&args.arguments, DEFAULT_ARGUMENTS)?;
    let config = Config::read(global)?;
    let chosen = config.used(&args.component)?;
    let context = config.on_behalf(context, args.tenant.as_deref())?;
    let chosen = chosen.isolated(config.isolation_of(context.tenant.as_deref()));
    let limits = args.limits.over(chosen.limits);
    // An answer needs it at once, a question at the end; any other call does without.
    let (sealer, unsealed) = match state::sealer(global.state_dir.as_deref()) {
        Ok(sealer) => (Some(sealer), None),
        Err(failure) if context.resume.is_some() => return Err(failure),
        Err(failure) => (None, Some(failure)),
    };
    let tool = &tool(printer, global, args, &config, &chosen, context.tenant.as_deref()).await?;

    let live = Live::start(printer);
    let mut executor = config.executor().with_limits(limits).with_events(live.sink());
    if let Some(sealer) = sealer {
        executor = executor.with_sealer(sealer);
    }
    let call = ToolCall::new(&args.id, &args.tool, arguments.text.clone());
    let options = CallOptions::default().with_context(context);
    let options = options.with_abort(interrupt.wish()).with_stop_grace(interrupt::GRACE);
    let mut completion = executor.call(tool, call, options).await;
    live.finish();
    if let lost @ 1.. = completion.usage.log_bytes_lost {
        printer.note("warning", &format!("{} of the tool's log are over its limit and lost", Size(lost).rounded()));
    }
    if let Some(size) = arguments.oversize {
        state_size(&mut completion, size);
    }

    if let (CallResult::Outcome(Outcome::AskUser(_)), Some(failure)) = (&completion.result, unsealed) {
        return Err(failure.about("the tool asks a question that cannot be sealed"));
    }

    let status = ExitStatus::from(&completion.result);
    if args.json {
        printer.json(&completion)?;
    } else {
        let typed = Typed {
            args,
            arguments: &arguments.text,
            limits,
            section: chosen.section_of(&args.tool),
            again: &config.again,
        };
        report::show(printer, &typed, tool, &completion.result)?;
    }
    if args.receipt {
        printer.note("receipt", &receipt(&completion));
    }
    Ok(status)
}

/// The tool, here or in a process of its own.
async fn tool(
    printer: &Printer,
    global: &Global,
    args: &RunArgs,
    config: &Config,
    chosen: &Chosen<'_>,
    tenant: Option<&str>,
) -> Result<Tool, Failure> {
    if chosen.isolation.has_process() {
        let components = std::slice::from_ref(&args.component);
        let hosted = Hosted { components, tenant, calls: 1, together: Together::Alone };
        return Ok(cordon::start(global, config, &hosted).await?.tool(&args.tool)?.clone());
    }
    let engines = host::engines(printer, global, 1, config)?;
    let component = components::alone(printer, &engines, config, chosen).await?;
    Ok(component.tool(&args.tool)?.clone().with_limits(chosen.limits_of(&args.tool)))
}

/// Puts the true size into the refusal of arguments that were not read to their end.
fn state_size(completion: &mut Completion, size: String) {
    if let CallResult::Refusal(Refusal::InvalidArguments(faults)) = &mut completion.result
        && let [fault] = faults.as_mut_slice()
    {
        fault.got = Some(size);
    }
}

/// What the call used, in one line.
fn receipt(completion: &Completion) -> String {
    let usage = &completion.usage;
    let fuel = usage.fuel.map_or_else(|| "no fuel".to_owned(), |fuel| format!("{fuel} fuel"));
    let wall = usage.wall.as_secs_f64() * 1000.0;
    format!("{fuel}, {wall:.1} ms, {} at most", Size(usage.peak_memory).rounded())
}
