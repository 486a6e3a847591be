//! The engine behind every command, and a component loaded on it.
//!
//! Invariants: a cache that cannot be used costs a warning, never the command.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use toolcell::{Component, Engine, Error};

use crate::args::{self, Global};
use crate::env;
use crate::printer::Printer;

/// Cells: one call at a time, and one to spare.
const CELLS: u32 = 2;
/// A load that takes no longer needs no spinner.
const PATIENCE: Duration = Duration::from_millis(150);

/// Makes the engine, with the cache if it can be used.
pub(crate) fn engine(printer: &Printer, global: &Global) -> Result<Engine, Error> {
    let mut builder = Engine::builder().cells(CELLS).threads(1);
    if let Ok(toolcell) = std::env::current_exe() {
        builder = builder.compile_in(toolcell, [args::COMPILE_WORKER], global.compile_time.0);
    }
    let Some(dir) = cache_dir(printer, global) else {
        return builder.build();
    };
    builder.clone().cache(&dir).build().or_else(|error| {
        let engine = builder.build()?;
        printer.note("warning", &format!("{error}; what is compiled now is not kept"));
        printer.note("hint", &format!("{}, with `--cache-dir DIR` or `--no-cache`", error.hint()));
        Ok(engine)
    })
}

fn cache_dir(printer: &Printer, global: &Global) -> Option<PathBuf> {
    if global.no_cache {
        return None;
    }
    let dir = global.cache_dir.clone().or_else(env::cache_dir);
    if dir.is_none() {
        printer.note("warning", "no cache: neither `XDG_CACHE_HOME` nor `HOME` says where it would be");
        printer.note("hint", "say it with `--cache-dir DIR`, or that there is to be none with `--no-cache`");
    }
    dir
}

/// Loads a component, with a spinner where that takes long.
pub(crate) async fn load(printer: &Printer, engine: &Engine, bytes: Vec<u8>, path: &Path) -> Result<Component, Error> {
    let mut loading = pin!(Component::load(engine, bytes));
    let loaded = match tokio::time::timeout(PATIENCE, loading.as_mut()).await {
        Ok(loaded) => loaded,
        Err(_) => {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            let _spinner = printer.spinner(&format!("compiling {name}"));
            loading.await
        }
    }?;
    tracing::info!(component = %path.display(), compile_time = ?loaded.compile_time(), "loaded");
    Ok(loaded)
}
