//! A kind of grants as one row: its words, the form of its values, and its rules.
//!
//! [`GrantKind::of_word`] turns a word into a [`GrantKind`]: `env` and `variable`, for instance,
//! both mean environment variables. It reads the kind in front of a request, in grants on the
//! command line and in needs. A [`Row`] is everything that other code needs to know about a kind:
//! the keys in `toolcell.toml`, the word for a need, examples, the imports that can use it, and a
//! [`Capability`], by which its rules in grants and overlays are read, written and intersected as
//! text. Code that handles every kind goes through the rows.
//!
//! Not here: the rows, which stand beside the rules of each kind in the other modules; the table of
//! all rows, in `grants`.

pub(super) use crate::outcome::tool_error::BlockedOn;

use super::rule::{Rule, remaining};
use super::{Grants, InvalidRule, Overlay};

/// A kind of grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum GrantKind {
    /// Requests to servers.
    Http,
    /// Directories and the files in them.
    Directories,
    /// The directory of a single call.
    Scratch,
    /// Environment variables.
    Environment,
    /// Secrets that the host puts into requests.
    Secrets,
    /// The values of secrets.
    Reveal,
    /// Stored keys.
    Kv,
    /// Calls of other tools.
    Invoke,
}

const LIST: (&str, &str) = ("[", "]");
pub(super) const TABLE: (&str, &str) = ("{ ", " }");

/// One kind of grants.
#[doc(hidden)]
pub struct Row {
    /// The key below `grants` in `toolcell.toml`.
    pub key: &'static str,
    /// The key in a section that narrows.
    pub section: &'static str,
    /// The kind of a declared need; empty if a tool cannot declare it.
    pub need: &'static str,
    /// The words by which people name the kind. The first is shown for a single rule.
    pub words: &'static [&'static str],
    /// The text before and after the values in `toolcell.toml`: those of a list, of a table by
    /// name, or none for a single value.
    pub brackets: (&'static str, &'static str),
    /// A grant as on the command line: `KIND=RULE`.
    pub example: &'static str,
    /// The forms of a request, for hints.
    pub requests: &'static [&'static str],
    /// Prefixes of the imports that can use such grants; an interface of `toolcell:tool` for this
    /// kind alone comes first.
    pub imports: &'static [&'static str],
    /// The event that a call of that interface waits for.
    pub wait: Option<BlockedOn>,
    /// Returns true if anything of the kind is granted.
    pub(super) is_granted: fn(&Grants) -> bool,
    /// The rules; none if an overlay cannot narrow the kind.
    pub(super) rules: Option<&'static dyn Capability>,
}

impl Row {
    /// Returns true if the values are a list in `toolcell.toml`.
    pub fn is_list(&self) -> bool {
        self.brackets == LIST
    }

    /// Returns true if the values are a table in `toolcell.toml`.
    pub fn is_table(&self) -> bool {
        self.brackets == TABLE
    }

    /// Returns the name of the interface of `toolcell:tool` that is for this kind alone.
    pub fn interface(&self) -> Option<&'static str> {
        self.imports.first()?.strip_prefix("toolcell:tool/")?.strip_suffix('@')
    }

    /// A list of rules under one key, which is the word for a need too.
    pub(super) const fn list(key: &'static str, is_granted: fn(&Grants) -> bool) -> Self {
        Self {
            key,
            section: key,
            need: key,
            words: &[],
            brackets: LIST,
            example: "",
            requests: &[],
            imports: &[],
            wait: None,
            is_granted,
            rules: None,
        }
    }
}

/// The rules of one kind in grants and overlays, as text.
pub(super) trait Capability: Sync {
    /// Returns the rules of an overlay. `None`: it does not narrow this kind.
    fn texts(&self, overlay: &Overlay) -> Option<Vec<String>>;

    /// Narrows an overlay to the rules that it has already and these. Without any rule, everything
    /// of this kind is taken away. A rule that cannot be parsed changes nothing.
    fn narrow(&self, overlay: &mut Overlay, rules: &[&str]) -> Result<(), InvalidRule>;

    /// Returns the granted rules that all layers leave.
    fn remaining(&self, grants: &Grants, layers: &[&Overlay]) -> Vec<String>;
}

/// The lists of one kind in the typed grants and overlays.
pub(super) struct Lists<R: 'static, L: 'static> {
    /// Returns the granted rules. The rules of the layers are given too.
    pub(super) granted: fn(&Grants, &[Vec<R>]) -> Vec<R>,
    pub(super) list: fn(&Overlay) -> &Option<L>,
    pub(super) list_mut: fn(&mut Overlay) -> &mut Option<L>,
}

/// The lists under one name in grants and overlays.
macro_rules! lists {
    ($field:ident, $granted:expr) => {
        &crate::grants::kind::Lists {
            granted: $granted,
            list: |overlay| &overlay.$field,
            list_mut: |overlay| &mut overlay.$field,
        }
    };
}
pub(super) use lists;

impl<R: Rule, L> Capability for Lists<R, L>
where
    L: Default + Extend<R>,
    for<'a> &'a L: IntoIterator<Item = &'a R>,
{
    fn texts(&self, overlay: &Overlay) -> Option<Vec<String>> {
        let rules = (self.list)(overlay).as_ref()?;
        Some(rules.into_iter().map(R::to_string).collect())
    }

    fn narrow(&self, overlay: &mut Overlay, rules: &[&str]) -> Result<(), InvalidRule> {
        let rules: Result<Vec<R>, _> = rules.iter().map(|rule| rule.parse()).collect();
        let rules = rules.map_err(|bad: R::Err| bad.into())?;
        (self.list_mut)(overlay).get_or_insert_default().extend(rules);
        Ok(())
    }

    fn remaining(&self, grants: &Grants, layers: &[&Overlay]) -> Vec<String> {
        let rules = layers.iter().filter_map(|overlay| (self.list)(overlay).as_ref());
        let layers: Vec<Vec<R>> = rules.map(|rules| rules.into_iter().cloned().collect()).collect();
        let granted = (self.granted)(grants, &layers);
        remaining(grants, &granted, &layers)
    }
}

impl GrantKind {
    /// Returns the kind of this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::all().find(|kind| kind.row().words.contains(&word))
    }

    /// Returns every word of every kind.
    pub fn words() -> impl Iterator<Item = &'static str> {
        Self::all().flat_map(|kind| kind.row().words).copied()
    }

    /// Returns the key below `grants` in `toolcell.toml`.
    #[must_use]
    pub fn key(self) -> &'static str {
        self.row().key
    }

    /// Returns the kind of a declared need.
    #[doc(hidden)]
    pub fn of_need(need: &str) -> Option<Self> {
        Self::all().find(|kind| !need.is_empty() && kind.row().need == need)
    }

    /// Returns the kind that an interface of `toolcell:tool` is for.
    #[doc(hidden)]
    pub fn of_interface(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.row().interface() == Some(name))
    }

    /// Returns the event that a call of an interface of `toolcell:tool` waits for.
    #[doc(hidden)]
    pub fn wait_of(interface: &str) -> Option<BlockedOn> {
        Self::of_interface(interface)?.row().wait
    }

    /// Lists the words of each kind that has any, as the end of a sentence: `` `a`, `b` or `c` ``.
    #[doc(hidden)]
    pub fn listed<W: IntoIterator<Item = &'static str>>(words: impl Fn(&Row) -> W) -> String {
        let words = Self::all().flat_map(|kind| words(kind.row()));
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        let [first @ .., last] = words.as_slice() else { return String::new() };
        format!("`{}` or `{last}`", first.join("`, `"))
    }
}
