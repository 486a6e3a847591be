//! Disables the tools that may use a secret without a value; all others run.
//!
//! `Configuration::stopped` wraps such a tool with the middleware [`Stopped`] (code around a tool's
//! handler). At each call it finds the tenant and its secrets without a value, and refuses the call
//! if the tool's rights allow it to use one of them. The rights decide that, as at the use itself.
//! A model gets the secret's name, never the source of its value. A tenant whose own value cannot
//! be read does not get the shared value.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolcell::grants::{Decision, Request, Rights};
use toolcell::tool::{Handler, HandlerFuture, Invocation, Middleware};
use toolcell::{CallResult, Overlay, Refusal};

use crate::problem::Problem;

/// A secret without a value that calls may need.
#[derive(Debug, Clone, Copy)]
pub struct UnsetSecret<'a> {
    /// Its name.
    pub name: &'a str,
    /// The tenant whose own value it is. `None`: the shared value.
    pub tenant: Option<&'a str>,
    /// The reason why it has no value.
    pub problem: &'a Problem,
}

/// Refuses the calls of a tool that may use a secret without a value.
pub(crate) struct Stopped {
    pub(crate) rights: Rights,
    /// Secrets without a value in calls without a tenant.
    pub(crate) unset: Vec<String>,
    pub(crate) tenants: BTreeMap<String, TenantUnset>,
}

/// The overlay and the secrets without a value of a tenant.
pub(crate) struct TenantUnset {
    pub(crate) overlay: Option<Arc<Overlay>>,
    pub(crate) unset: Vec<String>,
}

/// Returns true if a tool with these rights may use or read the secret.
pub(crate) fn may_use_secret(rights: &Rights, name: &str) -> bool {
    let requests = [Request::Secret { name: name.into() }, Request::Reveal { name: name.into() }];
    requests.iter().any(|request| rights.allows(request) == Decision::Allowed)
}

impl Middleware for Stopped {
    fn call<'a>(&'a self, next: &'a dyn Handler, invocation: Arc<Invocation>) -> HandlerFuture<'a> {
        let tenant = invocation.context.tenant.as_ref().and_then(|tenant| self.tenants.get(tenant));
        let (overlay, unset) =
            tenant.map_or((None, &self.unset), |tenant| (tenant.overlay.clone(), &tenant.unset));
        let rights = self.rights.narrowed(overlay, None);
        let names: Vec<_> =
            unset.iter().filter(|name| may_use_secret(&rights, name)).cloned().collect();
        if names.is_empty() {
            return next.call(invocation);
        }
        Box::pin(std::future::ready(CallResult::Refusal(Refusal::UnsetSecret(names))))
    }
}
