//! What the examples share: where the example tools are, and an operator's approval. Each example
//! is a program: `cargo run --example NAME` from the repository's root.

use anyhow::Context as _;
use toolcell_config::{Configuration, Lock};

/// Where cargo writes the example tools.
const BUILT: &str = "example-tools/target/wasm32-wasip2/release";

/// The bytes of an example tool's component.
///
/// # Errors
/// When it is not built.
pub fn component(name: &str) -> anyhow::Result<Vec<u8>> {
    let path = format!("{BUILT}/{name}.wasm");
    std::fs::read(&path).with_context(|| {
        format!("cannot read `{path}`: run `cargo xtask demo` in the repository's root, which builds the example tools")
    })
}

/// What an operator does with `toolcell approve`, which shows the component first.
///
/// # Errors
/// When the component cannot be loaded, or the approval cannot be written.
pub async fn approve(configuration: &Configuration, component: &str) -> anyhow::Result<()> {
    let engines = configuration.engines().build()?;
    let shown = configuration.shown(&engines, component).await?;
    configuration.approve(&Lock::beside(configuration)?, &[(component.to_owned(), shown)], &[])?;
    Ok(())
}
