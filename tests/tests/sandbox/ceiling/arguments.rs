//! Measures the host's memory for arguments whose tree takes a hundred times the memory of their
//! text.

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Waker};

use futures_executor::block_on;
use serde_json::{Value, json};
use toolcell::call::Resume;
use toolcell::step::Step;
use toolcell::{
    CallContext, CallOptions, CallResult, Definition, Engine, Executor, Json, Limits, Outcome,
    Question, Registry, Sealer, Stepper, Tool, ToolCall, Turn,
};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place};
use toolcell_tests::{PLACEMENTS, ending, own_process, wait};

use super::crowds::native;
use super::{peak, side_by_side};
use crate::load_guest;

/// Concurrent calls.
const CALLS: u32 = 64;
/// Bytes that the calls may take above calls with small arguments.
const MOST: u64 = 200 << 20;

/// Arguments with the most values that are allowed, in the shape with the largest tree.
pub(crate) fn worst() -> String {
    format!(r#"{{"a":[{}]}}"#, vec![r#"{"":0}"#; (Json::MAX_NODES - 2) / 2].join(","))
}

/// Arguments of that shape with as many values as the text may have room for.
pub(crate) fn more_than_worst() -> String {
    let items = (Limits::DEFAULT_ARGUMENTS as usize - r#"{"a":[]}"#.len()) / r#"{"":0},"#.len();
    format!(r#"{{"a":[{}]}}"#, vec![r#"{"":0}"#; items].join(","))
}

/// Fails without: dropping the trees.
#[test]
fn large_arguments_cost_little_more_than_small_ones() {
    own_process::run(module_path!(), "large_arguments_cost_little_more_than_small_ones", || {
        for placement in PLACEMENTS {
            let engine =
                Engine::builder().cells(CALLS).placement(placement).build().expect("an engine");
            let guest = Hostile::new(Place::Execute, Misdeed::AwaitAbort);
            let guest = Hostile { answer: Answer::Value("1"), ..guest };
            let waits = load_guest(&engine, guest).tools()[0].clone();
            let (small, ended) = peak(|| side_by_side(&waits, "{}", CALLS));
            assert!(ended.iter().all(|end| end == "ok"), "{ended:?}");
            for (arguments, expected) in
                [(worst(), "ok"), (more_than_worst(), "refusal/invalid_arguments")]
            {
                let (large, ended) = peak(|| side_by_side(&waits, &arguments, CALLS));
                assert!(ended.iter().all(|end| end == expected), "{ended:?}");
                let more = large.saturating_sub(small);
                eprintln!(
                    "{placement:?}: {CALLS} calls with {} bytes of arguments: {} MiB more",
                    arguments.len(),
                    more >> 20
                );
                assert!(more <= MOST, "{placement:?}: {} MiB more", more >> 20);
            }
        }
    });
}

/// A step keeps its arguments as text in the entry for the history. Fails without: text in place of
/// a tree there.
#[test]
fn steps_do_not_retain_parsed_arguments() {
    own_process::run(module_path!(), "steps_do_not_retain_parsed_arguments", || {
        let engine = Engine::builder().build().expect("an engine");
        let guest = Hostile::answering(Answer::Value("1"));
        let registry = Registry::new();
        let tools = load_guest(&engine, guest).tools().to_vec();
        registry.register_all(tools).expect("a name of its own");
        let stepper = Stepper::new(registry);
        let steps = |arguments: &str| {
            let calls: Vec<_> = (0..CALLS)
                .map(|number| ToolCall::new(number.to_string(), "hostile", arguments))
                .collect();
            let stepper = stepper.clone();
            wait(async move { stepper.step_all(calls, &mut Turn::default()).await })
        };
        let (small, _) = peak(|| steps("{}"));
        let (large, steps) = peak(|| steps(&worst()));
        let is_good = |step: &Step| matches!(step, Step::History { success: true, .. });
        assert!(steps.len() == CALLS as usize && steps.iter().all(is_good), "{:?}", steps.first());
        let more = large.saturating_sub(small);
        assert!(more <= MOST, "{} MiB more", more >> 20);
    });
}

/// A native handler reads its arguments as a tree: calls whose trees would be too much are refused.
#[test]
fn native_arguments_over_memory_bound_are_refused() {
    own_process::run(module_path!(), "native_arguments_over_memory_bound_are_refused", || {
        let waits = async |arguments: Value, invocation: Arc<toolcell::tool::Invocation>| {
            invocation.abort.raised().await;
            json!(arguments.is_object())
        };
        let waits =
            Tool::native(Definition::new("waits", "").expect("a name"), waits).expect("a tool");
        let (small, ended) = peak(|| side_by_side(&waits, "{}", CALLS));
        assert!(ended.iter().all(|end| end == "ok"), "{ended:?}");
        let (large, ended) = peak(|| side_by_side(&waits, &worst(), CALLS));
        let refused = ended.iter().filter(|end| *end == "refusal/overloaded").count();
        let good = ended.iter().filter(|end| *end == "ok").count();
        assert!(good >= 2 && refused >= 32 && good + refused == CALLS as usize, "{ended:?}");
        let more = large.saturating_sub(small);
        eprintln!("{good} native calls, {refused} refused: {} MiB more", more >> 20);
        assert!(more <= 2 * MOST, "{} MiB more", more >> 20);
        let (_, ended) = peak(|| side_by_side(&waits, "{}", CALLS));
        assert!(ended.iter().all(|end| end == "ok"), "what was kept is given back: {ended:?}");
    });
}

/// Fails without: the bound on concurrent checks.
#[test]
fn large_argument_checks_have_bounded_concurrency() {
    own_process::run(module_path!(), "large_argument_checks_have_bounded_concurrency", || {
        const AT_ONCE: usize = 2;
        let (entered, entries) = mpsc::channel();
        let (opens, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let checked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&checked);
        let checks = move |_: &Value| {
            // The first calls are still being checked when the next one comes.
            if count.fetch_add(1, Ordering::SeqCst) < AT_ONCE {
                let _ = entered.send(());
                let _ = gate.lock().unwrap_or_else(PoisonError::into_inner).recv();
            }
            Vec::new()
        };
        let tool = native("t").with_validator(checks);
        let large = format!(r#"{{"a":[{}]}}"#, vec![r#"{"":0}"#; 2000].join(","));
        let call = |arguments: &str| {
            let (tool, call) = (tool.clone(), ToolCall::new("1", "t", arguments));
            async move {
                ending(&Executor::new().call(&tool, call, CallOptions::default()).await.result)
            }
        };
        let busy = [(); AT_ONCE].map(|()| {
            let call = call(&large);
            std::thread::spawn(move || block_on(call))
        });
        for _ in 0..AT_ONCE {
            entries.recv().expect("it is being checked");
        }
        assert_eq!(block_on(call("{}")), "ok", "a small call waits for none of them");
        let answers =
            Definition::new("answers", "").expect("a name").with_output(json!({"type": "object"}));
        let answer: Value = serde_json::from_str(&large).expect("JSON");
        let answers = Tool::native(answers, move |_: Value| ready(answer.clone())).expect("a tool");
        let answering = async move {
            let call = ToolCall::new("1", "answers", "{}");
            ending(&Executor::new().call(&answers, call, CallOptions::default()).await.result)
        };
        let (mut next, mut answering) = (Box::pin(call(&large)), Box::pin(answering));
        let mut context = Context::from_waker(Waker::noop());
        assert!(next.as_mut().poll(&mut context).is_pending(), "it waits for its turn");
        assert!(
            answering.as_mut().poll(&mut context).is_pending(),
            "so does an answer with a schema"
        );
        drop(opens);
        assert_eq!((block_on(next), block_on(answering)), ("ok".to_owned(), "ok".to_owned()));
        for call in busy {
            assert_eq!(call.join().expect("no panic"), "ok");
        }
    });
}

/// The check does not run in the caller's poll: the call is pending after it, although no other
/// call is being checked.
#[test]
fn largest_checks_run_off_the_callers_thread() {
    let answer: Value = serde_json::from_str(&worst()).expect("JSON");
    let with_output =
        Definition::new("t", "").expect("a name").with_output(json!({"type": "object"}));
    let large_answer =
        Tool::native(with_output, move |_: Value| ready(answer.clone())).expect("a tool");
    for (tool, arguments) in [(&native("t"), worst()), (&large_answer, "{}".into())] {
        let executor = Executor::new().with_sealer(Sealer::new([7; 32]));
        let call = ToolCall::new("1", "t", arguments);
        let mut call = Box::pin(executor.call(tool, call, CallOptions::default()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(&mut context).is_pending(), "the caller's poll checks");
        assert_eq!(ending(&block_on(call).result), "ok");
    }
}

/// The tool wrote the schema of the answer to its question: compiling it may take a second.
#[test]
fn answers_to_questions_are_checked_off_the_thread() {
    let asks = async |_: Value, invocation: Arc<toolcell::tool::Invocation>| {
        if invocation.context.resume.is_some() {
            return Outcome::ok(json!(true));
        }
        // It takes so long to compile that the check cannot end before the poll.
        let schema = json!({"type": "string", "pattern": "^\\p{L}{1,60}$"});
        Outcome::AskUser(Question::new("?").with_answer_schema(schema))
    };
    let tool = Tool::native(Definition::new("t", "").expect("a name"), asks).expect("a tool");
    let executor = Executor::new().with_sealer(Sealer::new([7; 32]));
    let call = |resume: Option<Resume>| {
        let mut context = CallContext::default();
        context.resume = resume;
        let options = CallOptions { context: context.into(), ..CallOptions::default() };
        Box::pin(executor.call(&tool, ToolCall::new("1", "t", "{}"), options))
    };
    let CallResult::Outcome(Outcome::AskUser(asked)) = block_on(call(None)).result else {
        panic!("no question")
    };
    let mut call = call(Some(Resume { answer: json!("yes").into(), state: asked.state }));
    let mut context = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_pending(), "the caller's poll checks");
    assert_eq!(ending(&block_on(call).result), "ok");
}

#[test]
fn too_many_json_values_are_refused_with_the_limit() {
    let called = |arguments: String| {
        let call = ToolCall::new("1", "t", arguments);
        wait(async move { Executor::new().call(&native("t"), call, CallOptions::default()).await })
    };
    assert_eq!(ending(&called(worst()).result), "ok");
    let refused = called(more_than_worst());
    assert_eq!(ending(&refused.result), "refusal/invalid_arguments");
    let said = serde_json::to_string(&refused.result).expect("JSON");
    assert!(said.contains("JSON with more than 100000 values"), "{said}");
}
