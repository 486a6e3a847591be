//! Resources that tenants share, and the part of each: cells, waiting threads, open files, the
//! host's memory. Also: calls of tenants that are not defined, and of tools that a tenant does not
//! see.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::task::{Context, Waker};
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::grants::{Access, Directory};
use toolcell::runtime::{EngineBuilder, Placement};
use toolcell::{
    CallOptions, CallResult, Completion, Definition, Engine, Executor, Grants, Limits, Refusal,
    Tenant, Tool, ToolCall,
};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place, rows};
use toolcell_tests::{PLACEMENTS, context, ending, load, tool, wait};

use crate::watched_store::WatchedStore;

/// Threads of a pool that one tenant can hold.
const SHARE: usize = 8;

fn engine(make: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Engine {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shares");
    make(Engine::builder().cells(40).cache(cache)).build().expect("an engine")
}

fn of(tenant: &str) -> CallOptions {
    CallOptions { context: context(&json!({ "tenant": tenant })).into(), ..CallOptions::default() }
}

/// Limits of a call without a bound on its fuel.
fn any_fuel(seconds: u64) -> Limits {
    Limits { fuel: u64::MAX, timeout: Duration::from_secs(seconds), ..Limits::default() }
}

async fn complete(tool: Tool, arguments: Value, options: CallOptions) -> Completion {
    let call = ToolCall::with_value("1", tool.definition().name.as_str(), &arguments);
    Executor::new().call(&tool, call, options).await
}

fn call(tool: &Tool, arguments: &Value, options: CallOptions) -> Completion {
    wait(complete(tool.clone(), arguments.clone(), options))
}

/// Fails without: separate pools for keys and files, or a share for each tenant.
#[test]
fn hung_store_calls_block_only_their_tenant() {
    let ((began, begun), (opens, gate)) = (mpsc::channel(), mpsc::channel::<()>());
    let gate = Mutex::new(gate);
    // Does not return for one tenant until its gate is dropped.
    let store = WatchedStore::new(move |_, whose| {
        if whose.tenant() == Some("hog") {
            let _ = began.send(());
            let _ = gate.lock().unwrap_or_else(PoisonError::into_inner).recv();
        }
    });
    let engine = engine(|engine| engine.keys(store));
    let mut grants = Grants::default();
    grants.kv.push("write notes/*".parse().expect("a rule"));
    let notes = tool(&engine, "notes", "notes", grants);
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a"), "inside").expect("a file");
    let clerk = tool(&engine, "clerk", "clerk", reading(dir.path()));

    let add = json!({"action": "add", "title": "milk", "text": "two litres"});
    let (stuck, arguments) = (notes.clone(), add.clone());
    let hogs: Vec<_> = wait(async move {
        let hog = || complete(stuck.clone(), arguments.clone(), of("hog"));
        (0..SHARE).map(|_| tokio::spawn(hog())).collect()
    });
    for _ in 0..SHARE {
        begun.recv().expect("a call waits for the store");
    }
    // The callers are gone; the store still does not return.
    wait(async move {
        for hog in hogs {
            hog.abort();
            assert!(hog.await.is_err());
        }
    });
    let told = call(&notes, &add, of("hog"));
    assert!(serde_json::to_string(&told.result).expect("JSON").contains("blocked"), "{told:?}");
    for other in [of("other"), CallOptions::default()] {
        assert_eq!(ending(&call(&notes, &add, other).result), "ok");
    }
    let read = call(&clerk, &json!({"steps": [["read", "/data/a"]]}), of("hog"));
    // Files are not keys.
    assert_eq!(read.result.value().map(|value| value.as_str()), Some(r#"["inside"]"#));
    drop(opens);
    // The calls that had begun ran to their end, so this note is another one.
    let another = json!({"action": "add", "title": "bread", "text": "one loaf"});
    assert_eq!(ending(&call(&notes, &another, of("hog")).result), "ok", "it came back");
}

fn reading(dir: &Path) -> Grants {
    let mut grants = Grants::default();
    grants.directories.push(Directory::new("/data", dir, Access::Read).expect("a name"));
    grants
}

/// Fails without: the bound.
#[test]
fn open_file_limit_is_reported_to_the_tool() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a"), "inside").expect("a file");
    let look = ["look", "/data/a"];
    let clerk = |most| {
        tool(&engine(|engine| engine.open_files(most)), "clerk", "clerk", reading(dir.path()))
    };
    let answers = |clerk: &Tool, steps: &Value, options| {
        let completion = call(clerk, &json!({ "steps": steps }), options);
        let answers = completion.result.value().expect("an answer").as_str();
        serde_json::from_str::<Vec<String>>(answers).expect("a list")
    };
    let (few, none) = (clerk(6), clerk(0));
    for _ in 0..3 {
        // The directory itself is one open file.
        let steps = json!([look, look, look, look, look, look, ["release"], look]);
        let all = answers(&few, &steps, CallOptions::default());
        assert_eq!(all.iter().filter(|answer| *answer == "done").count(), 7, "{all:?}");
        assert_ne!(all[5], "done");
        // A tenant has half of the files.
        let some = answers(&few, &json!([look, look, look]), of("a"));
        assert!(some[..2] == ["done", "done"] && some[2] != "done", "{some:?}");
    }
    let refused = call(&none, &json!({"steps": [look]}), CallOptions::default());
    assert_eq!(ending(&refused.result), "handler_raised/host_call+open_files");
    assert!(format!("{:?}", refused.result).contains("OpenFiles"));
}

/// Fails without: the bound on a tenant's cells. Half of the endless calls run, half of them wait
/// for the host.
#[test]
fn endless_calls_of_a_tenant_starve_no_other() {
    const CELLS: u32 = 20;
    let others: Vec<String> = (0..9).map(|number| format!("tenant {number}")).collect();
    for placement in PLACEMENTS {
        let engine = engine(|engine| engine.cells(CELLS).placement(placement));
        let tool = |of: Hostile| {
            load(&engine, of.component()).expect("it loads").tool("hostile").expect("it").clone()
        };
        let endless = [Misdeed::Spin, Misdeed::Sleep]
            .map(|misdeed| tool(Hostile::new(Place::Execute, misdeed)));
        let good = tool(Hostile::answering(Answer::Echo));
        let all = |_| {
            let calls: Vec<_> =
                others.iter().map(|other| complete(good.clone(), json!({}), of(other))).collect();
            wait(async {
                let mut ended = Vec::new();
                for call in calls.into_iter().map(tokio::spawn).collect::<Vec<_>>() {
                    ended.push(ending(&call.await.expect("no panic").result));
                }
                ended
            })
        };
        let first = all(0);

        let executor = Executor::new().with_limits(any_fuel(3600));
        // A guest in the caller's task keeps the thread for as long as it can.
        let endless = if placement == Placement::Inline { &endless[1..] } else { &endless[..] };
        let hog = endless.iter().cycle().take(10 * CELLS as usize);
        let call =
            |tool| Box::pin(executor.call(tool, ToolCall::new("1", "hostile", "{}"), of("hog")));
        let mut hog: Vec<_> = hog.map(call).collect();
        let mut context = Context::from_waker(Waker::noop());
        let mut waits = hog.iter_mut().map(|call| call.as_mut().poll(&mut context).is_pending());
        assert!(waits.all(|waits| waits), "{placement:?}");
        for endings in [first].into_iter().chain((0..5).map(all)) {
            assert_eq!(endings, ["ok"; 9], "{placement:?}");
        }
    }
}

/// Returns a tool that makes requests.
fn requester(name: &str) -> Tool {
    let mut grants = Grants::default();
    grants.http.push("https://example.com/".parse().expect("a rule"));
    tool(&engine(|engine| engine), "caller", name, grants)
}

/// Fails without: charging requests for host memory.
#[test]
fn host_memory_per_cell_is_bounded() {
    let hoarder = requester("hoarder");
    let kept = |requests: u32, rounds: u64| {
        let options = CallOptions { limits: any_fuel(60), ..CallOptions::default() };
        ending(&call(&hoarder, &json!({"requests": requests, "rounds": rounds}), options).result)
    };
    assert_eq!(kept(12, 10_000_000), "ok");
    assert_eq!(kept(40, u64::MAX), "handler_raised/host_call+host_bytes");
}

/// A collection takes 64 KiB, of which a header of a thousand bytes is a sixty-fourth.
#[test]
fn endless_header_appends_are_ended() {
    let appender = requester("appender");
    let limits = Limits { host_calls: u64::MAX, ..any_fuel(60) };
    let ended = call(&appender, &json!({}), CallOptions { limits, ..CallOptions::default() });
    let end = ending(&ended.result);
    let found = (end.as_str(), ended.usage.host_calls);
    assert_eq!(found, ("handler_raised/host_call", 64), "{ended:?}");
}

/// Fails without: the refusal of tenants that are not defined.
#[test]
fn call_of_an_undefined_tenant_is_refused() {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let definition = Definition::new("count", "Counts.").expect("a name").with_parameters(json!({
        "type": "object", "properties": {"secret_word": {"enum": ["a"]}}, "required": ["secret_word"],
    }));
    let count = async |_: Value| json!(MADE.fetch_add(1, Ordering::SeqCst));
    let count = Tool::native(definition, count).expect("a tool");
    let said = |executor: &Executor, tenant: Option<&str>, arguments: &str| {
        let options = tenant.map_or_else(CallOptions::default, of);
        let (executor, count, call) =
            (executor.clone(), count.clone(), ToolCall::new("1", "count", arguments));
        wait(async move { executor.call(&count, call, options).await }).result
    };
    let good = r#"{"secret_word": "a"}"#;
    let open = Executor::new();
    let some = open.clone().with_tenant("a", Tenant::default());
    let own = some.clone().with_anonymous(Tenant::default());
    for (tenants, tenant, expected) in rows::<(&str, Option<&str>, &str)>(
        "tenants/fairness",
        "call_of_an_undefined_tenant_is_refused",
    ) {
        let executor = match tenants {
            "any" => &open,
            "a" => &some,
            "a and none" => &own,
            _ => panic!("{tenants}"),
        };
        let before = MADE.load(Ordering::SeqCst);
        let case = format!("{tenants}: {tenant:?}");
        assert_eq!(ending(&said(executor, tenant, good)), expected, "{case}");
        assert_eq!(MADE.load(Ordering::SeqCst) - before, u64::from(expected == "ok"), "{case}");
    }
    // A caller of an unknown tenant does not learn the tool's parameters.
    let refused = said(&some, Some("b"), "{}");
    assert_eq!(refused, CallResult::Refusal(Refusal::UnknownTenant));
    // A call without a tenant is narrowed like one of a tenant.
    let limits = Limits { arguments: 3, ..Limits::default() };
    let narrow = some.with_anonymous(Tenant { limits, ..Tenant::default() });
    assert_eq!(ending(&said(&narrow, None, good)), "refusal/invalid_arguments");
}

/// Fails without: the list of tools, in calls, lists and checks of arguments.
#[test]
fn tenant_sees_and_calls_only_its_tools() {
    let tool = |name| {
        let definition = Definition::new(name, "").expect("a definition");
        Tool::native(definition, async |_: Value| json!(1)).expect("a tool")
    };
    let registry = toolcell::Registry::new();
    registry.register_all(["notes_add", "pay"].map(tool)).expect("names of their own");
    let tools = Some(vec!["notes_*".parse().expect("a rule")]);
    let executor = Executor::new()
        .with_tenant("few", Tenant { tools, ..Tenant::default() })
        .with_tenant("all", Tenant::default());
    for (tenant, name, expected) in
        rows::<(&str, &str, &str)>("tenants/fairness", "tenant_sees_and_calls_only_its_tools")
    {
        let (executor, registry) = (executor.clone(), registry.clone());
        let (made, seen, faults) = wait(async move {
            let call = ToolCall::new("1", name, "{}");
            let seen = registry.visible_tools(&executor, &of(tenant).context).await;
            let tool = registry.get(name).expect("a tool");
            let faults = executor.validate(&tool, call.clone(), of(tenant)).await;
            let made = registry.call(&executor, call, of(tenant)).await.expect("a tool");
            (made, seen, faults.expect("an answer"))
        });
        assert_eq!(ending(&made.result), expected, "{tenant} {name}");
        let is_offered = expected == "ok";
        assert_eq!(seen.iter().any(|tool| tool.definition().name == name), is_offered, "{tenant}");
        assert_eq!(faults.is_empty(), is_offered, "{tenant}: {faults:?}");
    }
}
