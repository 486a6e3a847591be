//! A service of some native tools.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use toolcell::outcome::{Halt, HandlerError, Media, Output, Part, Resource, ResourceContent};
use toolcell::tool::Invocation;
use toolcell::{Outcome, Question, Registry, Tool};
use toolcell_server::mcp::McpOptions;
use toolcell_server::{ServedTools, Service, ServiceLimits};

use crate::setup::{self, named, native};

/// Returns the tool `ask`, which asks this question and returns its answer.
pub(crate) fn question_tool(question: Question) -> Tool {
    let ask = async move |_: Value, call: Arc<Invocation>| match &call.context.resume {
        None => Outcome::AskUser(question.clone()),
        Some(resume) => Outcome::ok(json!({"answer": resume.answer.to_value()})),
    };
    native("ask", ask)
}

/// Returns the tool `polite`, which ends when it is told to, and its messages: `started` and
/// `ended by itself`.
pub(crate) fn polite() -> (Tool, mpsc::UnboundedReceiver<&'static str>) {
    let (told, heard) = mpsc::unbounded_channel();
    let polite = move |_: Value, call: Arc<Invocation>| {
        let told = told.clone();
        async move {
            let _ = told.send("started");
            call.abort.raised().await;
            let _ = told.send("ended by itself");
            json!("partial")
        }
    };
    (native("polite", polite), heard)
}

/// Returns the tool `slow`, which answers when it is notified, and a message each time it begins.
pub(crate) fn slow_tool() -> (Tool, Arc<Notify>, mpsc::UnboundedReceiver<()>) {
    let ((told, started), go) = (mpsc::unbounded_channel(), Arc::new(Notify::new()));
    let notified = Arc::clone(&go);
    let slow = move |_: Value| {
        let (go, told) = (Arc::clone(&notified), told.clone());
        async move {
            let _ = told.send(());
            go.notified().await;
            json!("late")
        }
    };
    (native("slow", slow), go, started)
}

/// Returns options with which a cancelled tool is stopped at once.
pub(crate) fn abrupt() -> McpOptions {
    McpOptions { stop_grace: Duration::ZERO, ..McpOptions::default() }
}

/// Returns the service, its registry, and the messages of the tool `wait`: `started` and `stopped`.
pub(crate) fn service() -> (Service, Registry, mpsc::UnboundedReceiver<&'static str>) {
    let (wait, waits) = setup::wait();
    let ask = async |_: Value, call: Arc<Invocation>| match &call.context.resume {
        None => Outcome::AskUser(
            Question::new("Which one?")
                .with_options(json!(["red", "blue"]))
                .with_state(json!({"secret": 7})),
        ),
        Some(resume) => Outcome::ok(json!({
            "answer": resume.answer.to_value(),
            "state": resume.state.as_ref().map(|state| state.to_value()),
        })),
    };
    let draw = async |_: Value| {
        let resource = |uri: &str, mime_type: Option<&str>, content: ResourceContent| {
            let mime_type = mime_type.map(Into::into);
            Part::Resource(Resource { uri: uri.into(), mime_type, content })
        };
        let text = ResourceContent::Text { text: "a,b".into() };
        let bytes = ResourceContent::Bytes { data: vec![0, 0, 0] };
        Output::from_message("drawn")
            .with_part(Part::Image(Media { mime_type: "image/png".into(), data: vec![0, 0, 0] }))
            .with_part(Part::Audio(Media { mime_type: "audio/wav".into(), data: vec![0, 0, 0] }))
            .with_part(Part::ResourceLink {
                uri: "https://example.com/cat".into(),
                name: None,
                description: None,
                mime_type: None,
                size: None,
            })
            .with_part(resource("file:///a.csv", Some("text/csv"), text))
            .with_part(resource("file:///b", None, bytes))
    };
    let halt = async |_: Value| Outcome::Halt(Halt::new("done", json!({"steps": 3})));
    let fail = async |_: Value| -> Outcome {
        HandlerError::new("broken").with_data(json!({"queue": 1})).into()
    };
    let numbers = json!({"type": "object", "properties": {"n": {"type": "number"}}});
    let echo = named("echo")
        .with_parameters(numbers.clone())
        .with_output(numbers)
        .with_attribute("title", json!("Echo"));
    let registry = setup::registry([
        Tool::native(echo, async |arguments: Value| arguments).unwrap(),
        native("text", async |_: Value| json!("plain")),
        native("hidden", async |_: Value| json!("hidden")).with_visibility(|_, _| false),
        native("ask", ask),
        wait,
        native("draw", draw),
        native("halt", halt),
        native("fail", fail),
    ]);
    let limits = ServiceLimits { page: 4, ..ServiceLimits::default() };
    let service = Service::builder(ServedTools::new(&registry)).limits(limits).build().unwrap();
    (service, registry, waits)
}
