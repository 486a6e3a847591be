//! Decides which components must be signed, and by which publisher.
//!
//! Reading a configuration creates [`Signatures`] from its publishers, and asks it for each
//! component. The result is a [`SignatureRequirement`] if the component names a publisher, or if
//! `require_signatures` of `[host]` demands a signature of every component. When the component is
//! read, the demand finds the signature's file (`FILE.sig` unless configured) and returns the
//! signer or an error at the place of the demand. A signature that is not demanded is not read. A
//! configured path of a signature without a demand is an error, because it would check nothing.
//!
//! Not here: the verification of a signature, in `signature.rs`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcell::controls::enforced;
use toolcell::names;

use super::signature::{Publishers, Signer, Trust};
use crate::error::Error;
use crate::paths::files;
use crate::problem::{Problem, Problems};
use crate::schema;

/// The suffix of a signature's file, after the component's own name, as `ssh-keygen -Y sign` writes
/// it.
const ENDING: &str = "sig";

/// The requirement that a component is signed.
#[derive(Debug, Clone)]
pub struct SignatureRequirement {
    publishers: Arc<Publishers>,
    /// The required publisher. `None` allows all of them.
    publisher: Option<String>,
    /// The path of the signature, if not beside the component.
    signature: Option<PathBuf>,
    /// The place of the demand in the file.
    problem: Problem,
}

impl SignatureRequirement {
    /// Returns the path of this component's signature.
    pub(crate) fn signature(&self, component: &Path) -> PathBuf {
        self.signature.clone().unwrap_or_else(|| signature_path(component))
    }

    /// Verifies these bytes with the signature in this file, and returns the signer.
    pub(crate) fn signer(
        &self,
        component: &Path,
        signature: &Path,
        bytes: &[u8],
    ) -> Result<Signer, Error> {
        let text = files::signature(signature)?;
        let judged = self.publishers.verify(text.as_deref(), bytes, self.publisher.as_deref());
        judged.map_err(|fault| {
            let by = self
                .publisher
                .as_ref()
                .map(|publisher| format!(" by `{publisher}`"))
                .unwrap_or_default();
            let (component, signature) = (component.display(), signature.display());
            let message = format!("`{component}` must be signed{by}: `{signature}` {fault}");
            Error::Unsigned(Box::new(Problem {
                message,
                hint: fault.hint(),
                ..self.problem.clone()
            }))
        })
    }
}

/// Returns the path of a signature beside the component.
pub(super) fn signature_path(component: &Path) -> PathBuf {
    component.with_added_extension(ENDING)
}

/// The settings of signatures in a file.
pub(crate) struct Signatures<'a> {
    file: &'a schema::File,
    publishers: Arc<Publishers>,
    /// The demand on every component, if there is one.
    pub(crate) of_all: Option<SignatureRequirement>,
}

impl<'a> Signatures<'a> {
    pub(crate) fn of(problems: &mut Problems<'_>, file: &'a schema::File) -> Self {
        let mut publishers = Publishers::default();
        for (name, said) in &file.publishers {
            schema::check_name(problems, &said.span, "publisher", name);
            let good = said.value.keys.iter().map(|key| (key, Trust::Good));
            let revoked = said.value.revoked_keys.iter().map(|key| (key, Trust::Revoked));
            for (key, trust) in good.chain(revoked) {
                if let Err(bad) = publishers.add(name, &key.value, trust) {
                    problems.error(&key.span, bad.to_string(), bad.hint());
                }
            }
        }
        let mut signatures = Self { file, publishers: Arc::new(publishers), of_all: None };
        if let Some(said) = file.host.require_signatures.as_ref().filter(|said| said.value) {
            if file.publishers.is_empty() {
                let hint = "add [publishers.NAME] with the `keys` of a publisher you trust";
                problems.error(
                    &said.span,
                    "every component must be signed, but no publisher is named",
                    hint,
                );
            }
            let problem = problems.at(&said.span, "", "");
            signatures.of_all =
                enforced!(RequireSigned).then(|| signatures.demand(None, None, problem));
        }
        signatures
    }

    /// Returns the demand on a component of the file.
    pub(crate) fn of_component(
        &self,
        problems: &mut Problems<'_>,
        base: &Path,
        said: &schema::Component,
    ) -> Option<SignatureRequirement> {
        let path = said.signature.as_ref().map(|path| base.join(&path.value));
        let path = Some(path.unwrap_or_else(|| signature_path(&base.join(&said.path.value))));
        if let Some(publisher) = &said.publisher {
            if !self.file.publishers.contains_key(&publisher.value) {
                let known = self.file.publishers.keys().map(String::as_str);
                let otherwise = || "add [publishers.NAME] with its `keys`".to_owned();
                let hint = names::did_you_mean(&publisher.value, known, otherwise);
                let name = publisher.value.escape_debug();
                problems.error(&publisher.span, format!("there is no publisher `{name}`"), hint);
            }
            let problem = problems.at(&publisher.span, "", "");
            return Some(self.demand(Some(publisher.value.clone()), path, problem));
        }
        if let (Some(signature), None) = (&said.signature, &self.of_all) {
            let message =
                "`signature` has no effect: no `publisher` is named, so no signature is checked";
            problems.error(
                &signature.span,
                message,
                "add `publisher = \"NAME\"`; or, for all components and every publisher, `require_signatures = true` in [host]",
            );
        }
        self.of_all.as_ref().map(|demand| self.demand(None, path, demand.problem.clone()))
    }

    fn demand(
        &self,
        publisher: Option<String>,
        signature: Option<PathBuf>,
        problem: Problem,
    ) -> SignatureRequirement {
        SignatureRequirement {
            publishers: Arc::clone(&self.publishers),
            publisher,
            signature,
            problem,
        }
    }
}
