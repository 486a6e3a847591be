//! Reads the checkout: its files, and the crates among them.
//!
//! Invariants: symbolic links are not followed; hidden folders, `target` and `node_modules` are not
//! entered.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::source::Source;
use super::tree::Crate;

/// The checkout: its files, its Rust sources and its crates.
pub(super) struct Repository {
    root: PathBuf,
    /// Paths below the root, with `/`.
    pub(super) files: Vec<String>,
    pub(super) sources: BTreeMap<String, Source>,
    pub(super) crates: Vec<Crate>,
}

impl Repository {
    /// Lists all files below `root`, and reads the Rust sources except templates.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let files = files(root)?;
        let rust =
            files.iter().filter(|file| file.ends_with(".rs") && !file.contains("/templates/"));
        let read = |file: &String| {
            let text = std::fs::read_to_string(root.join(file))
                .with_context(|| format!("cannot read {file}"))?;
            Ok((file.clone(), Source::of(text).with_context(|| format!("{file} is not Rust"))?))
        };
        let sources = rust.map(read).collect::<Result<BTreeMap<_, _>>>()?;
        let ends = ["/src/lib.rs", "/src/main.rs"];
        let is_root = |file: &&String| {
            ends.iter().any(|end| file.ends_with(end)) || file.contains("/src/bin/")
        };
        let crates = sources
            .keys()
            .filter(is_root)
            .map(|file| Crate::read(file, &sources))
            .collect::<Result<_>>()?;
        Ok(Self { root: root.into(), files, sources, crates })
    }

    /// Returns true if a build without tests compiles this file.
    pub(super) fn is_compiled(&self, file: &str) -> bool {
        self.crates.iter().any(|tree| tree.files.contains(file))
    }

    /// Reads a file of the checkout.
    pub(super) fn text(&self, file: &str) -> Result<String> {
        std::fs::read_to_string(self.root.join(file)).with_context(|| format!("cannot read {file}"))
    }
}

/// Returns the files below a folder, sorted.
fn files(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let listed = std::fs::read_dir(root.join(&folder))
            .with_context(|| format!("cannot list `{folder}`"))?;
        for entry in listed {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if kind.is_dir()
                && !name.starts_with('.')
                && !["target", "node_modules"].contains(&name.as_str())
            {
                folders.push(format!("{folder}{name}/"));
            } else if kind.is_file() {
                found.push(format!("{folder}{name}"));
            }
        }
    }
    found.sort();
    Ok(found)
}
