//! Reads and replaces the lock file beside a configuration: the approved version of each component.
//!
//! Commands and the server call [`Lock::beside`]. It returns the components that this user
//! approved, apart from other entries of the file; for a configuration that was named these are
//! all. A lock file that is damaged, of a later version, or that others could have written is an
//! error and approves nothing. `with` returns the content with further approvals. `prepare` writes
//! its new text to a file that can replace it, and fails if another process has written the lock
//! file in the meantime.
//!
//! Not here: the format of the file, in `approval/lock.rs`; changes since the approval, in
//! `approval/difference.rs`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Configuration;
use crate::approval::lock::{ApprovedVersion, parsed, to_text};
use crate::approval::trust::FoundConfiguration;
use crate::error::Error;
use crate::paths::atomic_file::PendingFile;
use crate::paths::files;

/// The file's permissions. It is under version control with the configuration.
const MODE: u32 = 0o644;

/// The approved versions of a configuration's components.
#[derive(Debug)]
pub struct Lock {
    pub(super) path: PathBuf,
    /// The text that was read, to detect a write by another process.
    text: Option<String>,
    /// The components that this user approved, or trusts because the configuration was named.
    pub components: BTreeMap<String, ApprovedVersion>,
    /// The other entries of the file, which this user has not approved.
    pub others: BTreeMap<String, ApprovedVersion>,
}

impl Lock {
    /// Reads the lock beside a configuration. Empty if there is no file.
    pub fn beside(config: &Configuration) -> Result<Self, Error> {
        let path = config.lock.clone();
        let text = match (&config.file, &config.found) {
            (None, _) => None,
            (Some(_), Some(found)) => found.lock.clone(),
            (Some(_), None) => files::lock(&path)?,
        };
        let anew = config.hint.command("approve", &[], &[]);
        let restore =
            format!("restore it from version control, or remove it and approve anew with {anew}");
        let all = text.as_ref().map(|text| parsed(&path, text, &restore)).transpose()?;
        let only = config.found.as_ref().and_then(FoundConfiguration::only);
        let is_approved =
            |name: &String, _: &mut ApprovedVersion| only.is_none_or(|only| only.contains(name));
        let mut others = all.unwrap_or_default();
        let components = others.extract_if(.., is_approved).collect();
        Ok(Self { path, text, components, others })
    }

    /// Returns the lock with these components approved, and without those in `gone`.
    pub fn with(
        &self,
        approved: impl IntoIterator<Item = (String, ApprovedVersion)>,
        gone: &[String],
    ) -> Self {
        let (mut components, mut others) = (self.components.clone(), self.others.clone());
        for (name, approved) in approved {
            others.remove(&name);
            components.insert(name, approved);
        }
        for name in gone {
            components.remove(name);
            others.remove(name);
        }
        Self { path: self.path.clone(), text: self.text.clone(), components, others }
    }

    /// Returns the path of the file for messages.
    pub fn display_path(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns the new text of the file.
    pub fn text(&self) -> String {
        to_text(self.components.iter().chain(&self.others))
    }

    /// Writes the new text to a file that can replace the lock. Returns `None` if the lock has that
    /// text already.
    pub(super) fn prepare(&self) -> Result<Option<PendingFile>, Error> {
        let text = self.text();
        let now = files::lock(&self.path)?;
        if now != self.text {
            let message = format!("another process has just written `{}`", self.display_path());
            return Err(Error::file(
                message,
                "approve again: the difference is then shown against the new file",
            ));
        }
        if now.as_ref() == Some(&text) {
            return Ok(None);
        }
        PendingFile::new(&self.path, &text, MODE)
            .map(Some)
            .map_err(|error| files::not_written(&self.path, error))
    }
}
