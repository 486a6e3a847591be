//! The members of a JSON object as text, each read when its type is known.
//!
//! A type whose members depend on one of them, such as an event on its `type`, reads its JSON
//! through [`Members`]. Serde's tagged enums buffer the members, and a [`Json`](super::Json), a
//! value kept as its original text, cannot be read from that buffer. An object that names a member
//! twice is refused.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The members of an object by name, each as text.
#[derive(Debug)]
pub struct Members<M = Box<RawValue>>(pub BTreeMap<String, M>);

impl Members {
    /// Takes a member that is required.
    pub fn needed<T: DeserializeOwned, E: Error>(&mut self, name: &'static str) -> Result<T, E> {
        super::needed(self.present::<_, E>(name)?, name)
    }

    /// Takes a member that may be absent or `null`.
    pub fn optional<T: DeserializeOwned, E: Error>(&mut self, name: &str) -> Result<Option<T>, E> {
        Ok(self.present::<_, E>(name)?.flatten())
    }

    /// Takes a member that may be absent. `null` is a value.
    pub fn present<T: DeserializeOwned, E: Error>(&mut self, name: &str) -> Result<Option<T>, E> {
        let member = self.0.remove(name);
        member.map(|text| serde_json::from_str(text.get())).transpose().map_err(E::custom)
    }
}

impl<'de, M: Deserialize<'de>> Deserialize<'de> for Members<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Object(PhantomData))
    }
}

/// Reads an object.
struct Object<M>(PhantomData<M>);

impl<'de, M: Deserialize<'de>> Visitor<'de> for Object<M> {
    type Value = Members<M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Members<M>, A::Error> {
        let mut found = BTreeMap::new();
        while let Some((name, member)) = members.next_entry::<String, M>()? {
            if found.insert(name, member).is_some() {
                return Err(A::Error::custom("a member appears twice"));
            }
        }
        Ok(Members(found))
    }
}
