//! Prepares the calls that a tool makes of other tools.
//!
//! When a guest (the WebAssembly code of a tool) calls another tool, the engine asks
//! `Invocation::sub_call` for a [`SubCall`]: the call with its id, its options and a [`Caller`].
//! The `Caller` carries what the calling tool passes on: the upper bound of rights, a redactor of
//! its secrets, the budget of requests. Then the [`Invoker`], which the executor implements, makes
//! the call. It is refused as an [`Excess`] if the chain is too deep or the outermost call has
//! already led to 1000 calls. Values of the calling tool's secrets are removed from the arguments.
//! Together the calls use at most what the outermost call may use.
//!
//! Not here: the decision about a tool that may be called, in `rights`; the import of the guest, in
//! `engine/cell/imports/invoke`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::BoxFuture;
use toolcell_contract::call::{CallContext, Completion, ToolCall, usage::Meter};
use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::event::LogLevel;
use toolcell_contract::grants::rights::Rights;
use toolcell_contract::limits::Limits;

use super::{Invocation, options::CallOptions};
use crate::capability::http::Budget;
use crate::secrets::secret_redactor::SecretRedactor;

/// Makes calls for tools.
pub(crate) trait Invoker: Send + Sync {
    /// Returns the depth to which tools can call tools.
    fn most_depth(&self) -> u32;

    /// Makes a call.
    fn invoke<'a>(
        &'a self,
        call: ToolCall,
        options: CallOptions,
        caller: Arc<Caller>,
    ) -> BoxFuture<'a, Completion>;
}

/// The parts of the calling tool's own call that go with a call made by a tool.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The id of the calling tool's call.
    pub(crate) id: String,
    /// 1 for a call that the tool of the outermost call makes.
    pub(crate) depth: u32,
    /// The number of calls that the outermost call has led to.
    pub(crate) calls: Arc<AtomicU32>,
    /// The upper bound of the called tool's rights. `None` if there is no bound.
    pub(crate) rights: Option<Arc<Rights>>,
    /// Redacts the secrets of the calling tool, and of the tools that led to its call. `None` if
    /// they were granted no secrets.
    pub(crate) redactor: Option<SecretRedactor>,
    /// The budget of the call's requests.
    pub(crate) egress: Budget,
    /// The meter of the call, which can still be read if the call is dropped.
    pub(crate) meter: Arc<Meter>,
}

/// The reason why a call is refused: the chain of calls is too long, or has too many calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Excess {
    #[error(
        "tools can call tools at most {0} levels deep, and this call is already {0} levels deep"
    )]
    Depth(u32),
    #[error(
        "one call can lead to at most {0} calls of other tools, and that many were already made",
        Invocation::MAX_SUB_CALLS
    )]
    Count,
}

/// A call that may be made, with its options and the parts of its caller that go with it.
pub(crate) type SubCall = (ToolCall, CallOptions, Arc<Caller>);

impl Invocation {
    /// Builds a call of another tool on behalf of this one. `rights` is the upper bound of its
    /// rights, `veiled` redacts the secrets of this call, and `left` is what this call has left of
    /// its limits.
    pub(crate) fn sub_call(
        &self,
        invoker: &dyn Invoker,
        (name, arguments): (&str, String),
        rights: Option<Arc<Rights>>,
        veiled: Option<SecretRedactor>,
        left: Limits,
    ) -> Result<SubCall, Excess> {
        let depth = self.caller.as_ref().map_or(0, |caller| caller.depth).saturating_add(1);
        if depth > bound!(CallDepth, invoker.most_depth()) {
            return Err(Excess::Depth(invoker.most_depth()));
        }
        let made = self.caller.as_ref().map_or_else(|| &self.sub_calls, |caller| &caller.calls);
        let earlier = made.fetch_add(1, Ordering::Relaxed);
        if earlier >= bound!(SubCallCount, Invocation::MAX_SUB_CALLS) {
            return Err(Excess::Count);
        }
        let number = self.meter.sub_calls.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let caller = Caller {
            id: self.call.id.clone(),
            depth,
            calls: Arc::clone(made),
            rights,
            redactor: veiled.clone().filter(|_| enforced!(InheritedSecrets)),
            egress: self.egress_budget(),
            meter: Arc::default(),
        };
        let mut context = CallContext::clone(&self.context);
        (context.attempt, context.resume) = (None, None);
        let options = CallOptions {
            context: context.into(),
            limits: left,
            abort: self.abort.clone(),
            stop_grace: self.stop_grace,
            overlay: self.overlays.call.clone(),
            files: None,
        };
        let mut call = ToolCall::new(format!("{}/{number}", self.call.id), name, arguments);
        if let Some(veiled) = veiled.filter(|_| enforced!(PassedSecrets))
            && veiled.call(&mut call)
        {
            let removed = format!(
                "the value of a secret was removed from the arguments of the call of `{}`",
                call.name
            );
            self.noted(LogLevel::Warn, removed);
        }
        Ok((call, options, Arc::new(caller)))
    }
}

impl fmt::Debug for dyn Invoker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invoker")
    }
}
