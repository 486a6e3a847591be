//! The settings of a tenant: everything that the file says about its calls.
//!
//! Reading a configuration makes one [`TenantSettings`] of each section `[tenants.NAME]`. It
//! reports names in the list of tools that no tool has, with the nearest one.

use toolcell::{Tenant, names};

use crate::file::secrets::OwnSecrets;
use crate::problem::Problem;
use crate::schema::Isolation;

/// The settings of a tenant.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TenantSettings {
    /// The restrictions of the tenant's calls, its tools, and its quota. In
    /// [`LoadedTools`](crate::LoadedTools), a tenant with [`Isolation::Process`] is offered no tool.
    pub tenant: Tenant,
    /// The minimum isolation of the tenant's calls. A server offers no tool to a tenant with
    /// [`Isolation::Process`]: see [`Reason::NeedsProcess`](crate::Reason::NeedsProcess).
    pub isolation: Isolation,
    /// The secrets of which the tenant has values of its own.
    ///
    /// ```
    /// # fn example(settings: &toolcell_config::serving::TenantSettings) {
    /// let is_complete = settings.secrets.unset.is_empty();
    /// # }
    /// ```
    pub secrets: OwnSecrets,
    /// The names in the list of tools, each with the problem to report if no tool has it.
    pub(crate) named_tools: Vec<(String, Problem)>,
}

impl TenantSettings {
    /// Returns a problem for each name in the tenant's list of tools that is not among the known
    /// tools.
    pub fn unknown_tools<'a>(&self, known: impl Iterator<Item = &'a str> + Clone) -> Vec<Problem> {
        let is_known = |name: &str| known.clone().any(|known| known == name);
        let unknown = self.named_tools.iter().filter(|(name, _)| !is_known(name));
        let described = unknown.map(|(name, problem)| {
            let hint = names::did_you_mean(name, known.clone(), || problem.hint.clone());
            Problem { hint, ..problem.clone() }
        });
        described.collect()
    }
}
