//! `toolcell.toml`: the components, their grants and limits, and how tenants narrow them.
//!
//! In: `--config`, the environment, or the nearest file of that name; a file of another user is not read, and a command that
//! needs one says so. Out: a [`Config`], or everything that is wrong.
//! Invariants: nothing of a file is used unless all of it can be; without a file nothing is granted. A file that was found and
//! that this user has not approved can only take away: none of its components is used, no secret's value is read, no limit
//! is raised.

mod choose;
mod chosen;
mod dev;
mod file;
mod grants;
mod isolation;
mod limits;
mod lock;
mod problem;
mod roots;
mod rules;
mod search;
mod secrets;
mod shape;
mod signed;
mod trust;
mod typed;
mod unset;
mod wanted;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml::de::DeTable;
use toolcell::{CallContext, Executor, Limits, MAX_NAME, StoredSecrets, Tenant, names};

use crate::args::Global;
use crate::failure::Failure;
use crate::paste::Again;
use crate::{env, files};
use problem::{Problems, in_order};
use roots::Guarded;

pub(crate) use chosen::{Chosen, Configured, Section, Single};
pub(crate) use dev::Development;
pub(crate) use isolation::Isolation;
pub(crate) use limits::unusual;
pub(crate) use lock::{Approved, Lock};
pub(crate) use problem::Problem;
pub(crate) use rules::{RuleOf, WrittenRule};
pub(crate) use secrets::Origin;
pub(crate) use signed::Demand;
pub(crate) use trust::{Approval, Found};
pub(crate) use wanted::Wanted;

/// The name of the file that is searched for.
pub(crate) const NAME: &str = "toolcell.toml";

/// A configuration, or the empty one where there is no file.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// The file, as it is shown.
    pub(crate) file: Option<String>,
    /// A file that was found and not read, because it is another user's.
    foreign: Option<search::Ignored>,
    /// The file of approvals beside it.
    lock: PathBuf,
    /// Its path without links.
    pub(crate) path: Option<PathBuf>,
    /// Set if the file was found, not named on the command line or by the environment.
    pub(crate) found: Option<Found>,
    pub(crate) approval: Approval,
    pub(crate) components: BTreeMap<String, Configured>,
    /// The limits of a component that has none of its own.
    defaults: Limits,
    /// What a component has to be that it does not name.
    demand: Option<Demand>,
    /// Of every component.
    isolation: Isolation,
    pub(crate) tenants: BTreeMap<String, Tenant>,
    /// Of their calls, whichever component they are of.
    tenants_isolation: BTreeMap<String, Isolation>,
    pub(crate) secrets: StoredSecrets,
    /// Where their values come from, by name.
    pub(crate) origins: BTreeMap<String, Origin>,
    /// Secrets whose value cannot be read, and why.
    pub(crate) unset: BTreeMap<String, Problem>,
    /// Grants that were typed: `--grant`.
    pub(crate) typed: Vec<String>,
    /// Its rules, each with its place.
    pub(crate) rules: Vec<WrittenRule>,
    pub(crate) warnings: Vec<Problem>,
    /// What a hint has to say again.
    pub(crate) again: Again,
}

impl Config {
    /// Finds and reads it.
    pub(crate) fn read(global: &Global) -> Result<Self, Failure> {
        Self::read_with(global, Wanted::All)
    }

    /// The same with the values of these secrets alone.
    pub(crate) fn read_with(global: &Global, wanted: Wanted<'_>) -> Result<Self, Failure> {
        let named = global.config.clone().or_else(env::config);
        let is_found = named.is_none();
        let again = Again::of(global);
        let found = if is_found { search::nearest() } else { search::Nearest::default() };
        let Some(shown) = named.or(found.own) else {
            return Ok(Self { again, foreign: found.foreign, ..Self::default() });
        };
        let text = files::config(&shown)?;
        let path = fs::canonicalize(&shown).unwrap_or_else(|_| shown.clone());
        let place = lock::place(&path)?;
        if let (true, Some(dir)) = (is_found, path.parent()) {
            files::own_directory(dir, "name a configuration of your own with `--config FILE`")?;
        }
        let lock = is_found.then(|| files::lock(&place)).transpose()?;
        let found = lock.map(|lock| Found::new(&path, &text, lock, global.state_dir.as_deref()));
        let shown = shown.display().to_string();
        let mut problems = Problems::new(&shown, &text);
        let base = path.parent().unwrap_or(Path::new("/")).to_owned();
        let unwritten = vec![path.clone(), place.clone()];
        let places = Places { base, unwritten, secrets: secrets::Secrets::default() };
        let config = Self::parsed(&mut problems, places, found, global, wanted);
        let Problems { mut errors, warnings, .. } = problems;
        match config {
            Some(config) if errors.is_empty() => {
                let (path, file) = (Some(path), Some(shown));
                Ok(Self { path, file, lock: place, warnings: in_order(warnings), again, ..config })
            }
            config => {
                errors.extend(config.into_iter().flat_map(|config| config.unset.into_values()));
                Err(Failure::config(&shown, in_order(errors)))
            }
        }
    }

    fn parsed(
        problems: &mut Problems<'_>,
        places: Places,
        found: Option<Found>,
        global: &Global,
        wanted: Wanted<'_>,
    ) -> Option<Self> {
        let text = problems.text();
        let (tree, faults) = DeTable::parse_recoverable(text);
        if !faults.is_empty() {
            for fault in faults {
                let hint = "write text in quotes and a section's name in brackets; https://toml.io explains TOML";
                problems.error(&fault.span().unwrap_or_default(), fault.message(), hint);
            }
            return None;
        }
        shape::check(problems, &schema(), tree.get_ref());
        if !problems.errors.is_empty() {
            return None;
        }
        match toml::from_str(text) {
            Ok(file) => Some(Self::resolved(problems, &file, places, found, global, wanted)),
            Err(error) => {
                problems.error(
                    &error.span().unwrap_or_default(),
                    error.message(),
                    "`toolcell check --schema` shows the form",
                );
                None
            }
        }
    }

    /// What the file means, as far as it means anything.
    fn resolved(
        problems: &mut Problems<'_>,
        file: &file::File,
        Places { base, mut unwritten, mut secrets }: Places,
        found: Option<Found>,
        global: &Global,
        wanted: Wanted<'_>,
    ) -> Self {
        let approval = found.as_ref().map_or(Approval::Given, Found::approval);
        let base = base.as_path();
        for component in file.components.values() {
            for (name, said) in component.value.grants.iter().flat_map(|grants| &grants.value.secrets) {
                // What a tenant's process is not to know is not looked at there, as if nobody had approved it.
                let look = if wanted.has(name) { approval } else { Approval::Missing };
                secrets.fetch(problems, base, name, &said.span, said.value.from.as_ref(), look);
            }
        }
        unwritten.extend(file.components.values().map(|component| base.join(&component.value.path.value)));
        let guarded = Guarded {
            home: env::home(),
            own: [global.cache_dir.clone(), env::cache_dir(), global.state_dir.clone(), env::state_dir()]
                .into_iter()
                .flatten()
                .collect(),
            unread: secrets.files().map(Path::to_owned).collect(),
            unwritten,
        };
        let guarded = guarded.resolved();
        let defaults = limits::over(problems, &file.defaults.limits, Limits::default());
        let secrets::Secrets { origins, stored, unset } = secrets;
        let dev = dev::Folders::of(problems, &file.dev, base, &guarded, found.as_ref());
        let signatures = signed::Signatures::of(problems, file);
        let mut config = Self {
            found,
            approval,
            defaults,
            isolation: isolation::said(&file.host.isolation),
            demand: signatures.of_all.clone(),
            secrets: stored,
            origins,
            unset,
            rules: rules::written(problems, file),
            ..Self::default()
        };
        let isolation = config.isolation;
        for (name, said) in &file.components {
            if !is_name(name) {
                let hint = format!("use 1 to {MAX_NAME} of the characters A-Z a-z 0-9 _ -");
                problems.error(&said.span, format!("`{}` cannot be a component's name", name.escape_debug()), hint);
            }
            let file::Component { path, digest, grants, isolation: own, limits, tools, .. } = &said.value;
            let mut configured = Configured {
                path: base.join(&path.value),
                grants: grants
                    .as_ref()
                    .map(|said| grants::grants(problems, &said.value, base, &guarded, name))
                    .unwrap_or_default(),
                limits: limits::over(problems, limits, defaults),
                isolation: isolation.max(isolation::of_component(problems, own)),
                development: dev.development(&base.join(&path.value)),
                digest: digest.as_ref().and_then(|digest| pinned(problems, digest)),
                demand: signatures.of_component(problems, base, &said.value),
                section: Section {
                    line: problems.line(grants.as_ref().map_or(&said.span, |grants| &grants.span)),
                    has_grants: grants.is_some(),
                },
                tools: BTreeMap::new(),
            };
            for (tool, said) in tools {
                if let Some(isolation) = &said.value.isolation {
                    let hint = format!("write it in [components.{name}]: all tools of a component share its isolation");
                    problems.error(&isolation.span, "a single tool cannot have its own isolation", hint);
                }
                let limits = limits::over(problems, &said.value.limits, Limits::unlimited());
                configured.grants.tools.insert(tool.clone(), grants::overlay(problems, &said.value));
                let unknown = problems.at(&said.span, format!("`{name}` has no tool `{}`", tool.escape_debug()), "");
                configured.tools.insert(tool.clone(), Single { limits, unknown });
            }
            let same = |other: &Configured| search::is_same_file(&other.path, &configured.path);
            if let Some((first, _)) = config.components.iter().find(|(_, other)| same(other)) {
                let message = format!("`{first}` and `{name}` are the same file");
                problems.error(&path.span, message, "remove one of them: the path would mean two components");
            }
            config.components.insert(name.clone(), configured);
        }
        for (name, said) in &file.tenants {
            let limits = limits::over(problems, &said.value.limits, Limits::unlimited());
            let overlay = grants::overlay(problems, &said.value);
            config.tenants.insert(name.clone(), Tenant::default().with_limits(limits).with_overlay(overlay));
            config.tenants_isolation.insert(name.clone(), isolation.max(isolation::said(&said.value.isolation)));
        }
        config
    }

    /// The context of calls for this tenant. Where the file names tenants, another one would be narrowed by nothing: it is
    /// refused.
    pub(crate) fn on_behalf(&self, mut context: CallContext, tenant: Option<&str>) -> Result<CallContext, Failure> {
        if let Some(tenant) = tenant {
            if context.tenant.as_deref().is_some_and(|other| other != tenant) {
                return Err(Failure::usage(
                    "two tenants: `--tenant` and `tenant` in `--context`",
                    "leave one of them out",
                ));
            }
            context.tenant = Some(tenant.to_owned());
        }
        if let (Some(file), Some(tenant)) = (&self.file, &context.tenant)
            && !self.tenants.is_empty()
            && !self.tenants.contains_key(tenant)
        {
            let near = names::nearest(tenant, self.tenants.keys().map(String::as_str));
            let hint = near.map_or_else(
                || "add [tenants.NAME]: it may be empty".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(Failure::usage(format!("`{file}` names no tenant `{}`", tenant.escape_debug()), hint));
        }
        Ok(context)
    }

    /// The executor with every tenant, and for calls of the user's own.
    pub(crate) fn executor(&self) -> Executor {
        let with = |executor: Executor, (name, tenant): (&String, &Tenant)| executor.with_tenant(name, tenant.clone());
        self.tenants.iter().fold(Executor::new().with_untenanted(Tenant::default()), with)
    }
}

/// Where a configuration is, for the paths in it.
struct Places {
    /// The directory that its relative paths begin at.
    base: PathBuf,
    /// Files that no tool may be granted to write.
    unwritten: Vec<PathBuf>,
    /// Secrets that are known already.
    secrets: secrets::Secrets,
}

/// The JSON Schema of the file.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(file::File).to_value()
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn pinned(problems: &mut Problems<'_>, digest: &file::At<String>) -> Option<(String, Problem)> {
    let hex = digest.value.strip_prefix("sha256:");
    let is_digest = |hex: &str| hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !hex.is_some_and(is_digest) {
        let message = format!("`{}` is not a digest", digest.value.escape_debug());
        problems.error(&digest.span, message, "write `sha256:` and 64 hex digits, as `toolcell inspect` prints them");
        return None;
    }
    let hint = "compare the file with its source; if it is the one you want, write its digest here";
    Some((digest.value.clone(), problems.at(&digest.span, "the component is not the one that is pinned", hint)))
}
