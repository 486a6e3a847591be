//! Keys and values that outlive a call: a tool stores them, and each tenant has its own.
//!
//! `cargo run --example kv`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::{Value, json};
use toolcell::component::LoadOptions;
use toolcell::kv::SqliteStore;
use toolcell::{CallContext, CallOptions, Component, Engine, Executor, Grants, ToolCall};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // The embedder provides the store. `kv::SqliteStore` keeps its values in a file.
    let engine = Engine::builder().keys(SqliteStore::in_memory()).build()?;

    // The operator grants which keys a tool may read and write.
    let mut grants = Grants::default();
    grants.kv.push("write notes/*".parse()?);
    let bytes = toolcell_examples::component("notes")?;
    let options = LoadOptions { grants, ..LoadOptions::default() };
    let component = Component::load_with(&engine, bytes, options).await?;
    let tool = component.tool("notes")?;

    let executor = Executor::new();
    let call = async |tenant: &str, arguments: Value| -> anyhow::Result<()> {
        let mut context = CallContext::default();
        context.tenant = Some(tenant.into());
        let call = ToolCall::with_value("call-1", "notes", &arguments);
        let options = CallOptions { context: context.into(), ..CallOptions::default() };
        let completion = executor.call(tool, call, options).await;
        println!("{tenant}: {}", serde_json::to_string(&completion.result)?);
        Ok(())
    };
    // Each call has a new cell, but the stored note is still there.
    call("acme", json!({"action": "add", "title": "menu", "text": "soup"})).await?;
    call("acme", json!({"action": "get", "title": "menu"})).await?;
    // Another tenant does not see it.
    call("birch", json!({"action": "list"})).await
}
