//! Which secrets a process is to know.
//!
//! Invariants: a tenant's process knows those that its components were granted and the tenant is left, and no others.

use std::collections::BTreeSet;
use std::ffi::OsString;

use toolcell::Tenant;
use toolcell::defence::{Defence, stands};

use crate::{Configuration, Origin, ResolvedComponent};

/// The secrets whose values are looked at.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// All of the configuration.
    All,
    /// For commands that only look at tools: `describe`, and a call that is denied everything, need no secret.
    None,
    /// Those of these names.
    Only(Vec<String>),
}

impl Wanted {
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Only(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}

impl Configuration {
    /// Names of the secrets that these components may use or read on behalf of a tenant.
    pub fn secrets_of<'a>(&'a self, tenant: Option<&str>, components: &[ResolvedComponent<'a>]) -> BTreeSet<&'a str> {
        if !stands(Defence::WorkerSecrets) {
            return self.origins.keys().map(String::as_str).collect();
        }
        let overlay =
            tenant.and_then(|name| self.tenants.get(name)).and_then(|Tenant { overlay, .. }| overlay.as_deref());
        let is_left = |left: Option<&BTreeSet<String>>, name: &str| left.is_none_or(|left| left.contains(name));
        let used = |name: &str| is_left(overlay.and_then(|overlay| overlay.secrets.as_ref()), name);
        let read = |name: &str| is_left(overlay.and_then(|overlay| overlay.reveal.as_ref()), name);
        let granted =
            components.iter().filter_map(|chosen| chosen.configured).map(|(_, configured)| &configured.grants);
        let names = granted.flat_map(|grants| {
            let used = grants.secrets.keys().filter(|name| used(name));
            used.chain(grants.reveal.iter().filter(|name| read(name)))
        });
        names.map(String::as_str).collect()
    }

    /// The variables of the environment that values of these are in.
    pub fn variables_of(&self, secrets: &BTreeSet<&str>) -> impl Iterator<Item = (OsString, OsString)> {
        let origins = secrets.iter().filter_map(|name| self.origins.get(*name));
        let variables = origins.filter_map(|origin| match origin {
            Origin::Variable(name) => Some((name.into(), self.options.variable(name)?.into())),
            Origin::File(_) => None,
        });
        variables.collect::<Vec<_>>().into_iter()
    }
}
