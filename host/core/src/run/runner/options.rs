//! The options of a run: those of each call, policy, timeout, concurrency, cancellation.
//!
//! An embedder (the program that uses this library) builds [`RunOptions`] and passes them with the
//! calls. Before any call is made, `check` refuses options that make no sense: a zero, a timeout
//! longer than the executor allows, an answer to a question for more than one call. For each call
//! they give the call's own options, with the signal by which it can be cancelled alone. Without a
//! set concurrency, as many calls run at the same time as there are calls, at most two for each
//! core.

use std::time::Duration;

use toolcell_contract::call::{AbortSignal, CallCanceller};
use toolcell_contract::error::Error;
use toolcell_contract::limits::Limits;

use crate::os::cores::cores;
use crate::run::policy::OnToolError;
use crate::tool::handler::options::CallOptions;

/// The default number of calls that run at the same time, for each core. Source: docs/contract.md,
/// section 3.
const CALLS_PER_CORE: usize = 2;

/// The rule for a call whose tool is not registered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownTools {
    /// The run does not start: [`Error::is_unknown_tool`].
    #[default]
    Refuse,
    /// The call ends as `not_found`, and the other calls are made. Its message is `{"error": …}`
    /// with the name that the model wrote and the most similar name that it can call.
    /// [`RunOptions::on_tool_error`] applies as to any failure.
    Answer,
}

/// The options of a run.
///
/// # Defaults
/// [`CallOptions::default`], failures are passed on to the model, [`UnknownTools::Refuse`], 30 s per
/// call, as many calls at the same time as there are calls but at most two per core, no canceller.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The options of each call. Each gets the context and the files unchanged; an answer to a
    /// question (`resume`) belongs to one call: with more calls, the run does not start. Nor does it
    /// if `limits` leave a call no time, fuel, memory, arguments or result. `abort` ends the run
    /// early: calls that have not started never do, and each call has its events and its message.
    pub call: CallOptions,
    /// The rule for failures.
    pub on_tool_error: OnToolError,
    /// The rule for a call whose tool is not registered.
    pub unknown_tools: UnknownTools,
    /// Wall time of each call. `None`: 30 s, or what the executor's limits allow if that is less. A
    /// run with a longer time than they allow does not start ([`Error::is_options`]). A tool's own
    /// time and the limits of `call` can be shorter.
    pub tool_timeout: Option<Duration>,
    /// The largest number of calls that run at the same time.
    pub max_concurrency: Option<usize>,
    /// Ends single calls early, by their ids, as `abort` ends all.
    pub canceller: Option<CallCanceller>,
}

impl RunOptions {
    /// Returns the limits of each call.
    pub(super) fn limits_of_a_call(&self) -> Limits {
        let timeout = self.tool_timeout.unwrap_or(Limits::DEFAULT_TIMEOUT);
        Limits { timeout: self.call.limits.timeout.min(timeout), ..self.call.limits }
    }

    /// Returns the signal of the call with this id.
    pub(super) fn signal(&self, id: &str) -> AbortSignal {
        let abort = &self.call.abort;
        self.canceller
            .as_ref()
            .map_or_else(|| abort.clone(), |canceller| canceller.signal(abort, id))
    }

    /// Returns the options of the call with this id, which starts now.
    pub(super) fn of_a_call(&self, id: &str) -> CallOptions {
        let (limits, abort) = (self.limits_of_a_call(), self.signal(id));
        CallOptions { limits, abort, ..self.call.clone() }
    }

    /// Checks the options for a run of `calls` calls, each of which the executor allows the time
    /// `allowed`.
    pub(super) fn check(&self, calls: usize, allowed: Duration) -> Result<(), Error> {
        let Limits { fuel, timeout, memory, arguments, result, .. } = self.call.limits;
        // A limit with which no call could be made at 0 needs a row.
        let nothings = [
            ("max_concurrency", self.max_concurrency == Some(0)),
            ("tool_timeout", self.tool_timeout == Some(Duration::ZERO)),
            ("call.limits.timeout", timeout.is_zero()),
            ("call.limits.fuel", fuel == 0),
            ("call.limits.memory", memory == 0),
            ("call.limits.arguments", arguments == 0),
            ("call.limits.result", result == 0),
        ];
        if let Some((option, _)) = nothings.into_iter().find(|(_, is_nothing)| *is_nothing) {
            return Err(Error::options(option, "must be greater than zero"));
        }
        if let Some(asked) = self.tool_timeout.filter(|asked| *asked > allowed) {
            return Err(Error::options(
                "tool_timeout",
                format!("is {asked:?}, but the executor's limits allow at most {allowed:?}"),
            ));
        }
        if calls > 1 && self.call.context.resume.is_some() {
            return Err(Error::options(
                "call.context.resume",
                format!("is for a run of one call, and this run has {calls}"),
            ));
        }
        Ok(())
    }

    /// Returns the number of calls that run at the same time in a run of this many calls.
    #[must_use]
    pub fn concurrency(&self, calls: usize) -> usize {
        self.max_concurrency.unwrap_or_else(|| usual_concurrency(calls))
    }
}

/// Returns the default number of calls that run at the same time. Source: docs/contract.md, section
/// 3.
pub(crate) fn usual_concurrency(calls: usize) -> usize {
    calls.min(CALLS_PER_CORE * cores()).max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use toolcell_contract::call::{CallContext, ToolCall};
    use toolcell_contract::definition::Definition;

    use super::*;
    use crate::executor::Executor;
    use crate::run::runner::Runner;
    use crate::run::runner::tests::{runner_of, wait};
    use crate::tool::Tool;
    use crate::tool::handler::Invocation;

    const SECOND: Duration = Duration::from_secs(1);

    /// A runner of a tool that returns the context and the time that it was given.
    fn runner(definition: Definition) -> Runner {
        with_own_limits(definition, Limits::unlimited())
    }

    /// A runner of the same tool with limits of its own.
    fn with_own_limits(definition: Definition, limits: Limits) -> Runner {
        let tells = async |_: Value, invocation: Arc<Invocation>| {
            let Invocation { context, limits, .. } = &*invocation;
            json!([limits.timeout.as_secs(), context.session_id, context.request_id])
        };
        runner_of(Tool::native(definition, tells).map(|tool| tool.with_limits(limits)))
    }

    fn message_contents(runner: &Runner, options: RunOptions) -> Vec<String> {
        let calls = ["a", "b"].map(|id| ToolCall::new(id, "t", "{}"));
        let outcome = wait(runner.run(calls, options)).unwrap();
        outcome.messages.into_iter().map(|message| message.content).collect()
    }

    #[test]
    fn run_option_defaults_match_the_contract() {
        let options = RunOptions::default();
        assert_eq!(options.limits_of_a_call().timeout, 30 * SECOND);
        assert_eq!(options.max_concurrency, None);
        assert!(matches!(options.on_tool_error, OnToolError::Continue));
        assert_eq!(*options.call.context, CallContext::default());
        let cores = std::thread::available_parallelism().unwrap().get();
        for (calls, expected) in [(0, 1), (1, 1), (2, 2), (100_000, 2 * cores)] {
            assert_eq!(options.concurrency(calls), expected, "{calls} calls");
        }
        assert_eq!(RunOptions { max_concurrency: Some(1000), ..options }.concurrency(3), 1000);
    }

    #[test]
    fn every_call_gets_the_context_as_given() {
        let mut context = CallContext::default();
        (context.session_id, context.request_id) = (Some("s1".into()), Some("r1".into()));
        let runner = runner(Definition::new("t", "").unwrap());
        let call = CallOptions { context: context.into(), ..CallOptions::default() };
        let contents = message_contents(&runner, RunOptions { call, ..RunOptions::default() });
        assert_eq!(contents, [r#"[30,"s1","r1"]"#; 2]);
        let contents = message_contents(&runner, RunOptions::default());
        assert_eq!(contents, ["[30,null,null]"; 2], "nothing is invented");
    }

    /// The smallest time that was set counts. An executor without limits sets none.
    #[test]
    fn call_timeout_is_the_smallest_that_was_set() {
        let executor = |seconds| {
            Executor::new().with_limits(Limits { timeout: SECOND * seconds, ..Limits::default() })
        };
        let run =
            |seconds| RunOptions { tool_timeout: Some(SECOND * seconds), ..RunOptions::default() };
        let tool = || Definition::new("t", "").unwrap();
        let hour = || runner(tool()).with_executor(executor(3600));
        let limits = |seconds| Limits { timeout: SECOND * seconds, ..Limits::unlimited() };
        let call = CallOptions { limits: limits(7), ..CallOptions::default() };
        for (runner, options, expected) in [
            (runner(tool()), run(300), 300),
            (runner(tool()), run(2), 2),
            (runner(tool()).with_executor(Executor::new()), run(300), 300),
            (runner(tool()).with_executor(executor(9)), run(9), 9),
            (runner(tool()).with_executor(executor(9)), RunOptions::default(), 9),
            (hour(), run(300), 300),
            (hour(), RunOptions { call, ..run(300) }, 7),
            (runner(tool().with_max_execution(SECOND * 5)), run(300), 5),
            (with_own_limits(tool(), limits(4)), run(300), 4),
        ] {
            let expected = format!("[{expected},null,null]");
            assert_eq!(message_contents(&runner, options), [&*expected; 2]);
        }
    }

    /// Fails without: the check of the run's time against the executor's limits.
    #[test]
    fn run_timeout_above_executor_limit_is_refused() {
        let executor = Executor::new().with_limits(Limits { timeout: SECOND, ..Limits::default() });
        let runner = runner(Definition::new("t", "").unwrap()).with_executor(executor);
        let options = RunOptions { tool_timeout: Some(SECOND * 2), ..RunOptions::default() };
        let error = wait(runner.run([ToolCall::new("a", "t", "{}")], options)).unwrap_err();
        let text = "is 2s, but the executor's limits allow at most 1s";
        assert!(error.is_options() && error.to_string().contains(text), "{error}");
        let statistics = runner.registry().statistics("t").unwrap();
        assert_eq!(statistics, crate::tool::statistics::Statistics::default());
    }
}
