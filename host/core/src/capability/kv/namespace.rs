//! Owner of key-value data: one component, for one tenant or without a tenant.
//!
//! Each operation of a key-value store takes a [`Namespace`] and touches no other one. The embedder
//! (the program that uses this library) names the component in its grants; a new version of the
//! component finds the keys under the old name. [`Namespace::name`] encodes the pair as bytes,
//! which are the column of that name in the database.
//! Two different namespaces have different encodings, whatever characters the names contain,
//! because each name is preceded by its length.

use toolcell_contract::controls::enforced;

/// The owner of keys: one component, for one tenant or without a tenant. All tools of the component
/// share the keys.
///
/// The embedder chooses the name of the component ([`Grants::store`](crate::Grants::store)). The
/// component's digest is a poor choice: with a name, a new version of the component finds the keys
/// of the last one. A different component needs a different name, or it gets these keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    tenant: Option<String>,
    component: String,
}

impl Namespace {
    /// Creates the namespace of a component for a tenant. `None` and the tenant with the empty name
    /// are different.
    #[must_use]
    pub fn new(tenant: Option<&str>, component: &str) -> Self {
        Self { tenant: tenant.map(str::to_owned), component: component.to_owned() }
    }

    /// Returns the tenant, if there is one.
    #[must_use]
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// Returns the component.
    #[must_use]
    pub fn component(&self) -> &str {
        &self.component
    }

    /// Returns its name in a database.
    ///
    /// # Shape
    /// `00 COMPONENT`, `01 TENANT COMPONENT`, each name as eight bytes of length and its bytes.
    pub(super) fn name(&self) -> Vec<u8> {
        let mut name = vec![u8::from(self.tenant.is_some())];
        let tenant = self.tenant.as_ref().filter(|_| enforced!(TenantKeys));
        for part in tenant.into_iter().chain(enforced!(ComponentKeys).then_some(&self.component)) {
            name.extend_from_slice(&(part.len() as u64).to_be_bytes());
            name.extend_from_slice(part.as_bytes());
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    /// Names that resemble each other or the encoding itself.
    #[test]
    fn distinct_namespaces_have_distinct_names() {
        let words = rows::<&str>("capability/kv/namespace", "words");
        let tenants = || words.iter().copied().map(Some).chain([None]);
        let all: Vec<_> = tenants()
            .flat_map(|tenant| words.iter().map(move |component| Namespace::new(tenant, component)))
            .collect();
        assert_eq!(all.len(), 110);
        for (at, one) in all.iter().enumerate() {
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(one == other, at == other_at);
                assert_eq!(one.name() == other.name(), at == other_at, "{one:?} {other:?}");
            }
        }
    }
}
