//! Tests which events observers and readers of a run get, when they get them, and in which context
//! their code runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use toolcell::run::RunEvent;
use toolcell::tool::Invocation;
use toolcell::{
    AbortSignal, CallOptions, Definition, Engine, Event, Executor, Limits, Registry, RunOptions,
    Runner, Tool, ToolCall,
};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place};
use toolcell_tests::{PLACEMENTS, ending, engine, load, wait};

fn definition(name: &str) -> Definition {
    Definition::new(name, "").expect("a name")
}

/// A call that waits for the only cell has not started.
#[test]
fn started_event_waits_for_a_cell() {
    for placement in PLACEMENTS {
        let engine = Engine::builder().placement(placement).cells(1).build().expect("an engine");
        let waits = Hostile::new(Place::Execute, Misdeed::AwaitAbort).component();
        let tool = load(&engine, waits).expect("loads").tools()[0].clone();
        let log = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&log);
        let executor = Executor::new().with_events(move |event: Event| {
            let word = if let Event::Completed { id, result, .. } = &event {
                format!("completed {id} {}", ending(result))
            } else {
                serde_json::to_value(&event).expect("JSON")["id"]
                    .as_str()
                    .map(|id| format!("started {id}"))
                    .expect("an id")
            };
            sink.lock().expect("no panic").push(word);
        });
        let call = |id: &str, abort: &AbortSignal| {
            let (executor, tool, call) =
                (executor.clone(), tool.clone(), ToolCall::new(id, "hostile", "{}"));
            let options = CallOptions {
                abort: abort.clone(),
                stop_grace: Duration::MAX,
                ..CallOptions::default()
            };
            Box::pin(async move { executor.call(&tool, call, options).await })
        };
        let mut context = Context::from_waker(Waker::noop());
        let (end, ended) = (AbortSignal::new(), AbortSignal::new());
        ended.raise();
        let (mut first, mut second) = (call("a", &end), call("b", &ended));
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert_eq!(*log.lock().expect("no panic"), ["started a"], "{placement:?}");
        end.raise();
        wait(async move { tokio::join!(first, second) });
        let log = log.lock().expect("no panic");
        let (own, others): (Vec<_>, Vec<_>) =
            log.iter().map(String::as_str).partition(|word| word.contains(" a"));
        assert_eq!(others, ["started b", "completed b ok"], "{placement:?}");
        assert_eq!(own, ["started a", "completed a ok"], "{placement:?}");
    }
}

/// A task that an observer spawns inside of a guest's poll, or at a deadline, does not run on the
/// thread that keeps all calls' timers.
#[test]
fn observer_tasks_never_run_on_the_timer_thread() {
    for placement in PLACEMENTS {
        let engine = engine(placement, env!("CARGO_TARGET_TMPDIR"));
        let guest = |misdeed| {
            load(&engine, Hostile::new(Place::Execute, misdeed).component()).expect("loads").tools()
                [0]
            .clone()
        };
        let stuck = Tool::native(definition("stuck"), async |_: Value| -> Value {
            std::future::pending().await
        });
        for (tool, millis, events) in [
            (guest(Misdeed::Chatter), 30_000, 5),
            (guest(Misdeed::Sleep), 20, 2),
            (stuck.expect("a tool"), 20, 2),
        ] {
            let (told, names) = mpsc::channel();
            let executor = Executor::new().with_events(move |_: Event| {
                let told = told.clone();
                let tell = move || told.send(thread::current().name().map(str::to_owned));
                match Handle::try_current() {
                    Ok(runtime) => drop(runtime.spawn(async move { tell() })),
                    Err(_) => drop(tell()),
                }
            });
            let limits = Limits {
                host_calls: 3,
                timeout: Duration::from_millis(millis),
                ..Limits::default()
            };
            let (executor, call) = (
                executor.with_limits(limits),
                ToolCall::new("1", tool.definition().name.as_str(), "{}"),
            );
            wait(async move { executor.call(&tool, call, CallOptions::default()).await });
            let names: Vec<_> = names.iter().collect();
            assert_eq!(names.len(), events, "{placement:?}");
            assert!(
                names.iter().all(|name| name.as_deref() != Some("toolcell-timer")),
                "{placement:?}: {names:?}"
            );
        }
    }
}

/// One call emits many events at once, the other needs many polls: it makes progress with every
/// event that is read.
#[test]
fn slow_reader_does_not_stall_calls() {
    const TOLD: usize = 200;
    const NEEDED: usize = 100;
    let chatty =
        Tool::native(definition("chatty"), async |_: Value, invocation: Arc<Invocation>| {
            (0..TOLD as u64).for_each(|done| invocation.progress(done, None, None));
            json!("told")
        });
    let polls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&polls);
    let polite = Tool::native(definition("polite"), move |_: Value| {
        let counter = Arc::clone(&counter);
        std::future::poll_fn(move |context| {
            context.waker().wake_by_ref();
            if counter.fetch_add(1, Ordering::Relaxed) + 1 < NEEDED {
                Poll::Pending
            } else {
                Poll::Ready(json!("done"))
            }
        })
    });
    let registry = Registry::new();
    registry
        .register_all([chatty.expect("a tool"), polite.expect("a tool")])
        .expect("names of their own");
    let calls = ["chatty", "polite"].map(|name| ToolCall::new(name, name, "{}"));
    let mut stream = Runner::new(registry)
        .stream(calls, RunOptions { max_concurrency: Some(2), ..RunOptions::default() });
    let seen = Arc::clone(&polls);
    let (needed, settled) = wait(async move {
        let (mut progress, mut needed, mut settled) = (0, Vec::new(), 0);
        while let Some(event) = stream.next().await {
            progress += usize::from(matches!(event, RunEvent::Call(Event::Progress { .. })));
            settled += usize::from(matches!(event, RunEvent::Settled { .. }));
            if matches!(event, RunEvent::Call(Event::Progress { .. })) && progress <= NEEDED {
                needed.push(seen.load(Ordering::Relaxed) >= progress);
            }
        }
        (needed, settled)
    });
    assert_eq!((needed, settled, polls.load(Ordering::Relaxed)), (vec![true; NEEDED], 2, NEEDED));
}

/// The tools decide which call ends first, not the order of the calls.
#[test]
fn stream_reports_ends_in_completion_order() {
    for order in [["c", "a", "b"], ["b", "c", "a"], ["c", "b", "a"]] {
        let gates: Arc<[(&str, Notify)]> = ["a", "b", "c"].map(|id| (id, Notify::new())).into();
        let waited = Arc::clone(&gates);
        let waits = Tool::native(definition("t"), move |_: Value, invocation: Arc<Invocation>| {
            let gates = Arc::clone(&waited);
            async move {
                let gate = gates
                    .iter()
                    .find(|(id, _)| *id == invocation.call.id)
                    .expect("one for each call");
                gate.1.notified().await;
                json!(null)
            }
        });
        let registry = Registry::new();
        registry.register(waits.expect("a tool")).expect("a name of its own");
        let calls = ["a", "b", "c"].map(|id| ToolCall::new(id, "t", "{}"));
        let mut stream = Runner::new(registry)
            .stream(calls, RunOptions { max_concurrency: Some(3), ..RunOptions::default() });
        // Returns short forms of all events that can be read now.
        let mut read = || {
            let (mut context, mut told) = (Context::from_waker(Waker::noop()), Vec::new());
            while let Poll::Ready(Some(event)) = Box::pin(stream.next()).as_mut().poll(&mut context)
            {
                let json = serde_json::to_value(&event).expect("JSON");
                told.push(format!(
                    "{} {}",
                    json["type"].as_str().expect("a type"),
                    json["id"].as_str().expect("an id")
                ));
            }
            told
        };
        assert_eq!(read(), ["a", "b", "c"].map(|id| format!("tool_execution_started {id}")));
        for id in order {
            gates.iter().filter(|(gate, _)| *gate == id).for_each(|(_, gate)| gate.notify_one());
            let ends = ["tool_execution_completed", "tool_result_encoded"]
                .map(|word| format!("{word} {id}"));
            assert_eq!(read(), ends, "of {order:?}");
        }
    }
}

/// Exactly as many cells are in use as the concurrency allows.
#[test]
fn run_uses_exactly_max_concurrency_cells() {
    const MOST: usize = 3;
    for placement in PLACEMENTS {
        let engine = engine(placement, env!("CARGO_TARGET_TMPDIR"));
        let registry = Registry::new();
        let waits = Hostile { name: "waits", ..Hostile::new(Place::Execute, Misdeed::AwaitAbort) };
        for guest in [waits, Hostile { name: "echo", ..Hostile::answering(Answer::Echo) }] {
            let tools = load(&engine, guest.component()).expect("loads").tools().to_vec();
            registry.register_all(tools).expect("names of their own");
        }
        let (end, at_work) = (AbortSignal::new(), Arc::new(Mutex::new((0_usize, 0_usize))));
        let (raised, counted) = (end.clone(), Arc::clone(&at_work));
        let executor = Executor::new().with_events(move |event: Event| {
            let mut at_work = counted.lock().expect("no panic");
            at_work.0 += usize::from(matches!(event, Event::Started { .. }));
            at_work.0 -= usize::from(matches!(event, Event::Completed { .. }));
            at_work.1 = at_work.0.max(at_work.1);
            if at_work.0 == MOST {
                raised.raise();
            }
        });
        let runner = Runner::new(registry).with_executor(executor);
        let run = |name: &str, count: usize, abort: AbortSignal| {
            let calls: Vec<_> =
                (0..count).map(|n| ToolCall::new(n.to_string(), name, "{}")).collect();
            let call = CallOptions { abort, stop_grace: Duration::MAX, ..CallOptions::default() };
            let options = RunOptions { max_concurrency: Some(MOST), call, ..RunOptions::default() };
            let runner = runner.clone();
            wait(async move { runner.run(calls, options).await }).expect("it starts").messages
        };
        // The calls end when all of them are running.
        assert!(run("waits", MOST, end).iter().all(|message| !message.is_error), "{placement:?}");
        assert!(
            run("echo", 50, AbortSignal::new()).iter().all(|message| !message.is_error),
            "{placement:?}"
        );
        assert_eq!(*at_work.lock().expect("no panic"), (0, MOST), "{placement:?}");
    }
}
