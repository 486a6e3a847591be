//! Components from files, and the tools of several as one set.
//!
//! Invariants: a name stands for one tool; where two components offer it, both files are named and neither is used.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use toolcell::{Component, Engine, Tool};

use crate::failure::Failure;
use crate::printer::Printer;
use crate::{files, host};

/// The component in a file.
pub(crate) async fn one(printer: &Printer, engine: &Engine, path: &Path) -> Result<Component, Failure> {
    let bytes = files::component(path)?;
    let loaded = host::load(printer, engine, bytes, path).await;
    loaded.map_err(|error| Failure::from(error).about(path.display()))
}

/// The tools of several components, as they were typed and then in each component's own order.
pub(crate) async fn tools(printer: &Printer, engine: &Engine, paths: &[PathBuf]) -> Result<Vec<Tool>, Failure> {
    let mut tools = Vec::new();
    let mut homes = HashMap::new();
    for path in paths {
        for tool in one(printer, engine, path).await?.tools() {
            let name = &tool.definition().name;
            if let Some(first) = homes.insert(name.clone(), path) {
                return Err(twice(name, first, path));
            }
            tools.push(tool.clone());
        }
    }
    Ok(tools)
}

fn twice(tool: &str, first: &Path, second: &Path) -> Failure {
    let (first, second) = (first.display().to_string(), second.display().to_string());
    let message = if first == second {
        anyhow!("`{first}` stands twice in the list of components")
    } else {
        anyhow!("`{first}` and `{second}` both offer a tool `{tool}`")
    };
    Failure::file(message, "leave one of them out: a call names its tool, not the file")
}
