//! Answers questions about the secrets of a configuration: the source of each, the secrets that
//! given components may use, and those that have no value.
//!
//! A secret is a named value that the host adds to a tool's requests or, if it is revealed, that
//! the tool reads. `secrets_of` and `variables_of` return what a tenant's own process needs: only
//! the secrets that its components are granted and that the tenant's rules leave. The `unset`
//! functions return secrets without a value, which `check` prints. `stopped` wraps a tool so that
//! its calls are refused while a secret that they may use has no value; the tool's rights decide
//! that, as at the use itself. A tenant whose own value cannot be read does not get the shared
//! value.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use toolcell::controls::enforced;
use toolcell::grants::Rights;
use toolcell::{Overlay, Tool};

use super::Configuration;
use crate::file::resolved::ResolvedComponent;
use crate::file::secrets::Origin;
use crate::problem::Problem;
use crate::serving::unset_secrets::{Stopped, UnsetSecret, may_use_secret};

impl Configuration {
    /// Returns the names of the secrets that these components may use or read on behalf of a
    /// tenant.
    pub fn secrets_of(
        &self,
        tenant: Option<&str>,
        components: &[ResolvedComponent<'_>],
    ) -> BTreeSet<String> {
        if !enforced!(WorkerSecrets) {
            return self.origins.keys().cloned().collect();
        }
        let overlay = tenant.and_then(|tenant| self.overlay_of(tenant));
        let configured = components.iter().filter_map(|chosen| chosen.configured);
        let names = configured.flat_map(|(_, configured)| configured.grants.secret_names(overlay));
        names.map(str::to_owned).collect()
    }

    /// Returns the environment variables with the values of these secrets, as calls for this tenant
    /// use them, and that of the proxy.
    pub fn variables_of(
        &self,
        tenant: Option<&str>,
        secrets: &BTreeSet<String>,
    ) -> impl Iterator<Item = (OsString, OsString)> {
        let origins =
            secrets.iter().filter_map(|name| self.origin(tenant, name)).chain(&self.network.origin);
        let variables = origins.filter_map(|origin| match origin {
            Origin::Variable(name) => Some((name.into(), self.options.variable(name)?.into())),
            Origin::File(_) => None,
        });
        variables.collect::<Vec<_>>().into_iter()
    }

    /// Returns true if a component may use or read the secret on behalf of a tenant.
    fn is_left_to(&self, tenant: &str, name: &str) -> bool {
        let overlay = self.overlay_of(tenant);
        let components = self.components.values();
        let mut left = components.flat_map(|configured| configured.grants.secret_names(overlay));
        left.any(|left| left == name)
    }

    fn overlay_of(&self, tenant: &str) -> Option<&Overlay> {
        self.tenants.get(tenant)?.tenant.overlay.as_deref()
    }

    /// Returns the source of the secret's value in calls for this tenant.
    pub fn origin(&self, tenant: Option<&str>, name: &str) -> Option<&Origin> {
        let own = tenant.and_then(|tenant| self.own_origin(tenant, name));
        own.or_else(|| self.origins.get(name))
    }

    /// Returns the secrets without a value in calls for this tenant.
    pub fn unset_for<'a>(
        &'a self,
        tenant: Option<&str>,
    ) -> impl Iterator<Item = (&'a String, &'a Problem)> {
        let own = tenant.and_then(|tenant| Some(&self.tenants.get(tenant)?.secrets));
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
    pub fn unset_values(&self) -> Vec<UnsetSecret<'_>> {
        let shared = self.unset.iter().filter(|(name, _)| {
            let (with, without): (Vec<_>, Vec<_>) =
                self.tenants.keys().partition(|tenant| self.own_origin(tenant, name).is_some());
            with.is_empty() || without.into_iter().any(|tenant| self.is_left_to(tenant, name))
        });
        let shared = shared.map(|(name, problem)| UnsetSecret { name, tenant: None, problem });
        let own = self.tenants.iter().flat_map(|(tenant, settings)| {
            settings.secrets.unset.iter().map(move |(name, problem)| UnsetSecret {
                name,
                tenant: Some(tenant),
                problem,
            })
        });
        shared.chain(own).collect()
    }

    /// Returns true if a tool with these rights may use the secret, for the tenant whose value it
    /// is.
    pub fn may_need(&self, unset: UnsetSecret<'_>, rights: &Rights) -> bool {
        may_use_secret(&self.narrowed(rights, unset.tenant), unset.name)
    }

    /// Returns the rights that are left for calls of a tenant.
    fn narrowed(&self, rights: &Rights, tenant: Option<&str>) -> Rights {
        let overlay = tenant.and_then(|tenant| self.tenants.get(tenant)?.tenant.overlay.clone());
        rights.narrowed(overlay, None)
    }

    fn own_origin(&self, tenant: &str, name: &str) -> Option<&Origin> {
        self.tenants.get(tenant)?.secrets.origins.get(name)
    }

    /// Wraps the tool: its calls are refused if they may use a secret without a value.
    pub fn stopped(&self, tool: Tool) -> Tool {
        let Some(rights) = tool.rights() else { return tool };
        let names = |tenant: Option<&str>| -> Vec<String> {
            let rights = self.narrowed(rights, tenant);
            self.unset_of(&rights, tenant).map(|(name, _)| name.clone()).collect()
        };
        let unset = names(None);
        let of_tenant = |tenant: &String| (tenant.clone(), names(Some(tenant)));
        let tenants: BTreeMap<_, _> = self.tenants.keys().map(of_tenant).collect();
        if unset.is_empty() && tenants.values().all(Vec::is_empty) {
            return tool;
        }
        tool.with_middleware(Stopped { unset, tenants })
    }
}
