//! A component that was asked for, and what the configuration says of it.
//!
//! Invariants: what is said of a tool that is not there is an error, with the nearest that is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcell::{ComponentKind, Grants, Limits, MAX_NAME, names};

use crate::dev::Development;
use crate::error::Error;
use crate::isolation::Isolation;
use crate::problem::Problem;
use crate::signed::Demand;

/// A component that the file names.
#[derive(Debug, Clone)]
pub struct ComponentConfig {
    /// Its file.
    pub path: PathBuf,
    /// What it is used as.
    pub kind: ComponentKind,
    /// What it is granted.
    pub grants: Grants,
    /// How much one call may use.
    pub limits: Limits,
    /// How far its calls are isolated.
    pub isolation: Isolation,
    /// Set if it needs no approval.
    pub development: Option<Development>,
    /// The digest that it must have, and the error if it has another one.
    pub digest: Option<(String, Problem)>,
    /// That it must be signed, if it has to.
    pub(crate) demand: Option<Demand>,
    /// Where the file says so.
    pub section: Section,
    /// What is said of single tools; what they are left is in the grants.
    pub tools: BTreeMap<String, ToolConfig>,
}

/// What is said of one tool.
#[derive(Debug, Clone)]
pub struct ToolConfig {
    /// On top of whatever else limits it.
    pub limits: Limits,
    /// What is wrong where there is no such tool.
    pub(crate) unknown: Problem,
}

/// Where a component stands.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// The line of its grants, or of the component.
    pub line: usize,
    /// Whether it has a section of grants.
    pub has_grants: bool,
}

/// A component that was asked for, by name or by path.
#[derive(Debug, Clone)]
pub struct ResolvedComponent<'a> {
    /// Its file.
    pub path: PathBuf,
    /// Its name and what the file says of it.
    pub configured: Option<(&'a str, &'a ComponentConfig)>,
    /// What counts for it now; what the file says of it may be more.
    pub limits: Limits,
    /// That it must be signed, if it has to.
    pub demand: Option<&'a Demand>,
    /// How far its calls are kept from others; a tenant's may be further.
    pub isolation: Isolation,
    /// The component was named by its path, and its grants come from a file that was found: a note
    /// says so.
    pub is_surprise: bool,
}

/// The name of a file as a tool can have it: of its stem, the characters that are allowed there.
/// `command` if none is.
pub fn name_of_file(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name: String = stem
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c))
        .take(MAX_NAME / 2)
        .collect();
    if name.is_empty() { "command".to_owned() } else { name }
}

impl ResolvedComponent<'_> {
    /// What it is used as. A component that no configuration names describes its tools itself.
    pub fn kind(&self) -> ComponentKind {
        self.configured.map(|(_, configured)| configured.kind.clone()).unwrap_or_default()
    }

    /// Why it needs no approval, if it is in development.
    pub fn development(&self) -> Option<&Development> {
        self.configured.and_then(|(_, configured)| configured.development.as_ref())
    }

    /// A name for it that a tool can have: its own, or what is left of that of its file.
    pub fn tool_name(&self) -> String {
        self.configured.map_or_else(|| name_of_file(&self.path), |(name, _)| name.to_owned())
    }

    /// What it is granted.
    pub fn grants(&self) -> Grants {
        self.configured.map(|(_, configured)| configured.grants.clone()).unwrap_or_default()
    }

    /// Whether it may reach anything at all. What is said of single tools only takes away, and a
    /// store is nothing without keys.
    pub fn is_granted_anything(&self) -> bool {
        let mut grants = self.grants();
        grants.tools.clear();
        grants.store = None;
        grants != Grants::default()
    }

    /// Whether the configuration allows this digest.
    pub(crate) fn is_digest_allowed(&self, digest: &str) -> bool {
        let wanted = self.configured.and_then(|(_, configured)| configured.digest.as_ref());
        wanted.is_none_or(|(wanted, _)| wanted == digest)
    }

    /// The same with calls kept apart as far as this, if that is more.
    #[must_use]
    pub fn isolated(self, isolation: Isolation) -> Self {
        Self { isolation: self.isolation.max(isolation), ..self }
    }

    /// What is left of a tool's limits by its own section.
    pub fn limits_of(&self, tool: &str) -> Limits {
        let said = self.configured.and_then(|(_, configured)| configured.tools.get(tool));
        said.map_or_else(Limits::unlimited, |said| said.limits)
    }

    /// The name of that section, if there is one.
    pub fn section_of(&self, tool: &str) -> Option<String> {
        let (name, configured) = self.configured?;
        configured.tools.contains_key(tool).then(|| format!("components.{name}.tools.{tool}"))
    }

    /// Refuses a section for a tool that the component does not have: with a misspelt name nothing
    /// would be narrowed.
    pub fn check_tools<'b>(
        &self,
        known: impl Iterator<Item = &'b str> + Clone,
    ) -> Result<(), Error> {
        let said = self.configured.into_iter().flat_map(|(_, configured)| &configured.tools);
        let unknown = said.filter(|(name, _)| !known.clone().any(|known| known == *name));
        let problems: Vec<_> = unknown
            .map(|(name, said)| {
                let near = names::nearest(name, known.clone());
                let listed =
                    || format!("its tools are: {}", known.clone().collect::<Vec<_>>().join(", "));
                let hint = near.map_or_else(listed, |near| format!("did you mean `{near}`?"));
                Problem { hint, ..said.unknown.clone() }
            })
            .collect();
        match problems.first().map(|problem| problem.file.clone()) {
            Some(file) => Err(Error::invalid(&file, problems)),
            None => Ok(()),
        }
    }

    /// What it can be asked for by.
    pub fn word(&self) -> String {
        let named = self
            .configured
            .filter(|(_, configured)| configured.development != Some(Development::Typed));
        named.map_or_else(|| self.shown(), |(name, _)| name.to_owned())
    }

    /// How it is called.
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }
}
