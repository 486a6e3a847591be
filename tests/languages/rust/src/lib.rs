//! A tool that ends a call in each possible way.

mod endings;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::hint::black_box;
use std::time::{Duration, SystemTime};

use toolcell_guest::{
    Context, Failure, Halt, Outcome, Output, Part, Question, Value, abort, http, invoke, json, kv, log, progress,
    secrets, tool, tools,
};

const HOWS: &str = "value nothing text promise failure ask halt read denied count keys reveal reveal_denied waits \
                    invoke invoke_caught invoke_denied loop progress throws throws_text circle recursion memory \
                    clock random index deepest deep details";

fn is_ending(how: &String) -> Vec<String> {
    if HOWS.split(' ').any(|known| known == *how) { Vec::new() } else { vec![format!("there is no ending {how}")] }
}

/// Ends a call in each of the ways in which a call can end.
#[tool(name = "endings", validate = is_ending, needs = [
    http("GET https://api.example.com/v1", "to look something up"),
    secret("api_key", "to authenticate there"),
    reveal("password", "to measure it"),
    kv("write counters/*", "to count"),
    invoke("find_place", "to find places"),
    invoke("endings", "to call itself"),
])]
fn end(how: String, context: &Context) -> Outcome {
    outcome_for(&how, context).unwrap_or_else(Outcome::Error)
}

fn outcome_for(how: &str, context: &Context) -> Result<Outcome, Failure> {
    Ok(match how {
        "value" => Outcome::ok(json!({"list": [1, 2.5, "three"], "nothing": null, "yes": true})),
        "nothing" => Outcome::ok(()),
        "text" => Output::new("text").message("a message").part(Part::text("a part")).into(),
        // A Rust handler cannot await: it computes the squares one after the other.
        "promise" => Outcome::ok([1, 2, 3].map(|n| (n * n).to_string()).join(",")),
        "failure" => {
            let failure = Failure::new("no such city").data(json!({"city": "Atlantis"}));
            return Err(failure.retry_after(Duration::from_millis(1500)));
        }
        "ask" => match context.answer::<Value>().transpose()? {
            None => Question::new("Which one?").options(["a", "b"]).state(7).into(),
            Some(answer) => Outcome::ok((answer, context.state::<Value>().transpose()?)),
        },
        "halt" => Halt::new("done", json!({"total": 3})).into(),
        "read" => {
            let key = secrets::get("api_key")?;
            let answer = http::get("https://api.example.com/v1/city").query("q", "Bern").secret(&key).send()?;
            let city: Value = answer.json()?;
            Outcome::ok(json!({"status": answer.status(), "name": city["name"]}))
        }
        "denied" => Outcome::ok(http::get("https://elsewhere.example.com/").send()?.status()),
        "count" => {
            let before = kv::get("counters/calls")?.map(|entry| entry.json::<u64>()).transpose()?;
            let next = before.unwrap_or_default() + 1;
            kv::set("counters/calls", next.to_string())?;
            Outcome::ok(next)
        }
        "keys" => {
            kv::set_for(Duration::from_secs(60), "counters/a", b"1\x002")?;
            kv::set("counters/b", "")?;
            if kv::get("counters/a")?.is_none_or(|entry| entry.bytes() != b"1\x002") {
                return Err(Failure::new("the bytes are others"));
            }
            let (existed, missing) = (kv::delete("counters/b")?, kv::delete("counters/b")?);
            let names = kv::list("counters/").collect::<Result<Vec<_>, _>>()?;
            Outcome::ok(json!({"existed": existed, "missing": missing, "names": names}))
        }
        "reveal" => Outcome::ok(secrets::reveal("password")?.len()),
        "reveal_denied" => Outcome::ok(secrets::reveal("elsewhere")?),
        "waits" => {
            log::warn!("waiting");
            progress::report(1, 2, "half");
            while !abort::requested() {
                black_box((0..black_box(1_000_000_u64)).fold(0, |sum, turn| sum ^ black_box(turn)));
            }
            Outcome::ok("stopped")
        }
        "invoke" => Outcome::ok(invoke::call::<Value>("find_place", json!({"name": "Bern"}))?),
        "invoke_caught" => caught("find_place"),
        "loop" => Outcome::ok(invoke::call::<Value>("endings", json!({"how": "loop"}))?),
        "invoke_denied" => caught("delete_all"),
        "progress" => {
            progress::report(1, 2, "half");
            Outcome::ok(())
        }
        "throws" => endings::fail(),
        "throws_text" => std::panic::panic_any("just a text"),
        "circle" => Outcome::ok(BTreeMap::from([(vec![1], "a key that is a list")])),
        "deepest" => Outcome::ok(nested(127)),
        "deep" => Outcome::ok(nested(128)),
        "details" => return Err(Failure::new("no such city").data(BTreeMap::from([(vec![1], 1)]))),
        "recursion" => Outcome::ok(recurse(black_box(0))),
        "memory" => {
            let mut all = Vec::new();
            loop {
                all.push(vec![1_u8; 1 << 20]);
            }
        }
        "clock" => Outcome::ok(humantime::format_rfc3339(SystemTime::now()).to_string()),
        #[expect(clippy::cast_precision_loss, reason = "any number below 1 will do")]
        "random" => Outcome::ok((RandomState::new().hash_one(0) >> 12) as f64 / (1_u64 << 52) as f64),
        "index" => Outcome::ok(read_at(black_box(usize::MAX / 2))),
        other => return Err(Failure::new(format!("there is no ending {other}"))),
    })
}

/// Returns the error of another tool as a pair of its kind and its data.
fn caught(tool: &str) -> Outcome {
    match invoke::call::<Value>(tool, json!({"name": "Bern"})) {
        Ok(value) => Outcome::ok(value),
        Err(invoke::Error::Failed(error)) => Outcome::ok(("failed", &error["data"])),
        Err(invoke::Error::AskUser(question)) => Outcome::ok(("ask_user", question)),
        Err(invoke::Error::Halt(halt)) => Outcome::ok(("halt", halt)),
        Err(invoke::Error::ToolError(error)) => Outcome::ok(("tool_error", error)),
        Err(invoke::Error::Denied(_)) => Outcome::ok(("denied", ())),
        Err(error) => Outcome::ok((error.to_string(), ())),
    }
}

fn nested(depth: usize) -> Value {
    (1..depth).fold(json!([]), |inner, _| json!([inner]))
}

fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    if depth == u64::MAX { 0 } else { recurse(depth + 1) + frame[0] }
}

/// Reads memory outside of the tool's bounds.
#[inline(never)]
fn read_at(place: usize) -> u8 {
    // SAFETY: none. WebAssembly traps because the address is out of bounds, and this is what the
    // ending is for.
    unsafe { std::ptr::read_volatile(black_box(place) as *const u8) }
}

tools![end];
