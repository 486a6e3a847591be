//! Checks all calls of a run, then starts them in order, a bounded number at the same time.
//!
//! [`Batch::new`] resolves each call's tool in a snapshot of the registry (the tools by name) and
//! refuses the run for an unknown tool, a repeated id or a bad option; nothing has run then.
//! [`Batch::call_ends`] makes the calls while its stream is read, and yields each settled end as it
//! comes, in any order. A caller can hold back the start of further calls. A call whose tool is
//! unknown ends as `not_found`, with its events, if the options say so.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::{Context, Poll};

use foldhash::fast::RandomState;
use futures_util::{Stream, StreamExt as _, stream};
use toolcell_contract::call::ToolCall;
use toolcell_contract::error::Error;

use super::settle::{CallSettlement, Shared, settle};
use super::{RunOptions, Runner, UnknownTools};
use crate::run::policy::OnToolError;
use crate::tool::{Tool, statistics::Counting};

/// A call and its tool. `None`: the model is told that the tool does not exist.
type Resolved = (ToolCall, Option<Tool>);

/// The checked calls of a run.
pub(super) struct Batch {
    calls: Vec<Resolved>,
    most: usize,
    shared: Arc<Shared>,
}

impl Batch {
    /// Checks the calls and the options before any call is made.
    pub(super) fn new(
        runner: &Runner,
        calls: impl IntoIterator<Item = ToolCall>,
        options: RunOptions,
    ) -> Result<Self, Error> {
        let calls: Vec<_> = calls.into_iter().collect();
        options.check(calls.len(), runner.executor.limits().timeout)?;
        let toolbox = runner.registry.toolbox();
        let mut ready = Vec::with_capacity(calls.len());
        for call in calls {
            let tool = match (toolbox.resolve(&call.name), options.unknown_tools) {
                (Ok(tool), _) => Some(tool.clone()),
                (Err(error), UnknownTools::Refuse) => return Err(error),
                (Err(_), UnknownTools::Answer) => None,
            };
            ready.push((call, tool));
        }
        let mut ids = HashSet::with_capacity_and_hasher(ready.len(), RandomState::default());
        if let Some((call, _)) = ready.iter().find(|(call, _)| !ids.insert(call.id.as_str())) {
            return Err(Error::duplicate_call(&call.id));
        }
        let most = options.concurrency(ready.len());
        let Runner { executor, encoder, deciding, .. } = runner.clone();
        let callable = toolbox.clone();
        let executor = executor.calling(move |name| callable.get(name).cloned());
        Ok(Self {
            calls: ready,
            most,
            shared: Arc::new(Shared { executor, encoder, options, deciding, toolbox }),
        })
    }

    /// The number of calls.
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Makes the calls in their order while the stream is read, and yields their ends in the order
    /// in which they come. While `hold` returns true, no further call starts; the caller polls the
    /// stream again when that changes.
    pub(super) fn call_ends(
        self,
        hold: impl Fn() -> bool + Send + 'static,
    ) -> impl Stream<Item = CallSettlement> + Send + 'static {
        let Self { calls, most, shared } = self;
        let mut calls = calls.into_iter().enumerate();
        let next = move |_: &mut Context<'_>| {
            if hold() { Poll::Pending } else { Poll::Ready(calls.next()) }
        };
        stream::poll_fn(next)
            .map(move |call| run_call(Arc::clone(&shared), call))
            .buffer_unordered(most)
    }
}

/// Makes one call, from its start to its settled end.
///
/// Every running call has one of these futures on the heap. A value that is not needed across an
/// await stays out of it, because the future reserves space for each of its arguments twice, and
/// also for each value that was ever borrowed in it.
fn run_call(
    shared: Arc<Shared>,
    (index, (call, tool)): (usize, Resolved),
) -> impl Future<Output = CallSettlement> + Send {
    // Copied for a policy function only: nothing else reads it.
    let kept = matches!(shared.options.on_tool_error, OnToolError::Decide(_))
        .then(|| Box::new(call.clone()));
    async move {
        // Boxed, because it is rare and would make every call's future larger.
        let Some(tool) = tool else { return Box::pin(missing(shared, index, call, kept)).await };
        let counting = Counting::new(tool.counters());
        let options = shared.options.of_a_call(&call.id);
        let completion = if options.abort.is_raised() {
            shared.executor.cancelled(&tool, call, options)
        } else {
            shared.executor.uncounted(&tool, call, options, None).await
        };
        match settle(&shared, (index, None), completion, counting, (kept, &tool)) {
            Ok(ended) => ended,
            Err(decided) => decided.await,
        }
    }
}

/// Ends a call whose tool is not registered as `not_found`, with its events.
async fn missing(
    shared: Arc<Shared>,
    index: usize,
    call: ToolCall,
    kept: Option<Box<ToolCall>>,
) -> CallSettlement {
    let tool = Tool::unknown(&call.name);
    let counting = Counting::new(tool.counters());
    let options = shared.options.of_a_call(&call.id);
    let words = shared
        .toolbox
        .no_such_tool(&call.name, (&shared.executor, &options.context), |_| true)
        .await;
    let completion = if options.abort.is_raised() {
        shared.executor.cancelled(&tool, call, options)
    } else {
        shared.executor.not_found(&tool, call, options, None)
    };
    match settle(&shared, (index, Some(words)), completion, counting, (kept, &tool)) {
        Ok(ended) => ended,
        Err(decided) => decided.await,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use serde_json::{Value, json};
    use toolcell_contract::definition::Definition;
    use toolcell_contract::event::Event;
    use toolcell_contract::message::{RunEvent, RunHalt};

    use super::*;
    use crate::run::registry::Registry;

    fn runner() -> Runner {
        let tool = |name: &str| {
            let definition = Definition::new(name, "").unwrap();
            Tool::native(definition, async |_: Value| json!("done")).unwrap()
        };
        let registry = Registry::new();
        let hidden = tool("secret_word").with_visibility(|_, _| false);
        registry.register_all([tool("greet"), hidden]).unwrap();
        Runner::new(registry)
    }

    fn calls(names: &[&str]) -> Vec<ToolCall> {
        let call = |(at, name): (usize, &&str)| ToolCall::new(format!("c{at}"), *name, "{}");
        names.iter().enumerate().map(call).collect()
    }

    #[test]
    fn unknown_tool_is_answered_if_the_options_say_so() {
        let answer = || RunOptions { unknown_tools: UnknownTools::Answer, ..RunOptions::default() };
        let names = ["greet", "gret", "", "secret_wrd", "manual\n"];
        let asked =
            |options| runner().run(calls(&names), options).now_or_never().expect("it ends at once");
        let refused = asked(RunOptions::default()).unwrap_err();
        assert!(refused.is_unknown_tool(), "as ever unless it is said");
        let outcome = asked(answer()).unwrap();
        let told = outcome.messages.iter().map(|answer| (answer.is_error, answer.content.as_str()));
        let expected = [
            (false, "done"),
            (true, r#"{"error":"there is no tool `gret`; did you mean `greet`?"}"#),
            (true, r#"{"error":"there is no tool ``"}"#),
            // The hint does not name a tool that is not offered here.
            (true, r#"{"error":"there is no tool `secret_wrd`"}"#),
            (true, r#"{"error":"there is no tool `manual\\n`"}"#),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert_eq!((outcome.messages[1].name.as_str(), outcome.halted), ("gret", None));
        let outcome = asked(RunOptions { on_tool_error: OnToolError::Halt, ..answer() }).unwrap();
        let Some(RunHalt::ToolError { tool_call_id, .. }) = &outcome.halted else {
            panic!("{outcome:?}")
        };
        assert_eq!(tool_call_id, "c1");
    }

    #[test]
    fn unknown_tool_call_emits_its_events() {
        let options = RunOptions { unknown_tools: UnknownTools::Answer, ..RunOptions::default() };
        let stream = runner().stream(calls(&["gret"]), options);
        let events = stream.collect::<Vec<_>>().now_or_never().expect("at once");
        let [started, completed, settled] = events.as_slice() else { panic!("{events:?}") };
        let RunEvent::Call(Event::Started { name, .. }) = started else { panic!("{started:?}") };
        assert_eq!(name, "gret");
        let reason = &json!(completed)["result"]["tool_error"]["reason"];
        assert_eq!(reason, "not_found", "{completed:?}");
        assert_eq!(json!(settled)["type"], "tool_result_encoded", "{settled:?}");
    }
}
