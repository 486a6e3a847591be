//! Parses the parameters of a tool: the arguments and the context.
//!
//! Invariants: the attributes `///`, `#[serde]` and `#[schemars]` of a parameter are removed from
//! the function, where the compiler would not allow them, and moved to the field that is generated
//! for it.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, FnArg, ItemFn, Pat, PatType, Type, parse_quote};

use crate::errors::Errors;
use crate::signature::bare;
use crate::text;

/// The form in which a function takes its arguments.
pub(crate) enum Arguments {
    /// One parameter is the whole argument object.
    Whole(Box<Type>),
    /// Each parameter is one argument.
    Each(Vec<Argument>),
}

/// One argument.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    pub(crate) attributes: Vec<Attribute>,
    /// The name in the schema, if it differs from the name of the parameter.
    pub(crate) rename: Option<String>,
}

/// The form in which a function takes the context.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    No,
    Owned,
    Borrowed,
}

/// Parses the parameters and removes their attributes.
pub(crate) fn take(function: &mut ItemFn, errors: &mut Errors) -> (Arguments, Context) {
    let last = function.sig.inputs.len().saturating_sub(1);
    let mut context = Context::No;
    let mut typed: Vec<(PatType, Vec<Attribute>)> = Vec::new();
    for (position, input) in function.sig.inputs.iter_mut().enumerate() {
        let FnArg::Typed(parameter) = input else { continue };
        let own = |attribute: &Attribute| {
            ["doc", "serde", "schemars"].iter().any(|name| attribute.path().is_ident(name))
        };
        let attributes = parameter.attrs.extract_if(.., |attribute| own(attribute)).collect();
        match context_of(&parameter.ty) {
            None => typed.push((parameter.clone(), attributes)),
            Some(_) if position != last => {
                errors.at(
                    &*parameter,
                    "the context has to be the last parameter: move it to the end",
                );
            }
            Some(Ok(way)) => context = way,
            Some(Err(message)) => errors.at(&parameter.ty, message),
        }
    }
    (arguments(typed, errors), context)
}

/// Returns `None` if the type is not the context.
fn context_of(ty: &Type) -> Option<Result<Context, &'static str>> {
    let ty = bare(ty);
    if let Type::Reference(reference) = ty {
        return Some(match context_of(&reference.elem)? {
            Ok(Context::Owned) if reference.mutability.is_none() => Ok(Context::Borrowed),
            _ => Err("a tool takes the context as `&Context` or as `Context`"),
        });
    }
    let Type::Path(path) = ty else { return None };
    (path.path.segments.last()?.ident == "Context").then_some(Ok(Context::Owned))
}

fn arguments(mut typed: Vec<(PatType, Vec<Attribute>)>, errors: &mut Errors) -> Arguments {
    for (parameter, _) in &typed {
        check_type(&parameter.ty, errors);
    }
    if let [(parameter, _)] = typed.as_slice()
        && is_whole(&parameter.pat)
    {
        check_whole(parameter, errors);
        return Arguments::Whole(parameter.ty.clone());
    }
    let mut each: Vec<Argument> = Vec::new();
    for (parameter, attributes) in typed.drain(..) {
        if is_whole(&parameter.pat) {
            errors.at(
                &parameter,
                "a parameter that is a pattern, or is named `args` or `arguments`, takes all arguments as one struct: \
                 put the other arguments into the struct, or write one parameter with another name for each argument",
            );
            continue;
        }
        let Pat::Ident(name) = *parameter.pat else {
            errors.at(parameter.pat, "an argument needs a name: write `name: Type`");
            continue;
        };
        let argument = Argument::new(name.ident, *parameter.ty, attributes);
        if each.iter().any(|other| other.spoken() == argument.spoken()) {
            errors
                .at(&argument.name, format!("two arguments have the name `{}`", argument.spoken()));
        }
        each.push(argument);
    }
    Arguments::Each(each)
}

/// Returns true if a lone parameter takes the whole argument object.
fn is_whole(pat: &Pat) -> bool {
    let Pat::Ident(name) = pat else { return !matches!(pat, Pat::Wild(_)) };
    let name = name.ident.to_string();
    matches!(name.trim_start_matches('_'), "args" | "arguments")
}

/// Types of single values, which cannot hold an argument object.
const SINGLE: [&str; 18] = [
    "String", "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8",
    "u16", "u32", "u64", "u128", "usize", "Vec",
];

fn check_whole(parameter: &PatType, errors: &mut Errors) {
    let Type::Path(path) = &*parameter.ty else { return };
    let Some(last) = path.path.segments.last() else { return };
    if SINGLE.iter().any(|single| last.ident == single) {
        errors.at(
            parameter,
            format!(
                "a single parameter named `args` or `arguments` takes the whole argument object, and `{}` cannot hold \
                 an object: give it another name, or use a struct as its type",
                last.ident
            ),
        );
    }
}

fn check_type(ty: &Type, errors: &mut Errors) {
    if let Type::ImplTrait(_) = ty {
        errors.at(ty, "the arguments are read from JSON, so each needs a concrete type: write one instead of `impl …`");
    } else if borrows(ty.to_token_stream()) {
        let text = matches!(ty, Type::Reference(inner) if inner.elem.to_token_stream().to_string() == "str");
        let instead = if text {
            "write `String` instead of `&str`"
        } else {
            "write an owned type such as `String`"
        };
        errors.at(ty, format!("a tool owns its arguments: {instead}"));
    }
}

fn borrows(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Punct(punct) => punct.as_char() == '&' || punct.as_char() == '\'',
        TokenTree::Group(group) => borrows(group.stream()),
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    })
}

impl Argument {
    fn new(name: Ident, ty: Type, mut attributes: Vec<Attribute>) -> Self {
        let doc = text::doc(&attributes);
        attributes.retain(|attribute| text::doc_text(attribute).is_none());
        attributes.extend((!doc.is_empty()).then(|| parse_quote!(#[doc = #doc])));
        let plain = name.to_string();
        let spoken = plain.trim_start_matches('_');
        let named = attributes.iter().any(|attribute| {
            attribute.path().is_ident("serde")
                && attribute.to_token_stream().to_string().contains("rename")
        });
        let rename = (spoken != plain && !spoken.is_empty() && !named).then(|| spoken.to_owned());
        Self { name, ty, attributes, rename }
    }

    /// Returns true if the type itself is deserialized. Attributes such as `#[serde(with = …)]`
    /// replace it.
    pub(crate) fn is_plain(&self) -> bool {
        let has_with = |attribute: &Attribute| {
            let own = ["serde", "schemars"].iter().any(|name| attribute.path().is_ident(name));
            own && attribute.to_token_stream().to_string().contains("with")
        };
        !self.attributes.iter().any(has_with)
    }

    fn spoken(&self) -> String {
        self.rename.clone().unwrap_or_else(|| self.name.to_string())
    }
}
