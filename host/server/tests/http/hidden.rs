//! A component that hides a tool from its caller.

use std::time::Duration;

use serde_json::json;
use toolcell::{CallContext, Component, Engine, Json, Limits, Registry, Resume, ToolCall};
use toolcell_server::{ArtifactOptions, Artifacts, CallRequest, Principal, Served, ServedTenant, Service};
use toolcell_test_guests::{Answer, Hostile};

const FILE: &str = r#"{"type": "object", "properties": {"file": {"type": "string", "format": "toolcell-file"}}}"#;

/// Neither the answer nor the usage shows that there is such a tool, whatever the request asks for beside the call.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_hides_itself_is_answered_as_one_that_there_is_not() {
    let guest = Hostile { visible: false, name: "plans", parameters: Some(FILE), ..Hostile::answering(Answer::Echo) };
    let engine = Engine::builder().build().expect("an engine");
    let component = Component::load(&engine, guest.component()).await.expect("a component");
    let registry = Registry::new();
    registry.register_all(component.tools().iter().cloned()).expect("a name of its own");
    let dir = tempfile::tempdir().expect("a directory");
    let artifacts = Artifacts::open(&dir.path().join("artifacts"), ArtifactOptions::default()).expect("a store");
    let own = artifacts.put(Some("globex"), b"x", None, "text/plain").expect("an artifact").uri;
    let served = Served::new(&registry).with_tenant("globex", ServedTenant::default());
    let service = Service::builder(served).with_artifacts(artifacts).build().expect("a service");
    let globex = Principal::new(Some("globex"), "key:1");
    let resume = Resume { answer: Json::from(json!(1)), state: Some(Json::from(json!("x"))) };
    let unlimited = Limits::unlimited();
    for (arguments, resume, limits) in [
        (json!({}), None, unlimited),
        (json!({}), Some(resume), unlimited),
        (json!({}), None, unlimited.with_fuel(1)),
        (json!({}), None, unlimited.with_memory(1)),
        (json!({}), None, unlimited.with_timeout(Duration::from_nanos(1))),
        (json!({"file": "x"}), None, unlimited),
        (json!({"file": own}), None, unlimited),
    ] {
        let answered = async |name: &str| {
            let mut context = CallContext::default();
            context.resume.clone_from(&resume);
            let call = ToolCall::with_value("a", name, &arguments);
            let request = CallRequest::new(call).with_context(context).with_limits(limits);
            format!("{:?}", service.call(&globex, request).await).replace(name, "NAME")
        };
        assert_eq!(answered("plans").await, answered("plane").await, "{arguments} {resume:?} {limits:?}");
    }
    assert_eq!(service.usage(&globex).expect("a tenant").calls, 0);
}
