//! Reads the configuration with the options of the command line.
//!
//! Every command that uses `toolcell.toml` calls [`read`], with the secrets whose values it needs.
//! The file is the one that `--config` names, else the variable `TOOLCELL_CONFIG`, else the first
//! that is found in this directory or above. [`for_tenant`] puts the tenant of `--tenant` into the
//! context of calls and refuses one that the configuration does not have; [`offered_tools`] leaves
//! only the tools that this tenant is offered. The types of `toolcell-config` that commands use are
//! re-exported here.
//!
//! Not here: the meaning of a configuration, in `toolcell-config`.

use std::path::Path;

use toolcell::{CallContext, Engine, Tool, names};
use toolcell_config::ReadOptions;

use crate::os::env;
use crate::print::{Failure, Result, Time};

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

/// The options of the command line with which a configuration is found and read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options<'a> {
    /// The named file.
    pub(crate) config: Option<&'a Path>,
    pub(crate) cache_dir: Option<&'a Path>,
    pub(crate) state_dir: Option<&'a Path>,
    /// Only for hints that repeat the command.
    pub(crate) compile_time: Time,
}

/// Finds and reads the configuration, with the values of the wanted secrets only.
pub(crate) fn read(typed: Options<'_>, wanted: SecretSelection) -> Result<Config> {
    let mut options =
        ReadOptions::from_environment().with_wanted(wanted).with_hint_command(hint_command(typed));
    if let Some(dir) = typed.cache_dir {
        options = options.with_cache_dir(dir);
    }
    if let Some(dir) = typed.state_dir {
        options = options.with_state_dir(dir);
    }
    match (typed.config, env::config()) {
        (Some(named), _) => Ok(Config::read_with(named, options)?),
        (None, Some(named)) => {
            let read = Config::read_with(named, options).map_err(Failure::from);
            read.map_err(|failure| {
                failure.about("the configuration that the variable `TOOLCELL_CONFIG` names")
            })
        }
        (None, None) => Ok(Config::find(options)?),
    }
}

/// Returns the program and global options for hints that repeat the command. `TOOLCELL_CONFIG` is
/// repeated as `--config`, because the variable may have been set for one command alone.
fn hint_command(typed: Options<'_>) -> HintCommand {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let config = typed.config.map(Path::to_owned).or_else(env::config);
    let compile_time =
        Some(typed.compile_time).filter(|time| time.0 != Engine::DEFAULT_COMPILE_TIME);
    let typed = [
        ("--config", config.as_deref().map(path)),
        ("--state-dir", typed.state_dir.map(path)),
        ("--max-compile-time", compile_time.map(|time| time.to_string())),
    ];
    let options =
        typed.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten();
    HintCommand::new(env::program(), options)
}

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
