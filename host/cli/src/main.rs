//! The command `toolcell`: command line → [`args`] → one command → [`print::printer`] and an exit
//! status.
//!
//! `main` disables core dumps, parses the command line, starts the log and the handling of signals,
//! and calls the function of one command in `commands`. Three hidden commands run in children of
//! this program: the compiler, the search for source lines, and the worker process with a tenant's
//! tools. A command whose standard output cannot be written to does not run.
//!
//! Results are on standard output, everything else is on standard error, and both go through
//! [`print::printer`]. Only [`os::env`] and the libraries read environment variables. Untrusted
//! text is made harmless before it reaches a terminal.

mod args;
mod built;
mod clash;
mod commands;
mod components;
mod config;
mod grants;
mod host;
mod os;
mod print;
mod worker_process;

use commands::approve::{self, rollback};
use commands::{
    author, batch, check, explain, init, inspect, learn, list, run, serve, tenant, tools,
};
use os::{core_dumps, env, lines, logging, stdout};
use std::process::ExitCode;

use args::{Args, Command, no_command};
use host::Cli;
use os::interrupt::Interrupt;
use os::traces::Traces;
use print::{ExitStatus, Printer, Result};

fn main() -> ExitCode {
    core_dumps::disable();
    // Standard output may be a file with a size limit.
    toolcell::files::ignore_file_size_signal();
    args::complete::answer();
    let printer = Printer::new();
    logging::report_panics(&printer);
    let (args, json) = match no_command::read(env::args().collect()) {
        Ok(parsed) => parsed,
        Err(error) => return no_command::show(&printer, error).into(),
    };
    if let Command::CompileWorker { order } = &args.command {
        return compile(order);
    }
    if let Command::LinesWorker { frames } = &args.command {
        return if lines::work(frames).is_ok() { ExitStatus::Ok } else { ExitStatus::Failed }
            .into();
    }
    let Args { global, command } = args;
    let printer = if global.quiet { printer.quiet() } else { printer };
    if let Some(failure) = stdout::fault() {
        return printer.show_failure(&failure, false).into();
    }
    let traces = match Traces::start(command.collector()) {
        Ok(traces) => traces,
        Err(failure) => return printer.show_failure(&failure, json).into(),
    };
    logging::start(&printer, global.verbose, &traces);
    let interrupt = Interrupt::begin(&printer);
    let cli = Cli { printer, global, interrupt, traces };
    let status = match dispatch(&cli, command) {
        Ok(status) => status,
        Err(failure) => cli.printer.show_failure(&failure, json),
    };
    cli.interrupt.end();
    status.into()
}

fn dispatch(cli: &Cli, command: Command) -> Result<ExitStatus> {
    // Calls run on the engine's own threads; this thread only waits for them.
    let waiting = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    match command {
        Command::Init(args) => init::init(cli, &args),
        Command::Run(args) => waiting.block_on(run::run(cli, &args)),
        Command::Batch(args) => waiting.block_on(batch::batch(cli, &args)),
        Command::Inspect(args) => waiting.block_on(inspect::inspect(cli, &args)),
        Command::List(args) => waiting.block_on(list::list(cli, &args)),
        Command::Tools(args) => waiting.block_on(tools::tools(cli, &args)),
        Command::Approve(args) => waiting.block_on(approve::approve(cli, &args)),
        Command::Rollback(args) => rollback::rollback(cli, &args),
        Command::Check(args) => waiting.block_on(check::check(cli, &args)),
        Command::Explain(args) => waiting.block_on(explain::explain(cli, &args)),
        Command::Learn(args) => waiting.block_on(learn::learn(cli, &args)),
        Command::Serve(args) => serve::serve(cli, &args),
        Command::Tenant(args) => tenant::tenant(cli, &args),
        Command::New(args) => author::create(&cli.printer, &args),
        Command::Build(args) => waiting.block_on(author::build(cli, &args)),
        Command::Test(args) => waiting.block_on(author::test(cli, &args)),
        Command::Dev(args) => waiting.block_on(author::dev(cli, &args)),
        Command::Completions { shell } => {
            cli.printer.text(&args::complete::script(shell)?)?;
            Ok(ExitStatus::Ok)
        }
        Command::WorkerProcess(args) => worker_process::work(cli, &args, &waiting),
        // `main` handles them before any set-up.
        Command::CompileWorker { .. } | Command::LinesWorker { .. } => Ok(ExitStatus::Failed),
    }
}

/// Compiles one component for the process that started this one.
fn compile(order: &str) -> ExitCode {
    let (input, output, complaints) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    toolcell::runtime::compile_worker(order, input.lock(), output.lock(), complaints.lock()).into()
}
