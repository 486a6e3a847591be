//! One tenant learns nothing of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::run::UnknownTools;
use toolcell::step::Step;
use toolcell::tenant::Quota;
use toolcell::{Executor, Tenant, ToolCall, Turn};
use toolcell_server::service::{RunRequest, StepRequest};
use toolcell_server::{CallRequest, Principal, ServedTools, Service};

use crate::http::fixture::{Fixture, served, tools};
use crate::setup::{native, registry};

const ECHO: &str = r#"{"name": "echo"}"#;

/// Returns a tenant that sees these tools.
fn sees<const N: usize>(tools: [&str; N]) -> Tenant {
    Tenant { tools: Some(tools.map(|name| name.parse().unwrap()).into()), ..Tenant::default() }
}

/// The usage of a tenant without calls.
fn unused() -> Value {
    json!({"calls": 0, "outcomes": {}, "fuel": 0, "wall_us": 0, "running": 0})
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_sees_only_its_own_tools_and_usage() {
    let fixture = Fixture::start().await;
    assert_eq!(fixture.call(&fixture.acme, "", ECHO).await.status, 200);
    let list = fixture.ask(&fixture.globex, "GET /v1/tools", "", "").await;
    assert!(list.body.contains("echo") && !list.body.contains("wait"), "{list:?}");
    // The nearest name in a hint is one that the tenant sees.
    let near = fixture.call(&fixture.globex, "", r#"{"name": "wai"}"#).await;
    assert!(!near.body.contains("`wait`"), "{near:?}");
    let near = fixture.call(&fixture.acme, "", r#"{"name": "wai"}"#).await;
    assert_eq!(near.json()["hint"], "did you mean `wait`?", "{near:?}");
    let usage = fixture.ask(&fixture.globex, "GET /v1/usage", "", "").await;
    assert_eq!(usage.json(), unused());
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_tool_leaves_no_trace_in_usage() {
    let fixture = Fixture::start().await;
    for name in ["hidden", "nope"] {
        let refused = fixture.call(&fixture.acme, "", &json!({"name": name}).to_string()).await;
        refused.is_refused(404, "unknown_tool");
        assert_eq!(fixture.usage().await, unused(), "{name}");
    }
}

/// Fails without: the tenants that were added before the executor.
#[tokio::test]
async fn executor_keeps_tenants_that_were_added_before() {
    let (registry, _) = tools();
    let executor = || Executor::new().with_tenant("globex", sees(["echo"]));
    let new = || ServedTools::new(&registry);
    for served in [
        new().with_tenant("acme", sees(["ask"])).with_executor(executor()),
        new().with_executor(executor()).with_tenant("acme", sees(["ask"])),
        // The executor's definition counts.
        new()
            .with_tenant("acme", sees(["ask"]))
            .with_tenant("globex", sees(["ask"]))
            .with_executor(executor()),
    ] {
        let service = Service::builder(served).build().unwrap();
        for (tenant, name, is_seen) in [
            (Some("acme"), "ask", true),
            (Some("acme"), "echo", false),
            (Some("globex"), "ask", false),
            (Some("globex"), "echo", true),
            (None, "echo", false),
        ] {
            let found = service.tool(&Principal::new(tenant, "key:1"), name).await;
            assert_eq!(found.is_ok(), is_seen, "{tenant:?} {name}");
        }
    }
}

/// Counts work instead of time: how often tools are asked for their visibility, and how often one
/// is called.
#[tokio::test]
async fn other_tenants_tool_is_unknown() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = |name: &str| {
        let (looks, calls) = (Arc::clone(&asked), Arc::clone(&asked));
        let called = move |_: Value| {
            calls.fetch_add(1000, Ordering::Relaxed);
            async { json!(1) }
        };
        native(name, called).with_visibility(move |_, _| {
            looks.fetch_add(1, Ordering::Relaxed);
            true
        })
    };
    // `own_2` is equally close to both requested names, `acme_1` and `acme_3`.
    let registry = registry(["acme_1", "acme_2", "own_2"].map(counted));
    let served = ServedTools::new(&registry)
        .with_tenant("acme", Tenant::default())
        .with_tenant("globex", sees(["own_2"]));
    let service = Service::builder(served).build().unwrap();
    let globex = Principal::new(Some("globex"), "key:1");
    let asked_for = async |name: &'static str| {
        let call = ToolCall::new("a", name, "{}");
        let refused = [
            service.call(&globex, CallRequest::new(call.clone())).await.unwrap_err(),
            service.tool(&globex, name).await.unwrap_err(),
            service.run(&globex, RunRequest::new([call.clone()])).await.unwrap_err(),
        ];
        let (said, _) =
            service.steps(&globex, StepRequest::new([call], Turn::default())).await.unwrap();
        assert!(matches!(said[..], [Step::History { success: false, .. }]), "{said:?}");
        (format!("{refused:?}").replace(name, "NAME"), asked.swap(0, Ordering::Relaxed))
    };
    let unknown = asked_for("acme_3").await;
    assert_eq!(asked_for("acme_1").await, unknown);
    assert!(
        service.call(&globex, CallRequest::new(ToolCall::new("a", "own_2", "{}"))).await.is_ok()
    );
    assert_eq!(asked.load(Ordering::Relaxed) / 1000, 1, "what is called is counted");
}

#[tokio::test]
async fn visibility_of_a_call_depends_on_its_own_arguments() {
    let door = native("door", async |_: Value| json!("open"));
    let door = door.with_visibility(|arguments, _| arguments["word"] == "xyzzy");
    let service = Service::builder(ServedTools::new(&registry([door]))).build().unwrap();
    let local = Principal::local();
    let calls = || {
        let call = |word: &str| ToolCall::with_value(word, "door", &json!({"word": word}));
        ["other", "xyzzy"].map(call)
    };
    let mut request = RunRequest::new(calls());
    service.run(&local, request.clone()).await.expect_err("one call has no tool");
    request.options.unknown_tools = UnknownTools::Answer;
    let outcome = service.run(&local, request).await.unwrap();
    let failed: Vec<_> = outcome.messages.iter().map(|answer| answer.is_error).collect();
    assert_eq!(failed, [true, false], "{outcome:?}");
    let (steps, _) =
        service.steps(&local, StepRequest::new(calls(), Turn::default())).await.unwrap();
    let is_as_run = matches!(
        steps[..],
        [Step::History { success: false, .. }, Step::History { success: true, .. }]
    );
    assert!(is_as_run, "{steps:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_tenants_running_request_is_unknown() {
    let mut fixture = Fixture::start().await;
    let running = fixture.waiting("theirs").await;
    let refused = async |id: &str| {
        let reply = fixture.cancel(&fixture.globex, id).await;
        let mut body = reply.json();
        body["request_id"].take();
        (reply.status, body.to_string().replace(id, "ID"))
    };
    let unknown = refused("absent").await;
    assert_eq!((unknown.0, refused("theirs").await), (404, unknown.clone()));
    assert_eq!(fixture.cancel(&fixture.acme, "theirs").await.status, 202, "it still runs");
    assert_eq!(running.await.unwrap().unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn quota_refuses_only_its_tenant_until_refilled() {
    let fixture = Fixture::start().await;
    let small = |count: usize| {
        let calls = vec![r#"{"id": "a", "name": "echo", "arguments": {}}"#; count];
        format!(r#"{{"calls": [{}]}}"#, calls.join(", "))
    };
    let never = fixture.ask(&fixture.small, "POST /v1/batch", "", &small(3)).await;
    assert_eq!(never.code(), "too_many_calls", "more than the quota ever has");
    for _ in 0..2 {
        assert_eq!(fixture.call(&fixture.small, "", ECHO).await.status, 200);
    }
    let refused = fixture.call(&fixture.small, "", ECHO).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("30")));
    // An unknown tool gets the same refusal.
    let unknown = fixture.call(&fixture.small, "", r#"{"name": "nope"}"#).await;
    assert_eq!(unknown.code(), "quota_exceeded");
    assert_eq!(fixture.call(&fixture.acme, "", ECHO).await.status, 200, "of another tenant");
    fixture.clock.advance(Duration::from_secs(30));
    assert_eq!(fixture.call(&fixture.small, "", ECHO).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn change_affects_new_calls_and_not_running_ones() {
    let mut fixture = Fixture::start().await;
    let running = fixture.waiting("old").await;
    let quota = Quota { concurrent_calls: Some(1), ..Quota::default() };
    let changed = served(&tools().0)
        .with_tenant("acme", Tenant { quota, ..sees(["echo", "wait"]) })
        .with_tenant("gone", Tenant::default());
    fixture.service.replace(changed);
    // The running call counts against the quota, and continues.
    fixture.call(&fixture.acme, "", ECHO).await.is_refused(429, "quota_exceeded");
    assert_eq!(fixture.call(&fixture.gone, "", ECHO).await.status, 200, "a new tenant");
    assert_eq!(fixture.cancel(&fixture.acme, "old").await.status, 202);
    assert_eq!(running.await.unwrap().unwrap().status, 200);
    let ask = fixture.call(&fixture.acme, "", r#"{"name": "ask"}"#).await;
    assert_eq!(ask.status, 404, "it is served no more");
    assert_eq!(fixture.call(&fixture.acme, "", ECHO).await.status, 200);
}
