//! Secrets without a value: the tools that may use one do not run, all others do.
//!
//! In: the problems of reading values, a tool's rights. Out: the problems that concern a tool, or a tool whose calls are refused.
//! Invariants: whether a tool may use a secret is decided by its rights, as at the use itself; a model is told the secret's
//! name, never where its value is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolcell::{
    CallResult, Decision, Handler, HandlerFuture, Invocation, Middleware, Overlay, Refusal, Request, Rights, Tool,
};

use crate::{Configuration, Problem};

/// Refuses the calls of a tool that may use a secret without a value.
struct Stopped {
    rights: Rights,
    unset: Vec<String>,
    tenants: BTreeMap<String, Option<Arc<Overlay>>>,
}

fn may_use(rights: &Rights, name: &str) -> bool {
    let requests = [Request::Secret { name: name.into() }, Request::Reveal { name: name.into() }];
    requests.iter().any(|request| rights.allows(request) == Decision::Allowed)
}

impl Configuration {
    /// The secrets without a value that a tool with these rights may use.
    pub fn unset_of(&self, rights: &Rights) -> impl Iterator<Item = (&String, &Problem)> {
        self.unset.iter().filter(|(name, _)| may_use(rights, name))
    }

    /// The tool, whose calls are refused if they may use a secret without a value.
    pub fn stopped(&self, tool: Tool) -> Tool {
        let Some(rights) = tool.rights().cloned() else { return tool };
        let unset: Vec<_> = self.unset_of(&rights).map(|(name, _)| name.clone()).collect();
        if unset.is_empty() {
            return tool;
        }
        let tenants = self.tenants.iter().map(|(name, tenant)| (name.clone(), tenant.overlay.clone())).collect();
        tool.with_middleware(Stopped { rights, unset, tenants })
    }
}

impl Middleware for Stopped {
    fn call<'a>(&'a self, next: &'a dyn Handler, invocation: Arc<Invocation>) -> HandlerFuture<'a> {
        let overlay = invocation.context.tenant.as_ref().and_then(|tenant| self.tenants.get(tenant)).cloned();
        let rights = self.rights.narrowed(overlay.flatten(), None);
        let names: Vec<_> = self.unset.iter().filter(|name| may_use(&rights, name)).cloned().collect();
        if names.is_empty() {
            return next.call(invocation);
        }
        Box::pin(std::future::ready(CallResult::Refusal(Refusal::UnsetSecret(names))))
    }
}
