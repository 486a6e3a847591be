//! Rules that allow access to key-value data, such as `read *`, `write notes/*`, `read settings`.
//!
//! A component can have a key-value store, separate for each tenant. A [`KeyRule`] is parsed from a
//! grant, an overlay (rules that can only narrow a grant) or a declared need, and is asked for each
//! access: [`KeyRule::covers`] decides about one key, [`KeyRule::covers_prefix`] about a listing.
//! Write access includes reading. A `*` is allowed only at the end; `*` alone covers every key of
//! the component, never those of others.

use std::fmt;
use std::str::FromStr;

use super::{Access, InvalidRule};

/// A rule that allows access to keys. A component has its own keys for each tenant; `*` covers all
/// of them.
///
/// # Shape
/// As text: `read KEY`, `write KEY`, and `PREFIX*` for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRule {
    access: Access,
    key: String,
    is_prefix: bool,
}

impl KeyRule {
    /// Returns true if the rule allows this access to this key.
    #[must_use]
    pub fn covers(&self, access: Access, key: &str) -> bool {
        access <= self.access
            && if self.is_prefix { key.starts_with(&self.key) } else { key == self.key }
    }

    /// Returns true if the rule allows this access to all keys that begin with this prefix.
    #[must_use]
    pub fn covers_prefix(&self, access: Access, prefix: &str) -> bool {
        access <= self.access && self.is_prefix && prefix.starts_with(&self.key)
    }
}

impl FromStr for KeyRule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let hint = "say which access and which keys, for instance `read *` or `write notes/*`";
        let (access, key) = Access::before(text, "the key is missing", hint)?;
        let (key, is_prefix) = key.strip_suffix('*').map_or((key, false), |prefix| (prefix, true));
        if key.contains('*') {
            return Err(InvalidRule::new(text, "`*` is allowed only at the end", hint));
        }
        if key.is_empty() && !is_prefix {
            return Err(InvalidRule::new(text, "the key is missing", hint));
        }
        Ok(Self { access, key: key.to_owned(), is_prefix })
    }
}

impl fmt::Display for KeyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.access, self.key, if self.is_prefix { "*" } else { "" })
    }
}
