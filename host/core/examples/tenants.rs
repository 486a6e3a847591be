//! Several tenants on one host at the same time: each has its own limits and tools, and a hostile
//! one does not affect the others.
//!
//! `cargo run --example tenants`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use tokio::task::JoinSet;
use toolcell::{CallContext, CallOptions, Component, Engine, Executor, Limits, Tenant, ToolCall};

/// The number of calls that each tenant makes at the same time.
const CALLS: usize = 8;
const SUM: &str = "map(.price) | add";

/// The usage of a tenant's calls, added up.
#[derive(Default)]
struct Bill {
    answered: usize,
    fuel: u64,
    failures: BTreeSet<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let engine = Engine::builder().build()?;
    let component = Component::load(&engine, toolcell_examples::component("jq")?).await?;
    let tool = component.tool("jq")?;

    // The executor's limits apply to all tenants. A tenant's own settings can only tighten them. If
    // any tenant is defined, calls of undefined tenants are refused.
    let birch = Limits { fuel: 1_000_000, ..Limits::unlimited() };
    let executor = Executor::new()
        .with_limits(Limits { fuel: 50_000_000, ..Limits::default() })
        .with_tenant("acme", Tenant::default())
        .with_tenant("birch", Tenant { limits: birch, ..Tenant::default() })
        .with_tenant("cedar", Tenant { tools: Some(vec!["text_*".parse()?]), ..Tenant::default() })
        .with_tenant("mallory", Tenant::default());

    let mut calls = JoinSet::new();
    for index in 0..CALLS {
        for (name, filter) in [
            ("acme", SUM),
            ("birch", SUM),
            ("cedar", SUM),
            ("mallory", "def forever: forever; forever"),
            ("unknown", SUM),
        ] {
            let mut context = CallContext::default();
            context.tenant = Some(name.into());
            let options = CallOptions { context: context.into(), ..CallOptions::default() };
            let arguments = json!({"filter": filter, "input": [{"price": 2}, {"price": 30}]});
            let call = ToolCall::with_value(format!("{name}-{index}"), "jq", &arguments);
            let (executor, tool) = (executor.clone(), tool.clone());
            calls.spawn(async move { (name, executor.call(&tool, call, options).await) });
        }
    }

    let mut bills: BTreeMap<_, Bill> = BTreeMap::new();
    while let Some(ended) = calls.join_next().await {
        let (name, completion) = ended?;
        let bill = bills.entry(name).or_default();
        // Every completion has its usage, however the call ended.
        bill.fuel += completion.usage.fuel.unwrap_or_default();
        match completion.failure() {
            None => bill.answered += 1,
            Some(failure) => bill.failures.extend([failure.to_string()]),
        }
    }
    for (name, Bill { answered, fuel, failures }) in bills {
        println!("{name}: {answered} of {CALLS} answered; {fuel} fuel in all");
        for failure in failures {
            println!("  {failure}");
        }
    }
    Ok(())
}
