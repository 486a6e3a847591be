//! Ten thousand concurrent calls, observers that panic at every event, and futures that are dropped
//! at any point: each call that began ends exactly once, nothing hangs, and every cell is free
//! afterwards.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolcell::runtime::Placement;
use toolcell::{
    CallOptions, Definition, Engine, Event, Executor, Limits, Registry, RunOptions, Runner, Tool,
    ToolCall,
};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place};
use toolcell_tests::{PLACEMENTS, ending, own_process, wait};

use super::{PATIENCE, peak, side_by_side};
use crate::load_guest;

/// Cells of an engine.
pub(crate) const CELLS: u32 = 8;
/// Bytes that ten thousand small calls may take: 20 KiB each.
const MOST: u64 = 200 << 20;

/// Counts for each call the events of its beginning and of its end.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<BTreeMap<String, [u32; 2]>>>);

impl Notes {
    pub(crate) fn take(&self, event: &Event) {
        let (id, which) = if let Event::Started { id, .. } = event {
            (id, 0)
        } else if let Event::Completed { id, .. } = event {
            (id, 1)
        } else {
            return;
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(id.clone()).or_default()
            [which] += 1;
    }

    /// Asserts that each call began once and ended once, and returns the number of calls.
    pub(crate) fn whole(&self) -> usize {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let torn: Vec<_> = notes.iter().filter(|(_, counts)| **counts != [1, 1]).collect();
        assert!(torn.is_empty(), "{torn:?}");
        notes.len()
    }
}

/// Returns a component's tool that commits this misdeed.
pub(crate) fn guest(engine: &Engine, misdeed: Misdeed) -> Tool {
    let guest = Hostile { answer: Answer::Value("1"), ..Hostile::new(Place::Execute, misdeed) };
    load_guest(engine, guest).tools()[0].clone()
}

pub(crate) fn few_cells(placement: Placement) -> Engine {
    Engine::builder().cells(CELLS).placement(placement).build().expect("an engine")
}

/// Asserts that all cells can be in use at the same time.
pub(crate) fn assert_all_cells_are_free(engine: &Engine) {
    let ended = side_by_side(&guest(engine, Misdeed::AwaitAbort), "{}", CELLS);
    assert!(ended.iter().all(|end| end == "ok"), "{ended:?}");
}

fn patient() -> Executor {
    Executor::new().with_limits(Limits { timeout: PATIENCE, ..Limits::default() })
}

/// Returns a native tool that answers 1.
pub(crate) fn native(name: &str) -> Tool {
    Tool::native(Definition::new(name, "").expect("a name"), async |_: Value| json!(1))
        .expect("a tool")
}

#[test]
fn ten_thousand_concurrent_calls_each_end_once() {
    const CALLS: usize = 10_000;
    own_process::run(module_path!(), "ten_thousand_concurrent_calls_each_end_once", || {
        let engines = PLACEMENTS.map(few_cells);
        let guests = engines.each_ref().map(|engine| guest(engine, Misdeed::None));
        for tool in guests.into_iter().chain([native("t")]) {
            let notes = Notes::default();
            let noted = notes.clone();
            let executor = patient().with_events(move |event: Event| noted.take(&event));
            let before = super::memory("VmRSS");
            let (most, ended) = peak(|| {
                wait(async move {
                    let mut calls = JoinSet::new();
                    for number in 0..CALLS {
                        let (executor, tool) = (executor.clone(), tool.clone());
                        let name = tool.definition().name.clone();
                        let call = ToolCall::new(number.to_string(), name, r#"{"name":"Ada"}"#);
                        calls.spawn(async move {
                            ending(&executor.call(&tool, call, CallOptions::default()).await.result)
                        });
                    }
                    calls.join_all().await
                })
            });
            let is_good = ended.len() == CALLS && ended.iter().all(|end| end == "ok");
            assert!(is_good, "{:?}", ended.first());
            assert_eq!(notes.whole(), CALLS);
            let more = most.saturating_sub(before);
            eprintln!("{CALLS} calls at once: {} MiB", more >> 20);
            assert!(more < MOST, "{} MiB", more >> 20);
        }
        engines.iter().for_each(assert_all_cells_are_free);
    });
}

/// Polls a future at most `polls` times, then drops it.
async fn dropped_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut left) = (pin!(future), polls);
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        context.waker().wake_by_ref();
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Unwinds without the panic hook, which would print thousands of messages.
fn panicking(notes: &Notes) -> impl Fn(Event) + Send + Sync + 'static + use<> {
    let notes = notes.clone();
    move |event| {
        notes.take(&event);
        resume_unwind(Box::new("on purpose"));
    }
}

#[test]
fn observer_panics_and_drops_lose_no_event_or_cell() {
    const CALLS: usize = 1000;
    for placement in PLACEMENTS {
        let engine = few_cells(placement);
        let hangs = async |_: Value| std::future::pending::<Value>().await;
        let hangs = Tool::native(Definition::new("hangs", "").expect("a name"), hangs);
        let tools = [
            guest(&engine, Misdeed::None),
            guest(&engine, Misdeed::Spin),
            guest(&engine, Misdeed::AwaitAbort),
            guest(&engine, Misdeed::Abort),
            native("t"),
            hangs.expect("a tool"),
        ];
        let notes = Notes::default();
        let executor = patient().with_events(panicking(&notes));
        let ended = wait(async move {
            let mut calls = JoinSet::new();
            for number in 0..CALLS {
                let (executor, tool) = (executor.clone(), tools[number % tools.len()].clone());
                let call = ToolCall::new(number.to_string(), tool.definition().name.as_str(), "{}");
                // From before the first poll to long after an answer.
                let polls = number * 7 % 61;
                calls.spawn(async move {
                    let call = executor.call(&tool, call, CallOptions::default());
                    dropped_after(polls, call).await.is_some()
                });
            }
            calls.join_all().await
        });
        let unpolled = (0..CALLS).filter(|number| number * 7 % 61 == 0).count();
        // A call that was polled once has both its events.
        assert_eq!(notes.whole(), CALLS - unpolled, "{placement:?}");
        // Some end by themselves and some do not.
        assert!(ended.contains(&true) && ended.contains(&false), "{placement:?}");
        assert_all_cells_are_free(&engine);
    }
}

#[test]
fn run_with_panicking_observer_has_all_messages() {
    const CALLS: usize = 200;
    for placement in PLACEMENTS {
        let engine = few_cells(placement);
        let registry = Registry::new();
        registry.register_all([guest(&engine, Misdeed::None), native("t")]).expect("two names");
        let notes = Notes::default();
        let runner =
            Runner::new(registry).with_executor(Executor::new().with_events(panicking(&notes)));
        let calls = || {
            let name = |number: usize| if number.is_multiple_of(2) { "hostile" } else { "t" };
            (0..CALLS).map(move |number| ToolCall::new(number.to_string(), name(number), "{}"))
        };
        let options = || RunOptions { max_concurrency: Some(CALLS), ..RunOptions::default() };
        let outcome = wait({
            let (runner, calls) = (runner.clone(), calls());
            async move { runner.run(calls, options()).await }
        });
        let messages = outcome.expect("it runs").messages;
        let ids: Vec<_> = messages.into_iter().map(|message| message.tool_call_id).collect();
        let expected: Vec<_> = (0..CALLS).map(|number| number.to_string()).collect();
        assert_eq!(ids, expected, "{placement:?}");
        assert_eq!(notes.whole(), CALLS);
        // Dropping a stream after any number of events ends the calls that it began.
        for events in [0, 1, 7, 50] {
            let notes = Notes::default();
            let runner =
                runner.clone().with_executor(Executor::new().with_events(panicking(&notes)));
            let calls = calls();
            wait(async move {
                let mut stream = runner.stream(calls, options());
                for _ in 0..events {
                    stream.next().await;
                }
            });
            notes.whole();
        }
        assert_all_cells_are_free(&engine);
    }
}
