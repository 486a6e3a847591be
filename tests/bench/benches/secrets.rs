//! Measures the search for secrets in 64 KiB of a tool's answer, and of a request's body.
//!
//! `cargo bench --workspace --profile dev --bench secrets`

use std::io::Write as _;
use std::net::Ipv4Addr;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use toolcell::component::{CodeTier, LoadOptions};
use toolcell::grants::{HttpRule, Injection, SecretGrant};
use toolcell::kv::SqliteStore;
use toolcell::runtime::Placement;
use toolcell::secrets::{Secret, StoredSecrets};
use toolcell::{Component, Engine, Executor, Grants, Tool};
use toolcell_benches::timing::{Contender, Summary, interleaved};
use toolcell_benches::tools::must_answer;
use toolcell_test_guests::{Answer, Hostile};
use toolcell_tests::server::{Server, response};

const ROUNDS: usize = 5;
const CALLS: usize = 200;
const SCHEMA: &str =
    r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
/// Microseconds that the search may add at p99. Source: docs/threat-model.md, row 47.
const TARGET: f64 = 1000.0;
const BYTES: usize = 64 << 10;
/// Numbers of secrets to search for.
const COUNTS: [usize; 4] = [1, 4, 16, 64];

fn main() -> Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let server = Server::start(Ipv4Addr::LOCALHOST, |_| response("200 OK", ""));
    for (name, text) in [("English", english()), ("base64", base64_like())] {
        answers(&runtime, name, &text)?;
        requests(&runtime, name, &text, &server)?;
    }
    Ok(())
}

/// English words, as in most answers.
fn english() -> String {
    mixed(&[
        "the ", "quick ", "brown ", "report ", "of ", "2026 ", "says ", "that ", "3,141 ",
        "orders ", "came, ",
    ])
}

/// Text in which no prefix of an encoded secret can be ruled out quickly.
fn base64_like() -> String {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    mixed(&letters.split_inclusive(|_: char| true).collect::<Vec<_>>())
}

/// Returns a text of these pieces in a pseudo-random order.
fn mixed(pieces: &[&str]) -> String {
    let (mut number, mut text) = (1_u32, String::new());
    while text.len() < BYTES {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text += pieces[(number >> 20) as usize % pieces.len()];
    }
    text.truncate(BYTES);
    text
}

fn secrets(count: usize) -> Result<StoredSecrets> {
    let value = |number: usize| format!("tok-{}", blake(number));
    (0..count).try_fold(StoredSecrets::default(), |all, number| {
        Ok(all.with(format!("key_{number}"), Secret::new(value(number))?))
    })
}

/// Forty random characters, like a token of a service.
fn blake(number: usize) -> String {
    let mut state = number as u64 + 1;
    (0..5)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            format!("{:08x}", state >> 32)
        })
        .collect()
}

fn loaded(
    runtime: &Runtime,
    bytes: Vec<u8>,
    grants: Grants,
    secrets: StoredSecrets,
) -> Result<Tool> {
    let engine = Engine::builder()
        .placement(Placement::Inline)
        .keys(SqliteStore::in_memory())
        .secrets(secrets)
        .build()?;
    let options = LoadOptions { grants, ..LoadOptions::default() };
    let component = runtime.block_on(Component::load_with(&engine, bytes, options))?;
    ensure!(runtime.block_on(component.optimised()) == CodeTier::Optimised, "it is not optimised");
    Ok(component.tools()[0].clone())
}

/// Measures answers of a tool, which are searched when they leave the cell.
fn answers(runtime: &Runtime, name: &str, text: &str) -> Result<()> {
    let echo = Hostile { parameters: Some(SCHEMA), ..Hostile::answering(Answer::Echo) }.component();
    let tool = |count: usize| {
        let rule: HttpRule = "https://example.com/".parse()?;
        let mut grants = Grants::default();
        grants.secrets.extend((0..count).map(|number| {
            (format!("key_{number}"), SecretGrant::new(rule.clone(), Injection::Bearer))
        }));
        loaded(runtime, echo.clone(), grants, secrets(count)?)
    };
    let arguments = json!({"text": text}).to_string();
    compare(runtime, &format!("an answer of 64 KiB, {name}"), &arguments, tool)
}

/// Measures bodies of requests, which are searched for all secrets of the host before they are
/// sent.
fn requests(runtime: &Runtime, name: &str, text: &str, server: &Server) -> Result<()> {
    let gossip = toolcell_test_guests::bytes("gossip");
    let tool = |count: usize| {
        let mut grants = Grants::default();
        grants.http.push(server.rule("POST", "/"));
        // The guest imports more than it uses here.
        grants.reveal.insert("gossip_key".into());
        grants.kv.push("read *".parse()?);
        loaded(runtime, gossip.clone(), grants, secrets(count)?)
    };
    let arguments =
        json!({"how": "send", "words": format!("{} {text}", server.url("/"))}).to_string();
    compare(runtime, &format!("a body of 64 KiB, {name}"), &arguments, tool)
}

fn compare(
    runtime: &Runtime,
    title: &str,
    arguments: &str,
    tool: impl Fn(usize) -> Result<Tool>,
) -> Result<()> {
    let counts = [&[0][..], &COUNTS].concat();
    let tools = counts
        .iter()
        .map(|count| Ok((format!("{count} secrets"), tool(*count)?)))
        .collect::<Result<Vec<_>>>()?;
    let executor = Executor::new();
    let call = |tool: &Tool| runtime.block_on(must_answer(&executor, tool, arguments));
    let mut contenders: Vec<_> =
        tools.iter().map(|(name, tool)| Contender::new(name, || call(tool))).collect();
    let summaries = interleaved(&mut contenders, ROUNDS, CALLS);
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{title}: {ROUNDS} rounds of {CALLS} calls, microseconds")?;
    writeln!(out, "  {:12} {:>8} {:>8} {:>8}  target", "", "p50", "p99", "p99 more")?;
    // Compared with its own p99: delays that the machine and the connection cause in one call of a
    // hundred are not the cost of the search.
    let without = summaries.first().map_or(f64::NAN, |without| without.p99);
    for Summary { name, p50, p99, .. } in &summaries {
        let more = p99 - without;
        let verdict = if more <= TARGET { "met" } else { "missed" };
        writeln!(out, "  {name:12} {p50:8.1} {p99:8.1} {more:8.1}  <= {TARGET} us: {verdict}")?;
    }
    Ok(())
}
