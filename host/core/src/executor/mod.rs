//! Makes one call: from a model's text to a completion.
//!
//! An embedder (the program that uses this library), a run or a step passes a [`Tool`], a
//! [`ToolCall`] and [`CallOptions`] to [`Executor::call`]. The executor takes the smallest limits
//! of executor, call, tool and tenant, checks the arguments, calls the tool's handler (the code
//! behind the tool: a component, run in a fresh WebAssembly instance; a closure; a worker process),
//! checks the answer, seals (encrypts for the client) a question's state, and reads the usage: the
//! resources that the call took. It always returns a [`Completion`]; a failure or a refusal is part
//! of it, and a panic of the handler too.
//!
//! Exactly one terminal event is sent for each call, even if the future is dropped. With a sealer,
//! the state of a question never leaves unsealed, and a state that comes in is authenticated before
//! it is used. The executor knows no list of tools and invents no ids.

mod checking;
mod checks;
mod off_thread;
mod questions;
mod sealing;
mod sub_calls;
mod terminal;
mod trees;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use toolcell_contract::call::{CallResult, Completion, ToolCall, usage::CheckFuel};
use toolcell_contract::controls::enforced;
use toolcell_contract::event::{CallEvents, EventSink, Events};
use toolcell_contract::json::or_empty_object;
use toolcell_contract::limits::Limits;
use toolcell_contract::outcome::refusal::Refusal;
use toolcell_contract::outcome::tool_error::{Exit, ToolError};
use toolcell_contract::panic_guard::GuardedFuture;
use tracing::Instrument as _;

use crate::seal::Sealer;
use crate::secrets::secret_redactor::SecretRedactor;
use crate::tenant::{Tenant, state::TenantState};
use crate::tool::handler::{Caller, Invocation};
use crate::tool::{Tool, handler::options::CallOptions, handler_wait, statistics::Counting};
use checking::in_turn;
use checks::{Rejection, panicked};
use sealing::Sealing;
use sub_calls::Callable;
use terminal::Terminal;
pub use trees::JsonReservation;

/// The result of a call that its caller ended.
const CANCELLED: ToolError = ToolError::HandlerExit(Exit::Cancelled);

/// Makes calls. Cheap to clone.
///
/// # Defaults
/// [`Limits::default`] (in a run the run's own time, see
/// [`Runner::with_executor`](crate::Runner::with_executor)), no observer, questions sealed with a
/// key that the process generates and does not store. After a restart, open questions cannot be
/// answered, and another process cannot answer them either. If they should be, use
/// [`with_sealer`](Self::with_sealer) with a key that is stored, such as
/// [`Sealer::from_directory`].
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Executor {
    /// The limits that the embedder set, if any.
    limits: Option<Limits>,
    events: Events,
    sealing: Sealing,
    tenants: Arc<BTreeMap<String, (Arc<TenantState>, Tenant)>>,
    /// The settings of calls without a tenant.
    untenanted: Option<Tenant>,
    callable: Option<Callable>,
    /// `None` means the default.
    call_depth: Option<u32>,
    check_fuel: Option<CheckFuel>,
    /// True if there are tenants that are not defined here.
    has_others: bool,
}

impl Executor {
    /// The depth to which tools can call tools, unless the embedder sets another one.
    pub const DEFAULT_CALL_DEPTH: u32 = 4;

    /// Creates an executor with the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limits of every call.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Returns the limits for every call.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits.unwrap_or_default()
    }

    /// Removes the default timeout, because in a run the run sets it. Limits that the embedder set
    /// stay.
    pub(crate) fn of_a_run(mut self) -> Self {
        self.limits.get_or_insert_with(|| Limits { timeout: Duration::MAX, ..Limits::default() });
        self
    }

    /// Defines a tenant: its limits, overlay and list of tools narrow every call for it.
    ///
    /// Once any tenant is defined, a call for an unknown tenant is refused
    /// ([`Refusal::UnknownTenant`]), because no limits or overlay would narrow it. So is a call
    /// without a tenant ([`Refusal::NoTenant`]), unless [`with_anonymous`](Self::with_anonymous)
    /// allows it. If no tenant is defined, calls for all tenants run with the executor's own
    /// limits.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use serde_json::{Value, json};
    /// use toolcell::{
    ///     CallContext, CallOptions, CallResult, Definition, Executor, Limits, Refusal, Tenant, Tool, ToolCall,
    /// };
    ///
    /// let tool = Tool::native(Definition::new("now", "Tells the time.")?, async |_: Value| json!("noon"))?;
    /// let limits = Limits { memory: 16 << 20, ..Limits::unlimited() };
    /// let plan = Tenant { limits, ..Tenant::default() };
    /// let executor = Executor::new().with_tenant("acme", plan);
    /// let call_for = async |tenant: &str| {
    ///     let mut context = CallContext::default();
    ///     context.tenant = Some(tenant.into());
    ///     let options = CallOptions { context: context.into(), ..CallOptions::default() };
    ///     executor.call(&tool, ToolCall::new("call-1", "now", "{}"), options).await.result
    /// };
    /// assert!(call_for("acme").await.value().is_some());
    /// assert_eq!(call_for("unknown").await, CallResult::Refusal(Refusal::UnknownTenant));
    /// # Ok(()) }
    /// ```
    pub fn with_tenant(mut self, name: impl Into<String>, tenant: Tenant) -> Self {
        let name = name.into();
        let state = TenantState::of(Some(&name));
        Arc::make_mut(&mut self.tenants).insert(name, (state, tenant));
        self
    }

    /// Allows calls without a tenant although tenants are defined. `tenant` narrows them.
    pub fn with_anonymous(mut self, tenant: Tenant) -> Self {
        self.untenanted = Some(tenant);
        self
    }

    /// Returns the defined tenants by name, then, as `None`, calls without a tenant if
    /// [`with_anonymous`](Self::with_anonymous) allows them.
    pub fn tenants(&self) -> impl Iterator<Item = (Option<&str>, &Tenant)> + Clone {
        let named = self.tenants.iter().map(|(name, (_, tenant))| (Some(name.as_str()), tenant));
        named.chain(self.untenanted.iter().map(|tenant| (None, tenant)))
    }

    /// Returns the state and the settings of a tenant that is defined here. Calls without a tenant
    /// have settings only.
    fn defined(&self, name: Option<&str>) -> (Option<&Arc<TenantState>>, Option<&Tenant>) {
        match name {
            Some(name) => self.tenants.get(name).map(|(state, tenant)| (state, tenant)).unzip(),
            None => (None, self.untenanted.as_ref()),
        }
    }

    /// Returns the refusal of a tenant's calls of this tool if the tenant, which has these
    /// settings, is unknown or the tool is not offered to it.
    fn refusal(
        &self,
        name: Option<&str>,
        narrowed: Option<&Tenant>,
        tool: &Tool,
    ) -> Option<Refusal> {
        match (narrowed, name) {
            (Some(tenant), _)
                if tenant.offers(&tool.definition().name) || !enforced!(TenantTools) =>
            {
                None
            }
            (Some(_), _) => Some(Refusal::NotVisible),
            (None, _) if self.tenants.is_empty() || !enforced!(KnownTenants) => None,
            (None, None) => Some(Refusal::NoTenant),
            (None, Some(_)) => Some(Refusal::UnknownTenant),
        }
    }

    /// Sets the observer.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), toolcell::Error> {
    /// use std::sync::mpsc::{Sender, channel};
    /// use toolcell::{CallOptions, Definition, Event, EventSink, Executor, Tool, ToolCall};
    ///
    /// /// Passes on the names of the calls that have ended.
    /// struct Ended(Sender<String>);
    ///
    /// impl EventSink for Ended {
    ///     fn emit(&self, event: Event) {
    ///         if let Event::Completed { name, .. } = event {
    ///             let _ = self.0.send(name);
    ///         }
    ///     }
    /// }
    ///
    /// let tool = Tool::native(Definition::new("greet", "Greets.")?, async |_: serde_json::Value| serde_json::json!("hello"))?;
    /// let (sender, ended) = channel();
    /// let executor = Executor::new().with_events(Ended(sender));
    /// executor.call(&tool, ToolCall::new("call-1", "greet", "{}"), CallOptions::default()).await;
    /// assert_eq!(ended.recv().as_deref(), Ok("greet"));
    /// # Ok(()) }
    /// ```
    pub fn with_events(mut self, sink: impl EventSink) -> Self {
        self.events = Events::to(Arc::new(sink));
        self
    }

    /// Seals every question: its `state` becomes a text that only this key can open, even if the
    /// tool left no state. A call with an answer must contain that text, before it expires, for the
    /// same tenant, the same tool in the same version, and the same arguments. Otherwise the call
    /// is refused, and the refusal says why. Source: docs/contract.md, section 7.
    pub fn with_sealer(mut self, sealer: Sealer) -> Self {
        self.sealing = Sealing::Given(sealer);
        self
    }

    /// Seals no question: a tool's state goes to the client as it is, and the state that comes back
    /// with an answer goes to the tool unchecked. Use it only if all clients are trusted.
    pub fn without_sealer(mut self) -> Self {
        self.sealing = Sealing::Off;
        self
    }

    /// Adds an observer to the present one. The new one receives each event first.
    pub fn with_additional_events(mut self, sink: impl EventSink) -> Self {
        self.events = self.events.and(sink);
        self
    }

    /// Calls this tool, and counts the call in the tool's statistics. A failed call is part of the
    /// completion. The call's name is not compared with the tool's: the handler and the completion
    /// get the tool's name. Blank arguments count as `{}`, because providers send them for a tool
    /// without parameters. To end the call early and get its completion, raise
    /// [`abort`](CallOptions::abort) of the options.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), toolcell::Error> {
    /// use serde_json::{Value, json};
    /// use toolcell::{CallOptions, Definition, Executor, Tool, ToolCall};
    ///
    /// let tool = Tool::native(Definition::new("now", "Tells the time.")?, async |_: Value| json!("noon"))?;
    /// let call = ToolCall::new("call-1", "now", "{}");
    /// let completion = Executor::new().call(&tool, call, CallOptions::default()).await;
    /// match (completion.output(), completion.failure()) {
    ///     (Some(output), _) => assert_eq!(output.value.as_str(), "\"noon\""),
    ///     (None, Some(failure)) => panic!("{failure}"),
    ///     (None, None) => panic!("a question or a halt"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// If the future is dropped, the guest stops at its next tick, everything it held is released,
    /// and observers get a completion with `handler_exit`, status `cancelled`.
    pub async fn call(&self, tool: &Tool, call: ToolCall, options: CallOptions) -> Completion {
        let counting = Counting::new(tool.counters());
        counting.end(self.uncounted(tool, call, options, None).await)
    }

    /// Makes a call without counting it. The caller counts it, because its result may yet fail to
    /// be encoded.
    pub(crate) async fn uncounted(
        &self,
        tool: &Tool,
        call: ToolCall,
        options: CallOptions,
        caller: Option<Arc<Caller>>,
    ) -> Completion {
        let (invocation, refused) = self.admitted(tool, call, options, caller);
        let mut terminal = Terminal::open(tool, invocation);
        let refused = match refused {
            Some(refused) => Some(refused.into()),
            None => self.checked(tool, &mut terminal.invocation).await.err(),
        };
        let invocation = &terminal.invocation;
        let result = match (refused, tool.handler()) {
            (Some(Rejection::Refused(Refusal::Overloaded { .. })), _)
                if invocation.abort.is_raised() =>
            {
                CallResult::ToolError(CANCELLED)
            }
            (Some(refused), _) => self.visible_refusal(tool, refused, invocation).await.into(),
            (None, None) => CallResult::ToolError(ToolError::NotFound),
            (None, Some(_)) if handler_wait::is_forced(invocation) => {
                CallResult::ToolError(CANCELLED)
            }
            (None, Some(handler)) => {
                if !handler.enforces_deadline() {
                    invocation.open();
                }
                let answer = GuardedFuture::new(|| handler.call(Arc::clone(invocation)))
                    .instrument(invocation.span.clone());
                let answer = answer.map(|said| {
                    said.unwrap_or_else(|panic| CallResult::ToolError(panicked(panic)))
                });
                let result = handler_wait::wait(handler, invocation, answer).await.result();
                let result = match invocation.caller.as_deref() {
                    Some(Caller { redactor: Some(veiled), .. }) => {
                        // Boxed, because it is rare and would make the future of every call larger.
                        Box::pin(without_secrets(veiled, result, invocation)).await
                    }
                    Some(_) | None => result,
                };
                let result = self.check_result(tool, result, invocation).await;
                self.visible_result(tool, result, invocation).await
            }
        };
        terminal.close(result)
    }

    /// Returns the refusal that the caller gets. If the caller must not see the tool, that is
    /// `NotVisible`, so that the caller learns nothing about the tool's parameters.
    async fn visible_refusal(
        &self,
        tool: &Tool,
        refused: Rejection,
        invocation: &Invocation,
    ) -> Rejection {
        match refused {
            Rejection::Refused(refusal) if is_of_any_tool(&refusal, invocation) => refusal.into(),
            refused if self.is_visible_to_caller(tool, invocation).await => refused,
            Rejection::Refused(_) | Rejection::Failed(_) => Refusal::NotVisible.into(),
        }
    }

    /// Does the same for a call that failed, because it may have failed before the tool could
    /// refuse to be visible.
    async fn visible_result(
        &self,
        tool: &Tool,
        result: CallResult,
        invocation: &Invocation,
    ) -> CallResult {
        let is_known = match &result {
            CallResult::Outcome(_) => true,
            CallResult::Refusal(refusal) => is_of_any_tool(refusal, invocation),
            // A caller that cancels a call knows that the tool exists.
            CallResult::ToolError(_) => invocation.abort.is_raised(),
        };
        if is_known || self.is_visible_to_caller(tool, invocation).await {
            result
        } else {
            CallResult::Refusal(Refusal::NotVisible)
        }
    }

    /// Returns true if the caller of a call that was refused or failed may see the tool.
    async fn is_visible_to_caller(&self, tool: &Tool, invocation: &Invocation) -> bool {
        if tool.always_visible() || !enforced!(Visibility) {
            return true;
        }
        let arguments = checks::raw_arguments(invocation);
        // Boxed, because it is rare and would make the future of every call larger.
        let beside = self.check_settings(invocation.caller.clone());
        let shown = Box::pin(tool.is_visible_beside(&arguments, &invocation.context, beside));
        tokio::select! {
            biased;
            shown = shown => shown,
            () = handler_wait::forced(&invocation.abort, invocation.stop_grace) => false,
        }
    }

    /// Completes a call that is not made because its caller cancelled it. Sends its events.
    pub(crate) fn cancelled(
        &self,
        tool: &Tool,
        call: ToolCall,
        options: CallOptions,
    ) -> Completion {
        let (invocation, _) = self.admitted(tool, call, options, None);
        Terminal::open(tool, invocation).close(CallResult::ToolError(CANCELLED))
    }

    /// Completes a call whose name no tool has. Sends its events.
    pub(crate) fn not_found(
        &self,
        tool: &Tool,
        call: ToolCall,
        options: CallOptions,
        caller: Option<Arc<Caller>>,
    ) -> Completion {
        let (invocation, refused) = self.admitted(tool, call, options, caller);
        // No tenant's list has to offer a name that no tool has.
        let unknown = refused.filter(|refusal| *refusal != Refusal::NotVisible);
        let result =
            unknown.map_or(CallResult::ToolError(ToolError::NotFound), CallResult::Refusal);
        Terminal::open(tool, invocation).close(result)
    }

    /// Builds the invocation, unchecked, and returns the refusal if the tenant is unknown or is not
    /// offered the tool.
    fn admitted(
        &self,
        tool: &Tool,
        mut call: ToolCall,
        mut options: CallOptions,
        caller: Option<Arc<Caller>>,
    ) -> (Invocation, Option<Refusal>) {
        let started = Instant::now();
        let name = options.context.tenant.as_deref();
        let (state, narrowed) = self.defined(name);
        let tenant = state.map_or_else(|| TenantState::of(name), Arc::clone);
        let refused = self.refusal(name, narrowed, tool);
        options.limits = tool.tightened(self.limits().tightened(&options.limits));
        if let Some(narrowed) = narrowed {
            options.limits = options.limits.tightened(&narrowed.limits);
        }
        let events = CallEvents::new(self.events.clone());
        if let Some(veiled) = caller.as_ref().and_then(|caller| caller.redactor.clone()) {
            events.set_redactor(move |event| veiled.event(event));
        }
        // The caller resolved the name, perhaps an alias, to this tool. The invocation names the
        // tool that was checked and runs.
        call.name.clone_from(&tool.definition().name);
        call.arguments = or_empty_object(call.arguments);
        let mut invocation = Invocation::new(call, options, tenant, events, caller);
        invocation.started = started;
        invocation.is_shared = self.is_shared();
        invocation.overlays.tenant = narrowed.and_then(|narrowed| narrowed.overlay.clone());
        invocation.invoker = self.invoker();
        (invocation, refused)
    }
}

/// Removes the secrets of the tools that led to a call from its result. A search that may take long
/// waits for its turn, and runs on another thread.
async fn without_secrets(
    veiled: &SecretRedactor,
    result: CallResult,
    invocation: &Invocation,
) -> CallResult {
    if !SecretRedactor::is_slow(&result) {
        return veiled.result(result);
    }
    let veiled = veiled.clone();
    let searched = in_turn(invocation, move || veiled.result(result)).await;
    searched.unwrap_or_else(CallResult::ToolError)
}

/// Returns true if a refusal says nothing about the called tool. `Overloaded` does say
/// something if the call's time was too short to get a cell.
fn is_of_any_tool(refusal: &Refusal, invocation: &Invocation) -> bool {
    match refusal {
        Refusal::Overloaded { .. } => !invocation.remaining().is_zero(),
        Refusal::NotVisible
        | Refusal::Restarting { .. }
        | Refusal::UnknownTenant
        | Refusal::NoTenant => true,
        Refusal::InvalidArguments(_)
        | Refusal::NotAllowed
        | Refusal::CircuitOpen { .. }
        | Refusal::Quarantined
        | Refusal::Unavailable
        | Refusal::UnsetSecret(_)
        | Refusal::InvalidAnswer(_)
        | Refusal::Resume(_)
        | _ => false,
    }
}
