//! Secrets without a value: the tools that may use one do not run, all others do.
//!
//! In: the problems of reading values, a tool's rights. Out: the first problem that concerns a tool, or a tool that answers
//! each call with an error.
//! Invariants: whether a tool may use a secret is decided by its rights, as at the use itself; a model is told the secret's
//! name, never where its value is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolcell::{
    CallResult, Decision, Handler, HandlerError, HandlerFuture, Invocation, Middleware, Outcome, Overlay, Request,
    Rights, Tool,
};

use crate::error::Error;
use crate::{Configuration, Problem};

/// Answers the calls of a tool that may use a secret without a value with an error.
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

    /// Refuses a tool that may use a secret without a value on behalf of this tenant.
    pub fn has_secrets(&self, tool: &Tool, tenant: Option<&str>) -> Result<(), Error> {
        let Some(rights) = tool.rights() else { return Ok(()) };
        let overlay = tenant.and_then(|name| self.tenants.get(name)).and_then(|tenant| tenant.overlay.clone());
        let rights = rights.narrowed(overlay, None);
        let problems: Vec<_> = self.unset_of(&rights).map(|(_, problem)| problem.clone()).collect();
        match problems.first().map(|problem| problem.file.clone()) {
            Some(file) => Err(Error::invalid(&file, problems)),
            None => Ok(()),
        }
    }

    /// The tool, whose calls fail where they may use a secret without a value.
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
        match self.unset.iter().find(|name| may_use(&rights, name)) {
            Some(name) => {
                let error = HandlerError::new(format!(
                    "the secret `{name}`, which this tool may use, has no usable value on this host: \
                     the operator has to set the value; `toolcell check` says what is wrong"
                ));
                Box::pin(std::future::ready(CallResult::Outcome(Outcome::Error(error))))
            }
            None => next.call(invocation),
        }
    }
}
