//! The approved tools of a configuration, ready to be called.
//!
//! `Configuration::load` returns a [`LoadedTools`], and a reload makes a new one; it never changes
//! itself. It has a [`Registry`] with the tools, in which each name belongs to one tool, an
//! [`Executor`] with the tenants and the limits, the settings of each tenant, and a problem for
//! each component that is not served, or only in part. A server takes these parts to answer
//! requests.
//!
//! Not here: loading them, in `configuration/load.rs`.

use std::collections::BTreeMap;

use toolcell::component::ComponentKind;
use toolcell::{Component, Executor, Grants, Registry};

use super::report::ComponentProblem;
use crate::approval::dev::Development;
use crate::file::resolved::ResolvedComponent;
use crate::schema::Isolation;
use crate::tenants::issuer::Issuer;
use crate::tenants::settings::TenantSettings;

/// The approved tools of a configuration, ready to be called. Immutable: a
/// [`Reloader`](crate::Reloader) creates a new one.
#[derive(Debug)]
pub struct LoadedTools {
    pub(crate) registry: Registry,
    pub(crate) executor: Executor,
    pub(crate) tenants: BTreeMap<String, TenantSettings>,
    pub(crate) issuer: Option<Issuer>,
    pub(crate) problems: Vec<ComponentProblem>,
    /// Components that are served without approval, with the reason.
    pub(crate) development_components: BTreeMap<String, Development>,
    pub(crate) served: BTreeMap<String, Served>,
}

/// A component that is served.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) component: Component,
    pub(crate) source: Source,
}

/// The code, the use and the rights of a component: a component is loaded again if one differs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    pub(crate) digest: String,
    pub(crate) grants: Grants,
    pub(crate) isolation: Isolation,
    pub(crate) kind: ComponentKind,
}

impl Source {
    pub(crate) fn of(chosen: &ResolvedComponent<'_>, digest: String) -> Self {
        let (grants, isolation, kind) = (chosen.grants(), chosen.isolation, chosen.kind());
        Self { digest, grants, isolation, kind }
    }
}

impl LoadedTools {
    /// Returns all approved tools, ordered by their components' names and then as in the component.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns an executor with the configuration's tenants. Each tool has its own limits. Those of
    /// the executor are the loosest of them, and bound tools of your own.
    ///
    /// If the configuration names tenants, a call for another tenant or for none is refused.
    /// Otherwise calls without a tenant have the default quota.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Returns the tenants by name.
    #[must_use]
    pub fn tenants(&self) -> &BTreeMap<String, TenantSettings> {
        &self.tenants
    }

    /// Returns the issuer whose tokens are accepted.
    #[must_use]
    pub fn issuer(&self) -> Option<&Issuer> {
        self.issuer.as_ref()
    }

    /// Returns the problems of components that are not served, or only in part.
    #[must_use]
    pub fn problems(&self) -> &[ComponentProblem] {
        &self.problems
    }

    /// Returns the components that are served without approval because they are in a folder of
    /// `[dev]`, with the reason.
    pub fn development_components(&self) -> impl Iterator<Item = (&str, &Development)> {
        self.development_components.iter().map(|(name, why)| (name.as_str(), why))
    }

    /// Returns the components that are served: name and digest.
    pub fn components(&self) -> impl Iterator<Item = (&str, &str)> {
        self.served.iter().map(|(name, served)| (name.as_str(), served.source.digest.as_str()))
    }

    /// Returns the component of this name, if it is served.
    #[must_use]
    pub fn component(&self, name: &str) -> Option<&Component> {
        Some(&self.served.get(name)?.component)
    }
}
