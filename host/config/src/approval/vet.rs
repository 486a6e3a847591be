//! Decides if a component may be used: signed and pinned as the configuration demands, and
//! unchanged since its approval.
//!
//! In: a component of the configuration, its bytes, the lock. Out: its bytes and signer, then
//! permission to load it, then permission to use it.
//! Invariants: untrusted bytes are not parsed before the signature is verified; the bytes that are
//! checked are those that are loaded; imports are compared before the component is compiled.

use std::path::Path;

use toolcell::Component;
use toolcell::component::Inspection;
use toolcell::controls::{Control, enforced};

use crate::approval::difference::{ApprovalState, Difference};
use crate::approval::lock::Approved;
use crate::approval::signature::Signer;
use crate::error::{Error, Unapproved};
use crate::file::resolved::ResolvedComponent;
use crate::paths::files;
use crate::{Configuration, Lock};

/// Permission to load a component, granted before it is compiled.
#[derive(Debug)]
pub struct Vetted<'a> {
    /// The approved version, and its name. `None`: there is nothing to compare with.
    approved: Option<(&'a str, &'a Approved)>,
    publisher: Option<String>,
}

/// The code of a component differs from what was approved, with the same tools and imports, and it
/// may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rebuilt;

impl ResolvedComponent<'_> {
    /// Returns the bytes of its file, signed and pinned as the configuration demands, and the
    /// signer if it demands one.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or with [`Error::Unsigned`] or [`Error::OtherDigest`].
    pub fn bytes(&self) -> Result<(Vec<u8>, Option<Signer>), Error> {
        let bytes = files::component(&self.path)?;
        let signature = self.demand.map(|demand| demand.signature(&self.path));
        let signer = self.verify(&bytes, &self.path, signature.as_deref())?;
        Ok((bytes, signer))
    }

    /// Checks bytes, with the path for messages and the path of the signature.
    pub(crate) fn verify(
        &self,
        bytes: &[u8],
        shown: &Path,
        signature: Option<&Path>,
    ) -> Result<Option<Signer>, Error> {
        // The signature comes first: untrusted bytes are not parsed before it is verified.
        let demand = self.demand.zip(signature);
        let signer = match demand
            .map(|(demand, signature)| demand.signer(shown, signature, bytes))
            .transpose()
        {
            Err(error) if enforced(Control::Signature) => return Err(error),
            judged => judged.unwrap_or_default(),
        };
        self.pinned(bytes)?;
        Ok(signer)
    }

    fn pinned(&self, bytes: &[u8]) -> Result<(), Error> {
        if let Some((digest, problem)) =
            self.configured.and_then(|(_, configured)| configured.digest.as_ref())
        {
            let found = super::versions::digest(bytes);
            if found != *digest && enforced(Control::Pins) {
                let mut problem = problem.clone();
                problem.message =
                    format!("{}: {} has {found}", problem.message, self.display_path());
                return Err(Error::OtherDigest(Box::new(problem)));
            }
        }
        Ok(())
    }
}

impl Configuration {
    /// Permits a component to be loaded: it needs no approval, or everything that can be checked
    /// without loading it is as it was approved.
    ///
    /// # Errors
    /// [`Error::NotApproved`], or an error if the bytes are not a component.
    pub fn vet<'a>(
        &self,
        lock: &'a Lock,
        chosen: &ResolvedComponent<'a>,
        bytes: &[u8],
        signer: Option<&Signer>,
    ) -> Result<Vetted<'a>, Error> {
        let free = Vetted { approved: None, publisher: None };
        let Some((name, configured)) = chosen.configured else { return Ok(free) };
        if configured.development.is_some() {
            return Ok(free);
        }
        let Some(old) = lock.components.get(name) else {
            if !enforced(Control::Approval) {
                return Ok(free);
            }
            let message = format!("the component `{name}` is not approved yet");
            return Err(Error::not_approved(Unapproved::New, message, self.how_to_approve(name)));
        };
        // Imports can be read without compiling, so new ones are refused before it.
        let seen = Inspection::of(bytes)?;
        let imports = seen.imports.into_iter().map(|(name, _)| name).collect();
        let publisher = if enforced(Control::ApprovedPublisher) {
            signer.map(|signer| signer.publisher.clone())
        } else {
            old.publisher.clone()
        };
        let (digest, kind, tools) = (seen.digest, configured.kind.to_string(), old.tools.clone());
        let new = Approved { digest, kind, imports, publisher: publisher.clone(), tools };
        let difference = Difference { old: Some(old), new: &new };
        // The same holds for the code. Without grants, other code can do no more harm than before;
        // a grant was given to the approved code only.
        let is_other = match difference.state() {
            ApprovalState::Changed => enforced(Control::ApprovedImports),
            ApprovalState::Rebuilt => {
                chosen.is_granted_anything() && enforced(Control::ApprovedCode)
            }
            ApprovalState::Locked | ApprovalState::New => false,
        };
        if is_other {
            return Err(self.changed(name, &difference));
        }
        Ok(Vetted { approved: Some((name, old)), publisher })
    }

    /// Permits a loaded component to be used: its definitions are those that were approved.
    ///
    /// # Errors
    /// [`Error::NotApproved`].
    pub fn confirm(
        &self,
        vetted: &Vetted<'_>,
        component: &Component,
    ) -> Result<Option<Rebuilt>, Error> {
        let Some((name, old)) = vetted.approved else { return Ok(None) };
        let new = Approved::of(component, vetted.publisher.clone());
        let difference = Difference { old: Some(old), new: &new };
        match difference.state() {
            ApprovalState::Locked => Ok(None),
            ApprovalState::Rebuilt => Ok(Some(Rebuilt)),
            ApprovalState::Changed | ApprovalState::New
                if enforced(Control::ApprovedDefinitions) =>
            {
                Err(self.changed(name, &difference))
            }
            ApprovalState::Changed | ApprovalState::New => Ok(None),
        }
    }

    fn changed(&self, name: &str, difference: &Difference<'_>) -> Error {
        let sentence = difference.sentence();
        let message =
            format!("the component `{name}` is not the one that was approved: {sentence}");
        let hint = format!(
            "run {}: it shows what changed and asks for your approval",
            self.hint.command("approve", &[], &[name])
        );
        Error::not_approved(Unapproved::Changed, message, hint)
    }

    /// Returns the hint on how to approve a component.
    pub(crate) fn how_to_approve(&self, name: &str) -> String {
        format!(
            "run {}: it shows the component and asks for your approval",
            self.hint.command("approve", &[], &[name])
        )
    }
}
