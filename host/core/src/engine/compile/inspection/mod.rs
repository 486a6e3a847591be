//! Inspects the bytes of a component without compiling or running it.
//!
//! [`Inspection::of`] reads the bytes once and returns their digest and size, the imports with the
//! status of each, and the kinds of exports. `toolcell` and the configuration show it, and propose
//! the kind that a component can be used as. Each load calls `prepared`, which also refuses a
//! component that no grant could make usable, before anything is compiled.
//! `ungranted` returns the imports that given grants do not allow. `missing` returns those of them
//! that prevent a load: if the tools declare their needs (the accesses that they use), an import
//! that no tool declares does not count, because language runtimes bring such imports and each use
//! is denied.
//! Not here: the modules, sections and producers of a component (`contents`).

pub(in crate::engine) mod contents;

use std::borrow::Cow;
use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};
use toolcell_contract::controls::enforced;
use toolcell_contract::definition::Definition;
use toolcell_contract::error::Error;
use toolcell_contract::grants::rights::grants_declared;
use toolcell_contract::grants::{GrantKind, Grants};

use super::{preview1, scan};
use crate::engine::adapt::component_kind::ComponentKind;
use crate::engine::adapt::{command, functions};
use crate::engine::cell::imports::{self, ImportStatus};

/// The interface that makes a component a provider of tools. A later patch version also fits.
const TOOL: &str = "toolcell:tool/tool@0.1.";
/// The advice for imports that this host grants to no component.
const NO_GRANT: &str =
    "no operator can grant these imports: the author has to build the component without them";

/// The properties of a component that are known without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The SHA-256 digest of its bytes: `sha256:` and hex digits.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
    /// The names of its imports, and what each needs, in the component's order.
    pub imports: Vec<(String, ImportStatus)>,
    /// True if it exports tools.
    pub has_tools: bool,
    /// True if it exports something that [`ComponentKind::Functions`] can make tools of: functions,
    /// or interfaces that may have some.
    pub has_functions: bool,
    /// True if [`ComponentKind::Command`] can make it a tool.
    pub is_command: bool,
}

impl Inspection {
    /// Inspects bytes without compiling or running them. A command for WASI preview 1 is inspected
    /// as the component that is made of it; digest and size are those of the bytes.
    ///
    /// # Errors
    /// [`Error::is_component`] if they are not a component.
    pub fn of(bytes: &[u8]) -> Result<Self, Error> {
        Self::inspect(bytes, &preview1::component(bytes)?)
    }

    /// Inspects a component that is to be used as this kind, and returns also the bytes to compile.
    ///
    /// # Errors
    /// As [`of`](Self::of); [`Error::is_not_granted`] if no grant could make it usable.
    pub(super) fn prepared(bytes: Vec<u8>, kind: &ComponentKind) -> Result<(Self, Vec<u8>), Error> {
        let component = preview1::component(&bytes)?;
        let examination = Self::inspect(&bytes, &component)?;
        examination.admit(kind)?;
        let adapted = if let Cow::Owned(adapted) = component { Some(adapted) } else { None };
        Ok((examination, adapted.unwrap_or(bytes)))
    }

    fn inspect(bytes: &[u8], component: &[u8]) -> Result<Self, Error> {
        let outline = scan::outline(component)?;
        let with_status = |name: String| (name.clone(), imports::status(&name));
        let exports = |is: fn(&str) -> bool| outline.exports.iter().any(|name| is(name));
        Ok(Self {
            has_tools: exports(|name| name.starts_with(TOOL)),
            has_functions: exports(functions::may_be_tools),
            is_command: exports(command::is_run),
            digest: digest(bytes),
            size: bytes.len() as u64,
            imports: outline.imports.into_iter().map(with_status).collect(),
        })
    }

    /// Returns the kind that a component can be used as if it does not describe its tools itself:
    /// `command` or `functions`, the word of a [`ComponentKind`]. `None` if it has tools, or if it
    /// exports nothing that can be one.
    #[must_use]
    pub fn proposal(&self) -> Option<&'static str> {
        match self {
            Self { has_tools: true, .. } => None,
            Self { is_command: true, .. } => Some("command"),
            Self { has_functions: true, .. } => Some("functions"),
            _ => None,
        }
    }

    /// Returns the imports that these grants do not allow.
    pub fn ungranted(&self, grants: &Grants) -> impl Iterator<Item = &(String, ImportStatus)> {
        self.ungranted_with(grants.kinds())
    }

    fn ungranted_with(
        &self,
        granted: BTreeSet<GrantKind>,
    ) -> impl Iterator<Item = &(String, ImportStatus)> {
        self.imports.iter().filter(move |(name, standing)| match standing {
            ImportStatus::NeedsGrant => imports::is_granted(name, &granted) != Some(true),
            ImportStatus::Unknown => true,
            ImportStatus::Inert | ImportStatus::Offered => false,
        })
    }

    /// Returns the imports that keep a component with these tools from being loaded:
    /// [`ungranted`](Self::ungranted), without those of a kind that no tool declares, where tools
    /// declare their needs or cannot do so because the component was not made for this host.
    /// Language runtimes bring such imports; each use is denied.
    pub fn missing<'a>(
        &'a self,
        tools: impl IntoIterator<Item = &'a Definition>,
        grants: &Grants,
    ) -> impl Iterator<Item = &'a (String, ImportStatus)> {
        self.missing_with(tools, grants.kinds())
    }

    /// As [`missing`](Self::missing), for grants of these kinds: only the kind of a grant matters.
    pub fn missing_with<'a>(
        &'a self,
        tools: impl IntoIterator<Item = &'a Definition>,
        granted: BTreeSet<GrantKind>,
    ) -> impl Iterator<Item = &'a (String, ImportStatus)> {
        let (mut is_declared, mut kinds) = (!self.has_tools, BTreeSet::new());
        for tool in tools {
            is_declared |= tool.declares_needs();
            kinds.extend(tool.needs.iter().filter_map(|need| GrantKind::of_word(&need.kind)));
        }
        let is_needed =
            move |name: &str| imports::kind(name).is_none_or(|kind| kinds.contains(&kind));
        self.ungranted_with(granted).filter(move |(name, _)| !is_declared || is_needed(name))
    }

    /// Refuses, before anything is compiled, a component that no grant could make usable.
    fn admit(&self, kind: &ComponentKind) -> Result<(), Error> {
        let none_could = |name: &String| imports::is_granted(name, &BTreeSet::new()).is_none();
        let ungranted = self.ungranted_with(BTreeSet::new()).map(|(name, _)| name.clone());
        let denied: Vec<_> = ungranted.filter(none_could).collect();
        if !denied.is_empty() && enforced!(Imports) {
            let is_later = |name: &String| name.starts_with("wasi:") && name.contains("@0.3.");
            return Err(match denied.iter().find(|name| is_later(name)) {
                Some(name) => Error::proposals(format!("WASI 0.3 (`{name}`)")),
                None => Error::not_granted(denied, NO_GRANT.to_owned()),
            });
        }
        let (is_usable, problem) = match kind {
            ComponentKind::Tools => (self.has_tools, "it does not export `toolcell:tool/tool`"),
            // The interface's functions are known only when the component is linked.
            ComponentKind::Functions => (self.has_functions, functions::NONE),
            ComponentKind::Command(_) => (self.is_command, command::NONE),
        };
        if is_usable {
            return Ok(());
        }
        let instead = self.has_tools.then(|| ComponentKind::Tools.word());
        Err(Error::no_tools(problem, instead.or_else(|| self.proposal())))
    }
}

/// Tells how to grant the denied imports: what the operator can grant, and what the author should
/// declare.
pub(super) fn how_to_grant(definitions: &[Definition], denied: &[String]) -> String {
    let lines: Vec<_> =
        definitions.iter().flat_map(|definition| grants_declared(&definition.needs)).collect();
    if !lines.is_empty() {
        return format!("the operator can grant what the tools declare: {}", lines.join(", "));
    }
    let kinds: BTreeSet<_> = denied.iter().filter_map(|import| imports::kind(import)).collect();
    let kinds: Vec<_> = kinds.into_iter().map(|kind| format!("`{}`", kind.key())).collect();
    format!(
        "the tools do not declare what they need: the operator can grant {}, and the author should declare it in `needs` of \
         the tools",
        kinds.join(" and ")
    )
}

/// Returns the digest of bytes: `sha256:` and hex digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{:x}", Sha256::digest(bytes))
}
