//! The caller's runtime ends while its calls run, wait for a cell, or are part of runs and streams.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use toolcell::{
    CallOptions, Definition, Event, Executor, Registry, RunOptions, Runner, Tool, ToolCall,
};
use toolcell_test_guests::Misdeed;
use toolcell_tests::PLACEMENTS;

use super::PATIENCE;
use super::crowds::{CELLS, Notes, assert_all_cells_are_free, few_cells, guest};
use crate::any_fuel;

/// Calls of each tool, each made alone, in the run, and in the stream.
const CALLS: usize = 8;
/// Ways to end a runtime.
const ENDS: [fn(Runtime); 3] = [drop, Runtime::shutdown_background, |runtime| {
    runtime.shutdown_timeout(Duration::from_secs(1))
}];

fn runtimes() -> [Runtime; 2] {
    let several = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let one = Builder::new_current_thread().enable_all().build();
    [several, one].map(|runtime| runtime.expect("a runtime"))
}

/// Returns a tool that never answers, and holds `held` until its handler is dropped.
fn hangs(held: &Arc<()>) -> Tool {
    let held = Arc::clone(held);
    let hangs = move |_: Value| {
        let held = Arc::clone(&held);
        async move {
            std::future::pending::<()>().await;
            Value::from(Arc::strong_count(&held))
        }
    };
    Tool::native(Definition::new("hangs", "").expect("a name"), hangs).expect("a tool")
}

#[test]
fn calls_end_with_their_runtime() {
    for placement in PLACEMENTS {
        let engine = few_cells(placement);
        let (spins, waits) = (guest(&engine, Misdeed::Spin), guest(&engine, Misdeed::AwaitAbort));
        for end in ENDS {
            for runtime in runtimes() {
                let (held, notes) = (Arc::new(()), Notes::default());
                let mut events =
                    begin(&runtime, [spins.clone(), waits.clone(), hangs(&held)], &notes);
                let (ended, end_of_it) = mpsc::channel();
                thread::spawn(move || {
                    end(runtime);
                    // Ends when the last sender is dropped, and then when the last handler has
                    // dropped what it held.
                    while events.blocking_recv().is_some() {}
                    while Arc::strong_count(&held) > 1 {
                        thread::yield_now();
                    }
                    let _ = ended.send(());
                });
                end_of_it.recv_timeout(PATIENCE).expect("it ends, and all of it");
                assert!(notes.whole() >= 3 * CALLS + CELLS as usize, "{placement:?}");
            }
        }
        assert_all_cells_are_free(&engine);
    }
}

/// Starts calls, a run and a stream in this runtime, and waits until every native call has begun
/// and every cell is taken.
fn begin(runtime: &Runtime, tools: [Tool; 3], notes: &Notes) -> UnboundedReceiver<Event> {
    let (seen, mut events) = unbounded_channel();
    let noted = notes.clone();
    let executor = Executor::new().with_limits(any_fuel(PATIENCE));
    let executor = executor.with_events(move |event: Event| {
        noted.take(&event);
        let _ = seen.send(event);
    });
    runtime.block_on(async move {
        for number in 0..CALLS {
            for (which, tool) in tools.iter().cloned().enumerate() {
                let executor = executor.clone();
                let name = tool.definition().name.clone();
                let call = ToolCall::new(format!("{which}-{number}"), name, "{}");
                tokio::spawn(
                    async move { executor.call(&tool, call, CallOptions::default()).await },
                );
            }
        }
        let [_, waits, hangs] = tools;
        let registry = Registry::new();
        registry.register_all([waits, hangs]).expect("two names");
        let runner = Runner::new(registry).with_executor(executor);
        let calls = |whose: &'static str| {
            let name = |number| if number < CALLS { "hangs" } else { "hostile" };
            (0..2 * CALLS)
                .map(move |number| ToolCall::new(format!("{whose}-{number}"), name(number), "{}"))
        };
        let options = || RunOptions {
            tool_timeout: Some(PATIENCE),
            max_concurrency: Some(2 * CALLS),
            ..RunOptions::default()
        };
        let run = runner.clone();
        tokio::spawn(async move { run.run(calls("run"), options()).await });
        tokio::spawn(async move {
            let mut stream = runner.stream(calls("stream"), options());
            while stream.next().await.is_some() {}
        });
        let mut begun = 0;
        while begun < 3 * CALLS + CELLS as usize {
            begun += usize::from(matches!(events.recv().await, Some(Event::Started { .. })));
        }
        events
    })
}
