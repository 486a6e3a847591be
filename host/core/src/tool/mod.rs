//! A tool: a definition, its compiled schemas, the embedder's rules for it, and its handler.
//!
//! The embedder is the program that uses this library. A component gives a [`Tool`] for each tool
//! that it describes, and [`Tool::native`] makes one of a Rust closure. Executor, runs and servers
//! take tools from there. Creating one compiles its JSON schemas, and fails if one is not usable.
//! Methods named `with_…` return a changed tool: with limits, rules, a retry, a circuit breaker. A
//! tool counts its calls, decides in which contexts it is offered, and knows its rights if it is a
//! component's; native code has the rights of the process. A tool without a handler is one that the
//! application answers itself.

pub(crate) mod blocking;
pub(crate) mod breaker;
pub(crate) mod handler;
pub(crate) mod handler_wait;
pub(crate) mod middleware;
pub(crate) mod native;
pub(crate) mod retry;
mod rules;
#[cfg(test)]
mod scripted;
pub(crate) mod statistics;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolcell_contract::call::{CallContext, ToolCall, usage::Meter};
use toolcell_contract::definition::Definition;
use toolcell_contract::error::Error;
use toolcell_contract::grants::rights::Rights;
use toolcell_contract::limits::Limits;
use toolcell_contract::panic_guard::{GuardedFuture, dispose};
use toolcell_contract::schema::Schema;

use crate::os::clock;
use breaker::Circuit;
use handler::CheckSettings;
use middleware::Layered;
use native::Native;
use rules::Rules;
use statistics::Counters;

pub use blocking::{BlockingFn, BlockingPool};
pub use breaker::{Breaker, BreakerState};
pub use handler::{Handler, HandlerFuture, Invocation, ValidateFuture, VisibleFuture};
pub use middleware::Middleware;
pub use native::NativeFn;
pub use retry::Retry;
pub use statistics::{LastError, Statistics};
#[doc(inline)]
pub use toolcell_contract::definition::suspicion::{Suspicion, SuspicionKind, is_invisible};
#[doc(inline)]
pub use toolcell_contract::definition::{Checks, Hints, Need};

/// A tool that can be called. Cheap to clone.
///
/// Each of its calls is counted once, for the tool and all its clones. That applies to calls that
/// the [`Executor`](crate::Executor) makes directly, for a run and for a step. A method like
/// [`with_limits`](Self::with_limits) returns another tool, which counts from zero.
#[derive(Clone)]
pub struct Tool(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    definition: Definition,
    parameters: Option<Arc<Schema>>,
    output: Option<Arc<Schema>>,
    handler: Option<Arc<dyn Handler>>,
    rules: Rules,
    /// The circuit that a middleware of the tool opens and closes.
    circuit: Option<Arc<Circuit>>,
    rights: Option<Rights>,
    limits: Limits,
    version: Option<String>,
    counters: Arc<Counters>,
}

/// The time of a visibility check. A list of tools waits for it.
const VISIBLE_TIMEOUT: Duration = Duration::from_secs(1);
/// The fuel of a visibility check: enough to read the context.
const VISIBLE_FUEL: u64 = 50_000_000;

impl Tool {
    /// Creates a tool without a handler (manual mode): the application answers its calls. The
    /// executor reports `not_found`.
    ///
    /// # Errors
    /// [`Error::is_definition`] if a schema is not usable.
    pub fn manual(definition: Definition) -> Result<Self, Error> {
        Self::build(definition, None)
    }

    /// Creates a tool whose handler is an async closure: `async |arguments| …` or
    /// `async |arguments, invocation| …`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use serde_json::{Value, json};
    /// use tokio::sync::Mutex;
    /// use toolcell::{CallOptions, Definition, Executor, Tool, ToolCall};
    ///
    /// let orders = Arc::new(Mutex::new(Vec::new()));
    /// let definition = Definition::new("order", "Orders an article.")?;
    /// let tool = Tool::native(definition, async move |arguments: Value| {
    ///     let mut orders = orders.lock().await;
    ///     orders.push(arguments["article"].clone());
    ///     json!({"orders": orders.len()})
    /// })?;
    /// let call = ToolCall::new("call-1", "order", r#"{"article": "chair"}"#);
    /// let completion = Executor::new().call(&tool, call, CallOptions::default()).await;
    /// assert_eq!(completion.result.value().map(|value| value.to_value()), Some(json!({"orders": 1})));
    /// # Ok(()) }
    /// ```
    ///
    /// # Blocking
    /// The closure must not block its thread, for example with file access, a blocking database
    /// driver or a long computation. While it blocks, its deadline cannot be enforced, and the
    /// other calls of its run cannot continue. An answer after the deadline is dropped. Use
    /// [`native_blocking`](Self::native_blocking) for code that blocks.
    ///
    /// # Errors
    /// [`Error::is_definition`] if a schema is not usable.
    pub fn native<S: 'static>(
        definition: Definition,
        function: impl NativeFn<S>,
    ) -> Result<Self, Error> {
        Self::with_handler(definition, Native { function, shape: PhantomData })
    }

    /// Creates a tool with any handler.
    ///
    /// # Errors
    /// [`Error::is_definition`] if a schema is not usable.
    pub fn with_handler(definition: Definition, handler: impl Handler) -> Result<Self, Error> {
        Self::build(definition, Some(Arc::new(handler)))
    }

    /// Creates a stand-in for the tool of a call whose name no tool has, whatever that name is.
    pub(crate) fn unknown(name: &str) -> Self {
        Self::assembled(Definition::unchecked(name.to_owned(), String::new()), (None, None), None)
    }

    fn build(mut definition: Definition, handler: Option<Arc<dyn Handler>>) -> Result<Self, Error> {
        definition.check()?;
        let name = definition.name.clone();
        let compile = |part: &str, schema: &mut Option<Value>| {
            let Some(given) = schema else { return Ok(None) };
            let compiled = Schema::compile(given).map_err(|problem| {
                Error::definition(&name, format_args!("in its `{part}`: {problem}"))
            })?;
            *given = compiled.text().clone();
            Ok::<_, Error>(Some(Arc::new(compiled)))
        };
        let parameters = compile("parameters", &mut definition.parameters)?;
        let output = compile("output", &mut definition.output)?;
        Ok(Self::assembled(definition, (parameters, output), handler))
    }

    /// Creates the tool from these parts: the schemas are those of the parameters and of the
    /// output.
    fn assembled(
        definition: Definition,
        (parameters, output): (Option<Arc<Schema>>, Option<Arc<Schema>>),
        handler: Option<Arc<dyn Handler>>,
    ) -> Self {
        Self(Arc::new(Inner {
            definition,
            parameters,
            output,
            handler,
            rules: Rules::default(),
            circuit: None,
            rights: None,
            limits: Limits::unlimited(),
            version: None,
            counters: Arc::default(),
        }))
    }

    /// Offers the tool only if `rule(arguments, context)` returns true. The arguments are those of
    /// the call, before they are checked against the schema; for a list of tools, where there are
    /// none yet, they are `null`. A tool that is not offered cannot be called either:
    /// `not_visible`. A further rule is added: the tool is offered if all of them return true.
    /// Source: contract, section 5.
    #[must_use]
    pub fn with_visibility(
        self,
        rule: impl Fn(&Value, &CallContext) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(|tool| tool.rules.visible.push(Arc::new(rule)))
    }

    /// Accepts only calls for which `rule` returns true; others are refused as `not_allowed`. If
    /// `rule` panics, the call is refused. A further rule is added: all of them have to accept a
    /// call. Source: docs/contract.md, section 4.
    #[must_use]
    pub fn with_can_execute(
        self,
        rule: impl Fn(&ToolCall) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(|tool| tool.rules.takes.push(Arc::new(rule)))
    }

    /// Checks arguments that fit the schema: `rule` returns all their faults, in words for a model.
    /// Each text becomes the `expected` of a [`Fault`](crate::outcome::Fault) with an empty path. A
    /// further rule is added: the call is refused with the faults of all of them.
    ///
    /// If `rule` panics, the call fails as `handler_raised` with the kind `native_panic`: the
    /// arguments may be right.
    ///
    /// Keep rules short. Large arguments are checked a few calls at a time, and a rule that is slow
    /// with them delays the large arguments of other calls.
    #[must_use]
    pub fn with_validator(
        self,
        rule: impl Fn(&Value) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.with(|tool| tool.rules.validate.push(Arc::new(rule)))
    }

    /// Sets limits in addition to those of its callers: the tighter ones apply.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        self.with(|tool| tool.limits = limits)
    }

    /// Returns its own limits; unlimited unless they were set.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    /// Returns these limits, tightened by the tool's own and by its definition's `max_execution`.
    pub(crate) fn tightened(&self, limits: Limits) -> Limits {
        let limits = limits.tightened(&self.limits());
        let timeout =
            self.definition().max_execution.map_or(limits.timeout, |own| limits.timeout.min(own));
        Limits { timeout, ..limits }
    }

    /// Puts a [`Middleware`] around its handler; of several, the one that was added last runs
    /// first. A tool without a handler is not changed.
    #[must_use]
    pub fn with_middleware(self, middleware: impl Middleware) -> Self {
        self.with(|tool| {
            tool.handler =
                tool.handler.take().map(|inner| Arc::new(Layered { middleware, inner }) as _);
        })
    }

    /// Sets the version of the code behind the tool. Under a sealer, an answer to a question of
    /// another version is refused. Components need no version, because their digest is one. Source:
    /// docs/contract.md, section 7.
    #[must_use]
    pub fn with_version(self, version: impl Into<String>) -> Self {
        self.with(|tool| tool.version = Some(version.into()))
    }

    /// Returns the identity of the code behind the tool: its version, or the digest of its handler.
    pub(crate) fn code(&self) -> Option<&str> {
        self.0.version.as_deref().or_else(|| self.handler().and_then(|handler| handler.digest()))
    }

    /// Sets the rights of its handler.
    pub(crate) fn with_rights(self, rights: Rights) -> Self {
        self.with(|tool| tool.rights = Some(rights))
    }

    /// Returns the tool's rights, before a tenant's or a call's overlay narrows them. `None` for
    /// native tools, which have the rights of the process.
    #[must_use]
    pub fn rights(&self) -> Option<&Rights> {
        self.0.rights.as_ref()
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        inner.counters = Arc::default();
        change(&mut inner);
        Self(Arc::new(inner))
    }

    /// Returns the statistics of its calls.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.0.counters.read()
    }

    /// Returns the last failure that [`statistics`](Self::statistics) counts.
    #[must_use]
    pub fn last_error(&self) -> Option<LastError> {
        self.0.counters.last_error()
    }

    /// Resets the statistics.
    pub fn clear_statistics(&self) {
        self.0.counters.clear();
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// Returns the same tool with the counters of `other`.
    pub(crate) fn counting_with(self, other: &Self) -> Self {
        self.with(|tool| tool.counters = Arc::clone(&other.0.counters))
    }

    /// Returns true if the tool accepts a call, by its name and by its rules.
    #[must_use]
    pub fn can_execute(&self, call: &ToolCall) -> bool {
        call.name == self.definition().name && self.0.rules.take(call)
    }

    /// Returns true if the tool is offered in every context.
    pub(crate) fn always_visible(&self) -> bool {
        self.0.rules.visible.is_empty() && self.handler().is_none_or(Handler::always_visible)
    }

    /// Returns true if the tool is offered in this context, for a list: without arguments. A tool
    /// with a check of its own runs it, a component in a cell of its own; if the check fails, the
    /// tool is not offered.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub async fn is_visible(&self, context: &CallContext) -> bool {
        self.is_visible_with(&Value::Null, context).await
    }

    /// Returns true if the tool is offered for a call with these arguments. `null` stands for none.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub async fn is_visible_with(&self, arguments: &Value, context: &CallContext) -> bool {
        self.is_visible_beside(arguments, context, CheckSettings::default()).await
    }

    /// Answers [`is_visible_with`](Self::is_visible_with) for an executor.
    pub(crate) async fn is_visible_beside(
        &self,
        arguments: &Value,
        context: &CallContext,
        beside: CheckSettings,
    ) -> bool {
        if !self.0.rules.show(arguments, context) {
            return false;
        }
        let Some(handler) = self.handler() else { return true };
        if handler.always_visible() {
            return true;
        }
        let limits = Limits { timeout: VISIBLE_TIMEOUT, fuel: VISIBLE_FUEL, ..Limits::default() };
        let call = ToolCall::with_value("", self.definition().name.as_str(), arguments);
        // A question's state must not be visible before it is unsealed.
        let mut context = context.clone();
        context.resume = None;
        let aside = Invocation::outside_call(call, arguments.clone(), context, limits);
        let CheckSettings { caller, is_shared, fuel } = beside;
        let meter = Arc::new(Meter::of_check(fuel));
        let invocation = Arc::new(Invocation { caller, is_shared, meter, ..aside });
        let asked = GuardedFuture::new(|| handler.visible(Arc::clone(&invocation)));
        let answer = clock::before(invocation.deadline(), asked).await;
        invocation.meter.tell_check();
        answer.and_then(|answer| answer.map_err(dispose).ok()).unwrap_or(false)
    }

    /// Returns the definition, with its schemas in JSON Schema 2020-12: a schema of an earlier
    /// draft is translated, and parts that cannot be enforced are left out (see
    /// [`Definition::unenforced`]).
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.0.definition
    }

    pub(crate) fn parameters(&self) -> Option<&Schema> {
        self.0.parameters.as_deref()
    }

    pub(crate) fn output(&self) -> Option<&Schema> {
        self.0.output.as_deref()
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.0.rules
    }

    pub(crate) fn circuit(&self) -> Option<&Circuit> {
        self.0.circuit.as_deref()
    }

    pub(crate) fn handler(&self) -> Option<&dyn Handler> {
        self.0.handler.as_deref()
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(&self.0.definition.name).finish()
    }
}
/// Returns the tool of this name among those of a component.
///
/// # Errors
/// [`Error::is_unknown_tool`], with the nearest name as a hint.
pub(crate) fn find_tool<'a>(tools: &'a [Tool], name: &str) -> Result<&'a Tool, Error> {
    let known = || tools.iter().map(|tool| tool.definition().name.clone()).collect();
    let found = tools.iter().find(|tool| tool.definition().name == name);
    found.ok_or_else(|| Error::no_such_tool(name, known()))
}
