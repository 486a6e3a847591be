//! Implements the JSON Schema keyword `uniqueItems` in time linear in the size of the value.
//!
//! `Schema::compile` registers [`keyword`] in place of the validator's own check. That one compares
//! items whose hashes collide, and the author of a value can make all of them collide. Here the
//! items' canonical bytes are put into a hash set with a secret random key, so that they cannot be
//! made to collide.

use std::collections::HashSet;

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value};

use crate::json::canonical;

/// The keyword. True if the schema requires unique items.
struct Unique(bool);

/// Creates the keyword.
pub(super) fn keyword<'a>(
    _: &'a Map<String, Value>,
    wanted: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    Ok(Box::new(Unique(wanted == &Value::Bool(true))))
}

impl<'i> Keyword<'i> for Unique {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) { Ok(()) } else { Err(ValidationError::custom("items are alike")) }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        let items = value.as_array().filter(|items| self.0 && items.len() > 1);
        items.is_none_or(|items| {
            let mut seen = HashSet::with_capacity(items.len());
            items.iter().all(|item| seen.insert(canonical::bytes(item)))
        })
    }
}
