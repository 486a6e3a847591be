//! A worker process for tests that offers one tool, and answers its calls in ways that no real
//! worker does.
//!
//! In: one word on the command line, the mode. Frames are written by hand: their length in four
//! bytes (little-endian), then JSON.

use std::io::{Read as _, Write as _};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use toolcell::Definition;

/// Bytes of the longest frame.
const MAX_FRAME: u32 = 64 << 20;

fn main() -> anyhow::Result<()> {
    let mode = std::env::args().nth(1).context("a mode")?;
    let limits = json!({
        "fuel": u64::MAX, "timeout": {"secs": 60, "nanos": 0}, "memory": u64::MAX, "arguments": u64::MAX,
        "result": u64::MAX, "log": 1 << 20, "host_calls": u64::MAX,
    });
    let definition = Definition::new("asked", "A tool of a test.")?;
    let offered =
        json!({"definition": definition, "code": null, "limits": limits, "always_visible": true});
    let ready = json!({ "Ready": [offered] });
    say(&ready)?;
    while let Some(order) = heard()? {
        if let Some(number) = order.pointer("/Ask/number").and_then(Value::as_u64) {
            answer(&mode, number, &ready)?;
        }
    }
    Ok(())
}

/// A valid answer: the tool is not found.
fn done(number: u64) -> Value {
    let usage = json!({
        "fuel": null, "wall_us": 0, "peak_memory": 0, "bytes_in": 0, "bytes_out": 0,
        "host_calls": 0, "log_bytes": 0, "log_bytes_dropped": 0,
    });
    let result = json!({"tool_error": {"reason": "not_found", "message": ""}});
    json!({"Done": [number, {"Called": {"result": result, "usage": usage}}]})
}

fn answer(mode: &str, number: u64, ready: &Value) -> anyhow::Result<()> {
    match mode {
        "honest" => say(&done(number)),
        "malformed" => raw(&frame(b"{\"Done\": [1, {\"Called\": ")),
        "nested" => raw(&frame(&vec![b'['; 1 << 20])),
        "not text" => raw(&frame(&[0xff; 100])),
        "oversized" => raw(&[&u32::MAX.to_le_bytes()[..], &[b'x'; 1000]].concat()),
        // Announces a frame, and sends its content a byte at a time, without end.
        "endless" => {
            raw(&MAX_FRAME.to_le_bytes())?;
            loop {
                raw(b" ")?;
                thread::sleep(Duration::from_millis(1));
            }
        }
        "silent" => Ok(()),
        "cut off" => {
            raw(&frame(b"{\"Started\": 1}")[..7])?;
            bail!("in the middle of a frame")
        }
        "closes" => bail!("as told"),
        "answers for others" => {
            for other in [0, number + 1, number + 1000, u64::MAX] {
                say(&done(other))?;
                say(&json!({ "Gone": other }))?;
            }
            say(&done(number))
        }
        "answers twice" => {
            say(&done(number))?;
            say(&done(number))
        }
        "answers another question" => say(&json!({"Done": [number, {"Visible": true}]})),
        "out of order" => say(ready),
        "refuses late" => say(&json!({ "Refused": "too late" })),
        "unknown news" => say(&json!({ "Else": number })),
        "huge numbers" => {
            let mut done = done(number);
            let called = &mut done["Done"][1]["Called"];
            let usage = called["usage"].as_object_mut().context("an object")?;
            for (_, count) in usage.iter_mut().filter(|(name, _)| *name != "wall_us") {
                *count = u64::MAX.into();
            }
            called["result"] =
                json!({"refusal": {"kind": "overloaded", "retry_after_ms": u64::MAX}});
            say(&done)
        }
        "floods of others" => flood(&json!({ "Started": number + 1 })),
        "floods of beginnings" => flood(&json!({ "Started": number })),
        "floods of progress" => flood(
            &json!({"Said": [number, {"Progress": {"done": 1, "total": null, "message": "x".repeat(1000)}}]}),
        ),
        "floods of lines" => {
            let line = json!({"source": "log", "level": "info", "message": "x".repeat(1000)});
            flood(&json!({"Said": [number, {"Log": line}]}))
        }
        other => bail!("{other:?} is nothing that it can do"),
    }
}

fn flood(news: &Value) -> anyhow::Result<()> {
    let frames = frame(news.to_string().as_bytes()).repeat(100);
    loop {
        raw(&frames)?;
    }
}

fn say(news: &Value) -> anyhow::Result<()> {
    raw(&frame(news.to_string().as_bytes()))
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes()[..], bytes].concat()
}

fn raw(bytes: &[u8]) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(bytes)?;
    Ok(output.flush()?)
}

/// Reads the next message of the host; `None` at the end.
fn heard() -> anyhow::Result<Option<Value>> {
    let (mut input, mut length) = (std::io::stdin().lock(), [0; 4]);
    if input.read_exact(&mut length).is_err() {
        return Ok(None);
    }
    let mut frame = vec![0; u32::from_le_bytes(length) as usize];
    input.read_exact(&mut frame)?;
    Ok(Some(serde_json::from_slice(&frame)?))
}
