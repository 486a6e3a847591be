//! The settings of a tenant: everything that the file says about its calls.
//!
//! Reading a configuration makes one [`TenantSettings`] of each section `[tenants.NAME]`. Loading
//! wraps each tool with [`hidden`], so that it is not visible in calls for tenants that are not
//! offered it.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolcell::{Tenant, Tool};

use super::offered::OfferedTools;
use super::quota::TenantQuota;
use crate::file::secrets::OwnSecrets;
use crate::schema::Isolation;

/// The settings of a tenant.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TenantSettings {
    /// The restrictions of the tenant's calls: limits and an overlay.
    pub tenant: Tenant,
    /// The minimum isolation of the tenant's calls. A server offers no tool to a tenant with
    /// [`Isolation::Process`]: see [`Reason::NeedsProcess`](crate::Reason::NeedsProcess).
    pub isolation: Isolation,
    /// The tools that the tenant sees and may call. Other tools are not visible in its calls.
    pub tools: OfferedTools,
    /// The tenant's quota.
    pub quota: TenantQuota,
    /// The secrets of which the tenant has values of its own.
    ///
    /// ```
    /// # fn example(settings: &toolcell_config::serving::TenantSettings) {
    /// let is_complete = settings.secrets.unset.is_empty();
    /// # }
    /// ```
    pub secrets: OwnSecrets,
}

/// Hides the tool in calls for tenants that are not offered it. A tenant that needs a process is
/// offered nothing.
pub(crate) fn hidden(tenants: &Arc<BTreeMap<String, TenantSettings>>, tool: Tool) -> Tool {
    let name = tool.definition().name.clone();
    let has = move |settings: &TenantSettings| {
        !settings.isolation.has_process() && settings.tools.has(&name)
    };
    if tenants.values().all(&has) {
        return tool;
    }
    let tenants = Arc::clone(tenants);
    tool.with_visibility(move |_, context| {
        let of_tenant = context.tenant.as_ref().and_then(|tenant| tenants.get(tenant));
        of_tenant.is_none_or(&has)
    })
}
