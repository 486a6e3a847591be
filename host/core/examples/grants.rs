//! Grants: a tool can use what it declares, what its component is granted, and what the overlays
//! leave of that.
//!
//! `cargo run --example grants`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::json;
use toolcell::component::LoadOptions;
use toolcell::grants::{Access, Decision, Directory, Request};
use toolcell::{CallOptions, Component, Engine, Executor, Grants, Overlay, ToolCall};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let engine = Engine::builder().build()?;
    let bytes = toolcell_examples::component("file_search")?;

    // The tool's author declares the needs of the tool, each with a reason.
    let without = Component::load(&engine, bytes.clone()).await?;
    for need in &without.tool("file_search")?.definition().needs {
        println!("declared: {} `{}`, {}", need.kind, need.pattern, need.reason);
    }

    // The operator grants a directory of the host. The tool sees it as `/data`.
    let mut grants = Grants::default();
    grants.directories.push(Directory::new("/data", "example-tools/hello", Access::Read)?);
    let options = LoadOptions { grants, ..LoadOptions::default() };
    let granted = Component::load_with(&engine, bytes, options).await?;

    // An overlay of a tenant or of a call narrows the grants: here, to nothing.
    let deny_all =
        CallOptions { overlay: Some(Overlay::deny_all().into()), ..CallOptions::default() };
    let executor = Executor::new();
    for (title, component, options) in [
        ("without a grant", &without, CallOptions::default()),
        ("with the grant", &granted, CallOptions::default()),
        ("narrowed by an overlay", &granted, deny_all),
    ] {
        let call = ToolCall::with_value("call-1", "file_search", &json!({"name": "Cargo.toml"}));
        let completion = executor.call(component.tool("file_search")?, call, options).await;
        println!("{title}: {}", serde_json::to_string(&completion.result)?);
    }

    // Decides without a call if a request would be allowed, and explains a denial.
    let rights = granted.tool("file_search")?.rights().expect("a component's tool has rights");
    for request in ["read /data/a", "write /data/a"] {
        match rights.allows(&Request::parse(request)?) {
            Decision::Allowed => println!("`{request}` is allowed"),
            Decision::Denied(denial) => println!("{denial}"),
        }
    }
    Ok(())
}
