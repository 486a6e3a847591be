//! Serves the tools that an operator approved in `toolcell.toml`, and applies changes while it
//! runs.
//!
//! `cargo run --example configuration`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::path::Path;

use toolcell::files::TemporaryDirectory;
use toolcell::{CallContext, CallOptions, ToolCall};
use toolcell_config::{Configuration, LoadedTools, ReadOptions, Reloader};
use toolcell_examples::{approve, component};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // The operator's folder. State is kept below it, so that this example leaves nothing behind.
    let folder = TemporaryDirectory::new()?;
    let file = folder.path().join("toolcell.toml");
    std::fs::write(
        &file,
        "[components.mine]\npath = \"mine.wasm\"\n[tenants.acme]\nlimits = { timeout = \"2s\" }\n",
    )?;
    std::fs::write(folder.path().join("mine.wasm"), component("hello")?)?;
    approve(&read(&file, folder.path())?, "mine").await?;

    // The configuration is parsed and validated together with its lock. The approved components can
    // be called.
    let configuration = read(&file, folder.path())?;
    let engines = configuration.engines().build()?;
    let loaded = configuration.load(&engines).await?;
    show("loaded", &loaded);
    let mut context = CallContext::default();
    context.tenant = Some("acme".to_owned());
    let call = CallOptions { context: context.into(), ..CallOptions::default() };
    let greet = ToolCall::new("call-1", "greet", r#"{"name": "Ada"}"#);
    let completion = loaded.registry().call(loaded.executor(), greet, call).await?;
    println!("greet says: {}", serde_json::to_string(&completion.result)?);

    // A reloader serves the configuration, and reads it again on demand. `changes` reads it
    // whenever a file changes.
    let reloader = Reloader::start(configuration, engines).await?;
    std::fs::write(folder.path().join("mine.wasm"), component("text_stats")?)?;
    reloader.reload().await?;
    show("changed, and not approved", &reloader.loaded());
    approve(&read(&file, folder.path())?, "mine").await?;
    let reloaded = reloader.reload().await?;
    println!("replaced: {:?}", reloaded.replaced);
    show("approved", &reloader.loaded());
    // Any process of the operator can read it, and change its approvals.
    read(&file, folder.path())?.rollback("mine")?;
    reloader.reload().await?;
    show("rolled back", &reloader.loaded());
    Ok(())
}

fn read(file: &Path, folder: &Path) -> anyhow::Result<Configuration> {
    let options = ReadOptions::default().with_state_dir(folder.join("state")).without_cache();
    Ok(Configuration::read_with(file, options)?)
}

fn show(when: &str, loaded: &LoadedTools) {
    let tools: Vec<_> = loaded.registry().list().into_iter().map(|tool| tool.name).collect();
    println!("{when}: the tools are {tools:?}");
    for problem in loaded.problems() {
        println!("  {}, {:?}: {problem}", problem.reason.code(), problem.serving);
    }
}
