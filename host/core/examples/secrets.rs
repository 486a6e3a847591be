//! Secrets: the host puts the value into a request. The tool never sees it: the host removes it
//! from the response.
//!
//! `cargo run --example secrets`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use serde_json::json;
use toolcell::component::LoadOptions;
use toolcell::grants::{HttpRule, Injection, SecretGrant};
use toolcell::secrets::{Secret, StoredSecrets};
use toolcell::{CallOptions, Component, Engine, Executor, Grants, ToolCall};

/// Not a real token.
const TOKEN: &str = "token-of-the-example";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // A server on this machine that returns the `authorization` header of the request.
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let server = std::thread::spawn(move || answer_once(&listener));

    // The value comes from a `SecretSource`: here from memory, usually from a vault.
    let secrets = StoredSecrets::default().with("fetch_token", Secret::new(TOKEN)?);
    let engine = Engine::builder().secrets(secrets).build()?;

    // The grant says where the secret may be sent. Addresses of private networks have to be granted
    // as well.
    let rule: HttpRule = format!("GET http://127.0.0.1:{port}").parse()?;
    let rule = rule.with_private(["127.0.0.0/8".parse()?]);
    let mut grants = Grants::default();
    grants.http.push(rule.clone());
    grants.secrets.insert("fetch_token".into(), SecretGrant::new(rule, Injection::Bearer));
    let bytes = toolcell_examples::component("fetch")?;
    let options = LoadOptions { grants, ..LoadOptions::default() };
    let component = Component::load_with(&engine, bytes, options).await?;

    let arguments = json!({"url": format!("http://127.0.0.1:{port}/account"), "with_token": true});
    let call = ToolCall::with_value("call-1", "fetch", &arguments);
    let completion =
        Executor::new().call(component.tool("fetch")?, call, CallOptions::default()).await;
    let received = server.join().expect("the server does not panic")?;
    println!("the server received: {received}");
    let page = completion.result.value().map(|value| value.to_value()).unwrap_or_default();
    println!("the tool received: {}", page["text"]);
    Ok(())
}

/// Answers one request with its `authorization` header, and returns that header.
fn answer_once(listener: &TcpListener) -> std::io::Result<String> {
    let (mut stream, _) = listener.accept()?;
    let mut received = String::new();
    for line in BufReader::new(&stream).lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if line.to_ascii_lowercase().starts_with("authorization:") {
            received = line;
        }
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}",
        received.len()
    );
    write!(stream, "{head}\r\nconnection: close\r\n\r\n{received}")?;
    Ok(received)
}
