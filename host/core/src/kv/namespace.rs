//! The owner of keys: a tenant and a tool.
//!
//! In: a tenant, a tool. Out: [`Namespace`], and the rows that begin with it. Invariants: two namespaces have no row in
//! common, whatever their names and keys contain.

use crate::defence::{Defence, stands};

/// The owner of keys: one tool, for one tenant or without a tenant.
///
/// The embedder chooses the name of the tool, for instance its registered name. It should not be the digest of the
/// component: with a name, a new version of the tool finds the keys of the last one. A different tool needs a different
/// name, or it gets these keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    tenant: Option<String>,
    tool: String,
}

impl Namespace {
    /// The namespace of a tool for a tenant. `None` and the tenant with the empty name are different.
    #[must_use]
    pub fn new(tenant: Option<&str>, tool: &str) -> Self {
        Self { tenant: tenant.map(str::to_owned), tool: tool.to_owned() }
    }

    /// The tenant, if there is one.
    #[must_use]
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// A row of this namespace. Every name is preceded by its length: no namespace's rows begin like another's.
    ///
    /// # Shape
    /// `KIND 00 TOOL rest`, `KIND 01 TENANT TOOL rest`, each name as eight bytes of length and its bytes.
    pub(super) fn row(&self, kind: u8, rest: &[u8]) -> Vec<u8> {
        let mut row = vec![kind, u8::from(self.tenant.is_some())];
        let tenant = self.tenant.as_ref().filter(|_| stands(Defence::TenantKeys));
        for name in tenant.into_iter().chain(stands(Defence::ToolKeys).then_some(&self.tool)) {
            row.extend_from_slice(&(name.len() as u64).to_be_bytes());
            row.extend_from_slice(name.as_bytes());
        }
        row.extend_from_slice(rest);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and keys that look like each other's, or like the notation itself.
    #[test]
    fn no_namespace_begins_like_another() {
        let words = ["", "a", "ab", "b", "\0", "\0\0\0\0\0\0\0\u{1}a", "a\0\0\0\0\0\0\0\0", "ä", "a/b", "/"];
        let tenants = || words.iter().copied().map(Some).chain([None]);
        let all: Vec<_> =
            tenants().flat_map(|tenant| words.iter().map(move |tool| Namespace::new(tenant, tool))).collect();
        assert_eq!(all.len(), 110);
        for (at, one) in all.iter().enumerate() {
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(one == other, at == other_at);
                for key in words {
                    let begins = one.row(b'r', key.as_bytes()).starts_with(&other.row(b'r', b""));
                    assert_eq!(begins, at == other_at, "{one:?} {other:?} {key:?}");
                }
            }
        }
    }
}
