//! Components behind the server: a guest that loops is stopped, its use is charged and counted, and
//! the rights of its tenant narrow its requests.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolcell::clock::ManualClock;
use toolcell::component::LoadOptions;
use toolcell::kv::SqliteStore;
use toolcell::runtime::Placement;
use toolcell::tenant::Quota;
use toolcell::{Component, Engine, Executor, Grants, Limits, Overlay, Tenant, ToolCall};
use toolcell_server::{Authenticator, CallRequest, ListenOptions, Principal, ServedTools, Service};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place, bytes};

use crate::http::client::{JSON, ask, bearer, connect, get, request, send};
use crate::setup::{keys, loaded, registry, start};

/// Fuel a minute of the only tenant.
const FUEL: u64 = 1_000;
const LOOP: &str = r#"{"name": "hostile"}"#;

/// Starts a server with a guest that loops until it is stopped.
async fn looping(quota: Quota) -> (std::net::SocketAddr, Service, ManualClock) {
    let engine = Engine::builder().cells(4).build().unwrap();
    let spin = Hostile::new(Place::Execute, Misdeed::Spin).component();
    let registry = registry(loaded(&engine, spin).await);
    let unlimited =
        Limits { fuel: u64::MAX, timeout: Duration::from_secs(3600), ..Limits::default() };
    let clock = ManualClock::new();
    let served = ServedTools::new(&registry)
        .with_executor(Executor::new().with_limits(unlimited))
        .with_anonymous(Tenant { quota, ..Tenant::default() });
    let service = Service::builder(served).clock(clock.clone()).build().unwrap();
    let address = start(service.clone(), Authenticator::open(), ListenOptions::default()).await;
    (address, service, clock)
}

/// Returns when exactly `running` requests are running.
async fn until(service: &Service, running: usize) {
    while service.running() != running {
        tokio::task::yield_now().await;
    }
}

async fn usage(address: std::net::SocketAddr) -> Value {
    get(address, "/v1/usage").await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_and_disconnect_stop_an_endless_loop() {
    let (address, service, _) = looping(Quota::default()).await;
    let bytes = request("POST /v1/calls", &format!("{JSON}x-request-id: loop\r\n"), LOOP);
    let running = tokio::spawn(async move { send(address, bytes.as_bytes()).await });
    until(&service, 1).await;
    assert_eq!(ask(address, "DELETE /v1/calls/loop", "", "").await.status, 202);
    let answer = running.await.unwrap().unwrap().json();
    assert_eq!(answer["outcome"]["tool_error"]["cause"]["status"], "cancelled", "{answer}");

    let stream = connect(address, request("POST /v1/calls", JSON, LOOP).as_bytes()).await;
    until(&service, 1).await;
    drop(stream);
    until(&service, 0).await;
    let usage = usage(address).await;
    assert_eq!(usage["outcomes"], json!({"cancelled": 2}), "{usage}");
    assert_eq!(usage["running"], json!(0), "{usage}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fuel_is_charged_and_a_tenant_in_debt_waits() {
    let (address, _, clock) =
        looping(Quota { fuel_per_minute: Some(FUEL), ..Quota::default() }).await;
    let body = r#"{"name": "hostile", "limits": {"fuel": 100000}}"#;
    let ended = ask(address, "POST /v1/calls", JSON, body).await.json();
    assert_eq!(ended["outcome"]["tool_error"]["cause"]["kind"], "fuel", "{ended}");
    let charged = usage(address).await;
    let debt = charged["fuel"].as_u64().unwrap() - FUEL;
    assert_eq!(charged["fuel"], ended["usage"]["fuel"]);
    assert_eq!(charged["fuel_remaining"], json!(0));
    let refused = ask(address, "POST /v1/calls", JSON, LOOP).await;
    refused.is_refused(429, "quota_exceeded");
    clock.advance(Duration::from_millis(((debt + 1) * 60_000).div_ceil(FUEL)));
    assert_eq!(usage(address).await["fuel_remaining"], 1);
}

/// A tool with a granted key store, called for a tenant whose overlay has other keys than the
/// grant, and for a tenant without an overlay.
#[tokio::test(flavor = "multi_thread")]
async fn tenant_overlay_denies_rights_granted_to_tool() {
    let engine = Engine::builder().placement(Placement::Cells).keys(SqliteStore::in_memory());
    let engine = engine.build().unwrap();
    let mut grants = Grants::default();
    grants.kv.push("write notes/*".parse().expect("a rule"));
    let options = LoadOptions { grants, ..LoadOptions::default() };
    let notes = Component::load_with(&engine, bytes("notes"), options).await.unwrap();
    let registry = registry(notes.tools().iter().cloned());
    let mut overlay = Overlay::default();
    overlay.kv = Some(vec!["read notes/*".parse().expect("a rule")]);
    let narrowed = Tenant { overlay: Some(overlay.into()), ..Tenant::default() };
    let served = ServedTools::new(&registry)
        .with_tenant("acme", narrowed)
        .with_tenant("globex", Tenant::default());
    let service = Service::builder(served).build().unwrap();
    let (keys, [acme, globex], _dir) = keys(["acme", "globex"]);
    let auth = Authenticator::api_keys(keys);
    let address = start(service.clone(), auth, ListenOptions::default()).await;
    let call = async |key: &str, arguments: Value| -> Value {
        let call = json!({"name": "notes", "arguments": arguments}).to_string();
        let reply = ask(address, "POST /v1/calls", &format!("{JSON}{}", bearer(key)), &call).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["outcome"].take()
    };
    let add = || json!({"action": "add", "title": "milk", "text": "two litres"});
    let denied = call(&acme, add()).await;
    let message = denied["error"]["message"].as_str().unwrap_or_else(|| panic!("{denied}"));
    assert!(message.starts_with("`kv write notes/milk` is denied for this tenant"), "{message}");
    assert!(call(&globex, add()).await["ok"].is_object(), "it has all that is granted");
    // Each tenant lists only the keys that its overlay allows, and only its own notes.
    let list = || json!({"action": "list"});
    assert_eq!(call(&acme, list()).await["ok"]["value"]["titles"], json!([]));
    assert_eq!(call(&globex, list()).await["ok"]["value"]["titles"], json!(["milk"]));
    let counted = service.metrics_text();
    let denials: Vec<_> =
        counted.lines().filter(|line| line.starts_with("toolcell_denials_total{")).collect();
    assert_eq!(denials, [r#"toolcell_denials_total{tenant="acme",layer="tenant"} 1"#]);
}

/// The histogram counts a call in each bucket whose bound is at least its fuel.
#[tokio::test(flavor = "multi_thread")]
async fn fuel_metric_matches_the_calls_receipt() {
    let (address, service, _) = looping(Quota::default()).await;
    let named =
        |suffix: &str| format!(r#"toolcell_call_fuel_{suffix}{{tenant="",tool="hostile"}}"#);
    assert!(!service.metrics_text().contains(&named("count")), "there was no call");
    let mut used = Vec::new();
    for fuel in [100_000, 2_000_000] {
        let body = json!({"name": "hostile", "limits": {"fuel": fuel}}).to_string();
        let ended = ask(address, "POST /v1/calls", JSON, &body).await.json();
        used.push(ended["usage"]["fuel"].as_u64().unwrap_or_else(|| panic!("{ended}")) as f64);
    }
    let text = service.metrics_text();
    let number = |line: &str| {
        line.rsplit(' ').next().and_then(|number| number.parse::<f64>().ok()).expect("a number")
    };
    let of = |suffix: &str| {
        number(text.lines().find(|line| line.starts_with(&named(suffix))).expect("a series"))
    };
    assert_eq!((of("count"), of("sum")), (2.0, used.iter().sum::<f64>()), "{text}");
    let mut buckets = 0;
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("toolcell_call_fuel_bucket{le=\"") else { continue };
        let bound = rest.split_once('"').expect("a bound").0;
        let bound = bound.replace("+Inf", "inf").parse::<f64>().expect("a bound");
        let below = used.iter().filter(|used| **used <= bound).count();
        assert_eq!(number(line), below as f64, "{line}");
        buckets += 1;
    }
    assert!(buckets > 2, "{text}");
}

/// A tenant alone has every cell. After a reload its calls arrive before any call of the second
/// tenant.
#[tokio::test(flavor = "multi_thread")]
async fn first_tenant_leaves_cells_to_others() {
    const CELLS: usize = 8;
    let engine = Engine::builder().cells(8).build().unwrap();
    let echo = Hostile { name: "echo", ..Hostile::answering(Answer::Echo) };
    let mut tools = loaded(&engine, echo.component()).await;
    let sleep = Hostile::new(Place::Execute, Misdeed::Sleep);
    tools.extend(loaded(&engine, sleep.component()).await);
    let registry = registry(tools);
    let limits = Limits { timeout: Duration::from_secs(3600), ..Limits::default() };
    let served = |tenants: &[&str]| {
        let served = ServedTools::new(&registry).with_executor(Executor::new().with_limits(limits));
        tenants.iter().fold(served, |served, tenant| served.with_tenant(*tenant, Tenant::default()))
    };
    let service = Service::builder(served(&["acme"])).build().unwrap();
    let call = async |tenant: &str, tool: &str, limits: Limits| {
        let mut request = CallRequest::new(ToolCall::new("a", tool, "{}"));
        request.options.limits = limits;
        service.clone().call(&Principal::new(Some(tenant), "key"), request).await
    };
    let taken = async |calls: usize, cells: usize| {
        let mut running = JoinSet::new();
        for _ in 0..calls {
            let (service, request) =
                (service.clone(), CallRequest::new(ToolCall::new("a", "hostile", "{}")));
            running.spawn(async move {
                service.call(&Principal::new(Some("acme"), "key"), request).await
            });
        }
        while engine.in_use().cells + engine.in_use().calls_waiting < calls {
            tokio::task::yield_now().await;
        }
        assert_eq!(engine.in_use().cells, cells);
        running
    };
    let mut alone = taken(CELLS, CELLS).await;
    alone.shutdown().await;
    while engine.in_use().cells > 0 {
        tokio::task::yield_now().await;
    }
    service.replace(served(&["acme", "globex"]));
    let _running = taken(2 * CELLS, CELLS / 2).await;
    let limits = Limits { timeout: Duration::from_secs(10), ..Limits::unlimited() };
    let answer = call("globex", "echo", limits).await;
    assert!(answer.expect("a cell is free").completion.result.value().is_some());
}
