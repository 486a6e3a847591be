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
    pub(crate) origins: BTreeMap<String, Origin>,
    pub(crate) stored: StoredSecrets,
    /// Problems with values, by name. Tools that may use such a secret do not run; all others do.
    pub(crate) unset: BTreeMap<String, Problem>,
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
        let own = |tenant: &str, name: &str| {
            file.tenants.get(tenant).is_some_and(|said| said.value.secret_values.contains_key(name))
        };
        let granted =
            file.components.values().filter_map(|component| component.value.grants.as_ref());
        for (name, said) in granted.flat_map(|grants| &grants.value.secrets) {
            let look = look(options.secrets.has_shared(name, |tenant| own(tenant, name)));
            self.fetch(
                problems,
                (base, options),
                name,
                &said.span,
                said.value.source.as_ref(),
                look,
            );
        }
        for (tenant, said) in &file.tenants {
            for (name, from) in &said.value.secret_values {
                let look = look(options.secrets.has_own(tenant, name));
                self.fetch_own(problems, (base, options), (tenant, name), from, look);
            }
        }
    }

    /// Reads the value of a secret, if `approval` allows it.
    fn fetch(
        &mut self,
        problems: &mut Problems<'_>,
        (base, options): (&Path, &ReadOptions),
        name: &str,
        place: &Range<usize>,
        from: Option<&At<From>>,
        approval: Approval,
    ) {
        let (origin, span) = match from {
            None => (Origin::Variable(name.to_owned()), place),
            Some(from) => match origin(
                problems,
                base,
                &format!("the secret `{name}`"),
                (&from.value, &from.span),
            ) {
                Some(found) => found,
                None => return,
            },
        };
        if let Some(first) = self.origins.insert(name.to_owned(), origin.clone()) {
            if first != origin {
                let message = format!(
                    "the secret `{name}` is defined twice, with different values of `source`"
                );
                problems.error(
                    span,
                    message,
                    "give one of the two another name: a name has one value in the whole file",
                );
            }
            return;
        }
        if approval == Approval::Missing {
            return;
        }
        match origin.value(
            options,
            &format!("the secret `{name}`"),
            "give the secret `source = { file = \"FILE\" }`",
        ) {
            Ok(secret) => self.stored = std::mem::take(&mut self.stored).with(name, secret),
            Err((message, hint)) => {
                self.unset.insert(name.to_owned(), problems.at(span, message, hint));
            }
        }
    }

    /// Reads a tenant's own value, if `approval` allows it. It replaces only the value: the grants
    /// of the secret decide about the requests that get it.
    fn fetch_own(
        &mut self,
        problems: &mut Problems<'_>,
        (base, options): (&Path, &ReadOptions),
        (tenant, name): (&str, &str),
        from: &At<From>,
        approval: Approval,
    ) {
        // With a misspelt name the tenant's calls would use the shared value.
        if !self.origins.contains_key(name) {
            let known: Vec<_> = self.origins.keys().map(String::as_str).collect();
            let hint = names::did_you_mean(name, known.iter().copied(), || match &*known {
                [] => "grant a component the secret first".to_owned(),
                _ => format!("the secrets that components are granted are: {}", known.join(", ")),
            });
            problems.error(
                &from.span,
                format!("no component is granted the secret `{}`", name.escape_debug()),
                hint,
            );
            return;
        }
        let secret = format!("the secret `{name}`");
        let Some((origin, span)) = origin(problems, base, &secret, (&from.value, &from.span))
        else {
            return;
        };
        let own = self.own.entry(tenant.to_owned()).or_default();
        own.origins.insert(name.to_owned(), origin.clone());
        if approval == Approval::Missing {
            return;
        }
        let secret = format!("the secret `{name}` of the tenant `{tenant}`");
        match origin.value(options, &secret, "write `{ file = \"FILE\" }`") {
            Ok(secret) => {
                self.stored = std::mem::take(&mut self.stored).with_tenant(tenant, name, secret)
            }
            Err((message, hint)) => {
                own.unset.insert(name.to_owned(), problems.at(span, message, hint));
            }
        }
    }

    /// Returns the files that contain values.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let own = self.own.values().flat_map(|own| own.origins.values());
        self.origins.values().chain(own).filter_map(Origin::file)
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
