//! Calls that can succeed later: over HTTP they are refused before they begin, as the page says,
//! otherwise they get a result that says when to retry.

use std::time::Duration;

use serde_json::{Value, json};
use toolcell::outcome::HandlerError;
use toolcell::tenant::Quota;
use toolcell::{Definition, Outcome, Registry, Tenant, Tool};
use toolcell_server::mcp::McpOptions;
use toolcell_server::{ServedTools, Service, ServiceLimits};

use super::bad_input::is_as_the_page_says;
use super::client::{Client, stateless};
use super::fixture::service;
use super::web::{JSON, modern, start};

const WAIT: &str = "toolcell/retry_after_ms";
const REFUSAL: &str = "/result/_meta/toolcell~1error/refusal";

/// Returns a service with this quota for principals without a tenant, and at most `calls` calls at
/// once.
fn limited(registry: &Registry, quota: Quota, calls: usize) -> Service {
    let served = ServedTools::new(registry).with_anonymous(Tenant { quota, ..Tenant::default() });
    let limits = ServiceLimits { in_flight: calls, ..ServiceLimits::default() };
    Service::builder(served).limits(limits).build().unwrap()
}

/// Returns a client of each era, with the metadata of its requests.
async fn clients(service: &Service) -> [(Client, Value); 2] {
    let options = || McpOptions { stop_grace: Duration::ZERO, ..McpOptions::default() };
    let mut session = Client::start(service.clone(), options());
    session.initialize(json!({})).await;
    [(session, json!({})), (Client::start(service.clone(), options()), stateless(json!({})))]
}

#[track_caller]
fn is_refused_for_a_time(told: &Value, kind: &str) {
    let refusal = told.pointer(REFUSAL).unwrap_or_else(|| panic!("{told}"));
    assert_eq!(
        (&told["result"]["isError"], &refusal["kind"]),
        (&json!(true), &json!(kind)),
        "{told}"
    );
    let wait = &told["result"]["_meta"][WAIT];
    assert!(
        wait.as_u64().is_some_and(|wait| wait > 0) && *wait == refusal["retry_after_ms"],
        "{told}"
    );
}

#[tokio::test]
async fn http_overload_is_refused_as_documented() {
    let (_, registry, mut waits) = service();
    // With a limit of two calls each tenant leaves as many free as it holds.
    let limits = ServiceLimits { in_flight: 2, ..ServiceLimits::default() };
    let service = Service::builder(ServedTools::new(&registry)).limits(limits).build().unwrap();
    let web = start(
        service.clone(),
        &registry,
        McpOptions { stop_grace: Duration::ZERO, ..McpOptions::default() },
    )
    .await;
    let (headers, wait) = modern(1, "tools/call", Some("wait"));
    let (running, call) =
        (web.request(0, "POST", &format!("{JSON}{headers}"), &wait.to_string()), wait);
    let mut stream = tokio::net::TcpStream::connect(web.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, running.as_bytes()).await.unwrap();
    assert_eq!(waits.recv().await, Some("started"));
    let full = web.post(1, &headers, &call).await;
    is_as_the_page_says("a call while as many run as the tenant or the server can have", &full);
    drop(stream);
    assert_eq!(waits.recv().await, Some("stopped"));
}

#[tokio::test]
async fn stdio_call_over_quota_returns_retry_after() {
    let (_, registry, _) = service();
    let service = limited(&registry, Quota { calls_per_minute: Some(1), ..Quota::default() }, 8);
    for (at, (mut client, meta)) in clients(&service).await.into_iter().enumerate() {
        let call = json!({"name": "text", "_meta": meta});
        if at == 0 {
            let first = client.ask(1, "tools/call", call.clone()).await;
            assert_eq!(
                (&first["result"]["isError"], first["result"]["_meta"].get(WAIT)),
                (&json!(false), None)
            );
        }
        is_refused_for_a_time(&client.ask(2, "tools/call", call).await, "quota_exceeded");
        client.end().await.unwrap();
    }
}

#[tokio::test]
async fn stdio_overload_returns_retry_after() {
    let (_, registry, mut waits) = service();
    let service = limited(&registry, Quota::default(), 1);
    for (mut client, meta) in clients(&service).await {
        let call = |name: &str| json!({"name": name, "_meta": meta});
        client
            .send(
                json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("wait")}),
            )
            .await;
        assert_eq!(waits.recv().await, Some("started"));
        is_refused_for_a_time(&client.ask(2, "tools/call", call("text")).await, "overloaded");
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        client.send(cancel).await;
        assert_eq!(waits.recv().await, Some("stopped"));
        client.end().await.unwrap();
        while service.running() != 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn tool_error_returns_retry_after() {
    let registry = Registry::new();
    let later = async |_: Value| -> Outcome {
        HandlerError::new("later").retryable_after(Duration::from_secs(2)).into()
    };
    registry
        .register(Tool::native(Definition::new("later", "Fails.").unwrap(), later).unwrap())
        .unwrap();
    for (mut client, meta) in clients(&limited(&registry, Quota::default(), 8)).await {
        let told = client.ask(1, "tools/call", json!({"name": "later", "_meta": meta})).await;
        assert_eq!(
            (&told["result"]["isError"], &told["result"]["_meta"][WAIT]),
            (&json!(true), &json!(2_000))
        );
        client.end().await.unwrap();
    }
}
