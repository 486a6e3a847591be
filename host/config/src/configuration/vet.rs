//! Decides if a component may be used: unchanged since its approval.
//!
//! Loading a component has two checks around it. `vet` takes the bytes, the signer and the lock
//! file (approvals), and permits loading if imports, publisher and kind of use are as approved;
//! they can be read without compiling. Other code is permitted only if the component has no grants.
//! `confirm` takes the loaded component and permits its use if its tools' definitions are those
//! that were approved; it returns `Rebuilt` if only the code differs. The bytes that are checked
//! are those that are loaded. A component in development, and one that no configuration names,
//! passes without an approval.
//!
//! Not here: demands for a signature or a digest, in `file/resolved.rs`.

use toolcell::Component;
use toolcell::component::Inspection;
use toolcell::controls::enforced;

use super::Configuration;
use super::lock::Lock;
use crate::approval::difference::{ApprovalState, Difference, LoadPermit, RebuiltComponent};
use crate::approval::lock::ApprovedVersion;
use crate::approval::signature::Signer;
use crate::error::{Error, Unapproved};
use crate::file::resolved::ResolvedComponent;

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
    ) -> Result<LoadPermit<'a>, Error> {
        let free = LoadPermit { approved: None, publisher: None };
        let Some((name, configured)) = chosen.configured else { return Ok(free) };
        if configured.development.is_some() {
            return Ok(free);
        }
        let Some(old) = lock.components.get(name) else {
            if !enforced!(Approval) {
                return Ok(free);
            }
            let message = format!("the component `{name}` is not approved yet");
            return Err(Error::not_approved(
                Unapproved::New,
                message,
                self.how_to_approve("the component", &[name]),
            ));
        };
        // Imports can be read without compiling, so new ones are refused before it.
        let seen = Inspection::of(bytes)?;
        let imports = seen.imports.into_iter().map(|(name, _)| name).collect();
        let publisher = if enforced!(ApprovedPublisher) {
            signer.map(|signer| signer.publisher.clone())
        } else {
            old.publisher.clone()
        };
        let (digest, kind, tools) = (seen.digest, configured.kind.to_string(), old.tools.clone());
        let new = ApprovedVersion { digest, kind, imports, publisher: publisher.clone(), tools };
        let difference = Difference { old: Some(old), new: &new };
        // The same holds for the code. Without grants, other code can do no more harm than before;
        // a grant was given to the approved code only.
        let is_other = match difference.state() {
            ApprovalState::Changed => enforced!(ApprovedImports),
            ApprovalState::Rebuilt => chosen.is_granted_anything() && enforced!(ApprovedCode),
            ApprovalState::Unchanged | ApprovalState::New => false,
        };
        if is_other {
            return Err(self.changed(name, &difference));
        }
        Ok(LoadPermit { approved: Some((name, old)), publisher })
    }

    /// Permits a loaded component to be used: its definitions are those that were approved.
    ///
    /// # Errors
    /// [`Error::NotApproved`].
    pub fn confirm(
        &self,
        vetted: &LoadPermit<'_>,
        component: &Component,
    ) -> Result<Option<RebuiltComponent>, Error> {
        let Some((name, old)) = vetted.approved else { return Ok(None) };
        let new = ApprovedVersion::of(component, vetted.publisher.clone());
        let difference = Difference { old: Some(old), new: &new };
        match difference.state() {
            ApprovalState::Unchanged => Ok(None),
            ApprovalState::Rebuilt => Ok(Some(RebuiltComponent)),
            ApprovalState::Changed | ApprovalState::New if enforced!(ApprovedDefinitions) => {
                Err(self.changed(name, &difference))
            }
            ApprovalState::Changed | ApprovalState::New => Ok(None),
        }
    }

    fn changed(&self, name: &str, difference: &Difference<'_>) -> Error {
        let sentence = difference.sentence();
        let message =
            format!("the component `{name}` is not the one that was approved: {sentence}");
        let hint = self.how_to_approve("what changed", &[name]);
        Error::not_approved(Unapproved::Changed, message, hint)
    }

    /// Returns the hint on how to approve these components. `shown` is what the command shows.
    pub(super) fn how_to_approve(&self, shown: &str, names: &[&str]) -> String {
        let command = self.hint.command("approve", &[], names);
        format!("run {command}: it shows {shown} and asks for your approval")
    }
}
