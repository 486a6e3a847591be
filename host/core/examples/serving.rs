//! Serves the tools that an operator approved in `toolcell.toml` over HTTP and MCP, as `toolcell
//! serve` does.
//!
//! `cargo run --example serving`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use toolcell::files::TemporaryDirectory;
use toolcell_config::{Configuration, ReadOptions};
use toolcell_examples::{approve, component, post};
use toolcell_server::auth::ApiKeyStore;
use toolcell_server::mcp::{self, McpOptions};
use toolcell_server::{ConfigServer, HttpServer, ListenOptions};

/// The interval between two looks at the operator's files.
const EVERY: Duration = Duration::from_secs(1);
/// The version of MCP that the client speaks.
const VERSION: &str = "2026-07-28";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // The operator's folder. State is kept below it, so that this example leaves nothing behind.
    let folder = TemporaryDirectory::new()?;
    let file = folder.path().join("toolcell.toml");
    let options =
        ReadOptions::default().with_state_dir(folder.path().join("state")).without_cache();
    std::fs::write(&file, "[components.mine]\npath = \"mine.wasm\"\n[tenants.acme]\n")?;
    std::fs::write(folder.path().join("mine.wasm"), component("hello")?)?;
    approve(&Configuration::read_with(&file, options.clone())?, "mine").await?;

    // The approved configuration, and the store of the API keys that `toolcell tenant add-key`
    // creates. A program can create keys as well.
    let configuration = Configuration::read_with(&file, options)?;
    let keys =
        ApiKeyStore::of_configuration(&configuration)?.context("there is no state directory")?;
    let key = keys.add("acme")?.key;

    let engines = configuration.engines().build()?;
    let configured = ConfigServer::start(configuration, engines).await?;
    let (service, auth) = (configured.service().build()?, configured.authenticator(keys)?);

    let routes = mcp::routes(service.clone(), McpOptions::default());
    let options = ListenOptions { protected: routes, ..ListenOptions::default() };
    let server = HttpServer::bind(service.clone(), auth.clone(), options).await?;
    let address = server.address();
    tokio::select! {
        () = server.serve(pending()) => Ok(()),
        // Serves changes of the files: see the example `follow`.
        () = configured.follow(&service, Some(&auth), EVERY, drop) => Ok(()),
        shown = show(address, key.expose()) => shown,
    }
}

/// Shows the responses that a client of the tenant gets.
async fn show(address: SocketAddr, key: &str) -> anyhow::Result<()> {
    let greet = json!({"name": "greet", "arguments": {"name": "Ada"}});
    let called = post(address, "/v1/calls", key, &[], &greet).await?;
    println!("over HTTP, greet says: {}", called["outcome"]["ok"]["value"]);

    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let list =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", VERSION),
        ("Mcp-Method", "tools/list"),
    ];
    let listed = post(address, "/mcp", key, &headers, &list).await?;
    println!("over MCP, the first tool is {}", listed["result"]["tools"][0]["name"]);
    Ok(())
}
