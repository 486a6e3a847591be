//! Tests which events observers and readers of a run get, when they get them, and in which context
//! their code runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use toolcell::run::RunEvent;
use toolcell::tool::Invocation;
use toolcell::{
    AbortSignal, CallOptions, Engine, Event, Executor, Limits, RunOptions, Runner, ToolCall,
};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place};
use toolcell_tests::{PLACEMENTS, ending, wait, wait_here};

use crate::{Log, at_most, engine, form, guest, native, poll, registry, within};

/// A call that waits for the only cell has not started.
#[test]
fn started_event_waits_for_a_cell() {
    for placement in PLACEMENTS {
        let engine = Engine::builder().placement(placement).cells(1).build().expect("an engine");
        let tool = guest(&engine, Hostile::new(Place::Execute, Misdeed::AwaitAbort));
        let (log, sink) = Log::shared();
        let executor = Executor::new().with_events(move |event: Event| {
            sink.push(if let Event::Completed { id, result, .. } = &event {
                format!("completed {id} {}", ending(result))
            } else {
                format!("started {}", form(&event)["id"].as_str().expect("an id"))
            });
        });
        let call = |id: &str, abort: &AbortSignal| {
            let options = CallOptions {
                abort: abort.clone(),
                stop_grace: Duration::MAX,
                ..CallOptions::default()
            };
            Box::pin(executor.call(&tool, ToolCall::new(id, "hostile", "{}"), options))
        };
        let (end, ended) = (AbortSignal::new(), AbortSignal::new());
        ended.raise();
        let (mut first, mut second) = (call("a", &end), call("b", &ended));
        assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
        assert_eq!(log.taken(), ["started a"], "{placement:?}");
        end.raise();
        wait_here(async { tokio::join!(first, second) });
        let (own, others): (Vec<_>, Vec<_>) =
            log.taken().into_iter().partition(|word| word.contains(" a"));
        assert_eq!(others, ["started b", "completed b ok"], "{placement:?}");
        assert_eq!(own, ["completed a ok"], "{placement:?}");
    }
}

/// A task that an observer spawns inside of a guest's poll, or at a deadline, does not run on the
/// thread that keeps all calls' timers.
#[test]
fn observer_tasks_never_run_on_the_timer_thread() {
    for placement in PLACEMENTS {
        let engine = engine(placement);
        let guest = |misdeed| guest(&engine, Hostile::new(Place::Execute, misdeed));
        let stuck = native("stuck", async |_: Value| -> Value { std::future::pending().await });
        for (tool, millis, events) in
            [(guest(Misdeed::Chatter), 30_000, 5), (guest(Misdeed::Sleep), 20, 2), (stuck, 20, 2)]
        {
            let (told, names) = mpsc::channel();
            let executor = Executor::new().with_events(move |_: Event| {
                let told = told.clone();
                let tell = move || told.send(thread::current().name().map(str::to_owned));
                match Handle::try_current() {
                    Ok(runtime) => drop(runtime.spawn(async move { tell() })),
                    Err(_) => drop(tell()),
                }
            });
            let limits = Limits { host_calls: 3, ..within(millis) };
            let (executor, call) = (
                executor.with_limits(limits),
                ToolCall::new("1", tool.definition().name.as_str(), "{}"),
            );
            wait(async move { executor.call(&tool, call, CallOptions::default()).await });
            let names: Vec<_> = names.iter().collect();
            assert_eq!(names.len(), events, "{placement:?}");
            let timer = Some("toolcell-timer".to_owned());
            assert!(!names.contains(&timer), "{placement:?}: {names:?}");
        }
    }
}

/// One call emits many events at once, the other needs many polls: it makes progress with every
/// event that is read.
#[test]
fn slow_reader_does_not_stall_calls() {
    const TOLD: usize = 200;
    const NEEDED: usize = 100;
    let chatty = native("chatty", async |_: Value, invocation: Arc<Invocation>| {
        (0..TOLD as u64).for_each(|done| invocation.progress(done, None, None));
        json!("told")
    });
    let polls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&polls);
    let polite = native("polite", move |_: Value| {
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
    let calls = ["chatty", "polite"].map(|name| ToolCall::new(name, name, "{}"));
    let mut stream = Runner::new(registry([chatty, polite])).stream(calls, at_most(2));
    let seen = Arc::clone(&polls);
    let (needed, settled) = wait(async move {
        let (mut progress, mut needed, mut settled) = (0, Vec::new(), 0);
        while let Some(event) = stream.next().await {
            settled += usize::from(matches!(event, RunEvent::Settled { .. }));
            if matches!(event, RunEvent::Call(Event::Progress { .. })) {
                progress += 1;
                if progress <= NEEDED {
                    needed.push(seen.load(Ordering::Relaxed) >= progress);
                }
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
        let waits = native("t", async move |_: Value, invocation: Arc<Invocation>| {
            let gate = waited.iter().find(|(id, _)| *id == invocation.call.id);
            gate.expect("one for each call").1.notified().await;
            json!(null)
        });
        let calls = ["a", "b", "c"].map(|id| ToolCall::new(id, "t", "{}"));
        let mut stream = Runner::new(registry([waits])).stream(calls, at_most(3));
        // Returns short forms of all events that can be read now.
        let mut read = || {
            let mut told = Vec::new();
            while let Poll::Ready(Some(event)) = poll(Box::pin(stream.next()).as_mut()) {
                let json = form(&event);
                let [kind, id] = ["type", "id"].map(|name| json[name].as_str().expect("a text"));
                told.push(format!("{kind} {id}"));
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
        let engine = engine(placement);
        let waits = Hostile { name: "waits", ..Hostile::new(Place::Execute, Misdeed::AwaitAbort) };
        let echo = Hostile { name: "echo", ..Hostile::answering(Answer::Echo) };
        let registry = registry([guest(&engine, waits), guest(&engine, echo)]);
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
            let options = RunOptions { call, ..at_most(MOST) };
            let outcome = wait_here(runner.run(calls, options)).expect("it starts");
            outcome.messages.iter().all(|message| !message.is_error)
        };
        // The calls end when all of them are running.
        assert!(run("waits", MOST, end), "{placement:?}");
        assert!(run("echo", 50, AbortSignal::new()), "{placement:?}");
        assert_eq!(*at_work.lock().expect("no panic"), (0, MOST), "{placement:?}");
    }
}
