//! What can be seen of a component without compiling or running it.

use sha2::{Digest as _, Sha256};

use super::imports::{self, Standing};
use super::load::hex;
use super::scan;
use crate::defence::{Defence, stands};
use crate::error::Error;
use crate::grants::Grants;

/// The interface that makes a component a carrier of tools. A later patch version is as good.
const TOOL: &str = "toolcell:tool/tool@0.1.";
/// What can be seen of a component without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Examination {
    /// The SHA-256 digest of its bytes: `sha256:` and hex digits.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
    /// The names of its imports, and what each needs, in the component's order.
    pub imports: Vec<(String, Standing)>,
    /// Whether it exports tools.
    pub has_tools: bool,
}

impl Examination {
    /// Examines bytes without compiling or running them.
    ///
    /// # Errors
    /// [`Error::is_component`] if they are not a component.
    pub fn of(bytes: &[u8]) -> Result<Self, Error> {
        let outline = scan::outline(bytes)?;
        Ok(Self {
            digest: digest(bytes),
            size: bytes.len() as u64,
            imports: outline.imports.into_iter().map(|name| (name.clone(), imports::standing(&name))).collect(),
            has_tools: outline.exports.iter().any(|name| name.starts_with(TOOL)),
        })
    }

    /// The imports that these grants do not allow.
    pub fn ungranted<'a>(&'a self, grants: &'a Grants) -> impl Iterator<Item = &'a (String, Standing)> {
        self.imports.iter().filter(|(name, standing)| match standing {
            Standing::NeedsGrant => imports::is_granted(name, grants) != Some(true),
            Standing::Unknown => true,
            Standing::Inert | Standing::Offered => false,
        })
    }

    /// Refuses, before anything is compiled, what no grant could make usable.
    pub(super) fn admit(&self) -> Result<(), Error> {
        let nothing = Grants::default();
        let none_could = |name: &str| imports::is_granted(name, &nothing).is_none();
        let denied: Vec<_> =
            self.ungranted(&nothing).map(|(name, _)| name.clone()).filter(|name| none_could(name)).collect();
        if !denied.is_empty() && stands(Defence::Imports) {
            return Err(Error::not_granted(denied, Vec::new()));
        }
        if self.has_tools { Ok(()) } else { Err(Error::no_tools("it does not export `toolcell:tool/tool`")) }
    }
}

/// The digest of bytes: `sha256:` and hex digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}
