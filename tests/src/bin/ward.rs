//! Worker processes for tests: a correct one, with tools that misbehave, and some that are no
//! workers.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use toolcell::process::{Worker, WorkerProcess};
use toolcell::tool::{Invocation, NativeFn};
use toolcell::{Component, Definition, Engine, Tool};

/// The description of every tool.
const ABOUT: &str = "A tool of a test.";
/// Calls of the tool `hangs` that have not ended.
static HANGING: AtomicUsize = AtomicUsize::new(0);

struct Hangs;

impl Drop for Hangs {
    fn drop(&mut self) {
        HANGING.fetch_sub(1, Ordering::SeqCst);
    }
}

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("tools") => Worker::begin()?.serve(native()?)?,
        Some("component") => {
            let ward = Worker::begin()?;
            let cache = Path::new(&words.next().context("a directory")?).join("artifacts");
            let engine = Engine::builder().cache(cache).build()?;
            let guest = words.next().context("a guest")?;
            let load = Component::load(&engine, toolcell_test_guests::bytes(&guest));
            ward.serve(toolcell_tests::wait_here(load)?.tools().iter().cloned())?;
        }
        Some("refuses") => Worker::begin()?.refuse("there is nothing to be had")?,
        Some("rubbish") => say(b"hello, this is no frame at all\n")?,
        Some("gigabyte") => say(&[&(1_u32 << 30).to_le_bytes()[..], b"and so on"].concat())?,
        Some("dies") => std::process::abort(),
        // A parent that prints its child's process id and dies.
        Some("parent") => {
            let worker_process =
                WorkerProcess::builder(std::env::current_exe()?).arguments(["tools"]).start();
            let worker_process = toolcell_tests::wait_here(worker_process)?;
            say(worker_process.pid().context("a child")?.to_string().as_bytes())?;
            std::process::abort();
        }
        other => bail!("{other:?} is nothing that it can be"),
    }
    Ok(())
}

fn say(bytes: &[u8]) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(bytes)?;
    Ok(output.flush()?)
}

fn tool<S: 'static>(name: &str, handler: impl NativeFn<S>) -> anyhow::Result<Tool> {
    Ok(Tool::native(Definition::new(name, ABOUT)?, handler)?)
}

fn native() -> anyhow::Result<Vec<Tool>> {
    let mut twice = Definition::new("dies_once_and_may_be_called_twice", ABOUT)?;
    twice.hints.idempotent = true;
    Ok(vec![
        tool("pid", async |_: Value| json!(std::process::id()))?,
        tool("environment", async |_: Value| json!(std::env::vars().collect::<BTreeMap<_, _>>()))?,
        tool("bounds", async |_: Value| json!(std::fs::read_to_string("/proc/self/limits").ok()))?,
        tool("context", async |_: Value, call: Arc<Invocation>| {
            json!(format!("{:?}", call.context))
        })?,
        tool("aborts", async |_: Value| -> Value { std::process::abort() })?,
        Tool::native(twice, dies_once)?,
        tool("dies_once", dies_once)?,
        tool("hangs", async |_: Value, call: Arc<Invocation>| -> Value {
            HANGING.fetch_add(1, Ordering::SeqCst);
            let _hangs = Hangs;
            call.progress(1, None, None);
            std::future::pending().await
        })?,
        tool("hanging", async |_: Value| json!(HANGING.load(Ordering::SeqCst)))?,
        tool("stops", async |_: Value, call: Arc<Invocation>| {
            call.abort.raised().await;
            json!("stopped")
        })?,
        tool("never_lets_go", async |_: Value| -> Value {
            loop {
                std::thread::park();
            }
        })?,
        tool("rubbish", async |_: Value| -> Value {
            let _ = say(&[0xff; 64]);
            std::future::pending().await
        })?,
        tool("reserved", async |_: Value| json!({"$serde_json::private::x": 0}))?,
        tool("picky", async |_: Value| json!("taken"))?
            .with_validator(|_| vec!["too plain".to_owned()]),
        tool("hidden", async |_: Value| json!("seen"))?.with_visibility(|_, _| false),
    ])
}

/// Aborts the process unless the file `mark` exists, and creates it: only the first of all
/// processes dies.
async fn dies_once(arguments: Value) -> Value {
    let path = arguments["mark"].as_str().unwrap_or_default();
    if OpenOptions::new().write(true).create_new(true).open(path).is_ok() {
        std::process::abort();
    }
    json!("alive")
}
