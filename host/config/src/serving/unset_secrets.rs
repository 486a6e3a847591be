//! Disables the tools that may use a secret without a value; all others run.
//!
//! `Configuration::stopped` wraps such a tool with the middleware [`Stopped`] (code around a tool's
//! handler). It has the secrets without a value that the tool's rights allow it to use, for each
//! tenant and without one, and refuses the calls for which there are some. The rights decide that,
//! as at the use itself. A model gets the secret's name, never the source of its value. A tenant
//! whose own value cannot be read does not get the shared value.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolcell::grants::{Decision, Request, Rights};
use toolcell::tool::{Handler, HandlerFuture, Invocation, Middleware};
use toolcell::{CallResult, Refusal};

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
    /// The secrets without a value that it may use in calls without a tenant.
    pub(crate) unset: Vec<String>,
    /// Those that it may use in calls of each tenant.
    pub(crate) tenants: BTreeMap<String, Vec<String>>,
}

/// Returns true if a tool with these rights may use or read the secret.
pub(crate) fn may_use_secret(rights: &Rights, name: &str) -> bool {
    let requests = [Request::Secret { name: name.into() }, Request::Reveal { name: name.into() }];
    requests.iter().any(|request| rights.allows(request) == Decision::Allowed)
}

impl Middleware for Stopped {
    fn call<'a>(&'a self, next: &'a dyn Handler, invocation: Arc<Invocation>) -> HandlerFuture<'a> {
        let tenant = invocation.context.tenant.as_ref().and_then(|tenant| self.tenants.get(tenant));
        let names = tenant.unwrap_or(&self.unset);
        if names.is_empty() {
            return next.call(invocation);
        }
        Box::pin(std::future::ready(CallResult::Refusal(Refusal::UnsetSecret(names.clone()))))
    }
}
