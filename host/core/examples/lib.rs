//! Code that the examples share: reads an example tool, approves a component as an operator does,
//! and sends requests over HTTP. Each example is a program: `cargo run --example NAME` from the
//! repository's root.

use std::net::SocketAddr;

use anyhow::Context as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolcell_config::{Configuration, Lock};

/// The directory where cargo writes the example tools.
const BUILT: &str = "example-tools/target/wasm32-wasip2/release";

/// Reads the component of an example tool.
///
/// # Errors
/// If it is not built.
pub fn component(name: &str) -> anyhow::Result<Vec<u8>> {
    let path = format!("{BUILT}/{name}.wasm");
    std::fs::read(&path).with_context(|| {
        format!("cannot read `{path}`: build it with `cargo xtask demo` in the repository's root")
    })
}

/// Approves a component, as `toolcell approve` does. The command shows the component to the
/// operator first; this function does not.
///
/// # Errors
/// If the component cannot be loaded, or the approval cannot be written.
pub async fn approve(configuration: &Configuration, component: &str) -> anyhow::Result<()> {
    let engines = configuration.engines().build()?;
    let shown = configuration.review(&engines, component).await?;
    configuration.approve(&Lock::beside(configuration)?, &[(component.to_owned(), shown)], &[])?;
    Ok(())
}

/// Sends JSON with an API key to a server of this machine, and returns the JSON of the response.
/// A real client uses a library for HTTP.
///
/// # Errors
/// If the server cannot be reached, or its response has no JSON.
pub async fn post(
    address: SocketAddr,
    path: &str,
    key: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> anyhow::Result<Value> {
    let body = body.to_string();
    let (bearer, length) = (format!("Bearer {key}"), body.len().to_string());
    let always = [
        ("Host", "localhost"),
        ("Connection", "close"),
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Content-Length", length.as_str()),
    ];
    let headers = always.iter().chain(headers).map(|(name, value)| format!("{name}: {value}\r\n"));
    let head: String = headers.collect();
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("POST {path} HTTP/1.1\r\n{head}\r\n{body}").as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let (_, body) = response.split_once("\r\n\r\n").context("the response has no body")?;
    Ok(serde_json::from_str(body)?)
}
