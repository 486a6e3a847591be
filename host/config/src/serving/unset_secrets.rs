//! Disables the tools that may use a secret without a value; all others run.
//!
//! In: the problems of reading values, a tool's rights. Out: the problems that concern a tool, or a
//! tool whose calls are refused.
//! Invariants: the tool's rights decide if it may use a secret, as at the use itself; a model gets
//! the secret's name, never the source of its value; a tenant whose own value cannot be read does
//! not get the shared value.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolcell::grants::{Decision, Request, Rights};
use toolcell::tool::{Handler, HandlerFuture, Invocation, Middleware};
use toolcell::{CallResult, Overlay, Refusal, Tool};

use crate::file::secrets::Origin;
use crate::{Configuration, Problem};

/// A secret without a value that calls may need.
#[derive(Debug, Clone, Copy)]
pub struct Unset<'a> {
    /// Its name.
    pub name: &'a str,
    /// The tenant whose own value it is. `None`: the shared value.
    pub tenant: Option<&'a str>,
    /// The reason why it has no value.
    pub problem: &'a Problem,
}

/// Refuses the calls of a tool that may use a secret without a value.
struct Stopped {
    rights: Rights,
    /// Secrets without a value in calls without a tenant.
    unset: Vec<String>,
    tenants: BTreeMap<String, TenantUnset>,
}

/// The overlay and the secrets without a value of a tenant.
struct TenantUnset {
    overlay: Option<Arc<Overlay>>,
    unset: Vec<String>,
}

fn may_use_secret(rights: &Rights, name: &str) -> bool {
    let requests = [Request::Secret { name: name.into() }, Request::Reveal { name: name.into() }];
    requests.iter().any(|request| rights.allows(request) == Decision::Allowed)
}

impl Configuration {
    /// Returns the source of the secret's value in calls for this tenant.
    pub fn origin(&self, tenant: Option<&str>, name: &str) -> Option<&Origin> {
        let own = tenant.and_then(|tenant| self.own_secrets.get(tenant)?.origins.get(name));
        own.or_else(|| self.origins.get(name))
    }

    /// Returns the secrets without a value in calls for this tenant.
    pub fn unset_for<'a>(
        &'a self,
        tenant: Option<&str>,
    ) -> impl Iterator<Item = (&'a String, &'a Problem)> {
        let own = tenant.and_then(|tenant| self.own_secrets.get(tenant));
        let shared = self
            .unset
            .iter()
            .filter(move |(name, _)| own.is_none_or(|own| !own.origins.contains_key(*name)));
        shared.chain(own.into_iter().flat_map(|own| &own.unset))
    }

    /// Returns those secrets that a tool with these rights may use.
    pub fn unset_of<'a>(
        &'a self,
        rights: &'a Rights,
        tenant: Option<&str>,
    ) -> impl Iterator<Item = (&'a String, &'a Problem)> {
        self.unset_for(tenant).filter(|(name, _)| may_use_secret(rights, name))
    }

    /// Returns the secrets without a value that calls may need, both tenants' own and shared ones.
    /// If some tenants have their own value of a secret, the shared one is included only if another
    /// tenant may still use or read it.
    pub fn unset_values(&self) -> Vec<Unset<'_>> {
        let shared = self.unset.iter().filter(|(name, _)| {
            let (with, without): (Vec<_>, Vec<_>) =
                self.tenants.keys().partition(|tenant| self.own_origin(tenant, name).is_some());
            with.is_empty() || without.into_iter().any(|tenant| self.is_left(tenant, name))
        });
        let shared = shared.map(|(name, problem)| Unset { name, tenant: None, problem });
        let own = self.own_secrets.iter().flat_map(|(tenant, own)| {
            own.unset.iter().map(move |(name, problem)| Unset {
                name,
                tenant: Some(tenant),
                problem,
            })
        });
        shared.chain(own).collect()
    }

    /// Returns true if a tool with these rights may use the secret, for the tenant whose value it
    /// is.
    pub fn may_need(&self, unset: Unset<'_>, rights: &Rights) -> bool {
        let Unset { name, tenant, .. } = unset;
        let overlay = tenant.and_then(|tenant| self.tenants.get(tenant)?.overlay.clone());
        may_use_secret(&rights.narrowed(overlay, None), name)
    }

    fn own_origin(&self, tenant: &str, name: &str) -> Option<&Origin> {
        self.own_secrets.get(tenant)?.origins.get(name)
    }

    /// Wraps the tool: its calls are refused if they may use a secret without a value.
    pub fn stopped(&self, tool: Tool) -> Tool {
        let Some(rights) = tool.rights().cloned() else { return tool };
        let names = |tenant: Option<&str>| {
            self.unset_of(&rights, tenant).map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let unset = names(None);
        let of_tenant = |(name, tenant): (&String, &toolcell::Tenant)| {
            (
                name.clone(),
                TenantUnset { overlay: tenant.overlay.clone(), unset: names(Some(name)) },
            )
        };
        let tenants: BTreeMap<_, _> = self.tenants.iter().map(of_tenant).collect();
        if unset.is_empty() && tenants.values().all(|tenant| tenant.unset.is_empty()) {
            return tool;
        }
        tool.with_middleware(Stopped { rights, unset, tenants })
    }
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
