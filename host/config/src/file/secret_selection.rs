//! Selects the secrets that a process reads.
//!
//! Invariants: a tenant's process reads only those that its components are granted and that the
//! tenant is left.

use std::collections::BTreeSet;
use std::ffi::OsString;

use toolcell::controls::{Control, enforced};
use toolcell::{Grants, Overlay};

use crate::Configuration;
use crate::file::resolved::ResolvedComponent;
use crate::file::secrets::Origin;

/// The secrets whose values are read.
#[derive(Debug, Clone)]
pub enum SecretSelection {
    /// All secrets of the configuration.
    All,
    /// No secrets, for commands that only inspect tools: `describe`, and a call that is denied
    /// everything, need none.
    None,
    /// Secrets of these names, as calls for this tenant use them.
    Only {
        /// The names of the secrets.
        names: Vec<String>,
        /// The tenant. `None`: the shared values.
        tenant: Option<String>,
    },
}

impl SecretSelection {
    /// Returns true if the shared value is read. `has_own` returns true for a tenant with its own
    /// value.
    pub(crate) fn has_shared(&self, name: &str, has_own: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Only { names, tenant } => {
                names.iter().any(|wanted| wanted == name) && !tenant.as_deref().is_some_and(has_own)
            }
        }
    }

    /// Returns true if a tenant's own value is read.
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
    /// Returns the names of the secrets that these components may use or read on behalf of a
    /// tenant.
    pub fn secrets_of<'a>(
        &'a self,
        tenant: Option<&str>,
        components: &[ResolvedComponent<'a>],
    ) -> BTreeSet<&'a str> {
        if !enforced(Control::WorkerSecrets) {
            return self.origins.keys().map(String::as_str).collect();
        }
        let overlay = tenant.and_then(|tenant| self.overlay_of(tenant));
        let configured = components.iter().filter_map(|chosen| chosen.configured);
        configured
            .flat_map(|(_, configured)| remaining_secrets(&configured.grants, overlay))
            .collect()
    }

    /// Returns the environment variables with the values of these secrets, as calls for this tenant
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

    /// Returns true if a component may use or read a secret on behalf of a tenant.
    pub(crate) fn is_left(&self, tenant: &str, name: &str) -> bool {
        let overlay = self.overlay_of(tenant);
        self.components.values().any(|configured| {
            remaining_secrets(&configured.grants, overlay).any(|usable| usable == name)
        })
    }

    fn overlay_of(&self, tenant: &str) -> Option<&Overlay> {
        self.tenants.get(tenant)?.overlay.as_deref()
    }
}

/// Returns the secrets that a component is granted and that an overlay leaves.
fn remaining_secrets<'a>(
    grants: &'a Grants,
    overlay: Option<&Overlay>,
) -> impl Iterator<Item = &'a str> {
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
