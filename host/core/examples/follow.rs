//! Follows changes of `toolcell.toml` and its components while a service runs: a changed component
//! is served when an operator has approved it, and an invalid file changes nothing.
//!
//! `cargo run --example follow`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use toolcell::files::TemporaryDirectory;
use toolcell_config::{Configuration, ReadOptions, Reason};
use toolcell_examples::{approve, component};
use toolcell_server::{ConfigServer, Notice, Principal, Service};

/// The interval between two looks at the files. A real platform would use a longer one.
const EVERY: Duration = Duration::from_millis(10);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // The operator's folder. State is kept below it, so that this example leaves nothing behind.
    let folder = TemporaryDirectory::new()?;
    let (file, code) = (folder.path().join("toolcell.toml"), folder.path().join("mine.wasm"));
    let options =
        ReadOptions::default().with_state_dir(folder.path().join("state")).without_cache();
    let read = || Configuration::read_with(&file, options.clone());
    std::fs::write(&file, "[components.mine]\npath = \"mine.wasm\"\n")?;
    std::fs::write(&code, component("hello")?)?;
    approve(&read()?, "mine").await?;

    let configuration = read()?;
    let engines = configuration.engines().build()?;
    let configured = ConfigServer::start(configuration, engines).await?;
    let service = configured.service().build()?;

    let (tell, mut notices) = unbounded_channel();
    let told = move |notice| tell.send(notice).unwrap_or_default();
    let operator = async {
        show("approved", &service).await?;
        std::fs::write(&code, component("text_stats")?)?;
        wait(&mut notices, |notice| {
            matches!(notice, Notice::Reloaded { loaded, .. }
                if loaded.problems().iter().any(|problem| problem.reason == Reason::Changed))
        })
        .await?;
        show("changed, and not approved", &service).await?;
        approve(&read()?, "mine").await?;
        wait(&mut notices, |notice| {
            matches!(notice, Notice::Reloaded { changes, .. } if !changes.replaced.is_empty())
        })
        .await?;
        show("approved again", &service).await?;
        std::fs::write(&file, "[components.mine\n")?;
        wait(&mut notices, |notice| matches!(notice, Notice::NotReloaded(_))).await?;
        show("the file is invalid", &service).await
    };
    tokio::select! {
        () = configured.follow(&service, None, EVERY, told) => Ok(()),
        shown = operator => shown,
    }
}

/// Prints the tools that are served.
async fn show(when: &str, service: &Service) -> anyhow::Result<()> {
    let page = service.tools(&Principal::local(), None).await?;
    let names: Vec<_> = page.tools.iter().map(|tool| &tool.definition().name).collect();
    println!("{when}: the tools are {names:?}");
    Ok(())
}

/// Waits for a notice of this kind.
async fn wait(
    notices: &mut UnboundedReceiver<Notice>,
    is_wanted: impl Fn(&Notice) -> bool,
) -> anyhow::Result<()> {
    while !is_wanted(&notices.recv().await.context("the server ended")?) {}
    Ok(())
}
