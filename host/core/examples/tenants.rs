//! Many tenants on one host, all at once: each with a plan of its own, one of them hostile, and nobody else notices.
//!
//! `cargo run --example tenants [COMPONENT]`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde_json::json;
use tokio::task::JoinSet;
use toolcell::{CallContext, CallOptions, Completion, Component, Engine, Executor, Failure, Limits, ToolCall};

const JQ: &str = "example-tools/target/wasm32-wasip2/release/jq.wasm";
/// Calls that each tenant makes at once.
const CALLS: usize = 8;
const SUM: &str = "map(.price) | add";

/// A tenant, and what it may use on top of the host's limits.
struct Tenant {
    name: &'static str,
    plan: Limits,
    filter: &'static str,
}

/// What a tenant has used.
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
        // There is a receipt for every ending.
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

    // The host's limits hold for everybody. A plan can only tighten them, so a plan without any limit is a safe one too.
    let executor = Executor::new().with_limits(Limits::default().with_fuel(50_000_000));
    let tenants = [
        Tenant { name: "acme", plan: Limits::unlimited(), filter: SUM },
        Tenant { name: "birch", plan: Limits::unlimited().with_fuel(20_000_000).with_memory(4 << 20), filter: SUM },
        Tenant { name: "cedar", plan: Limits::unlimited().with_fuel(1_000_000), filter: SUM },
        Tenant { name: "mallory", plan: Limits::unlimited(), filter: "def forever: forever; forever" },
    ];

    let mut calls = JoinSet::new();
    for index in 0..CALLS {
        for tenant in &tenants {
            let mut context = CallContext::default();
            context.tenant = Some(tenant.name.into());
            let options = CallOptions::default().with_context(context).with_limits(tenant.plan);
            let arguments = json!({"filter": tenant.filter, "input": [{"price": 2}, {"price": 30}]});
            let call = ToolCall::with_value(format!("{}-{index}", tenant.name), "jq", &arguments);
            let (executor, tool, name) = (executor.clone(), tool.clone(), tenant.name);
            calls.spawn(async move { (name, executor.call(&tool, call, options).await) });
        }
    }

    let mut bills: BTreeMap<_, Bill> = BTreeMap::new();
    while let Some(ended) = calls.join_next().await {
        let (name, completion) = ended?;
        bills.entry(name).or_default().add(&completion);
    }
    for (name, Bill { answered, failed, fuel, memory }) in bills {
        println!("{name}: {answered} of {CALLS} answered; {fuel} fuel in all, {} KiB at most", memory >> 10);
        for (why, times) in failed {
            println!("  {times} times: {why}");
        }
    }
    Ok(())
}
