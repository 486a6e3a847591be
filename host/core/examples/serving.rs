//! Serves the tools that operators approved in `toolcell.toml` over HTTP and MCP, and applies
//! changes of the file while it runs.
//!
//! `cargo run --example serving`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use toolcell::files::TemporaryDirectory;
use toolcell_config::{Configuration, ReadOptions};
use toolcell_examples::{approve, component};
use toolcell_server::auth::ApiKeyStore;
use toolcell_server::mcp::{self, McpOptions};
use toolcell_server::{ConfigServer, HttpServer, ListenOptions, Notice};

/// The interval between two looks at the files. A real platform would use a longer one.
const EVERY: Duration = Duration::from_millis(10);

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

    // The approved configuration, and the store of the API keys that `toolcell tenant key` creates.
    // A program can create keys as well.
    let configuration = Configuration::read_with(&file, options)?;
    let keys =
        ApiKeyStore::of_configuration(&configuration)?.context("there is no state directory")?;
    let key = keys.add("acme")?.key;

    // The configuration's tools, tenants, limits and quotas, served as `toolcell serve` does.
    let engines = configuration.engines().build()?;
    let configured = ConfigServer::start(configuration, engines).await?;
    let (service, auth) = (configured.service().build()?, configured.authenticator(keys)?);

    let routes = mcp::routes(service.clone(), McpOptions::default());
    let options = ListenOptions::default().with_protected(routes);
    let server = HttpServer::bind(service.clone(), auth.clone(), options).await?;
    let client = Client { address: server.address(), key: key.expose().to_owned() };
    let (tell, notices) = mpsc::unbounded_channel();
    let told = move |notice| tell.send(notice).unwrap_or_default();
    tokio::select! {
        () = server.serve(pending()) => Ok(()),
        () = configured.follow(&service, Some(&auth), EVERY, told) => Ok(()),
        shown = show(&client, folder.path(), notices) => shown,
    }
}

/// Shows what a client gets while an operator changes the configuration.
async fn show(
    client: &Client,
    folder: &Path,
    mut notices: mpsc::UnboundedReceiver<Notice>,
) -> anyhow::Result<()> {
    let greet = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    let called = client.ask("/v1/calls", "", &greet).await?;
    println!("over HTTP, greet says: {}", called["outcome"]["ok"]["value"]);
    println!("over MCP, the tools are {}", client.tools().await?);

    std::fs::write(folder.join("mine.wasm"), component("text_stats")?)?;
    let waits = heard(&mut notices, |notice| match notice {
        Notice::Reloaded { loaded, .. } => loaded
            .problems()
            .iter()
            .map(|problem| problem.reason.code())
            .find(|code| *code == "changed"),
        Notice::NotReloaded(_) | Notice::IssuerKeysLost { .. } | Notice::IssuerKeysFound => None,
    });
    println!(
        "mine.wasm is {}, and not approved: the tools are {}",
        waits.await?,
        client.tools().await?
    );

    let file = folder.join("toolcell.toml");
    let options = ReadOptions::default().with_state_dir(folder.join("state")).without_cache();
    approve(&Configuration::read_with(&file, options)?, "mine").await?;
    let replaced = heard(&mut notices, |notice| match notice {
        Notice::Reloaded { changes, .. } => changes.replaced.first().cloned(),
        Notice::NotReloaded(_) | Notice::IssuerKeysLost { .. } | Notice::IssuerKeysFound => None,
    });
    println!("{} is approved: the tools are {}", replaced.await?, client.tools().await?);

    std::fs::write(&file, "[components.mine\n")?;
    let refused = heard(&mut notices, |notice| match notice {
        Notice::NotReloaded(error) => Some(error.hint()),
        Notice::Reloaded { .. } | Notice::IssuerKeysLost { .. } | Notice::IssuerKeysFound => None,
    });
    println!(
        "a bad file changes nothing: the tools are {}; {}",
        client.tools().await?,
        refused.await?
    );
    Ok(())
}

/// Waits for a notice for which `wanted` returns a value, and returns that value.
async fn heard<T>(
    notices: &mut mpsc::UnboundedReceiver<Notice>,
    wanted: impl Fn(&Notice) -> Option<T>,
) -> anyhow::Result<T> {
    loop {
        let notice = notices.recv().await.context("the server ended")?;
        if let Some(found) = wanted(&notice) {
            return Ok(found);
        }
    }
}

/// An HTTP client that uses the tenant's key.
struct Client {
    address: SocketAddr,
    key: String,
}

impl Client {
    /// Returns the names of the tools, listed over MCP.
    async fn tools(&self) -> anyhow::Result<Value> {
        let (version, capabilities) = ("2026-07-28", json!({}));
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
        let headers = format!(
            "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {version}\r\nMcp-Method: tools/list\r\n"
        );
        let listed = self.ask("/mcp", &headers, &list).await?;
        let tools =
            listed["result"]["tools"].as_array().with_context(|| format!("no list: {listed}"))?;
        Ok(tools.iter().map(|tool| tool["name"].clone()).collect())
    }

    async fn ask(&self, path: &str, headers: &str, body: &Value) -> anyhow::Result<Value> {
        let (key, body) = (&self.key, body.to_string());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n{headers}"
        );
        let framing =
            format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(format!("{head}{framing}\r\n{body}").as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (_, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        Ok(serde_json::from_str(body)?)
    }
}
