//! Several tenants on one host at the same time: each has its own limits, and a hostile one does
//! not affect the others.
//!
//! `cargo run --example tenants [COMPONENT]`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde_json::json;
use tokio::task::JoinSet;
use toolcell::message::Failure;
use toolcell::{
    CallContext, CallOptions, CallResult, Completion, Component, Engine, Executor, Limits, Refusal,
    Tenant, ToolCall,
};

const JQ: &str = "example-tools/target/wasm32-wasip2/release/jq.wasm";
/// The number of calls that each tenant makes at the same time.
const CALLS: usize = 8;
const SUM: &str = "map(.price) | add";

/// The usage of a tenant.
#[derive(Default)]
struct Bill {
    answered: u64,
    failed: BTreeMap<String, u64>,
    fuel: u64,
    memory: u64,
}

impl Bill {
    fn add(&mut self, completion: &Completion) {
        match Failure::of(&completion.result) {
            None => self.answered += 1,
            Some(failure) => *self.failed.entry(failure.to_string()).or_default() += 1,
        }
        // Every completion has a receipt, however the call ended.
        self.fuel += completion.usage.fuel.unwrap_or_default();
        self.memory = self.memory.max(completion.usage.peak_memory);
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).unwrap_or(JQ.into());
    let engine = Engine::builder().build()?;
    let component = Component::load(&engine, std::fs::read(&path).context(path)?).await?;
    let tool = component.tool("jq")?;

    // The executor's limits apply to all tenants. A tenant's own limits can only tighten them.
    let limited = |limits: Limits| Tenant::default().with_limits(limits);
    let executor = Executor::new()
        .with_limits(Limits::default().with_fuel(50_000_000))
        .with_tenant("acme", Tenant::default())
        .with_tenant(
            "birch",
            limited(Limits::unlimited().with_fuel(20_000_000).with_memory(4 << 20)),
        )
        .with_tenant("cedar", limited(Limits::unlimited().with_fuel(1_000_000)))
        .with_tenant("mallory", Tenant::default());
    let filters = [
        ("acme", SUM),
        ("birch", SUM),
        ("cedar", SUM),
        ("mallory", "def forever: forever; forever"),
        ("unknown", SUM),
    ];

    let mut calls = JoinSet::new();
    for index in 0..CALLS {
        for (name, filter) in filters {
            let mut context = CallContext::default();
            context.tenant = Some(name.into());
            let options = CallOptions::default().with_context(context);
            let arguments = json!({"filter": filter, "input": [{"price": 2}, {"price": 30}]});
            let call = ToolCall::with_value(format!("{name}-{index}"), "jq", &arguments);
            let (executor, tool) = (executor.clone(), tool.clone());
            calls.spawn(async move { (name, executor.call(&tool, call, options).await) });
        }
    }

    let mut bills: BTreeMap<_, Bill> = BTreeMap::new();
    while let Some(ended) = calls.join_next().await {
        let (name, completion) = ended?;
        // If any tenant is defined, calls of undefined tenants are refused.
        assert_eq!(
            completion.result == CallResult::Refusal(Refusal::UnknownTenant),
            name == "unknown"
        );
        bills.entry(name).or_default().add(&completion);
    }
    for (name, Bill { answered, failed, fuel, memory }) in bills {
        println!(
            "{name}: {answered} of {CALLS} answered; {fuel} fuel in all, {} KiB at most",
            memory >> 10
        );
        for (why, times) in failed {
            println!("  {times} times: {why}");
        }
    }
    Ok(())
}
