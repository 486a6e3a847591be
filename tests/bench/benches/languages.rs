//! Measures a small tool in each language: the size of its component, its build, its first call and
//! a later call, against raw wasmtime with the same component in the same run.
//!
//! `cargo bench --workspace --profile dev --bench languages`
//!
//! Python needs componentize-py, and C needs Zig: `PATH` must have the versions that `toolcell
//! build` asks for. Without them, the table says so.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Runtime};
use toolcell::component::LoadOptions;
use toolcell::runtime::Placement;
use toolcell::{Component, Engine, Executor, Grants, Tool};
use toolcell_author::{ErrorKind, Language};
use toolcell_benches::floor::Floor;
use toolcell_benches::timing::{Contender, Summary, interleaved, micros, percentile};
use toolcell_benches::tools::{must_answer, optimised_with};

const ROUNDS: usize = 15;
const CALLS: usize = 300;
const FIRST_CALLS: usize = 9;
/// A small program as a model writes it.
const PROGRAM: &str = r#"{"code":"return [1, 2, 3].map((n) => n * n).reduce((a, b) => a + b);"}"#;
const RUN_CODE_PROJECT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../example-tools/js/run_code");
const GREET: &str = r#"{"name":"Ada"}"#;

/// The targets of a language, or `NONE`: bytes, seconds of a build, milliseconds of a first call,
/// microseconds of a call, and its ratio to the floor.
struct Targets {
    bytes: f64,
    build_s: f64,
    first_ms: f64,
    call_us: f64,
    ratio: f64,
}

const NONE: f64 = f64::INFINITY;
/// Seconds from `toolcell new` to the first answer, with the toolchain installed.
const FIRST_ANSWER_S: f64 = 60.0;
const JAVASCRIPT: Targets =
    Targets { bytes: 2.2e6, build_s: 2.0, first_ms: 5.0, call_us: 40.0, ratio: 1.5 };
/// A call takes at most twice as long as without `Intl`.
const INTL: Targets = Targets { bytes: 5e6, call_us: 80.0, ..JAVASCRIPT };
const PYTHON: Targets =
    Targets { bytes: NONE, build_s: NONE, first_ms: 20.0, call_us: NONE, ratio: 2.0 };
const RUST: Targets =
    Targets { bytes: NONE, build_s: NONE, first_ms: NONE, call_us: NONE, ratio: 1.25 };
const RUN_CODE: Targets = Targets { call_us: 1000.0, ..JAVASCRIPT };

fn main() -> Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let folder = tempfile::tempdir()?;
    println(
        "One small tool (JSON in, text out), in microseconds unless another unit is given; targets in brackets",
    )?;
    measure(&runtime, "Rust (calculator)", &toolcell_test_guests::bytes("calculator"), SUM, &RUST)?;
    let languages = [
        (Language::JavaScript, "javascript", &JAVASCRIPT),
        (Language::JavaScript, INTL_TITLE, &INTL),
        (Language::TypeScript, "typescript", &JAVASCRIPT),
        (Language::C, "c", &RUST),
        (Language::Python, "python", &PYTHON),
    ];
    let run_code = folder.path().join("run_code.wasm");
    // The first build in this process, so that its time includes compiling the runtime, as in
    // `toolcell build`.
    let built = toolcell_author::build(Path::new(RUN_CODE_PROJECT), Some(&run_code))?;
    let seconds = built.time.as_secs_f64();
    println(&format!("\nrun_code: built in {seconds:.2} s {}", within(seconds, RUN_CODE.build_s)))?;
    measure(&runtime, "run_code", &std::fs::read(&run_code)?, ("run_code", PROGRAM), &RUN_CODE)?;
    for (language, title, targets) in languages {
        let project = folder.path().join(title);
        let began = Instant::now();
        toolcell_author::create(&project, language)?;
        if title == INTL_TITLE {
            let module = project.join("src/tool.js");
            let source = std::fs::read_to_string(&module)?;
            std::fs::write(&module, format!("{source}void Intl;\n"))?;
        }
        match toolcell_author::build(&project, None) {
            Ok(built) => {
                let bytes = std::fs::read(&built.component)?;
                runtime.block_on(answered(&bytes, ("greet", GREET)))?;
                let first = began.elapsed().as_secs_f64();
                println(&format!("\n{title}: built in {:.2} s", built.time.as_secs_f64()))?;
                let verdict = within(first, FIRST_ANSWER_S);
                println(&format!("  from `new` to the first answer: {first:.2} s {verdict}"))?;
                measure(&runtime, title, &bytes, ("greet", GREET), targets)?;
            }
            Err(error) if error.kind() == ErrorKind::Toolchain => {
                println(&format!("\n{title}: not measured: {error} ({})", error.hint()))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The title of the tool that takes the runtime with `Intl`.
const INTL_TITLE: &str = "javascript-with-intl";
const SUM: (&str, &str) = ("calculator", r#"{"expression":"2 * (3 + 4) - sqrt(16)"}"#);

fn measure(
    runtime: &Runtime,
    title: &str,
    bytes: &[u8],
    (name, arguments): (&str, &str),
    targets: &Targets,
) -> Result<()> {
    let executor = Executor::new();
    let call = |tool: &Tool| runtime.block_on(must_answer(&executor, tool, arguments));
    let verdict = within(bytes.len() as f64, targets.bytes);
    println(&format!("{title}: {} bytes {verdict}", bytes.len()))?;
    let (loading, first) = first_call(runtime, bytes, name, &call)?;
    println(&format!(
        "  first call from the cache: {first:.2} ms {}, loading it before: {loading:.2} ms",
        within(first, targets.first_ms)
    ))?;
    let engine = Engine::builder().placement(Placement::Inline).build()?;
    let tool = runtime.block_on(optimised_with(&engine, bytes, name, grants()))?;
    let floor = match Floor::new(bytes, name)? {
        floor if floor.call(arguments).is_ok() => floor,
        // Python calls WASI in each call.
        _ => Floor::with_wasi(bytes, name)?,
    };
    let summaries = interleaved(
        &mut [
            Contender::new("raw wasmtime (the floor)", || {
                floor.call(arguments).expect("a good call");
            }),
            Contender::new("Executor::call, inline", || call(&tool)),
        ],
        ROUNDS,
        CALLS,
    );
    let [floor, ours] = summaries.as_slice() else { anyhow::bail!("two contenders") };
    for Summary { name, p50, p99, spread: (low, high) } in [floor, ours] {
        let times = format!("p50 {p50:8.1}   p99 {p99:8.1}   rounds {low:.1} to {high:.1}");
        println(&format!("  {name:28} {times}"))?;
    }
    let ratio = ours.p50 / floor.p50;
    println(&format!(
        "  call {:.1} {}, {ratio:.2} x the floor {}",
        ours.p50,
        within(ours.p50, targets.call_us),
        within(ratio, targets.ratio)
    ))
}

/// Loads a component into a new engine without a cache, as the first `toolcell run` of an author
/// does, and calls its tool.
async fn answered(bytes: &[u8], (name, arguments): (&str, &str)) -> Result<()> {
    let component = Component::load(&Engine::builder().build()?, bytes.to_vec()).await?;
    let tool = component.tool(name).context("the tool")?;
    must_answer(&Executor::new(), tool, arguments).await;
    Ok(())
}

/// Returns the median times, in milliseconds, that a new engine needs for a cached component,
/// loaded as a server loads it: to load it (reads and examines its bytes), and for the first call
/// (checks and links its code).
fn first_call(
    runtime: &Runtime,
    bytes: &[u8],
    name: &str,
    call: &impl Fn(&Tool),
) -> Result<(f64, f64)> {
    let cache = tempfile::tempdir()?;
    let engine = |path: &Path| Engine::builder().placement(Placement::Inline).cache(path).build();
    runtime.block_on(optimised_with(&engine(cache.path())?, bytes, name, grants()))?;
    let (mut loads, mut calls) = (Vec::new(), Vec::new());
    for _ in 0..FIRST_CALLS {
        let engine = engine(cache.path())?;
        let (read, again) = (bytes.to_vec(), bytes.to_vec());
        let began = Instant::now();
        let options = LoadOptions {
            grants: grants(),
            source: Some(Arc::new(move || Ok(again.clone()))),
            ..LoadOptions::default()
        };
        let loading = Component::load_with(&engine, read, options);
        let component = runtime.block_on(loading)?;
        loads.push(began.elapsed());
        let began = Instant::now();
        call(component.tool(name).context("the tool")?);
        calls.push(began.elapsed());
    }
    let median = |times| percentile(&mut micros(times), 50.0) / 1000.0;
    Ok((median(loads), median(calls)))
}

/// The grant that `run_code` cannot be loaded without; the other tools do not need it.
fn grants() -> Grants {
    let mut grants = Grants::default();
    grants.invoke = vec!["lookup".parse().expect("a rule")];
    grants
}

/// Returns the target and if it is met; an empty text without a target.
fn within(value: f64, target: f64) -> String {
    match (target.is_finite(), value <= target) {
        (false, _) => String::new(),
        (true, true) => format!("[{target}: met]"),
        (true, false) => format!("[{target}: missed]"),
    }
}

fn println(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}
