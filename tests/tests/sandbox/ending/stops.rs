//! A caller asks a call to end, and then ends it by force: calls, runs, single calls of a run.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolcell::call::CallCanceller;
use toolcell::message::Message;
use toolcell::run::RunEvent;
use toolcell::tool::Invocation;
use toolcell::{
    AbortSignal, CallOptions, Definition, Engine, Event, Executor, Limits, Registry, RunOptions,
    Runner, Tool, ToolCall,
};
use toolcell_test_guests::Misdeed;
use toolcell_tests::{PLACEMENTS, ending, tool, wait};

use super::PATIENCE;
use super::waits::reaching;
use crate::{any_fuel, load_misdeed};

const CANCELLED: &str = "handler_exit/cancelled";

fn definition() -> Definition {
    Definition::new("t", "").expect("a name")
}

/// An executor with limits of hours: so a call that ends in a test was ended by its caller.
fn executor() -> Executor {
    Executor::new().with_limits(any_fuel(Duration::from_secs(3600)))
}

/// Makes a call that must end in time, and returns its ending.
fn call_ending(executor: Executor, tool: &Tool, arguments: &Value, options: CallOptions) -> String {
    let (tool, call) =
        (tool.clone(), ToolCall::with_value("1", tool.definition().name.as_str(), arguments));
    let completion = wait(async move {
        tokio::time::timeout(PATIENCE, executor.call(&tool, call, options)).await
    });
    ending(&completion.expect("it ends").result)
}

/// Returns an executor that raises a signal at the first event of a kind.
fn raising(signal: &AbortSignal, at: fn(&Event) -> bool) -> Executor {
    let signal = signal.clone();
    executor().with_events(move |event: Event| {
        if at(&event) {
            signal.raise();
        }
    })
}

/// Records that it was dropped.
struct Noted(Arc<AtomicBool>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Returns a signal, and the options of a call that it stops after a grace.
fn stoppable(stop_grace: Duration) -> (AbortSignal, CallOptions) {
    let abort = AbortSignal::new();
    (abort.clone(), CallOptions { abort, stop_grace, ..CallOptions::default() })
}

/// Returns a tool that ends when it sees the signal.
fn listens() -> Tool {
    let listens = async |_: Value, invocation: Arc<Invocation>| {
        invocation.abort.raised().await;
        json!("closed")
    };
    Tool::native(definition(), listens).expect("a tool")
}

fn is_start(event: &Event) -> bool {
    matches!(event, Event::Started { .. })
}

fn is_log(event: &Event) -> bool {
    matches!(event, Event::Log { .. })
}

/// Without a grace, the call is over when it is next polled.
#[test]
fn stop_without_grace_is_immediate() {
    assert_eq!(AbortSignal::DEFAULT_GRACE, Duration::ZERO);
    let dropped = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&dropped);
    let stuck = Tool::native(definition(), async move |_: Value| -> Value {
        let _noted = Noted(note);
        pending().await
    });
    let (stuck, executor) = (stuck.expect("a tool"), executor());
    let (signal, options) = stoppable(AbortSignal::DEFAULT_GRACE);
    let mut running = pin!(executor.call(&stuck, ToolCall::new("1", "t", "{}"), options));
    let mut context = Context::from_waker(Waker::noop());
    assert!(running.as_mut().poll(&mut context).is_pending() && !dropped.load(SeqCst));
    signal.raise();
    let Poll::Ready(completion) = running.as_mut().poll(&mut context) else { panic!("it goes on") };
    assert_eq!((ending(&completion.result).as_str(), dropped.load(SeqCst)), (CANCELLED, true));
}

/// During the grace a handler that sees the signal may end by itself; one that does not is ended.
#[test]
fn handler_may_end_within_the_grace() {
    let deaf = Tool::native(definition(), async |_: Value| -> Value { pending().await });
    let (listens, deaf) = (listens(), deaf.expect("a tool"));
    for (tool, grace, expected) in [
        (&listens, PATIENCE, "ok"),
        (&listens, Duration::MAX, "ok"),
        (&deaf, Duration::from_millis(10), CANCELLED),
        (&deaf, Duration::ZERO, CANCELLED),
    ] {
        let (signal, options) = stoppable(grace);
        let ending = call_ending(raising(&signal, is_start), tool, &json!({}), options);
        assert_eq!(ending, expected, "{grace:?}");
    }
}

/// If the signal is raised before a call begins: without a grace the call is not made, with one its
/// handler runs and sees the signal.
#[test]
fn call_stopped_before_start_runs_only_with_grace() {
    for (grace, expected) in [(Duration::ZERO, (CANCELLED, false)), (PATIENCE, ("ok", true))] {
        let ran = Arc::new(AtomicBool::new(false));
        let note = Arc::clone(&ran);
        let tool = Tool::native(definition(), async move |_: Value| {
            note.store(true, SeqCst);
            json!(1)
        });
        let (signal, options) = stoppable(grace);
        signal.raise();
        let ending = call_ending(executor(), &tool.expect("a tool"), &json!({}), options);
        assert_eq!((ending.as_str(), ran.load(SeqCst)), expected);
    }
}

/// For a guest that loops and one that keeps logging: their only cell is free for the next call.
#[test]
fn stopped_guest_is_cancelled_and_frees_its_cell() {
    for placement in PLACEMENTS {
        let engine = Engine::builder().placement(placement).cells(1).build().expect("an engine");
        for misdeed in [Misdeed::Spin, Misdeed::Chatter, Misdeed::Sleep] {
            let at = if misdeed == Misdeed::Chatter { is_log } else { is_start };
            let (signal, options) = stoppable(AbortSignal::DEFAULT_GRACE);
            let options = CallOptions { limits: Limits::unlimited(), ..options };
            let guest = load_misdeed(&engine, misdeed).tools()[0].clone();
            let ending = call_ending(raising(&signal, at), &guest, &json!({}), options);
            assert_eq!(ending, CANCELLED, "{misdeed:?}, {placement:?}");
        }
        let good = load_misdeed(&engine, Misdeed::None).tools()[0].clone();
        let next = call_ending(executor(), &good, &json!({}), CallOptions::default());
        assert_eq!(next, "ok", "{placement:?}");
    }
}

/// The peer of a request sees the connection close when the call is stopped, not at the call's
/// timeout an hour later.
#[test]
fn stop_closes_a_request_in_flight() {
    for (placement, component) in
        PLACEMENTS.into_iter().flat_map(|place| ["fetch", "caller"].map(|name| (place, name)))
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of loopback");
        let address = listener.local_addr().expect("its address");
        let (tells, told) = mpsc::channel();
        let (raised, options) = stoppable(AbortSignal::DEFAULT_GRACE);
        thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a request");
            let mut piece = [0; 4096];
            assert!(peer.read(&mut piece).is_ok_and(|count| count > 0), "the request is there");
            raised.raise();
            while peer.read(&mut piece).is_ok_and(|count| count > 0) {}
            let _ = tells.send("closed");
        });
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stops");
        let engine = Engine::builder().placement(placement).cells(2).cache(cache);
        let engine = engine.build().expect("an engine");
        let tool = tool(&engine, component, component, reaching(&format!("http://{address}")));
        let arguments = match component {
            "fetch" => json!({"url": format!("http://{address}/")}),
            _ => json!({"authority": address.to_string(), "path": "/", "body": "some"}),
        };
        let ending = call_ending(executor(), &tool, &arguments, options);
        assert_eq!(ending, CANCELLED, "{component}, {placement:?}");
        assert_eq!(told.recv_timeout(PATIENCE), Ok("closed"), "{component}, {placement:?}");
    }
}

/// A run with the tools `stuck`, which never ends, and `gate`, which ends when the gate is open.
struct Scene {
    registry: Registry,
    gate: Arc<Semaphore>,
    ran: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    fn new() -> Self {
        let scene = Self {
            registry: Registry::new(),
            gate: Arc::new(Semaphore::new(0)),
            ran: Arc::default(),
        };
        let (gate, ran) = (Arc::clone(&scene.gate), Arc::clone(&scene.ran));
        let tool = Tool::native(
            definition(),
            async move |arguments: Value, invocation: Arc<Invocation>| -> Value {
                ran.lock().expect("no panic").push(invocation.call.id.clone());
                if arguments["do"] == "gate" {
                    drop(gate.acquire().await);
                    return json!("through");
                }
                pending().await
            },
        );
        scene.registry.register(tool.expect("a tool")).expect("a new name");
        scene
    }

    fn calls(calls: &[(&str, &str)]) -> Vec<ToolCall> {
        let call = |(id, does): &(&str, &str)| ToolCall::with_value(*id, "t", &json!({"do": does}));
        calls.iter().map(call).collect()
    }

    /// Returns a runner that calls `act` at each event of a run: `started a`, `completed a`.
    fn runner(&self, act: impl Fn(&str) + Send + Sync + 'static) -> Runner {
        let executor = executor().with_events(move |event: Event| match event {
            Event::Started { id, .. } => act(&format!("started {id}")),
            Event::Completed { id, .. } => act(&format!("completed {id}")),
            Event::Progress { .. } | _ => {}
        });
        Runner::new(self.registry.clone()).with_executor(executor)
    }
}

/// Makes a run, awaited or as a stream. Returns each call's content, sorted by id.
fn contents(
    runner: Runner,
    calls: Vec<ToolCall>,
    options: RunOptions,
    is_stream: bool,
) -> BTreeMap<String, String> {
    let options = RunOptions { tool_timeout: Some(Duration::from_secs(3600)), ..options };
    let run = async move {
        if !is_stream {
            return runner.run(calls, options).await.expect("it starts").messages;
        }
        let (mut stream, mut messages) = (runner.stream(calls, options), Vec::<Message>::new());
        while let Some(event) = stream.next().await {
            if let RunEvent::Settled { message, .. } = event {
                messages.push(message);
            }
        }
        messages
    };
    let messages = wait(async move { tokio::time::timeout(PATIENCE, run).await }).expect("it ends");
    messages.into_iter().map(|message| (message.tool_call_id, message.content)).collect()
}

fn said(contents: &[(&str, &str)]) -> BTreeMap<String, String> {
    contents.iter().map(|(id, content)| ((*id).to_owned(), (*content).to_owned())).collect()
}

const WAS_CANCELLED: &str = r#"{"error":"the call was cancelled"}"#;

/// Of four calls, two at once, one is cancelled while it runs and one before it starts. Both have
/// their messages; the others end as usual.
#[test]
fn call_of_a_run_can_be_cancelled_by_id() {
    for is_stream in [false, true] {
        let (scene, canceller) = (Scene::new(), CallCanceller::new());
        let (gate, cancels) = (Arc::clone(&scene.gate), canceller.clone());
        let runner = scene.runner(move |event| match event {
            "started b" => {
                ["waits", "b", "unknown"].map(|id| cancels.cancel(id)).into_iter().collect()
            }
            "completed b" => gate.add_permits(1),
            _ => {}
        });
        let calls =
            Scene::calls(&[("a", "gate"), ("b", "stuck"), ("waits", "gate"), ("d", "gate")]);
        let kept = Some(canceller.clone());
        let options =
            RunOptions { max_concurrency: Some(2), canceller: kept, ..RunOptions::default() };
        let expected =
            [("a", r#"through"#), ("b", WAS_CANCELLED), ("d", "through"), ("waits", WAS_CANCELLED)];
        let contents = contents(runner, calls, options, is_stream);
        assert_eq!(contents, said(&expected), "stream: {is_stream}");
        let mut ran = std::mem::take(&mut *scene.ran.lock().expect("no panic"));
        ran.sort();
        assert_eq!(ran, ["a", "b", "d"], "stream: {is_stream}");
        // Cancelling a call that has ended has no effect.
        canceller.cancel("a");
    }
}

/// When the whole run is ended while it runs, every call has its message.
#[test]
fn stopped_run_has_a_message_for_every_call() {
    for is_stream in [false, true] {
        let (scene, (signal, call)) = (Scene::new(), stoppable(AbortSignal::DEFAULT_GRACE));
        let runner = scene.runner(move |event| {
            if event == "started b" {
                signal.raise();
            }
        });
        let calls = Scene::calls(&[("a", "stuck"), ("b", "stuck"), ("c", "stuck")]);
        let options = RunOptions { max_concurrency: Some(2), call, ..RunOptions::default() };
        let expected = ["a", "b", "c"].map(|id| (id, WAS_CANCELLED));
        let contents = contents(runner, calls, options, is_stream);
        assert_eq!(contents, said(&expected), "stream: {is_stream}");
        assert_eq!(scene.ran.lock().expect("no panic").len(), 2, "stream: {is_stream}");
    }
}

/// The grace of a run holds for each of its calls, cancelled alone or together.
#[test]
fn run_grace_applies_to_each_call() {
    let registry = Registry::new();
    registry.register(listens()).expect("a new name");
    let ((raised, call), canceller) = (stoppable(PATIENCE), CallCanceller::new());
    let cancels = canceller.clone();
    let executor = executor().with_events(move |event: Event| match event {
        Event::Started { id, .. } if id == "b" => cancels.cancel("a"),
        Event::Completed { id, .. } if id == "a" => raised.raise(),
        Event::Progress { .. } | _ => {}
    });
    let runner = Runner::new(registry).with_executor(executor);
    let canceller = Some(canceller);
    let options = RunOptions { call, canceller, max_concurrency: Some(2), ..RunOptions::default() };
    let calls = Scene::calls(&[("a", ""), ("b", "")]);
    let contents = contents(runner, calls, options, false);
    assert_eq!(contents, said(&[("a", "closed"), ("b", "closed")]));
}
