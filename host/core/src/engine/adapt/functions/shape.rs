//! Types of a function's parameters and results, as a tree without types of wasmtime.
//!
//! When a component is loaded, [`Shape::of`] converts each wasmtime type once. `schema` builds JSON
//! Schemas from the tree, and `value` uses it in each call to convert values. `Display` writes it
//! in the notation of WIT, the interface language of the component model.
//! It fails with a description of the part that JSON cannot represent: a resource, a stream, a map
//! and some others. A component can compose types that expand exponentially, so a shape has at most
//! 24 levels, and the shapes of one function at most 1500 parts.

use std::fmt;

use toolcell_contract::controls::bound;
use wasmtime::component::{Type, Val};

/// Levels of nested types: the schema of one takes up to four levels of JSON.
const MAX_LEVELS: usize = 24;
/// Parts of the types of one function, of which a schema is made. A schema has at most 2,000 parts.
const MAX_PARTS: usize = 1500;
/// Bytes of a name that count as one part.
const NAME_BYTES: usize = 32;

/// The type of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Bool,
    Integer(Integer),
    Float32,
    Float64,
    Char,
    String,
    /// `list<u8>`.
    Bytes,
    List(Box<Self>),
    Record(Vec<(String, Self)>),
    Tuple(Vec<Self>),
    Variant(Vec<(String, Option<Self>)>),
    Enum(Vec<String>),
    Option(Box<Self>),
    Result(Option<Box<Self>>, Option<Box<Self>>),
    Flags(Vec<String>),
}

/// An integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Integer {
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
}

impl Integer {
    /// Returns the smallest and the largest value.
    pub(super) fn range(self) -> (i128, i128) {
        match self {
            Self::S8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U8 => (0, u8::MAX.into()),
            Self::S16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::S32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::S64 => (i64::MIN.into(), i64::MAX.into()),
            Self::U64 => (0, u64::MAX.into()),
        }
    }

    /// Returns true if the type has values that JSON numbers, as many programs read them, cannot
    /// hold exactly.
    pub(super) fn is_wide(self) -> bool {
        matches!(self, Self::S64 | Self::U64)
    }

    /// Converts a number to this type; `None` if it is out of range.
    pub(super) fn val(self, number: i128) -> Option<Val> {
        Some(match self {
            Self::S8 => Val::S8(number.try_into().ok()?),
            Self::U8 => Val::U8(number.try_into().ok()?),
            Self::S16 => Val::S16(number.try_into().ok()?),
            Self::U16 => Val::U16(number.try_into().ok()?),
            Self::S32 => Val::S32(number.try_into().ok()?),
            Self::U32 => Val::U32(number.try_into().ok()?),
            Self::S64 => Val::S64(number.try_into().ok()?),
            Self::U64 => Val::U64(number.try_into().ok()?),
        })
    }
}

/// The number of parts of a function's types so far.
#[derive(Debug, Default)]
pub(super) struct Parts(usize);

impl Parts {
    /// Counts a name, and returns it: a name is a part, and a long one is several.
    fn name(&mut self, name: &str) -> Result<String, &'static str> {
        self.add(1 + name.len() / NAME_BYTES)?;
        Ok(name.to_owned())
    }

    fn add(&mut self, parts: usize) -> Result<(), &'static str> {
        self.0 += parts;
        let is_within = self.0 <= bound!(FunctionTypes, MAX_PARTS);
        if is_within { Ok(()) } else { Err("types with more than 1500 parts") }
    }
}

impl Shape {
    /// Returns the shape of a type; `parts` counts over all types of a function.
    ///
    /// # Errors
    /// A description of the part that cannot be JSON.
    pub(super) fn of(ty: &Type, parts: &mut Parts) -> Result<Self, &'static str> {
        Self::at(ty, parts, MAX_LEVELS)
    }

    fn at(ty: &Type, parts: &mut Parts, levels: usize) -> Result<Self, &'static str> {
        parts.add(1)?;
        let Some(levels) = levels.checked_sub(1) else {
            return Err("types that nest deeper than 24 levels");
        };
        let mut of = |ty: &Type| Self::at(ty, parts, levels);
        Ok(match ty {
            Type::Bool => Self::Bool,
            Type::S8 => Self::Integer(Integer::S8),
            Type::U8 => Self::Integer(Integer::U8),
            Type::S16 => Self::Integer(Integer::S16),
            Type::U16 => Self::Integer(Integer::U16),
            Type::S32 => Self::Integer(Integer::S32),
            Type::U32 => Self::Integer(Integer::U32),
            Type::S64 => Self::Integer(Integer::S64),
            Type::U64 => Self::Integer(Integer::U64),
            Type::Float32 => Self::Float32,
            Type::Float64 => Self::Float64,
            Type::Char => Self::Char,
            Type::String => Self::String,
            Type::List(list) if matches!(list.ty(), Type::U8) => Self::Bytes,
            Type::List(list) => Self::List(Box::new(of(&list.ty())?)),
            Type::Record(record) => {
                let fields = record.fields().map(|field| {
                    Ok((parts.name(field.name)?, Self::at(&field.ty, parts, levels)?))
                });
                Self::Record(fields.collect::<Result<_, &str>>()?)
            }
            Type::Tuple(tuple) => {
                Self::Tuple(tuple.types().map(|ty| of(&ty)).collect::<Result<_, _>>()?)
            }
            Type::Variant(variant) => {
                let cases = variant.cases().map(|case| {
                    let name = parts.name(case.name)?;
                    Ok((name, case.ty.map(|ty| Self::at(&ty, parts, levels)).transpose()?))
                });
                Self::Variant(cases.collect::<Result<_, &str>>()?)
            }
            Type::Enum(named) => {
                Self::Enum(named.names().map(|name| parts.name(name)).collect::<Result<_, _>>()?)
            }
            Type::Option(option) => Self::Option(Box::new(of(&option.ty())?)),
            Type::Result(result) => {
                let mut boxed = |ty: Option<Type>| ty.map(|ty| of(&ty).map(Box::new)).transpose();
                Self::Result(boxed(result.ok())?, boxed(result.err())?)
            }
            Type::Flags(flags) => {
                Self::Flags(flags.names().map(|name| parts.name(name)).collect::<Result<_, _>>()?)
            }
            Type::Own(_) | Type::Borrow(_) => return Err("a resource"),
            Type::Future(_) | Type::Stream(_) => return Err("a future or a stream"),
            Type::ErrorContext => return Err("an error context"),
            Type::Map(_) => return Err("a map"),
            Type::FixedLengthList(_) => return Err("a list of fixed length"),
        })
    }

    /// Returns true if `null` is one of its values.
    pub(super) fn has_null(&self) -> bool {
        matches!(self, Self::Option(_))
    }
}

/// In the notation of WIT, with named types written out.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |f: &mut fmt::Formatter<'_>, word: &str, names: &[String]| {
            write!(f, "{word} {{ {} }}", names.join(", "))
        };
        match self {
            Self::Bool => f.write_str("bool"),
            // Variants have the names of WIT, in capitals.
            Self::Integer(integer) => f.write_str(&format!("{integer:?}").to_ascii_lowercase()),
            Self::Float32 => f.write_str("f32"),
            Self::Float64 => f.write_str("f64"),
            Self::Char => f.write_str("char"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("list<u8>"),
            Self::List(item) => write!(f, "list<{item}>"),
            Self::Option(item) => write!(f, "option<{item}>"),
            Self::Tuple(items) => {
                let items: Vec<_> = items.iter().map(Self::to_string).collect();
                write!(f, "tuple<{}>", items.join(", "))
            }
            Self::Record(fields) => {
                let fields: Vec<_> =
                    fields.iter().map(|(name, shape)| format!("{name}: {shape}")).collect();
                names(f, "record", &fields)
            }
            Self::Variant(cases) => {
                let case = |(name, shape): &(String, Option<Self>)| {
                    shape.as_ref().map_or_else(|| name.clone(), |shape| format!("{name}({shape})"))
                };
                names(f, "variant", &cases.iter().map(case).collect::<Vec<_>>())
            }
            Self::Enum(cases) => names(f, "enum", cases),
            Self::Flags(flags) => names(f, "flags", flags),
            Self::Result(None, None) => f.write_str("result"),
            Self::Result(Some(ok), None) => write!(f, "result<{ok}>"),
            Self::Result(None, Some(error)) => write!(f, "result<_, {error}>"),
            Self::Result(Some(ok), Some(error)) => write!(f, "result<{ok}, {error}>"),
        }
    }
}
