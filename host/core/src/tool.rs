//! A tool: a definition, its compiled schemas, the embedder's rules for it, and what runs for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::breaker::Circuit;
use crate::call::{CallContext, ToolCall};
use crate::clock;
use crate::definition::Definition;
use crate::error::Error;
use crate::fence::{Fenced, dispose};
use crate::handler::{Beside, Handler, Invocation};
use crate::limits::Limits;
use crate::middleware::{Layered, Middleware};
use crate::native::{Native, NativeFn};
use crate::rights::Rights;
use crate::rules::Rules;
use crate::schema::Schema;
use crate::statistics::{Counters, LastError, Statistics};
use crate::usage::Meter;

/// A tool that can be called. Cheap to clone.
///
/// Its calls are counted, whether the [`Executor`](crate::Executor) makes them directly, for a run
/// or for a step: each once, for the tool and all its clones. What a method like
/// [`with_limits`](Self::with_limits) returns is another tool, which counts from zero.
#[derive(Clone)]
pub struct Tool(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    definition: Definition,
    parameters: Option<Arc<Schema>>,
    output: Option<Arc<Schema>>,
    handler: Option<Arc<dyn Handler>>,
    rules: Rules,
    circuit: Option<Arc<Circuit>>,
    rights: Option<Rights>,
    limits: Limits,
    version: Option<String>,
    counters: Arc<Counters>,
}

/// Time to say whether a tool is offered: a list waits for it.
const VISIBLE_TIMEOUT: Duration = Duration::from_secs(1);
/// Fuel for the same: a look at the context, nothing more.
const VISIBLE_FUEL: u64 = 50_000_000;

impl Tool {
    /// A tool without a handler (manual mode): the application answers its calls. The executor
    /// reports `not_found`.
    ///
    /// # Errors
    /// [`Error::is_definition`] when a schema is not usable.
    pub fn manual(definition: Definition) -> Result<Self, Error> {
        Self::build(definition, None)
    }

    /// A tool whose handler is an async closure: `async |arguments| …` or `async |arguments,
    /// invocation| …`.
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
    /// [`Error::is_definition`] when a schema is not usable.
    pub fn native<S: 'static>(
        definition: Definition,
        function: impl NativeFn<S>,
    ) -> Result<Self, Error> {
        Self::build(definition, Some(Arc::new(Native::new(function))))
    }

    /// A tool with any handler.
    ///
    /// # Errors
    /// [`Error::is_definition`] when a schema is not usable.
    pub fn with_handler(definition: Definition, handler: impl Handler) -> Result<Self, Error> {
        Self::build(definition, Some(Arc::new(handler)))
    }

    /// Stands for the tool of a call whose name no tool has, whatever that name is.
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

    /// The tool of these parts: the schemas are those of the parameters and of the output.
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

    /// Offers the tool only where `rule(arguments, context)` holds. The arguments are those of the
    /// call, before they are checked against the schema; for a list, where there are none yet, they
    /// are `null`. A tool that is not offered cannot be called either: `not_visible`. A further
    /// rule is added: the tool is offered where all of them hold. Source: contract, section 5.
    #[must_use]
    pub fn with_visibility(
        self,
        rule: impl Fn(&Value, &CallContext) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(|tool| tool.rules.visible.push(Arc::new(rule)))
    }

    /// Takes only calls that `rule` accepts; others are refused as `not_allowed`. If `rule` panics,
    /// the call is refused. A further rule is added: all of them have to accept a call. Source:
    /// docs/contract.md, section 4.
    #[must_use]
    pub fn with_can_execute(
        self,
        rule: impl Fn(&ToolCall) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(|tool| tool.rules.takes.push(Arc::new(rule)))
    }

    /// Checks arguments that fit the schema: `rule` returns everything that is wrong with them, in
    /// words for a model. Each text becomes the `expected` of a [`Fault`](crate::Fault) with an
    /// empty path. A further rule is added: the call is refused with what all of them found.
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

    /// With these limits in addition to those of its callers: the tighter ones apply.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        self.with(|tool| tool.limits = limits)
    }

    /// Its own limits; unlimited unless they were set.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    /// These limits, tightened by its own and by its definition's `max_execution`.
    pub(crate) fn tightened(&self, limits: Limits) -> Limits {
        let limits = limits.tightened(&self.limits());
        let timeout =
            self.definition().max_execution.map_or(limits.timeout, |own| limits.timeout.min(own));
        limits.with_timeout(timeout)
    }

    /// Puts a [`Middleware`] around its handler; of several, the one that was added last runs
    /// first. A tool without a handler stays without.
    #[must_use]
    pub fn with_middleware(self, middleware: impl Middleware) -> Self {
        self.with(|tool| {
            tool.handler =
                tool.handler.take().map(|inner| Arc::new(Layered { middleware, inner }) as _);
        })
    }

    /// Names the version of the code behind it: an answer to a question of another version is
    /// refused under a sealer. Components need none, their digest is theirs. Source:
    /// docs/contract.md, section 7.
    #[must_use]
    pub fn with_version(self, version: impl Into<String>) -> Self {
        self.with(|tool| tool.version = Some(version.into()))
    }

    /// What tells the code behind it from another version's.
    pub(crate) fn code(&self) -> Option<&str> {
        self.0.version.as_deref().or_else(|| self.handler().and_then(|handler| handler.digest()))
    }

    /// Notes what its handler may reach.
    pub(crate) fn with_rights(self, rights: Rights) -> Self {
        self.with(|tool| tool.rights = Some(rights))
    }

    /// What it may reach, before a tenant's or a call's overlay; none for native tools, which reach
    /// what the process does.
    #[must_use]
    pub fn rights(&self) -> Option<&Rights> {
        self.0.rights.as_ref()
    }

    /// Notes the circuit that a handler around its own opens and closes.
    pub(crate) fn with_circuit(self, circuit: Arc<Circuit>) -> Self {
        self.with(|tool| tool.circuit = Some(circuit))
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        inner.counters = Arc::default();
        change(&mut inner);
        Self(Arc::new(inner))
    }

    /// How its calls have ended.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.0.counters.read()
    }

    /// The last failure that [`statistics`](Self::statistics) counts.
    #[must_use]
    pub fn last_error(&self) -> Option<LastError> {
        self.0.counters.last_error()
    }

    /// Begins to count anew.
    pub fn clear_statistics(&self) {
        self.0.counters.clear();
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// The same tool, which counts on where `other` is.
    pub(crate) fn counting_with(self, other: &Self) -> Self {
        self.with(|tool| tool.counters = Arc::clone(&other.0.counters))
    }

    /// Whether this tool takes a call: by its name, and by the rule where one was set.
    #[must_use]
    pub fn can_execute(&self, call: &ToolCall) -> bool {
        call.name == self.definition().name && self.0.rules.take(call)
    }

    /// Whether it is offered in every context.
    pub(crate) fn always_visible(&self) -> bool {
        self.0.rules.visible.is_empty() && self.handler().is_none_or(Handler::always_visible)
    }

    /// Whether the tool is offered in this context, for a list: without arguments. One that decides
    /// by itself is asked, a component in a cell of its own; if it fails at that, it is not
    /// offered.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub async fn is_visible(&self, context: &CallContext) -> bool {
        self.is_visible_with(&Value::Null, context).await
    }

    /// The same for a call with these arguments. `null` stands for none.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub async fn is_visible_with(&self, arguments: &Value, context: &CallContext) -> bool {
        self.is_visible_beside(arguments, context, Beside::default()).await
    }

    /// Answers [`is_visible_with`](Self::is_visible_with) for an executor.
    pub(crate) async fn is_visible_beside(
        &self,
        arguments: &Value,
        context: &CallContext,
        beside: Beside,
    ) -> bool {
        if !self.0.rules.show(arguments, context) {
            return false;
        }
        let Some(handler) = self.handler() else { return true };
        if handler.always_visible() {
            return true;
        }
        let limits = Limits::default().with_timeout(VISIBLE_TIMEOUT).with_fuel(VISIBLE_FUEL);
        let call = ToolCall::with_value("", self.definition().name.as_str(), arguments);
        // An answer's state must not be seen before it was opened.
        let context = CallContext { resume: None, ..context.clone() };
        let aside = Invocation::aside(call, arguments.clone(), context, limits);
        let Beside { caller, is_shared, fuel } = beside;
        let meter = Arc::new(Meter::of_check(fuel));
        let invocation = Arc::new(Invocation { caller, is_shared, meter, ..aside });
        let asked = Fenced::new(|| handler.visible(Arc::clone(&invocation)));
        let answer = clock::before(invocation.deadline(), asked).await;
        invocation.meter.tell_check();
        match answer {
            Some(Ok(visible)) => visible,
            Some(Err(panic)) => {
                dispose(panic);
                false
            }
            None => false,
        }
    }

    /// The definition, with its schemas in JSON Schema 2020-12: a schema of an earlier draft is
    /// translated, and what cannot be enforced is left out (see [`Definition::unenforced`]).
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
/// The tool of this name among those of a component.
///
/// # Errors
/// [`Error::is_unknown_tool`], with the nearest name as a hint.
pub(crate) fn named<'a>(tools: &'a [Tool], name: &str) -> Result<&'a Tool, Error> {
    let known = || tools.iter().map(|tool| tool.definition().name.clone()).collect();
    let found = tools.iter().find(|tool| tool.definition().name == name);
    found.ok_or_else(|| Error::no_such_tool(name, known()))
}
