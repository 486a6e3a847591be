//! Which secrets a process is to know.
//!
//! Invariants: a tenant's process knows those that its components were granted and the tenant is
//! left, and no others.

use std::collections::BTreeSet;
use std::ffi::OsString;

use toolcell::defence::{Defence, stands};
use toolcell::{Grants, Overlay};

use crate::{Configuration, Origin, ResolvedComponent};

/// The secrets whose values are looked at.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// All of the configuration.
    All,
    /// For commands that only look at tools: `describe`, and a call that is denied everything, need
    /// no secret.
    None,
    /// Those of these names, as calls for this tenant use them.
    Only {
        /// The secrets.
        names: Vec<String>,
        /// The tenant. `None`: the values that all share.
        tenant: Option<String>,
    },
}

impl Wanted {
    /// Whether the value that all share is looked at. `has_own` says whether a tenant has a value
    /// of its own.
    pub(crate) fn has_shared(&self, name: &str, has_own: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Only { names, tenant } => {
                names.iter().any(|wanted| wanted == name) && !tenant.as_deref().is_some_and(has_own)
            }
        }
    }

    /// Whether the value that a tenant has of its own is looked at.
    pub(crate) fn has_own(&self, of: &str, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Only { names, tenant } => {
                tenant.as_deref() == Some(of) && names.iter().any(|wanted| wanted == name)
            }
        }
    }
}

impl Configuration {
    /// Names of the secrets that these components may use or read on behalf of a tenant.
    pub fn secrets_of<'a>(
        &'a self,
        tenant: Option<&str>,
        components: &[ResolvedComponent<'a>],
    ) -> BTreeSet<&'a str> {
        if !stands(Defence::WorkerSecrets) {
            return self.origins.keys().map(String::as_str).collect();
        }
        let overlay = tenant.and_then(|tenant| self.overlay_of(tenant));
        let configured = components.iter().filter_map(|chosen| chosen.configured);
        configured.flat_map(|(_, configured)| usable(&configured.grants, overlay)).collect()
    }

    /// The variables of the environment that the values of these are in, as calls for this tenant
    /// use them, and that of the proxy.
    pub fn variables_of(
        &self,
        tenant: Option<&str>,
        secrets: &BTreeSet<&str>,
    ) -> impl Iterator<Item = (OsString, OsString)> {
        let origins =
            secrets.iter().filter_map(|name| self.origin(tenant, name)).chain(&self.network.origin);
        let variables = origins.filter_map(|origin| match origin {
            Origin::Variable(name) => Some((name.into(), self.options.variable(name)?.into())),
            Origin::File(_) => None,
        });
        variables.collect::<Vec<_>>().into_iter()
    }

    /// Whether a component may use or read a secret on behalf of a tenant.
    pub(crate) fn is_left(&self, tenant: &str, name: &str) -> bool {
        let overlay = self.overlay_of(tenant);
        self.components
            .values()
            .any(|configured| usable(&configured.grants, overlay).any(|usable| usable == name))
    }

    fn overlay_of(&self, tenant: &str) -> Option<&Overlay> {
        self.tenants.get(tenant)?.overlay.as_deref()
    }
}

/// The secrets that a component is granted, as far as an overlay leaves them.
fn usable<'a>(grants: &'a Grants, overlay: Option<&Overlay>) -> impl Iterator<Item = &'a str> {
    let is_left = |left: Option<&BTreeSet<String>>, name: &String| {
        left.is_none_or(|left| left.contains(name))
    };
    let used = grants
        .secrets
        .keys()
        .filter(move |name| is_left(overlay.and_then(|left| left.secrets.as_ref()), name));
    let read = grants
        .reveal
        .iter()
        .filter(move |name| is_left(overlay.and_then(|left| left.reveal.as_ref()), name));
    used.chain(read).map(String::as_str)
}
