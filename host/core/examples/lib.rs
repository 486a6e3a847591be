//! Code that the examples share: reads an example tool, and approves a component as an operator
//! does. Each example is a program: `cargo run --example NAME` from the repository's root.

use anyhow::Context as _;
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
        format!("cannot read `{path}`: run `cargo xtask demo` in the repository's root, which builds the example tools")
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
