//! Rules that allow access to key-value data, such as `read *`, `write notes/*`, `read settings`.
//!
//! A component can have a key-value store, separate for each tenant. A [`KeyRule`] is parsed from a
//! grant, an overlay (rules that can only narrow a grant) or a declared need, and is asked for each
//! access: [`KeyRule::covers`] decides about one key, [`KeyRule::covers_prefix`] about a listing.
//! Write access includes reading. A `*` is allowed only at the end; `*` alone covers every key of
//! the component, never those of others.

use std::fmt;
use std::str::FromStr;

use super::kind::{BlockedOn, Row, lists};
use super::rule::{Pattern, Rule, inner};
use super::{Access, InvalidRule};

pub(super) static KV: Row = Row {
    words: &["kv", "key", "keys"],
    example: "kv=write notes/*",
    requests: &["kv read KEY", "kv write KEY", "kv list PREFIX"],
    imports: &["toolcell:tool/kv@"],
    wait: Some(BlockedOn::Kv),
    rules: Some(lists!(kv, |grants, _| grants.kv.clone())),
    ..Row::list("kv", |grants| !grants.kv.is_empty())
};

/// A rule that allows access to keys. A component has its own keys for each tenant; `*` covers all
/// of them.
///
/// # Shape
/// As text: `read KEY`, `write KEY`, and `PREFIX*` for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRule {
    access: Access,
    keys: Pattern,
}

impl KeyRule {
    /// Returns true if the rule allows this access to this key.
    #[must_use]
    pub fn covers(&self, access: Access, key: &str) -> bool {
        access <= self.access && self.keys.covers(key)
    }

    /// Returns true if the rule allows this access to all keys that begin with this prefix.
    #[must_use]
    pub fn covers_prefix(&self, access: Access, prefix: &str) -> bool {
        access <= self.access && self.keys.covers_prefix(prefix)
    }
}

impl FromStr for KeyRule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let hint = "say which access and which keys, for instance `read *` or `write notes/*`";
        let (access, key) = Access::before(text, hint)?;
        let Some(keys) = Pattern::parse(key) else {
            return Err(InvalidRule::new(text, "`*` is allowed only at the end", hint));
        };
        if key.is_empty() {
            return Err(InvalidRule::new(text, "the key is missing", hint));
        }
        Ok(Self { access, keys })
    }
}

impl Rule for KeyRule {
    fn place(&self) -> String {
        self.keys.to_string()
    }

    fn intersect(&self, other: &Self) -> Option<Self> {
        let keys = inner(&self.keys, &other.keys, Pattern::is_within)?.clone();
        Some(Self { access: self.access.min(other.access), keys })
    }
}

impl fmt::Display for KeyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.access, self.keys)
    }
}
