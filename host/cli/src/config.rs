//! `toolcell.toml`: which components there are, what they may reach and use, and what tenants leave of that.
//!
//! In: `--config`, the environment, or the nearest file of that name, unless that is another user's: then it is not read, and
//! who needs one is told. Out: a [`Config`], or everything that is wrong.
//! Invariants: nothing of a file is used unless all of it can be; without a file nothing is granted. Of one that was found,
//! and that this user did not approve, only what takes away counts: none of its components is used, no secret's value is
//! looked at, no limit is raised.

mod chosen;
mod file;
mod grants;
mod isolation;
mod limits;
mod lock;
mod problem;
mod roots;
mod search;
mod secrets;
mod shape;
mod signed;
mod trust;
mod wanted;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml::de::DeTable;
use toolcell::defence::{Defence, stands};
use toolcell::{CallContext, Executor, Limits, MAX_NAME, StoredSecrets, Tenant, names};

use crate::args::Global;
use crate::failure::Failure;
use crate::paste::{Again, quoted};
use crate::{env, files};
use problem::{Problems, in_order};
use roots::Guarded;

pub(crate) use chosen::{Chosen, Configured, Section, Single};
pub(crate) use isolation::Isolation;
pub(crate) use limits::unusual;
pub(crate) use lock::{Approved, Lock};
pub(crate) use problem::Problem;
pub(crate) use secrets::Origin;
pub(crate) use signed::Demand;
pub(crate) use trust::{Approval, Found};
pub(crate) use wanted::Wanted;

/// The file's name where nobody names it.
pub(crate) const NAME: &str = "toolcell.toml";

/// What a file says, or nothing.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// The file, as it is shown.
    pub(crate) file: Option<String>,
    /// A file that was found and not read, for it is another user's.
    foreign: Option<PathBuf>,
    /// The file of approvals beside it.
    lock: PathBuf,
    /// Its path without links.
    pub(crate) path: Option<PathBuf>,
    /// Where it was found, and not named by who typed the command.
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
        let config = Self::parsed(&mut problems, (&path, &place), found, global, wanted);
        let Problems { errors, warnings, .. } = problems;
        match config {
            Some(config) if errors.is_empty() => {
                Ok(Self { file: Some(shown), lock: place, warnings: in_order(warnings), again, ..config })
            }
            Some(_) | None => Err(Failure::config(&shown, in_order(errors))),
        }
    }

    fn parsed(
        problems: &mut Problems<'_>,
        places: (&Path, &Path),
        found: Option<Found>,
        global: &Global,
        wanted: Wanted<'_>,
    ) -> Option<Self> {
        let text = problems.text();
        let (tree, faults) = DeTable::parse_recoverable(text);
        if !faults.is_empty() {
            for fault in faults {
                let hint = "see https://toml.io for the form; text stands in quotes, a section's name in brackets";
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
        (path, place): (&Path, &Path),
        found: Option<Found>,
        global: &Global,
        wanted: Wanted<'_>,
    ) -> Self {
        let approval = found.as_ref().map_or(Approval::Given, Found::approval);
        let base = path.parent().unwrap_or(Path::new("/"));
        let mut secrets = secrets::Secrets::default();
        for component in file.components.values() {
            for (name, said) in component.value.grants.iter().flat_map(|grants| &grants.value.secrets) {
                // What a tenant's process is not to know is not looked at there, as if nobody had approved it.
                let look = if wanted.has(name) { approval } else { Approval::Missing };
                secrets.fetch(problems, base, name, &said.span, said.value.from.as_ref(), look);
            }
        }
        let components = || file.components.values().map(|component| base.join(&component.value.path.value));
        let guarded = Guarded {
            home: env::home(),
            own: [global.cache_dir.clone(), env::cache_dir(), global.state_dir.clone(), env::state_dir()]
                .into_iter()
                .flatten()
                .collect(),
            unread: secrets.files().map(Path::to_owned).collect(),
            unwritten: components().chain([path, place].map(Path::to_owned)).collect(),
        };
        let guarded = guarded.resolved();
        let defaults = limits::over(problems, &file.defaults.limits, Limits::default());
        let secrets::Secrets { origins, stored, .. } = secrets;
        let signatures = signed::Signatures::of(problems, file);
        let mut config = Self {
            path: Some(path.to_owned()),
            found,
            approval,
            defaults,
            isolation: isolation::said(&file.host.isolation),
            demand: signatures.of_all.clone(),
            secrets: stored,
            origins,
            ..Self::default()
        };
        let isolation = config.isolation;
        for (name, said) in &file.components {
            if !is_name(name) {
                let hint = format!("use 1 to {MAX_NAME} of the characters A-Z a-z 0-9 _ -");
                problems.error(&said.span, format!("`{}` is no name of a component", name.escape_debug()), hint);
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
                    let hint = format!("write it in [components.{name}]: a component's tools share its cells");
                    problems.error(&isolation.span, "a tool has no isolation of its own", hint);
                }
                let limits = limits::over(problems, &said.value.limits, Limits::unlimited());
                configured.grants.tools.insert(tool.clone(), grants::overlay(problems, &said.value));
                let unknown = problems.at(&said.span, format!("`{name}` has no tool `{}`", tool.escape_debug()), "");
                configured.tools.insert(tool.clone(), Single { limits, unknown });
            }
            let same = |other: &Configured| search::is_same_file(&other.path, &configured.path);
            if let Some((first, _)) = config.components.iter().find(|(_, other)| same(other)) {
                let message = format!("`{first}` and `{name}` are the same file");
                problems.error(&path.span, message, "leave one of them out: its path would have two meanings");
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

    /// The component that a word stands for: its name, or its path.
    pub(crate) fn choose(&self, word: &Path) -> Result<Chosen<'_>, Failure> {
        if let Some((name, configured)) = word.to_str().and_then(|word| self.components.get_key_value(word)) {
            return Ok(self.chosen(name, configured));
        }
        let is_bare = word.to_str().is_some_and(is_name);
        if let Some(foreign) = self.foreign.as_deref().filter(|_| is_bare && !word.exists()) {
            return Err(search::not_used(foreign));
        }
        if let Some(file) = &self.file
            && is_bare
            && !word.exists()
        {
            let asked = word.display().to_string();
            let near = names::nearest(&asked, self.components.keys().map(String::as_str));
            let hint = near.map_or_else(|| self.listed(), |near| format!("did you mean `{near}`?"));
            return Err(Failure::usage(
                format!("`{file}` names no component `{asked}`, and there is no such file"),
                hint,
            ));
        }
        let same = |configured: &Configured| search::is_same_file(&configured.path, word);
        Ok(match self.components.iter().find(|(_, configured)| same(configured)) {
            Some((name, configured)) => {
                let chosen = self.chosen(name, configured);
                let is_surprise = self.found.is_some() && chosen.is_granted_anything();
                Chosen { path: word.to_owned(), is_surprise, ..chosen }
            }
            None => {
                let (path, limits) = (word.to_owned(), self.bounded(self.defaults));
                let (isolation, demand) = (self.isolation, self.demand.as_ref());
                Chosen { path, configured: None, limits, isolation, demand, is_surprise: false }
            }
        })
    }

    /// Why there is no file, for a command that needs one; `hint` is what to do where there is none at all.
    pub(crate) fn missing(&self, hint: &str) -> Failure {
        match &self.foreign {
            Some(foreign) => search::not_used(foreign),
            None => Failure::usage(format!("there is no `{NAME}` here or above"), hint),
        }
    }

    /// How far calls on behalf of a tenant are kept from others at the least.
    pub(crate) fn isolation_of(&self, tenant: Option<&str>) -> Isolation {
        tenant.and_then(|tenant| self.tenants_isolation.get(tenant)).copied().unwrap_or(self.isolation)
    }

    /// The same, to be used and not merely looked at: one of a configuration that nobody approved is refused.
    pub(crate) fn used(&self, word: &Path) -> Result<Chosen<'_>, Failure> {
        let chosen = self.choose(word)?;
        match (self.approval, &self.file, chosen.configured) {
            (Approval::Missing, Some(file), Some((name, _))) if stands(Defence::FoundConfiguration) => {
                let message = format!("`{name}` is of `{file}`, which was found here and is not approved as it is now");
                let approve = self.again.command("approve", &[], &[]);
                Err(Failure::not_approved(
                    message,
                    format!("{approve} shows it and asks; or name it: `--config {}`", quoted(file)),
                ))
            }
            (Approval::Missing | Approval::Given, _, _) => Ok(chosen),
        }
    }

    /// All of its components.
    pub(crate) fn all(&self) -> impl Iterator<Item = Chosen<'_>> {
        self.components.iter().map(|(name, configured)| self.chosen(name, configured))
    }

    fn chosen<'a>(&self, name: &'a str, configured: &'a Configured) -> Chosen<'a> {
        let (path, limits) = (configured.path.clone(), self.bounded(configured.limits));
        let (isolation, demand) = (configured.isolation, configured.demand.as_ref());
        Chosen { path, configured: Some((name, configured)), limits, isolation, demand, is_surprise: false }
    }

    /// What counts of limits that the file sets: what nobody approved only tightens.
    fn bounded(&self, said: Limits) -> Limits {
        match self.approval {
            Approval::Missing if stands(Defence::FoundLimits) => said.tightened(&Limits::default()),
            Approval::Missing | Approval::Given => said,
        }
    }

    fn listed(&self) -> String {
        let names: Vec<_> = self.components.keys().map(String::as_str).collect();
        if names.is_empty() {
            "it names none: add [components.NAME]".to_owned()
        } else {
            format!("it names: {}", names.join(", "))
        }
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
        let message = format!("`{}` is no digest", digest.value.escape_debug());
        problems.error(&digest.span, message, "write `sha256:` and 64 of 0-9 a-f, as `toolcell inspect` shows it");
        return None;
    }
    let hint = "compare the file with where it comes from; if it is the one you want, write its digest here";
    Some((digest.value.clone(), problems.at(&digest.span, "the component is not the one that is pinned", hint)))
}
