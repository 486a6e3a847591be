//! Two tenants, each with a worker process of its own: a tool of one crashes its process, and the
//! other is not affected.
//!
//! `cargo run --example worker_processes`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::env;
use std::path::PathBuf;

use serde_json::Value;
use tokio::runtime::Runtime;
use toolcell::files::TemporaryDirectory;
use toolcell::process::{Worker, WorkerProcess};
use toolcell::runtime::Isolation;
use toolcell::{CallOptions, Component, Definition, Engine, Executor, Tool, ToolCall};

fn main() -> anyhow::Result<()> {
    // A worker process is this program, with the folder of its cache as its argument.
    match env::args_os().nth(1) {
        Some(cache) => child(cache.into()),
        None => Runtime::new()?.block_on(parent()),
    }
}

/// Loads the tenant's tools, and serves their calls until the parent process ends.
fn child(cache: PathBuf) -> anyhow::Result<()> {
    // Comes first: from here on the worker does not outlive its parent.
    let worker = Worker::begin()?;
    // The cache lets the next worker process start without compiling.
    let engine = Engine::builder().isolation(Isolation::Strict).cache(cache).build()?;
    let load = Component::load(&engine, toolcell_examples::component("calculator")?);
    let component = Runtime::new()?.block_on(load)?;
    // Simulates a crash of the engine, by a bug or an exploit.
    let crash = Definition::new("crash", "Ends the process that it runs in.")?;
    let crash = Tool::native_blocking(crash, |_: Value| -> Value { std::process::abort() })?;
    Ok(worker.serve(component.tools().iter().cloned().chain([crash]))?)
}

async fn parent() -> anyhow::Result<()> {
    let cache = TemporaryDirectory::new()?;
    // Both processes have an empty environment, so that neither sees secrets of the other tenant.
    let process = WorkerProcess::builder(env::current_exe()?).arguments([cache.path()]);
    let (acme, mallory) = (process.clone().start().await?, process.start().await?);
    let before = [acme.pid(), mallory.pid()];
    let executor = Executor::new();
    for (name, process, tool, arguments) in [
        ("acme", &acme, "calculator", r#"{"expression": "6 * 7"}"#),
        ("mallory", &mallory, "crash", "{}"),
        ("acme", &acme, "calculator", r#"{"expression": "7 * 7"}"#),
        ("mallory", &mallory, "calculator", r#"{"expression": "8 * 7"}"#),
    ] {
        // The executor treats a tool in a worker process like any other: schemas, limits, overlays
        // and the usage apply.
        let call = ToolCall::new("call-1", tool, arguments);
        let completion = executor.call(process.tool(tool)?, call, CallOptions::default()).await;
        match (completion.output(), completion.failure()) {
            (Some(output), _) => println!("{name}: {tool} says {}", output.value),
            (None, Some(failure)) => println!("{name}: {failure}"),
            (None, None) => println!("{name}: no value"),
        }
    }
    let is_same =
        [acme.pid(), mallory.pid()].into_iter().zip(before).map(|(now, before)| now == before);
    println!("the same process as before: {:?}", is_same.collect::<Vec<_>>());
    Ok(())
}
