//! Checks the signature of a tool's function, and classifies its return type.

use syn::{FnArg, GenericArgument, ItemFn, PathArguments, ReturnType, Type, TypeGroup, TypeParen};

use crate::errors::Errors;

/// The return type of a function, classified by the last segment of its path.
pub(crate) enum Returns {
    /// No value, which becomes null.
    Nothing,
    /// `Result<T, E>`, with the types that the author wrote.
    Result { whole: Box<Type>, value: Option<Box<Type>>, error: Option<Box<Type>> },
    /// A value or an outcome.
    Value(Box<Type>),
}

/// Names of primitive types. A marker type with such a name would shadow the primitive in the
/// author's code.
const PRIMITIVE: [&str; 17] = [
    "bool", "char", "str", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16",
    "u32", "u64", "u128", "usize",
];

/// Checks the signature, except for the parameters.
pub(crate) fn check(function: &ItemFn, errors: &mut Errors) {
    let signature = &function.sig;
    if let Some(keyword) = &signature.asyncness {
        errors.at(
            keyword,
            "a tool is not `async`: remove `async`, and use blocking calls; each call has a cell of its own and blocks only itself",
        );
    }
    if let Some(keyword) = &signature.unsafety {
        errors.at(
            keyword,
            "a tool is a safe function: remove `unsafe`, and use an unsafe block inside",
        );
    }
    if let Some(abi) = &signature.abi {
        errors
            .at(abi, "a tool is an ordinary function: remove `extern`; `tools!` writes the export");
    }
    if let Some(dots) = &signature.variadic {
        errors.at(dots, "each argument of a tool has a name: take a `Vec<…>` instead of `...`");
    }
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        errors.at(
            &signature.generics,
            "a tool cannot be generic, because its arguments are read from JSON: write concrete types",
        );
    }
    if let Some(FnArg::Receiver(receiver)) = signature.receiver().map(|_| &signature.inputs[0]) {
        errors.at(
            receiver,
            "a tool cannot take `self`, because each call runs in a new instance: move the function out of the `impl`, \
             and take what it needs as arguments",
        );
    }
    if PRIMITIVE.iter().any(|primitive| signature.ident == primitive) {
        errors.at(
            &signature.ident,
            format!(
                "`{0}` is the name of a type: rename the function, and write `name = \"{0}\"`",
                signature.ident
            ),
        );
    }
}

/// Classifies the return type.
pub(crate) fn returns(output: &ReturnType) -> Returns {
    let ty = match output {
        ReturnType::Default => return Returns::Nothing,
        ReturnType::Type(_, ty) => ty,
    };
    if matches!(bare(ty), Type::Tuple(tuple) if tuple.elems.is_empty()) {
        return Returns::Nothing;
    }
    let Type::Path(path) = bare(ty) else { return Returns::Value(ty.clone()) };
    let Some(last) = path.path.segments.last().filter(|last| last.ident == "Result") else {
        return Returns::Value(ty.clone());
    };
    let mut types = match &last.arguments {
        PathArguments::AngleBracketed(list) => list.args.iter().filter_map(type_of).collect(),
        PathArguments::None | PathArguments::Parenthesized(_) => Vec::new(),
    }
    .into_iter();
    Returns::Result { whole: ty.clone(), value: types.next(), error: types.next() }
}

/// Removes parentheses and invisible groups, which a `macro_rules!` adds, around a type.
pub(crate) fn bare(ty: &Type) -> &Type {
    if let Type::Group(TypeGroup { elem, .. }) | Type::Paren(TypeParen { elem, .. }) = ty {
        bare(elem)
    } else {
        ty
    }
}

fn type_of(argument: &GenericArgument) -> Option<Box<Type>> {
    let GenericArgument::Type(ty) = argument else { return None };
    Some(Box::new(ty.clone()))
}
