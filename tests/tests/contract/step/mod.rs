//! Tests steps of an agent loop: each stage, and each invariant.

mod after;
mod before;
mod dispatch;
mod together;

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::step::{Deliberate, RawCall, Step, StepConfig};
use toolcell::tool::Invocation;
use toolcell::{Executor, Outcome, Registry, Stepper, Tool, Turn};
use toolcell_test_guests::rows;
use toolcell_tests::wait_here;

use crate::{named, native};

/// Longer than any test takes, so no wait reaches this bound.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stepper with native tools, and the number of dispatches.
struct Loop {
    stepper: Stepper,
    registry: Registry,
    dispatched: Arc<AtomicU32>,
}

impl Loop {
    /// Makes a stepper whose tool `say` answers with its argument `outcome`. The other tools do
    /// what their names say.
    fn new() -> Self {
        let (registry, dispatched) = (Registry::new(), Arc::new(AtomicU32::new(0)));
        let counted = |name: &str, answer: fn(Value, Arc<Invocation>) -> Answer| {
            let dispatched = Arc::clone(&dispatched);
            let definition = named(name).with_attribute("team", json!("north"));
            let function = move |arguments: Value, invocation: Arc<Invocation>| {
                dispatched.fetch_add(1, SeqCst);
                answer(arguments, invocation)
            };
            let tool = Tool::native(definition, function).expect("a tool");
            registry.register(tool).expect("a new name");
        };
        counted("say", |arguments, _| Box::pin(async move { said(&arguments) }));
        counted("context", |_, invocation| Box::pin(async move { Outcome::ok(seen(&invocation)) }));
        counted("stuck", |_, _| Box::pin(pending()));
        counted("stops_the_turn", |_, invocation| {
            Box::pin(async move {
                invocation.abort.raise();
                Outcome::ok(json!("too late"))
            })
        });
        counted("stops_and_hangs", |_, invocation| {
            Box::pin(async move {
                invocation.abort.raise();
                pending().await
            })
        });
        counted("cleans_up", |_, invocation| {
            Box::pin(async move {
                invocation.progress(0, None, None);
                invocation.abort.raised().await;
                invocation.progress(1, None, Some("closed".into()));
                Outcome::ok(json!("too late"))
            })
        });
        let hidden = native("secret_plan", async |_: Value| json!(1)).with_visibility(|_, _| false);
        registry.register(hidden).expect("a new name");
        Self {
            stepper: Stepper::new(registry.clone()).with_executor(Executor::new().without_sealer()),
            registry,
            dispatched,
        }
    }

    fn with(mut self, change: impl FnOnce(Stepper) -> Stepper) -> Self {
        self.stepper = change(self.stepper);
        self
    }

    /// Makes a stepper like [`new`](Self::new) with this configuration.
    fn configured(config: StepConfig) -> Self {
        Self::new().with(|stepper| stepper.with_config(config))
    }

    /// Adds a tool.
    fn register(&self, tool: Tool) {
        self.registry.register(tool).expect("a new name");
    }

    fn step(&self, call: impl Into<RawCall>, turn: &mut Turn) -> Step {
        wait_here(self.stepper.step(call, turn))
    }

    /// Makes the step of a call in a new turn.
    fn first(&self, call: impl Into<RawCall>) -> Step {
        self.step(call, &mut Turn::default())
    }

    /// Makes the steps of several calls at once.
    fn step_all<Call: Into<RawCall>>(
        &self,
        calls: impl IntoIterator<Item = Call>,
        turn: &mut Turn,
    ) -> Vec<Step> {
        wait_here(self.stepper.step_all(calls, turn))
    }

    fn dispatched(&self) -> u32 {
        self.dispatched.swap(0, SeqCst)
    }
}

type Answer = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// The outcomes of `say`, by its argument `outcome`.
static OUTCOMES: LazyLock<Vec<(&str, Outcome)>> =
    LazyLock::new(|| rows("contract/step/say", "outcomes"));

fn said(arguments: &Value) -> Outcome {
    let word = arguments["outcome"].as_str().unwrap_or_default();
    assert!(word != "panic", "ouch");
    let known = OUTCOMES.iter().find(|(known, _)| *known == word);
    known.map_or_else(|| Outcome::ok(json!({"said": arguments})), |(_, outcome)| outcome.clone())
}

/// Returns the context as a handler sees it.
fn seen(invocation: &Invocation) -> Value {
    let context = &invocation.context;
    json!({
        "id": invocation.call.id, "session": context.session_id, "tenant": context.tenant,
        "extensions": context.extensions, "resumed": context.resume.as_ref().map(|resume| &resume.answer),
        "time_is_left": !invocation.remaining().is_zero(), "aborted": invocation.abort.is_raised(),
    })
}

/// Returns a turn in deliberate mode that allows these tools.
fn allowing<const N: usize>(names: [&str; N]) -> Turn {
    let mut turn = Turn::default();
    turn.deliberate = Some(Deliberate::new(names));
    turn
}

/// Returns the call of a tool without arguments.
fn calling(name: &str) -> Value {
    json!({"name": name})
}

fn say(outcome: &str) -> Value {
    json!({"name": "say", "args": {"outcome": outcome}})
}

/// Returns a step as one word for each level: `restart`, `abort/error`, `history/ok`,
/// `history/failed`.
fn word(step: &Step) -> String {
    match step {
        Step::Restart => "restart".into(),
        Step::Abort { status } => format!("abort/{}", json!(status).as_str().expect("a word")),
        Step::History { success: true, .. } => "history/ok".into(),
        Step::History { success: false, .. } => "history/failed".into(),
    }
}

/// Returns the response for the model.
fn response(step: &Step) -> Value {
    json!(step)["entry"]["functionResponse"]["response"].clone()
}
