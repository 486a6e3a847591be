//! Types of values in the file: with their position, or with a short form.
//!
//! The schema uses two wrappers around its values. [`At`] holds a value and its byte range in the
//! file, from which a problem gets its line and column. [`Either`] is a value that can be written
//! in a short form, text or a boolean, or as a table; unlike serde's untagged enums it keeps the
//! places inside. Both are transparent in the JSON Schema.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{BoolDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

/// A value and its place in the file.
#[derive(Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    /// Byte range in the file.
    pub(crate) span: Range<usize>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::deserialize(deserializer)?;
        Ok(Self { span: spanned.span(), value: spanned.into_inner() })
    }
}

/// The schema does not depend on the place of a value.
impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// The short form of a value, or a table. Unlike serde's untagged enums, it preserves spans.
#[derive(Debug)]
pub(crate) enum Either<S, T> {
    Short(S),
    Table(T),
}

impl<'de, S: Deserialize<'de>, T: Deserialize<'de>> Deserialize<'de> for Either<S, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms(PhantomData))
    }
}

struct Forms<S, T>(PhantomData<(S, T)>);

impl<'de, S: Deserialize<'de>, T: Deserialize<'de>> Visitor<'de> for Forms<S, T> {
    type Value = Either<S, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the short form of this value, or a table")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        let deserializer: BoolDeserializer<E> = value.into_deserializer();
        S::deserialize(deserializer).map(Either::Short)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        let deserializer: StrDeserializer<'_, E> = value.into_deserializer();
        S::deserialize(deserializer).map(Either::Short)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Either::Table)
    }
}

impl<S: JsonSchema, T: JsonSchema> JsonSchema for Either<S, T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}_or_{}", S::schema_name(), T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<S>(), generator.subschema_for::<T>()] })
    }
}
