//! Tools as a careless or hostile author would write them, and one that uses every service of the
//! host.

use std::hint::black_box;
use std::io::Write as _;
use std::time::Duration;

use toolcell_guest::{
    Context, Failure, Outcome, Output, abort, budget, json, log, progress, tool, tools,
};

/// Never ends.
#[tool]
fn spin() -> u64 {
    let mut n = 0_u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

/// Takes all the memory there is.
#[tool]
fn hoard() -> usize {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        hoard.push(black_box(vec![1; 1 << 20]));
    }
}

/// Calls itself without end.
#[tool]
fn dive() -> u64 {
    #[inline(never)]
    fn deeper(n: u64) -> u64 {
        if black_box(n) == u64::MAX { 0 } else { deeper(n + 1).wrapping_add(n) }
    }
    deeper(0)
}

/// Panics with the given words.
#[tool]
fn panics(words: String) {
    panic!("{words}");
}

/// Leaves by the back door.
#[tool]
fn exits(code: i32) {
    std::process::exit(code)
}

/// Sleeps for a year.
#[tool]
fn sleeps() {
    std::thread::sleep(Duration::from_secs(31_536_000));
}

/// Sleeps for no longer than its own bound allows.
#[tool(max_execution = "50ms")]
fn impatient() {
    std::thread::sleep(Duration::from_secs(31_536_000));
}

/// A string with the schema of an integer.
#[derive(serde::Serialize)]
#[serde(transparent)]
struct Count(String);

impl schemars::JsonSchema for Count {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "integer"})
    }
}

/// Promises an integer.
#[tool(output)]
fn lies() -> Count {
    Count("trust me".into())
}

/// Writes lines to standard output and standard error.
#[tool]
fn chatters(lines: u32) -> u32 {
    for n in 0..lines {
        println!("line {n}");
        eprintln!("warning {n}");
    }
    print!("no end");
    let _ = std::io::stdout().flush();
    lines
}

/// Writes a text to standard output and standard error.
#[tool]
fn prints(text: String) {
    print!("{text}");
    eprint!("{text}");
    let _ = std::io::stdout().flush();
}

/// Writes a byte to standard output, so many million times, and never the end of a line.
#[tool]
fn pours(byte: u8, millions: u32) -> u32 {
    let piece = vec![byte; 1_000_000];
    for _ in 0..millions {
        std::io::stdout().write_all(&piece).expect("standard output");
    }
    let _ = std::io::stdout().flush();
    millions
}

/// What the cell lets a tool see of the machine.
#[tool]
fn looks_around() -> Outcome {
    let directory = std::fs::read_dir("/")
        .map(|entries| entries.count())
        .map_err(|error| error.kind().to_string());
    let written =
        std::fs::write("/tmp/mischief", "was here").map_err(|error| error.kind().to_string());
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line).unwrap_or(usize::MAX);
    Outcome::ok(json!({
        "environment": std::env::vars().count(),
        "arguments": std::env::args().count(),
        "directory": directory.is_ok(),
        "written": written.is_ok(),
        "stdin": read,
    }))
}

/// Remembers what it was told, if anything survives a call.
#[tool]
fn remembers(secret: String) -> Option<String> {
    use std::sync::Mutex;
    static MEMORY: Mutex<Option<String>> = Mutex::new(None);
    let mut memory = MEMORY.lock().unwrap();
    memory.replace(secret)
}

/// Uses log, progress, abort and budget.
#[tool]
fn services(context: &Context) -> Outcome {
    log::info!("call {}", context.call_id());
    progress::report(1, Some(2), "half-way");
    let before = budget::remaining();
    let work: u64 = (0..10_000_u64).map(black_box).sum();
    let after = budget::remaining();
    Outcome::from(
        Output::new(json!({
            "aborted": abort::requested(),
            "fuel_went_down": after.fuel < before.fuel,
            "time_is_left": after.time > Duration::ZERO,
            "memory_is_left": after.memory > 0,
            "work": work,
            "tenant": context.tenant(),
            "attempt": context.attempt(),
        }))
        .message("done"),
    )
}

/// Works and says so, and then fails until its nth attempt.
#[tool]
fn flaky(answers_at: u32, context: &Context) -> Result<u32, Failure> {
    let attempt = context.attempt();
    log::info!("attempt {attempt}");
    black_box((0..100_000_u64).map(black_box).sum::<u64>());
    if attempt < answers_at { Err(Failure::new("not yet").retryable(true)) } else { Ok(attempt) }
}

/// Is offered in a list, and to calls that know the word.
#[tool(visible = |context| context.arguments().is_none_or(|arguments| arguments["word"] == "xyzzy"))]
fn opens(word: String, times: u32) -> String {
    word.repeat(times as usize)
}

tools![
    opens,
    spin,
    hoard,
    dive,
    panics,
    exits,
    sleeps,
    impatient,
    lies,
    chatters,
    prints,
    pours,
    looks_around,
    remembers,
    services,
    flaky
];
