//! Implements the import `invoke`, by which a tool calls another tool.
//!
//! The guest (the WebAssembly code of a tool) names a tool and passes arguments as JSON. The call
//! needs a grant. It is given to the [`Invoker`] of the executor, with the limits that are left of
//! this call: fuel (executed instructions), time, memory, log and host calls. The guest gets the
//! end of the other call as JSON, or a fault: denied, unavailable, or a limit. A question to the
//! user comes without its state, which is for the tool that asked.
//! A tool of another component can do no more than this tool's own rights allow. All that the other
//! call uses is charged to this one, also if it is dropped. In a dry run (a call that records what
//! it would need) nothing is called, and the guest gets the value `null`.
//! Not here: finding and running the other tool (`executor/sub_calls`).

use std::sync::{Arc, atomic::Ordering::Relaxed};

use serde::Serialize;
use toolcell_contract::call::{CallResult, usage::Meter};
use toolcell_contract::grants::rights::{Decision, Request, Rights};
use toolcell_contract::{controls::enforced, limits::Limits, outcome::Outcome};
use wasmtime::{StoreContextMut, component::Linker};

use super::secrets::denial_text;
use crate::engine::cell::Cell;
use crate::engine::cell::bindings::toolcell::tool::invoke::{Ending, Fault};
use crate::secrets::secret_redactor::SecretRedactor;
use crate::tool::handler::{Invoker, SubCall};

/// The answer to a call in a dry run.
const STAND_IN: &str = r#"{"value":null}"#;

/// Links the interface by hand: the fuel counter belongs to the store, which a host trait does not
/// see.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    linker
        .instance("toolcell:tool/invoke@0.1.0")?
        .func_wrap_async("call", |store, (name, arguments)| {
            Box::new(called(store, name, arguments))
        })
}

type Answer = (Result<Ending, Fault>,);

#[expect(
    clippy::manual_async_fn,
    reason = "the function is recursive through calls of tools, so the bound `Send` has to be written"
)]
fn called(
    mut store: StoreContextMut<'_, Cell>,
    name: String,
    arguments: String,
) -> impl Future<Output = wasmtime::Result<Answer>> + Send {
    async move {
        let fuel = store.get_fuel()?;
        let cell = store.data_mut();
        cell.called("invoke", "call")?;
        if cell.scope.resources.recorder.is_some() {
            let asked = cell.scope.authorize(&Request::Invoke { tool: name.into(), own: false });
            return Ok((asked
                .map(|()| Ending::Ok(STAND_IN.into()))
                .map_err(|denial| Fault::Denied(denial_text(&denial))),));
        }
        let (invoker, (call, options, caller)) = match cell.sub_call(&name, arguments, fuel) {
            Ok(made) => made,
            Err(fault) => return Ok((Err(fault),)),
        };
        cell.run_state.waits();
        let charging = Charging { store, meter: Arc::clone(&caller.meter) };
        let completion = invoker.invoke(call, options, caller).await;
        drop(charging);
        Ok((Ok(ending(completion.result)?),))
    }
}

impl Cell {
    /// Prepares a call of another tool, if this tool may make it.
    fn sub_call(
        &mut self,
        name: &str,
        arguments: String,
        fuel: u64,
    ) -> Result<(Arc<dyn Invoker>, SubCall), Fault> {
        let rights = self.caller_rights(name)?;
        let Some(invoker) = self.scope.invocation.invoker.clone() else {
            return Err(Fault::Unavailable("on this host, a tool cannot call other tools".into()));
        };
        let redactor = self.scope.redactor.as_ref();
        let redactor = redactor.map(|redactor| SecretRedactor(redactor.redactor()));
        let left = self.remaining(fuel);
        let made =
            self.scope.invocation.sub_call(&*invoker, (name, arguments), rights, redactor, left);
        Ok((invoker, made.map_err(|excess| Fault::Limit(excess.to_string()))?))
    }

    /// Returns the upper bound of the other tool's rights. `None`: its own rights apply.
    fn caller_rights(&self, name: &str) -> Result<Option<Arc<Rights>>, Fault> {
        let request = |own| Request::Invoke { tool: name.into(), own };
        if self.scope.rights.allows(&request(true)) == Decision::Allowed {
            return Ok(None);
        }
        match self.scope.authorize(&request(false)) {
            Err(denial) if enforced!(InvokeGrant) => Err(Fault::Denied(denial_text(&denial))),
            Err(_) | Ok(()) => Ok(enforced!(CallerRights).then(|| Arc::clone(&self.scope.rights))),
        }
    }

    /// Returns what this call has left of its limits.
    fn remaining(&self, fuel: u64) -> Limits {
        let limits = self.scope.invocation.limits;
        if !is_budget_shared() {
            return limits;
        }
        let logged = self.scope.invocation.meter.log_bytes.load(Relaxed);
        Limits {
            fuel,
            timeout: self.scope.invocation.remaining(),
            memory: self.limiter.remaining(),
            log: limits.log.saturating_sub(logged),
            host_calls: limits.host_calls.saturating_sub(self.host_calls),
            // A limit that a call uses up needs a field: without one, each sub-call gets all of it.
            ..limits
        }
    }
}

/// Returns true if sub-calls use what is left of the limits of their call.
fn is_budget_shared() -> bool {
    enforced!(SubCallBudget)
}

/// Charges this call with the usage of a sub-call, also if the sub-call is dropped.
struct Charging<'a> {
    store: StoreContextMut<'a, Cell>,
    meter: Arc<Meter>,
}

impl Drop for Charging<'_> {
    fn drop(&mut self) {
        if !is_budget_shared() {
            return;
        }
        let left = self.store.get_fuel().unwrap_or_default();
        // It cannot fail, since the engine meters fuel.
        let _ = self.store.set_fuel(left.saturating_sub(self.meter.fuel.load(Relaxed)));
        let cell = self.store.data_mut();
        let host_calls = self.meter.host_calls.load(Relaxed);
        cell.host_calls = cell.host_calls.saturating_add(host_calls);
        let of_call = &cell.scope.invocation.meter;
        of_call.log_bytes.fetch_add(self.meter.log_bytes.load(Relaxed), Relaxed);
        let dropped = self.meter.log_bytes_dropped.load(Relaxed);
        of_call.log_bytes_dropped.fetch_add(dropped, Relaxed);
    }
}

fn ending(result: CallResult) -> wasmtime::Result<Ending> {
    fn text(value: &impl Serialize) -> wasmtime::Result<String> {
        Ok(serde_json::to_string(value)?)
    }
    Ok(match result {
        CallResult::Outcome(Outcome::Ok(output)) => Ending::Ok(text(&output)?),
        CallResult::Outcome(Outcome::Error(error)) => Ending::Error(text(&error)?),
        // The state of a question is for the tool that asked, not for its caller.
        CallResult::Outcome(Outcome::AskUser(mut question)) => {
            question.state = None;
            Ending::AskUser(text(&question)?)
        }
        CallResult::Outcome(Outcome::Halt(halt)) => Ending::Halt(text(&halt)?),
        CallResult::ToolError(error) => Ending::ToolError(text(&error)?),
        CallResult::Refusal(refusal) => Ending::Refusal(text(&refusal)?),
    })
}
