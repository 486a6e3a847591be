//! Finds the tenant of a call in the configuration, and the tools that the tenant is offered.
//!
//! [`for_tenant`] puts the tenant of `--tenant` into the context of calls and refuses one that the
//! configuration does not have; [`offered_tools`] leaves only the tools that this tenant is offered.
//! The types of `toolcell-config` that commands use are re-exported here.
//!
//! Not here: finding and reading the file, in `host.rs`, and the meaning of a configuration, in
//! `toolcell-config`.

use toolcell::{CallContext, Tool, names};

use crate::print::{Failure, Result};

pub(crate) use toolcell_config::approval::{
    Approval, ApprovalState, ApprovedVersion, Development, Difference, FoundConfiguration, Page,
    Signer,
};
pub(crate) use toolcell_config::file::{
    ComponentConfig, Isolation, NAME, ResolvedComponent, Section, schema,
};
pub(crate) use toolcell_config::grants::effective::{self, Effective};
pub(crate) use toolcell_config::grants::{ConfiguredRule, RuleSection, unusual};
pub(crate) use toolcell_config::serving::UnsetSecret;
pub(crate) use toolcell_config::text::{HintCommand, quoted};
pub(crate) use toolcell_config::{Configuration as Config, Lock, Problem, SecretSelection};

/// Returns the context of calls for this tenant.
pub(crate) fn for_tenant(
    config: &Config,
    mut context: CallContext,
    tenant: Option<&str>,
) -> Result<CallContext> {
    if let Some(tenant) = tenant {
        if config.file.is_none() {
            let hint = "leave `--tenant` out, or name the configuration with the section [tenants.NAME]: `--config FILE`";
            let message = format!(
                "`--tenant` needs a configuration that names the tenant, and no `{NAME}` was found"
            );
            return Err(Failure::usage(message, hint));
        }
        if context.tenant.as_deref().is_some_and(|other| other != tenant) {
            let message = "two tenants: `--tenant` and `tenant` in `--context`";
            return Err(Failure::usage(message, "leave one of them out"));
        }
        context.tenant = Some(tenant.to_owned());
    }
    if let (Some(file), Some(tenant)) = (&config.file, &context.tenant)
        && !config.tenants.is_empty()
        && !config.tenants.contains_key(tenant)
    {
        return Err(unknown_tenant(file, config.tenants.keys(), tenant));
    }
    Ok(context)
}

/// Returns the tools that are offered to the tenant of a call. Without a tenant all are.
pub(crate) fn offered_tools(
    config: &Config,
    context: &CallContext,
    tools: impl IntoIterator<Item = Tool>,
) -> Vec<Tool> {
    let is_offered =
        |tool: &Tool| config.offers(context.tenant.as_deref(), &tool.definition().name);
    tools.into_iter().filter(is_offered).collect()
}

/// Returns the error of a tenant that the configuration does not have.
pub(crate) fn unknown_tenant<'a>(
    file: &str,
    known: impl Iterator<Item = &'a String> + Clone,
    tenant: &str,
) -> Failure {
    let known: Vec<_> = known.map(String::as_str).collect();
    let hint = names::did_you_mean(tenant, known.iter().copied(), || match &*known {
        [] => "it has no tenants: a tenant is a section [tenants.NAME], which may be empty".into(),
        _ => format!(
            "its tenants: {}; a new one needs a section [tenants.NAME], which may be empty",
            known.join(", ")
        ),
    });
    Failure::usage(format!("`{file}` names no tenant `{}`", tenant.escape_debug()), hint)
}
