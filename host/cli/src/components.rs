//! Loads components by name or by file, and collects the tools of several.
//!
//! A component is a WebAssembly file with tools; a user names it by its section in `toolcell.toml`,
//! its file, or the folder of its project. Commands resolve such a word with [`choose`] or, if the
//! component is to be used and not only shown, [`resolve_for_use`]. [`alone`] and [`tools`] load
//! components for calls: under their grants, and only in the form that was approved.
//! [`load_without_grants`] loads one to show it. The error for a missing grant has the lines to
//! add, and their place.
//!
//! A name stands for one tool: if two components offer it, the error names both files and neither
//! is used. With all components of the configuration, one that lacks a grant is left out with a
//! warning.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use toolcell::component::{ComponentBytes, Inspection, OnMissingGrant};
use toolcell::grants::{Access, Directory, Suggestion};
use toolcell::{Component, Definition, Grants, Tool};
use toolcell_config::approval::RebuiltComponent;

use crate::args::target;
use crate::built::{self, CURRENT_DIR};
use crate::clash::ToolOwners;
use crate::config::{
    Approval, ApprovalState, ApprovedVersion, Config, Development, Difference, Lock,
    ResolvedComponent, Signer,
};
use crate::grants::{advice, gaps, grant_text, secrets};
use crate::host::Engines;
use crate::os::state;
use crate::print::{Failure, Result};

/// Loads the component under its grants. Returns it with its signer, if a signature is required.
pub(crate) async fn load(
    engines: &Engines<'_>,
    chosen: &ResolvedComponent<'_>,
) -> Result<(Component, Option<Signer>)> {
    let (bytes, signer) = chosen.bytes()?;
    let loaded = loaded(engines, chosen, bytes).await;
    Ok((loaded.map_err(|failure| failure.about(chosen.display_path()))?, signer))
}

/// Loads one component for use, in its approved form.
pub(crate) async fn alone(
    engines: &Engines<'_>,
    chosen: &ResolvedComponent<'_>,
) -> Result<Component> {
    let (vetted, lock) = (chosen.bytes()?, Lock::beside(engines.config)?);
    let component = approved(engines, &lock, chosen, vetted).await;
    component.map_err(|failure| failure.about(chosen.display_path()))
}

/// Returns true if the configuration is approved, and the component is in the form that was
/// approved.
pub(crate) fn is_approved(
    config: &Config,
    chosen: &ResolvedComponent<'_>,
    component: &Component,
    signer: Option<&Signer>,
) -> Result<bool> {
    let Some((name, _)) = chosen.configured else { return Ok(true) };
    if config.approval == Approval::Missing {
        return Ok(false);
    }
    let state = approval_state(&Lock::beside(config)?, name, component, signer);
    Ok(state == ApprovalState::Unchanged)
}

/// Compares a loaded component with the lock.
pub(crate) fn approval_state(
    lock: &Lock,
    name: &str,
    component: &Component,
    signer: Option<&Signer>,
) -> ApprovalState {
    let now = ApprovedVersion::of(component, signer.map(|signer| signer.publisher.clone()));
    Difference { old: lock.components.get(name), new: &now }.state()
}

/// Loads a component from its bytes under its grants, for use. If a configuration names it, it must
/// be in its approved form.
pub(crate) async fn approved(
    engines: &Engines<'_>,
    lock: &Lock,
    chosen: &ResolvedComponent<'_>,
    (bytes, signer): (Vec<u8>, Option<Signer>),
) -> Result<Component> {
    let Engines { printer, config, .. } = engines;
    let vetted = config.vet(lock, chosen, &bytes, signer.as_ref())?;
    if let Some(development) = chosen
        .development()
        .filter(|kind| **kind != Development::CommandLine || chosen.is_granted_anything())
    {
        let path = chosen.display_path();
        printer
            .warning(format!("development mode: {path} is used without approval, {development}"));
    }
    let component = loaded(engines, chosen, bytes).await?;
    if let (Some(RebuiltComponent), Some((name, _))) =
        (config.confirm(&vetted, &component)?, chosen.configured)
    {
        printer.warning(format!(
            "the code of the component `{name}` has changed since it was approved; its tools and imports are the same"
        ));
        let approve = config.hint.command("approve", &[], &[name]);
        printer.hint(format!("{approve} records the new code; set `digest` in `[components.{name}]` to refuse any other code"));
    }
    Ok(component)
}

/// Loads a component from its bytes under its grants.
pub(crate) async fn loaded(
    engines: &Engines<'_>,
    chosen: &ResolvedComponent<'_>,
    bytes: Vec<u8>,
) -> Result<Component> {
    if let (true, Some(file)) = (chosen.is_surprise, &engines.config.file) {
        engines.printer.note(format!(
            "{} was named by its path, and `{file}` configures it: the grants of `{file}` apply",
            chosen.display_path()
        ));
    }
    // An unusable engine is reported before an unusable state directory.
    engines.of(chosen.isolation)?;
    let grants = chosen.grants();
    let written = grants.directories.iter().find(|dir| dir.access == Access::Write);
    let kept = if grants.kv.is_empty() {
        let record = |dir: &Directory| {
            format!("cannot record how much of its quota the directory `{}` uses", dir.name)
        };
        written.map(|dir| (record(dir), "the quota of the granted directory"))
    } else {
        Some(("no place for stored keys".to_owned(), "the stored keys"))
    };
    match (&engines.state, kept) {
        (None, Some((problem, shared))) => {
            let message = anyhow!("{problem}: neither `XDG_STATE_HOME` nor `HOME` is set");
            let hint = format!("pass `--state-dir DIR`: commands with the same DIR share {shared}");
            return Err(Failure::file(message, hint));
        }
        // An unusable state directory is an error now: during a call it would look like a fault of
        // the tool.
        (Some(state), Some(_)) => state::create_state_dir(state)?,
        (_, None) => {}
    }
    let component = ComponentBytes::new(bytes, chosen.kind());
    let failure = match engines.load(chosen, component, grants, OnMissingGrant::Refused).await {
        Ok(component) => {
            chosen.check_tools(&component)?;
            return Ok(component);
        }
        Err(failure) => failure,
    };
    if failure.is_not_granted()
        && let Ok((bytes, _)) = chosen.bytes()
        && let Ok(component) = load_without_grants(engines, bytes, chosen).await
    {
        return Err(failure.with_hint(how_to_grant(engines.config, chosen, &component)));
    }
    Err(failure)
}

/// Loads the component without grants: each use of an import is denied. For `inspect` and the like,
/// and to learn its needs.
pub(crate) async fn load_without_grants(
    engines: &Engines<'_>,
    bytes: Vec<u8>,
    chosen: &ResolvedComponent<'_>,
) -> Result<Component> {
    let component = ComponentBytes::new(bytes, chosen.kind());
    let loaded = engines.load(chosen, component, Grants::default(), OnMissingGrant::Denied).await;
    loaded.map_err(|failure| failure.about(chosen.display_path()))
}

/// Returns the names of the imports that have to be granted before a component with these tools can
/// be called.
pub(crate) fn missing_imports<'a>(
    inspection: &'a Inspection,
    tools: impl IntoIterator<Item = &'a Definition>,
    grants: &'a Grants,
) -> Vec<String> {
    inspection.missing(tools, grants).map(|(name, _)| name.clone()).collect()
}

/// Returns the error of a component that cannot be called under its grants, with the imports that
/// are not granted.
pub(crate) fn ungranted(
    config: &Config,
    chosen: &ResolvedComponent<'_>,
    component: &Component,
) -> Option<Failure> {
    let missing =
        missing_imports(component.inspection(), component.definitions(), &chosen.grants());
    let message =
        || format!("the component imports interfaces that are not granted: {}", missing.join(", "));
    (!missing.is_empty())
        .then(|| Failure::not_granted(message(), how_to_grant(config, chosen, component)))
}

/// Returns the hint for imports that are not granted: the grants for the declared needs, or the way
/// to learn the needs.
fn how_to_grant(config: &Config, chosen: &ResolvedComponent<'_>, component: &Component) -> String {
    if !component.definitions().any(|tool| !tool.needs.is_empty()) {
        let learn = advice::how_to_learn(config, chosen, component);
        return format!("its tools do not declare their needs: {learn}");
    }
    let (granted, name) =
        (Arc::new(chosen.grants()), chosen.configured.map_or("", |(name, _)| name));
    let mut needs = Suggestion::default();
    for tool in component.tools() {
        let rights = tool.rights().cloned().unwrap_or_default().with_granted(Arc::clone(&granted));
        for gap in gaps::missing_needs(config, name, &rights, tool.definition()) {
            needs.add_need(&gap.need);
            if gap.need.kind == "secret" {
                advice::add_secret(&mut needs, tool.definition(), &gap.need.pattern);
            }
        }
    }
    if needs.is_empty() {
        return advice::how_to_learn(config, chosen, component);
    }
    let advice = grant_text::advice(config, chosen, &needs);
    match needs.warnings().as_slice() {
        [] => advice,
        warnings => format!("read before you grant it: {}\n{advice}", warnings.join("\n")),
    }
}

/// Returns the needs that the tools declare.
pub(crate) fn needs<'a>(definitions: impl Iterator<Item = &'a Definition>) -> Suggestion {
    let mut suggestion = Suggestion::default();
    definitions.flat_map(|tool| &tool.needs).for_each(|need| suggestion.add_need(need));
    suggestion
}

/// Returns the components that were typed, or all components of the configuration if none was.
///
/// # Errors
/// None was typed, and no configuration names a component.
pub(crate) fn typed_components(config: &Config, words: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if !words.is_empty() {
        return Ok(words.to_vec());
    }
    const HINT: &str =
        "name a component by its file, or write a `toolcell.toml` that names components";
    match &config.file {
        Some(_) if !config.components.is_empty() => {
            Ok(config.components.keys().map(PathBuf::from).collect())
        }
        Some(file) => Err(Failure::usage(format!("`{file}` names no component"), HINT)),
        None => Err(config.missing(HINT).into()),
    }
}

/// Adds these components with the grants typed by `--grant`.
pub(crate) fn with_command_line_grants(
    config: Config,
    components: &[PathBuf],
    grants: &[String],
) -> Result<Config> {
    let mut components = components.iter().filter(|_| !grants.is_empty());
    components.try_fold(config, |config, component| {
        let component = resolve_word(&config, component)?;
        Ok(config.with_command_line_grants(&component, grants)?)
    })
}

/// Resolves a word to a component of the configuration or a path: a name, a file, or the built
/// component for the folder of a project. [`CURRENT_DIR`] is the component built in this folder,
/// else the only component of the configuration.
fn resolve_word(config: &Config, word: &Path) -> Result<PathBuf> {
    if word.to_str().is_some_and(|name| config.components.contains_key(name)) {
        return Ok(word.to_owned());
    }
    if let Some(text) =
        word.to_str().filter(|text| target::looks_like_arguments(text) && !word.exists())
    {
        let message =
            format!("`{}` is an argument, and the component comes first", target::shorten(text));
        let hint = "for the component of this folder, write `.` before it";
        return Err(Failure::usage(message, hint));
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
        _ => {
            let message = "no component is named, and none is found: there is no project in this folder, and no component in a `toolcell.toml`";
            let otherwise = "make a tool with `toolcell new NAME`, or name the file of a component";
            let hint = file_here().map_or(otherwise.to_owned(), |file| {
                let inspect = config.hint.command("inspect", &[], &[&file]);
                format!("name the file of a component, for instance {inspect}")
            });
            Failure::usage(message, hint)
        }
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

/// Resolves a word to a component, for inspection.
pub(crate) fn choose<'a>(config: &'a Config, word: &Path) -> Result<ResolvedComponent<'a>> {
    Ok(config.choose(&resolve_word(config, word)?)?)
}

/// Resolves a word to a component, for use.
pub(crate) fn resolve_for_use<'a>(
    config: &'a Config,
    word: &Path,
) -> Result<ResolvedComponent<'a>> {
    Ok(config.used(&resolve_word(config, word)?)?)
}

/// Resolves words to components, for use.
pub(crate) fn chosen<'a>(
    config: &'a Config,
    words: &[PathBuf],
) -> Result<Vec<ResolvedComponent<'a>>> {
    words.iter().map(|word| resolve_for_use(config, word)).collect()
}

/// The unusable components that a command continues without. Each causes a warning.
#[derive(Clone, Copy)]
pub(crate) enum OnUnusable {
    /// None: the first component that cannot be used ends the command.
    None,
    /// Those that lack a grant, unless there is only one component.
    NotGranted,
    /// All that cannot be used.
    Unusable,
}

impl OnUnusable {
    /// Returns the rule for components that were named or not: a named one is not left out.
    pub(crate) fn unless(are_named: bool) -> Self {
        if are_named { Self::None } else { Self::NotGranted }
    }

    fn allows(self, failure: &Failure, components: usize) -> bool {
        match self {
            Self::None => false,
            Self::NotGranted => failure.is_not_granted() && components > 1,
            Self::Unusable => true,
        }
    }
}

/// Returns the tools of several components, for calls of this tenant. They are in the order of the
/// components, then in each component's own order.
pub(crate) async fn tools(
    engines: &Engines<'_>,
    components: &[ResolvedComponent<'_>],
    left_out: OnUnusable,
    tenant: Option<&str>,
) -> Result<Vec<Tool>> {
    let Engines { printer, config, .. } = engines;
    let lock = Lock::beside(config)?;
    let mut tools = Vec::<Tool>::new();
    let mut homes = ToolOwners::default();
    for chosen in components {
        let read = chosen.bytes();
        // The error of a file that cannot be read already names the file.
        let is_read = read.is_ok();
        let used = match read {
            Ok(read) => approved(engines, &lock, chosen, read).await,
            Err(error) => Err(error.into()),
        };
        let component = match used {
            Ok(component) => component,
            Err(failure) if left_out.allows(&failure, components.len()) => {
                let message =
                    format!("the tools of `{}` are left out: {}", chosen.word(), failure.message());
                printer.warning(&message);
                printer.hint(failure.hint);
                continue;
            }
            Err(failure) if is_read => return Err(failure.about(chosen.display_path())),
            Err(failure) => return Err(failure),
        };
        for tool in component.tools() {
            let name = &tool.definition().name;
            homes.add(name, &chosen.display_path())?;
            for (_, problem) in
                tool.rights().into_iter().flat_map(|rights| config.unset_of(rights, tenant))
            {
                printer.warning(secrets::problem_text(problem, &[name]));
                printer.hint(&problem.hint);
            }
            tools.push(config.stopped(tool.clone().with_limits(chosen.limits_of(name))));
        }
    }
    homes.check()?;
    Ok(tools)
}
