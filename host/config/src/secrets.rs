//! The values of secrets, from where the file says that they are.
//!
//! Invariants: a value is in no message; a name means one value in the whole file; a value that cannot be read stops the tools
//! that may use it (`unset`), not the configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toolcell::{Secret, StoredSecrets};

use crate::file;
use crate::problem::{Problem, Problems};
use crate::trust::Approval;
use crate::{ReadOptions, files};

/// Where a value is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In this environment variable.
    Variable(String),
    /// In this file.
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

/// All secrets of a file.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    pub(crate) origins: BTreeMap<String, Origin>,
    pub(crate) stored: StoredSecrets,
    /// What is wrong with a value, by name: tools that may use such a secret do not run, all others do.
    pub(crate) unset: BTreeMap<String, Problem>,
}

impl Secrets {
    /// Reads the value of a secret, if it may be read.
    pub(crate) fn fetch(
        &mut self,
        problems: &mut Problems<'_>,
        (base, options): (&Path, &ReadOptions),
        name: &str,
        place: &Range<usize>,
        from: Option<&file::At<file::From>>,
        approval: Approval,
    ) {
        let Some((origin, span)) = origin(problems, base, name, place, from) else { return };
        if let Some(first) = self.origins.insert(name.to_owned(), origin.clone()) {
            if first != origin {
                let message = format!("the secret `{name}` is defined twice, with different values of `from`");
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
        let value = match &origin {
            Origin::Variable(variable) => options.variable(variable).ok_or_else(|| {
                let message = format!(
                    "the secret `{name}` has no usable value: the environment variable `{variable}` is not set"
                );
                let hint =
                    "set the variable, or read the value from a file: give the secret `from = { file = \"FILE\" }`";
                (message, hint.to_owned())
            }),
            Origin::File(path) => files::secret(path)
                .map_err(|(problem, hint)| (format!("the secret `{name}` has no usable value: {problem}"), hint)),
        };
        let secret = value.and_then(|value| {
            Secret::new(value).map_err(|error| {
                (format!("the secret `{name}` has no usable value: {error}"), "correct its value".to_owned())
            })
        });
        match secret {
            Ok(secret) => self.stored = std::mem::take(&mut self.stored).with(name, secret),
            Err((message, hint)) => {
                self.unset.insert(name.to_owned(), problems.at(span, message, hint));
            }
        }
    }

    /// The files that values are in.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.origins.values().filter_map(|origin| match origin {
            Origin::Variable(_) => None,
            Origin::File(path) => Some(path.as_path()),
        })
    }
}

fn origin<'a>(
    problems: &mut Problems<'_>,
    base: &Path,
    name: &str,
    place: &'a Range<usize>,
    from: Option<&'a file::At<file::From>>,
) -> Option<(Origin, &'a Range<usize>)> {
    let Some(from) = from else { return Some((Origin::Variable(name.to_owned()), place)) };
    match (&from.value.env, &from.value.file) {
        (Some(variable), None) => Some((Origin::Variable(variable.value.clone()), &variable.span)),
        (None, Some(path)) => Some((Origin::File(base.join(&path.value)), &path.span)),
        (Some(_), Some(_)) | (None, None) => {
            let message = format!("the secret `{name}` must come from exactly one place");
            problems.error(&from.span, message, "write from = { env = \"VARIABLE\" } or from = { file = \"path\" }");
            None
        }
    }
}
