//! Reads the values of secrets from the sources that the file names.
//!
//! Reading a configuration calls `Secrets::fetch_all` with the file and the approval. For each
//! secret that a component is granted it records the [`Origin`], an environment variable or a file,
//! and reads the value if the configuration is approved and the value is wanted. A tenant (a
//! customer with a section of its own) can have its own value, which replaces the shared one in its
//! calls, even if it cannot be read.
//!
//! A value is in no message. A name has one value in the whole file, except for tenants' own. A
//! value that cannot be read disables the tools that may use it (`unset`), not the configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toolcell::names;
use toolcell::secrets::{Secret, StoredSecrets};

use crate::ReadOptions;
use crate::approval::trust::Approval;
use crate::paths::files;
use crate::problem::{Problem, Problems};
use crate::schema::{At, File, From};

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An environment variable.
    Variable(String),
    /// A file.
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the environment variable `{name}`"),
            Self::File(path) => write!(f, "the file `{}`", path.display()),
        }
    }
}

impl Origin {
    /// Returns the file, if the value is in one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Variable(_) => None,
            Self::File(path) => Some(path),
        }
    }

    /// Reads the value. `secret` names it in the error, `file` shows how to read it from a file.
    pub(crate) fn value(
        &self,
        options: &ReadOptions,
        secret: &str,
        file: &str,
    ) -> Result<Secret, (String, String)> {
        let unusable = |problem: String| format!("{secret} has no usable value: {problem}");
        let value = match self {
            Self::Variable(variable) => options.variable(variable).ok_or_else(|| {
                let hint = format!("set the variable, or read the value from a file: {file}");
                (unusable(format!("the environment variable `{variable}` is not set")), hint)
            }),
            Self::File(path) => {
                files::secret(path).map_err(|(problem, hint)| (unusable(problem), hint))
            }
        };
        let secret = |value| {
            Secret::new(value)
                .map_err(|error| (unusable(error.to_string()), "correct its value".into()))
        };
        value.and_then(secret)
    }
}

/// The secrets that have a value of a tenant's own.
#[derive(Debug, Clone, Default)]
pub struct OwnSecrets {
    /// The sources of the values, by name.
    pub origins: BTreeMap<String, Origin>,
    /// Secrets whose value cannot be read, with the reason.
    pub unset: BTreeMap<String, Problem>,
}

/// All secrets of a file.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// The values that all share. Tools that may use an unset one do not run; all others do.
    pub(crate) shared: OwnSecrets,
    pub(crate) stored: StoredSecrets,
    /// The values of tenants' own.
    pub(crate) own: BTreeMap<String, OwnSecrets>,
}

impl Secrets {
    /// Reads the values of the file's secrets that are approved and wanted.
    pub(crate) fn fetch_all(
        &mut self,
        problems: &mut Problems<'_>,
        (base, options): (&Path, &ReadOptions),
        file: &File,
        approval: Approval,
    ) {
        // A secret that is not wanted is treated as not approved, so that a tenant's process does
        // not read it.
        let look = |is_wanted: bool| if is_wanted { approval } else { Approval::Missing };
        let has_own = |tenant: &str, name: &str| {
            file.tenants.get(tenant).is_some_and(|said| said.value.secret_values.contains_key(name))
        };
        let granted =
            file.components.values().filter_map(|component| component.value.grants.as_ref());
        for (name, said) in granted.flat_map(|grants| &grants.value.secrets) {
            let shares = |tenant: Option<&str>| tenant.is_none_or(|tenant| !has_own(tenant, name));
            let look = look(options.secrets.has(name, shares));
            let (source, place) = (said.value.source.as_ref(), &said.span);
            self.fetch(problems, (base, options), (None, name), (source, place), look);
        }
        for (tenant, said) in &file.tenants {
            for (name, from) in &said.value.secret_values {
                let look =
                    look(options.secrets.has(name, |reader| reader == Some(tenant.as_str())));
                // With a misspelt name the tenant's calls would use the shared value.
                if self.shared.origins.contains_key(name) {
                    let source = (Some(from), &from.span);
                    self.fetch(problems, (base, options), (Some(tenant), name), source, look);
                } else {
                    let known: Vec<_> = self.shared.origins.keys().map(String::as_str).collect();
                    let otherwise = match known.join(", ") {
                        none if none.is_empty() => "grant a component the secret first".to_owned(),
                        all => format!("the secrets that components are granted are: {all}"),
                    };
                    let hint = names::did_you_mean(name, known, || otherwise);
                    let name = name.escape_debug();
                    let message = format!("no component is granted the secret `{name}`");
                    problems.error(&from.span, message, hint);
                }
            }
        }
    }

    /// Reads the value of a secret, or a tenant's own value, if `approval` allows it. A tenant's
    /// value replaces only the value: the grants of the secret decide about the requests that get
    /// it.
    fn fetch(
        &mut self,
        problems: &mut Problems<'_>,
        (base, options): (&Path, &ReadOptions),
        (tenant, name): (Option<&String>, &String),
        (from, place): (Option<&At<From>>, &Range<usize>),
        approval: Approval,
    ) {
        let secret = format!("the secret `{name}`");
        let found = match from {
            None => Some((Origin::Variable(name.clone()), place)),
            Some(from) => origin(problems, base, &secret, (&from.value, &from.span)),
        };
        let Some((origin, span)) = found else { return };
        let OwnSecrets { origins, unset } = match tenant {
            Some(tenant) => self.own.entry(tenant.clone()).or_default(),
            None => &mut self.shared,
        };
        if let Some(first) = origins.insert(name.clone(), origin.clone()) {
            if first != origin {
                let message =
                    format!("{secret} is defined twice, with different values of `source`");
                let hint =
                    "give one of the two another name: a name has one value in the whole file";
                problems.error(span, message, hint);
            }
            return;
        }
        if approval == Approval::Missing {
            return;
        }
        let (secret, hint) = match tenant {
            Some(tenant) => {
                (format!("{secret} of the tenant `{tenant}`"), "write `{ file = \"FILE\" }`")
            }
            None => (secret, "give the secret `source = { file = \"FILE\" }`"),
        };
        match origin.value(options, &secret, hint) {
            Ok(value) => {
                let stored = std::mem::take(&mut self.stored);
                self.stored = match tenant {
                    Some(tenant) => stored.with_tenant(tenant, name, value),
                    None => stored.with(name, value),
                };
            }
            Err((message, hint)) => {
                unset.insert(name.clone(), problems.at(span, message, hint));
            }
        }
    }

    /// Returns the files that contain values.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let all = std::iter::once(&self.shared).chain(self.own.values());
        all.flat_map(|secrets| secrets.origins.values()).filter_map(Origin::file)
    }
}

/// Returns the source of a value. `what` names it in the error.
pub(crate) fn origin<'a>(
    problems: &mut Problems<'_>,
    base: &Path,
    what: &str,
    (from, span): (&'a From, &'a Range<usize>),
) -> Option<(Origin, &'a Range<usize>)> {
    match (&from.env, &from.file) {
        (Some(variable), None) => Some((Origin::Variable(variable.value.clone()), &variable.span)),
        (None, Some(path)) => Some((Origin::File(base.join(&path.value)), &path.span)),
        (Some(_), Some(_)) | (None, None) => {
            let message = format!("{what} must come from exactly one place");
            problems.error(span, message, "write { env = \"VARIABLE\" } or { file = \"path\" }");
            None
        }
    }
}
