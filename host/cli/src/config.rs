//! Reads the configuration with the options of the command line.
//!
//! Not here: the meaning of a configuration ([`toolcell_config`]).

use std::path::{Path, PathBuf};

use toolcell::{CallContext, Engine, Tool, names};
use toolcell_config::ReadOptions;

use crate::args::{Global, target};
use crate::built::{self, CURRENT_DIR};
use crate::os::env;
use crate::print::failure::Failure;

pub(crate) use toolcell_config::approval::{
    Approval, ApprovalState as Standing, Approved, Development, Difference, FoundConfiguration,
    Page, Signer,
};
pub(crate) use toolcell_config::file::{
    ComponentConfig as Configured, Isolation, NAME, ResolvedComponent as Chosen, Section, schema,
};
pub(crate) use toolcell_config::grants::effective::{self, Effective};
pub(crate) use toolcell_config::grants::{RuleSection, WrittenRule, unusual};
pub(crate) use toolcell_config::serving::{Keys, Unset};
pub(crate) use toolcell_config::text::{HintCommand as Again, quoted};
pub(crate) use toolcell_config::{Configuration as Config, Lock, Problem, SecretSelection};

/// Finds and reads the configuration, with the values of all secrets.
pub(crate) fn read(global: &Global) -> Result<Config, Failure> {
    read_with(global, SecretSelection::All)
}

/// Finds and reads the configuration, with the values of the wanted secrets only.
pub(crate) fn read_with(global: &Global, wanted: SecretSelection) -> Result<Config, Failure> {
    let mut options =
        ReadOptions::from_environment().with_wanted(wanted).with_hint_command(hint_command(global));
    if let Some(dir) = &global.cache_dir {
        options = options.with_cache_dir(dir);
    }
    if let Some(dir) = &global.state_dir {
        options = options.with_state_dir(dir);
    }
    match (&global.config, env::config()) {
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

/// Adds these components with the grants typed by `--grant`.
pub(crate) fn with_typed(
    config: Config,
    components: &[PathBuf],
    grants: &[String],
) -> Result<Config, Failure> {
    let mut components = components.iter().filter(|_| !grants.is_empty());
    components.try_fold(config, |config, component| {
        let component = resolve_word(&config, component)?;
        Ok(config.with_typed(&component, grants)?)
    })
}

/// Resolves a word to a component of the configuration or a path: a name, a file, or the built
/// component for the folder of a project. [`CURRENT_DIR`] is the component built in this folder,
/// else the only component of the configuration.
pub(crate) fn resolve_word(config: &Config, word: &Path) -> Result<PathBuf, Failure> {
    if word.to_str().is_some_and(|name| config.components.contains_key(name)) {
        return Ok(word.to_owned());
    }
    if let Some(text) =
        word.to_str().filter(|text| target::looks_like_arguments(text) && !word.exists())
    {
        let message =
            format!("`{}` is an argument, and the component comes first", target::shorten(text));
        return Err(Failure::usage(
            message,
            "for the component of this folder, write `.` before it",
        ));
    }
    let is_here = word == Path::new(CURRENT_DIR);
    let only = config.components.keys().next().filter(|_| is_here && config.components.len() == 1);
    match (built::component(word, &config.hint), only) {
        (Ok(None) | Err(_), Some(only)) => Ok(PathBuf::from(only)),
        (Ok(None), None) if is_here => Err(no_component(config)),
        (built, _) => Ok(built?.unwrap_or_else(|| word.to_owned())),
    }
}

/// Returns the error of a command that names no component, if no default exists.
fn no_component(config: &Config) -> Failure {
    match &config.file {
        Some(file) if !config.components.is_empty() => Failure::usage(
            format!("`{file}` configures several components: name one"),
            config.listed(),
        ),
        _ if config.is_foreign() => config.missing("").into(),
        _ => Failure::usage(
            "no component is named, and none is found: there is no project in this folder, and no component in a `toolcell.toml`",
            match file_here() {
                Some(file) => format!(
                    "name the file of a component, for instance {}",
                    config.hint.command("inspect", &[], &[&file])
                ),
                None => "make a tool with `toolcell new NAME`, or name the file of a component"
                    .to_owned(),
            },
        ),
    }
}

/// Returns the first component file in this folder, by name.
pub(crate) fn file_here() -> Option<String> {
    let files =
        std::fs::read_dir(".").ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    files
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "wasm"))
        .min()
}

/// Returns the program and global options for hints that repeat the command. `TOOLCELL_CONFIG` is
/// repeated as `--config`, because the variable may have been set for one command alone.
fn hint_command(global: &Global) -> Again {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let config = global.config.clone().or_else(env::config);
    let compile_time =
        Some(global.compile_time).filter(|time| time.0 != Engine::DEFAULT_COMPILE_TIME);
    let typed = [
        ("--config", config.as_deref().map(path)),
        ("--state-dir", global.state_dir.as_deref().map(path)),
        ("--compile-time", compile_time.map(|time| time.to_string())),
    ];
    let options =
        typed.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten();
    Again::new(env::program(), options)
}

/// Returns the context of calls for this tenant.
pub(crate) fn for_tenant(
    config: &Config,
    mut context: CallContext,
    tenant: Option<&str>,
) -> Result<CallContext, Failure> {
    if let Some(tenant) = tenant {
        if config.file.is_none() {
            let hint = "leave `--tenant` out, or name the configuration with the section [tenants.NAME]: `--config FILE`";
            let message = format!(
                "`--tenant` needs a configuration that names the tenant, and no `{NAME}` was found"
            );
            return Err(Failure::usage(message, hint));
        }
        if context.tenant.as_deref().is_some_and(|other| other != tenant) {
            return Err(Failure::usage(
                "two tenants: `--tenant` and `tenant` in `--context`",
                "leave one of them out",
            ));
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
    let near = names::nearest(tenant, known.clone().map(String::as_str));
    let known = known.map(String::as_str).collect::<Vec<_>>().join(", ");
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => {
            "it has no tenants: a tenant is a section [tenants.NAME], which may be empty".to_owned()
        }
        None => format!(
            "its tenants: {known}; a new one needs a section [tenants.NAME], which may be empty"
        ),
    };
    Failure::usage(format!("`{file}` names no tenant `{}`", tenant.escape_debug()), hint)
}
