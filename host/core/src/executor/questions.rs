//! Checks a tool outside of its calls: is it visible to a caller, and are arguments valid.
//!
//! A server calls [`Executor::is_visible`] when it lists tools for a tenant, and an embedder (the
//! program that uses this library) calls [`Executor::validate`] to get all faults of a call without
//! making it. The executor also asks for the visibility of a tool after it refused a call, so that
//! a caller learns nothing about a tool that it must not see. A tool can decide by itself, in a
//! cell (a fresh WebAssembly instance for one call) of its own. These answers are part of no call's
//! usage, and observers of calls get no events; only the observer of [`Executor::with_check_fuel`]
//! gets the fuel (executed instructions) that they used.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcell_contract::call::usage::{CheckFuel, Meter};
use toolcell_contract::call::{CallContext, ToolCall};
use toolcell_contract::json::parse_strict;
use toolcell_contract::outcome::refusal::{Fault, Refusal};
use toolcell_contract::outcome::tool_error::ToolError;
use toolcell_contract::panic_guard::GuardedFuture;

use super::checks::{Rejection, invalid, panicked};
use super::{Executor, JsonReservation};
use crate::tool::handler::{Caller, CheckSettings};
use crate::tool::handler_wait::{self, WaitResult};
use crate::tool::{Tool, handler::options::CallOptions};

/// The longest time that a check waits for its turn to parse large arguments.
const TREE_TIME: Duration = Duration::from_secs(10);

impl Executor {
    /// Sets an observer for the fuel that tools use for checks outside of their calls: for
    /// [`is_visible`](Self::is_visible), for [`validate`](Self::validate), and for the check
    /// whether the caller of a refused or failed call may see the tool. No usage contains this
    /// fuel, because it would tell a caller that there is a tool. Use it to charge the
    /// caller's quota.
    ///
    /// `report` is called on the thread that runs the check, with the fuel that was used since the
    /// last time. It must be quick and must not block.
    pub fn with_check_fuel(mut self, report: impl Fn(u64) + Send + Sync + 'static) -> Self {
        self.check_fuel = Some(CheckFuel(Arc::new(report)));
        self
    }

    /// Does the same as [`Tool::is_visible_with`], for one of this executor's tenants: the tenant
    /// must be known, as for a call, and be offered the tool
    /// ([`Tenant::tools`](crate::Tenant::tools)), a tool that decides by itself leaves cells to the
    /// other tenants, and its fuel is reported to the observer of
    /// [`with_check_fuel`](Self::with_check_fuel). Pass no arguments for a list. Arguments that are
    /// not JSON count as `null`.
    ///
    /// Large arguments wait for their turn to be parsed, as those of a call do, for 10 s or the
    /// time of a call. Returns `None` if there is no room for them.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub async fn is_visible(
        &self,
        tool: &Tool,
        arguments: Option<&str>,
        context: &CallContext,
    ) -> Option<bool> {
        let tenant = context.tenant.as_deref();
        let refused = self.refusal(tenant, self.defined(tenant).1, tool);
        if refused.is_some() || tool.always_visible() {
            return Some(refused.is_none());
        }
        let text = arguments.unwrap_or("null");
        let deadline = Instant::now() + self.limits().timeout.min(TREE_TIME);
        let mut room = JsonReservation::take(tenant, text, deadline).await?;
        let arguments = parse_strict(text).unwrap_or_default();
        room.end_parsing();
        Some(tool.is_visible_beside(&arguments, context, self.check_settings(None)).await)
    }

    /// Returns all faults in a call's arguments that the host's checks and the tool's own check
    /// find, without making the call. If the tool is not offered in this context, that is the only
    /// fault. Source: docs/contract.md, section 4.
    ///
    /// # Errors
    /// [`ToolError`] if a check panicked, or ended without an answer.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub async fn validate(
        &self,
        tool: &Tool,
        call: ToolCall,
        options: CallOptions,
    ) -> Result<Vec<Fault>, ToolError> {
        let (mut invocation, refused) = self.admitted(tool, call, options, None);
        invocation.meter = Arc::new(Meter::of_check(self.check_fuel.clone()));
        let mut invocation = Arc::new(invocation);
        let checked = match refused {
            Some(refused) => Err(refused.into()),
            None => self.checked(tool, &mut invocation).await,
        };
        let refused = match (checked, tool.handler()) {
            (Err(refused), _) => refused,
            (Ok(()), None) => return Ok(Vec::new()),
            (Ok(()), Some(handler)) => {
                let asked = GuardedFuture::new(|| handler.validate(Arc::clone(&invocation)));
                let waited = handler_wait::wait(handler, &invocation, asked).await;
                invocation.meter.tell_check();
                let answer = match waited {
                    WaitResult::InTime(answer) => {
                        answer.unwrap_or_else(|panic| Err(panicked(panic)))
                    }
                    WaitResult::Late(_, timeout) => Err(ToolError::Timeout(timeout)),
                    WaitResult::Unanswered(error) => Err(error),
                };
                // The embedder's rules have shown the tool; the handler's own check has not run.
                let is_shown = handler.always_visible();
                match answer {
                    Ok(faults) if faults.is_empty() && is_shown => return Ok(faults),
                    Err(error) if is_shown || invocation.abort.is_raised() => return Err(error),
                    Ok(faults) => invalid(faults).into(),
                    Err(error) => Rejection::Failed(error),
                }
            }
        };
        match self.visible_refusal(tool, refused, &invocation).await {
            Rejection::Refused(Refusal::InvalidArguments(faults)) => Ok(faults),
            Rejection::Refused(refusal) => Ok(vec![Fault::new("", refusal.to_string())]),
            Rejection::Failed(error) => Err(error),
        }
    }

    /// Returns the settings of this executor that a check needs.
    pub(super) fn check_settings(&self, caller: Option<Arc<Caller>>) -> CheckSettings {
        CheckSettings { caller, is_shared: self.is_shared(), fuel: self.check_fuel.clone() }
    }

    /// Returns true if the executor defines several tenants. Calls without a tenant count as one.
    pub(super) fn is_shared(&self) -> bool {
        self.has_others || self.tenants.len() + usize::from(self.untenanted.is_some()) > 1
    }

    /// Sets whether there are tenants that are not defined here.
    pub(crate) fn with_others(mut self, has_others: bool) -> Self {
        self.has_others = has_others;
        self
    }
}
