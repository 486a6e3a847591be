//! Calls that can succeed later: over HTTP they are refused before they begin, as the page says,
//! otherwise they get a result that says when to retry.

use std::time::Duration;

use serde_json::{Value, json};
use toolcell::outcome::HandlerError;
use toolcell::tenant::Quota;
use toolcell::{Outcome, Registry, Tenant};
use toolcell_server::{ServedTools, Service, ServiceLimits};

use super::client::{cancel, eras, message};
use super::fixture::{abrupt, service};
use super::input::bad_input::is_as_the_page_says;
use super::web::{modern, start};
use crate::setup::{self, native};

const WAIT: &str = "toolcell/retry_after_ms";
const REFUSAL: &str = "/result/_meta/toolcell~1error/refusal";

/// Returns a service with this quota for principals without a tenant, and at most `calls` calls at
/// once.
fn limited(registry: &Registry, quota: Quota, calls: usize) -> Service {
    let served = ServedTools::new(registry).with_anonymous(Tenant { quota, ..Tenant::default() });
    let limits = ServiceLimits { in_flight: calls, ..ServiceLimits::default() };
    Service::builder(served).limits(limits).build().unwrap()
}

#[track_caller]
fn is_refused_for_a_time(told: &Value, kind: &str) {
    let refusal = told.pointer(REFUSAL).unwrap_or_else(|| panic!("{told}"));
    assert_eq!(told["result"]["isError"], true, "{told}");
    assert_eq!(refusal["kind"], kind, "{told}");
    let wait = &told["result"]["_meta"][WAIT];
    assert_eq!(*wait, refusal["retry_after_ms"], "{told}");
    assert!(wait.as_u64().is_some_and(|wait| wait > 0), "{told}");
}

#[tokio::test]
async fn http_overload_is_refused_as_documented() {
    let (_, registry, mut waits) = service();
    // With a limit of two calls each tenant leaves as many free as it holds.
    let limits = ServiceLimits { in_flight: 2, ..ServiceLimits::default() };
    let service = Service::builder(ServedTools::new(&registry)).limits(limits).build().unwrap();
    let web = start(service, &registry, abrupt()).await;
    let (headers, call) = modern(1, "tools/call", Some("wait"));
    let stream = web.posting(&headers, &call).await;
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
    for (at, (mut client, meta)) in eras(&service, &abrupt()).await.into_iter().enumerate() {
        let call = json!({"name": "text", "_meta": meta});
        if at == 0 {
            let first = client.ask(1, "tools/call", call.clone()).await;
            assert_eq!(first["result"]["isError"], false);
            assert_eq!(first["result"]["_meta"].get(WAIT), None);
        }
        is_refused_for_a_time(&client.ask(2, "tools/call", call).await, "quota_exceeded");
        client.end().await.unwrap();
    }
}

#[tokio::test]
async fn stdio_overload_returns_retry_after() {
    let (_, registry, mut waits) = service();
    let service = limited(&registry, Quota::default(), 1);
    for (mut client, meta) in eras(&service, &abrupt()).await {
        let call = |name: &str| json!({"name": name, "_meta": meta});
        client.send(message(1, "tools/call", call("wait"))).await;
        assert_eq!(waits.recv().await, Some("started"));
        is_refused_for_a_time(&client.ask(2, "tools/call", call("text")).await, "overloaded");
        client.send(cancel(1)).await;
        assert_eq!(waits.recv().await, Some("stopped"));
        client.end().await.unwrap();
        while service.running() != 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn tool_error_returns_retry_after() {
    let later = async |_: Value| -> Outcome {
        HandlerError::new("later").retryable_after(Duration::from_secs(2)).into()
    };
    let service = limited(&setup::registry([native("later", later)]), Quota::default(), 8);
    for (mut client, meta) in eras(&service, &abrupt()).await {
        let told = client.ask(1, "tools/call", json!({"name": "later", "_meta": meta})).await;
        assert_eq!(told["result"]["isError"], true);
        assert_eq!(told["result"]["_meta"][WAIT], json!(2_000));
        client.end().await.unwrap();
    }
}
