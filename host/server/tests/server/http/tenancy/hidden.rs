//! A component that hides a tool from its caller.

use std::time::Duration;

use serde_json::json;
use toolcell::call::Resume;
use toolcell::clock::ManualClock;
use toolcell::tenant::Quota;
use toolcell::{CallContext, CallOptions, Engine, Json, Limits, Tenant, ToolCall};
use toolcell_server::artifacts::{ArtifactOptions, Artifacts};
use toolcell_server::service::RunRequest;
use toolcell_server::tenants::QuotaKind;
use toolcell_server::{CallRequest, Principal, RequestError, ServedTools, Service};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place};

use crate::setup::{loaded, registry};

const FILE: &str =
    r#"{"type": "object", "properties": {"file": {"type": "string", "format": "toolcell-file"}}}"#;

/// Neither the answer nor the usage reveals the tool, whatever else the request contains.
#[tokio::test(flavor = "multi_thread")]
async fn self_hidden_tool_is_answered_as_unknown() {
    let guest = Hostile {
        visible: false,
        name: "plans",
        parameters: Some(FILE),
        ..Hostile::answering(Answer::Echo)
    };
    let engine = Engine::builder().build().expect("an engine");
    let registry = registry(loaded(&engine, guest.component()).await);
    let artifacts = Artifacts::temporary(ArtifactOptions::default()).unwrap();
    let own = artifacts.put(Some("globex"), b"x", None, "text/plain").expect("an artifact").uri;
    let served = ServedTools::new(&registry).with_tenant("globex", Tenant::default());
    let service = Service::builder(served).artifacts(artifacts).build().expect("a service");
    let globex = Principal::new(Some("globex"), "key:1");
    let resume = Resume { answer: Json::from(json!(1)), state: Some(Json::from(json!("x"))) };
    let unlimited = Limits::unlimited();
    for (arguments, resume, limits) in [
        (json!({}), None, unlimited),
        (json!({}), Some(resume), unlimited),
        (json!({}), None, Limits { fuel: 1, ..unlimited }),
        (json!({}), None, Limits { memory: 1, ..unlimited }),
        (json!({}), None, Limits { timeout: Duration::from_nanos(1), ..unlimited }),
        (json!({"file": "x"}), None, unlimited),
        (json!({"file": own}), None, unlimited),
    ] {
        let answered = async |name: &str| {
            let mut context = CallContext::default();
            context.resume.clone_from(&resume);
            let call = ToolCall::with_value("a", name, &arguments);
            let context = context.into();
            let options = CallOptions { context, limits, ..CallOptions::default() };
            let request = CallRequest { options, ..CallRequest::new(call) };
            format!("{:?}", service.call(&globex, request).await).replace(name, "NAME")
        };
        let [hidden, unknown] = [answered("plans").await, answered("plane").await];
        assert_eq!(hidden, unknown, "{arguments} {resume:?} {limits:?}");
    }
    assert_eq!(service.usage(&globex).expect("a tenant").calls, 0);
}

/// Each way to ask the tool leaves the tenant in debt. The usage shown is that of a tenant without
/// such a tool.
#[tokio::test(flavor = "multi_thread")]
async fn hidden_tools_fuel_is_charged_and_not_shown() {
    let engine = Engine::builder().build().expect("an engine");
    let burns = Hostile {
        visible: false,
        name: "burns",
        ..Hostile::new(Place::Visible, Misdeed::BurnFuel)
    };
    let hides = Hostile { visible: false, name: "hides", ..Hostile::answering(Answer::Echo) };
    let mut tools = loaded(&engine, burns.component()).await;
    tools.extend(loaded(&engine, hides.component()).await);
    let registry = registry(tools);
    let clock = ManualClock::new();
    let quota = Quota { fuel_per_minute: Some(1), ..Quota::default() };
    let tenant = Tenant { quota, ..Tenant::default() };
    let served = ServedTools::new(&registry).with_tenant("globex", tenant);
    let service = Service::builder(served).clock(clock.clone()).build().expect("a service");
    let globex = Principal::new(Some("globex"), "key:1");
    let fresh = service.usage(&globex).expect("a tenant");
    let call = |name: &str| ToolCall::new("a", name, "{}");
    for way in ["list", "tool", "nearest", "run", "call", "call with too little fuel"] {
        // Long enough to clear any debt.
        clock.advance(Duration::from_secs(60 * 10_000_000_000));
        let unknown = service.tool(&globex, "nope").await.expect_err("there is none");
        assert!(matches!(unknown, RequestError::UnknownTool { .. }), "{way}: {unknown:?}");
        let hidden = match way {
            "list" => service.tools(&globex, None).await.expect("a list").tools.is_empty(),
            "tool" => service.tool(&globex, "burns").await.is_err(),
            "nearest" => service.tool(&globex, "burn").await.is_err(),
            "run" => service.run(&globex, RunRequest::new([call("burns")])).await.is_err(),
            _ => {
                let fuel = if way == "call" { 1_000_000 } else { 1 };
                let mut request = CallRequest::new(call("hides"));
                request.options.limits.fuel = fuel;
                service.call(&globex, request).await.is_err()
            }
        };
        assert!(hidden, "{way}");
        assert_eq!(service.usage(&globex).expect("a tenant"), fresh, "{way}");
        for refused in [
            service.call(&globex, CallRequest::new(call("nope"))).await.map(drop),
            service.tools(&globex, None).await.map(drop),
            service.tool(&globex, "nope").await.map(drop),
        ] {
            let is_in_debt =
                matches!(refused, Err(RequestError::Quota { kind: QuotaKind::Fuel, .. }));
            assert!(is_in_debt, "{way}: {refused:?}");
        }
    }
}
