//! A component that was requested, with its settings in the configuration.
//!
//! `Configuration::choose` returns a [`ResolvedComponent`] for a name or a path. It has the file,
//! the limits and isolation that apply, and the section of the configuration, if one names it.
//! `bytes` reads the file and returns its bytes and signer, signed and pinned to a digest as the
//! configuration demands; untrusted bytes are not parsed before the signature is verified. `grants`
//! returns its grants, which are empty without a section. `check_tools` refuses settings for a tool
//! that the component does not have, because with a misspelt name they would restrict nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcell::component::ComponentKind;
use toolcell::controls::enforced;
use toolcell::{Component, Definition, Grants, Limits, names};

use crate::approval::dev::Development;
use crate::approval::signature::Signer;
use crate::approval::signed::SignatureRequirement;
use crate::approval::versions;
use crate::error::Error;
use crate::paths::files;
use crate::problem::Problem;
use crate::schema::Isolation;

/// A component in the file.
#[derive(Debug, Clone)]
pub struct ComponentConfig {
    /// Its file.
    pub path: PathBuf,
    /// The use of the component.
    pub kind: ComponentKind,
    /// The grants.
    pub grants: Grants,
    /// The limits of one call.
    pub limits: Limits,
    /// The isolation of its calls.
    pub isolation: Isolation,
    /// Set if it needs no approval.
    pub development: Option<Development>,
    /// The required digest, and the error for another one.
    pub digest: Option<(String, Problem)>,
    /// The requirement of a signature, if there is one.
    pub(crate) demand: Option<SignatureRequirement>,
    /// The place of the component's section.
    pub section: Section,
    /// Settings of single tools. The rights that they are left are in the grants.
    pub tools: BTreeMap<String, ToolConfig>,
}

/// The settings of one tool.
#[derive(Debug, Clone)]
pub struct ToolConfig {
    /// Limits in addition to all others.
    pub limits: Limits,
    /// The problem to report if there is no such tool.
    pub(crate) unknown: Problem,
}

/// The place of a component in the file.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// The line of its grants, or of the component.
    pub line: usize,
    /// True if it has a section of grants.
    pub has_grants: bool,
}

/// A component that was requested, by name or by path.
#[derive(Debug, Clone)]
pub struct ResolvedComponent<'a> {
    /// Its file.
    pub path: PathBuf,
    /// Its name, and its settings in the file.
    pub configured: Option<(&'a str, &'a ComponentConfig)>,
    /// The limits that apply now. The file may have looser ones.
    pub limits: Limits,
    /// The requirement of a signature, if there is one.
    pub demand: Option<&'a SignatureRequirement>,
    /// The minimum isolation of its calls. A tenant's may be stricter.
    pub isolation: Isolation,
    /// True if the component was named by its path, and its grants come from a file that was found.
    /// A note is printed then.
    pub is_surprise: bool,
}

/// Derives a tool's name from the name of a file: the allowed characters of its stem, or `command`
/// if there are none.
pub fn name_of_file(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name: String = stem
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c))
        .take(Definition::MAX_NAME / 2)
        .collect();
    if name.is_empty() { "command".to_owned() } else { name }
}

impl ResolvedComponent<'_> {
    /// Returns its name in the file.
    pub(crate) fn name(&self) -> Option<&str> {
        self.configured.map(|(name, _)| name)
    }

    /// Returns its settings in the file.
    fn settings(&self) -> Option<&ComponentConfig> {
        self.configured.map(|(_, settings)| settings)
    }

    /// Returns the use of the component. A component that no configuration names describes its own
    /// tools.
    pub fn kind(&self) -> ComponentKind {
        self.settings().map(|settings| settings.kind.clone()).unwrap_or_default()
    }

    /// Returns the reason why it needs no approval, if it is in development.
    pub fn development(&self) -> Option<&Development> {
        self.settings()?.development.as_ref()
    }

    /// Returns a name for it that a tool can have: its own, or one derived from its file's name.
    pub fn tool_name(&self) -> String {
        self.name().map_or_else(|| name_of_file(&self.path), str::to_owned)
    }

    /// Returns its grants.
    pub fn grants(&self) -> Grants {
        self.settings().map(|settings| settings.grants.clone()).unwrap_or_default()
    }

    /// Returns true if it has any right. Settings of single tools only restrict, and a store
    /// without keys has no effect.
    pub fn is_granted_anything(&self) -> bool {
        let mut grants = self.grants();
        grants.tools.clear();
        grants.store = None;
        grants != Grants::default()
    }

    /// Returns true if the configuration allows this digest.
    pub(crate) fn is_digest_allowed(&self, digest: &str) -> bool {
        let wanted = self.settings().and_then(|settings| settings.digest.as_ref());
        wanted.is_none_or(|(wanted, _)| wanted == digest)
    }

    /// Tightens the isolation to at least this.
    #[must_use]
    pub fn with_isolation(self, isolation: Isolation) -> Self {
        Self { isolation: self.isolation.max(isolation), ..self }
    }

    /// Returns the limits in the tool's own section.
    pub fn limits_of(&self, tool: &str) -> Limits {
        let said = self.settings().and_then(|settings| settings.tools.get(tool));
        said.map_or_else(Limits::unlimited, |said| said.limits)
    }

    /// Returns the name of the tool's section, if there is one.
    pub fn section_of(&self, tool: &str) -> Option<String> {
        let (name, configured) = self.configured?;
        configured.tools.contains_key(tool).then(|| format!("components.{name}.tools.{tool}"))
    }

    /// Refuses a section for a tool that the component does not have: with a misspelt name it would
    /// restrict nothing.
    pub fn check_tools(&self, component: &Component) -> Result<(), Error> {
        let known = component.tools().iter().map(|tool| tool.definition().name.as_str());
        let said = self.settings().into_iter().flat_map(|settings| &settings.tools);
        let unknown = said.filter(|(name, _)| !known.clone().any(|known| known == *name));
        let problems: Vec<_> = unknown
            .map(|(name, said)| {
                let listed =
                    || format!("its tools are: {}", known.clone().collect::<Vec<_>>().join(", "));
                let hint = names::did_you_mean(name, known.clone(), listed);
                Problem { hint, ..said.unknown.clone() }
            })
            .collect();
        match problems.first().map(|problem| problem.file.clone()) {
            Some(file) => Err(Error::invalid(&file, problems)),
            None => Ok(()),
        }
    }

    /// Returns the word that selects it on the command line.
    pub fn word(&self) -> String {
        let is_typed = self.development() == Some(&Development::CommandLine);
        self.name().filter(|_| !is_typed).map_or_else(|| self.display_path(), str::to_owned)
    }

    /// Returns its path for messages.
    pub fn display_path(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns the bytes of its file, signed and pinned as the configuration demands, and the
    /// signer if it demands one.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or with [`Error::Unsigned`] or [`Error::DigestMismatch`].
    pub fn bytes(&self) -> Result<(Vec<u8>, Option<Signer>), Error> {
        let bytes = files::component(&self.path)?;
        let signer = self.verify(&bytes, self.signature().as_deref())?;
        Ok((bytes, signer))
    }

    /// Returns the path of its signature, if one is demanded.
    pub(crate) fn signature(&self) -> Option<PathBuf> {
        self.demand.map(|demand| demand.signature(&self.path))
    }

    /// Checks bytes, with the path of their signature.
    pub(crate) fn verify(
        &self,
        bytes: &[u8],
        signature: Option<&Path>,
    ) -> Result<Option<Signer>, Error> {
        // The signature comes first: untrusted bytes are not parsed before it is verified.
        let demand = self.demand.zip(signature);
        let judged = demand.map(|(demand, signature)| demand.signer(&self.path, signature, bytes));
        let signer = match judged.transpose() {
            Err(error) if enforced!(Signature) => return Err(error),
            judged => judged.unwrap_or_default(),
        };
        if let Some((digest, problem)) = self.settings().and_then(|said| said.digest.as_ref()) {
            let found = versions::digest(bytes);
            if found != *digest && enforced!(Pins) {
                let message = format!("{}: {} has {found}", problem.message, self.display_path());
                let problem = Problem { message, ..problem.clone() };
                return Err(Error::DigestMismatch(Box::new(problem)));
            }
        }
        Ok(signer)
    }
}
