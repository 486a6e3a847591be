//! Parses the options of `#[tool(…)]`.
//!
//! Invariants: after a wrong option, parsing continues after the next comma.

use proc_macro2::{Group, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, LitStr, Token, Type};

use crate::errors::Errors;
use crate::needs::{self, Need};
use crate::text;

/// Names of all options, for the error about an unknown one.
const KNOWN: [&str; 13] = [
    "name",
    "description",
    "title",
    "attributes",
    "max_execution",
    "validate",
    "visible",
    "output",
    "read_only",
    "idempotent",
    "destructive",
    "open_world",
    "needs",
];

/// The options as the author wrote them.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    /// The braces and their content.
    pub(crate) attributes: Option<Group>,
    pub(crate) max_execution_ms: Option<u64>,
    pub(crate) validate: Option<Expr>,
    pub(crate) visible: Option<Expr>,
    pub(crate) output: Option<Output>,
    pub(crate) read_only: bool,
    pub(crate) idempotent: bool,
    pub(crate) destructive: bool,
    pub(crate) open_world: bool,
    /// `None` if the option was not written.
    pub(crate) needs: Option<Vec<Need>>,
}

/// The option `output`. Without a type it means the type that the function returns.
pub(crate) enum Output {
    Returned(Ident),
    Given(Box<Type>),
}

impl Options {
    pub(crate) fn read(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut options = Self::default();
        let read = |input: ParseStream<'_>| {
            options.read_all(input, errors);
            Ok(())
        };
        // `read_all` consumes all tokens and collects its errors itself, so this cannot fail.
        let _ = read.parse2(tokens);
        options
    }

    fn read_all(&mut self, input: ParseStream<'_>, errors: &mut Errors) {
        let mut seen: Vec<String> = Vec::new();
        while !input.is_empty() {
            if let Err(error) = self.read_one(input, &mut seen, errors) {
                errors.push(error);
                text::skip_to_comma(input);
            }
            if !input.is_empty() && input.parse::<Token![,]>().is_err() {
                errors.push(input.error("write a comma between two options"));
                text::skip_to_comma(input);
                let _ = input.parse::<Token![,]>();
            }
        }
        if self.read_only && self.destructive {
            let message = "`read_only` and `destructive` contradict each other: remove one of them";
            errors.push(syn::Error::new(proc_macro2::Span::call_site(), message));
        }
    }

    fn read_one(
        &mut self,
        input: ParseStream<'_>,
        seen: &mut Vec<String>,
        errors: &mut Errors,
    ) -> syn::Result<()> {
        let key = input.call(Ident::parse_any).map_err(|error| {
            syn::Error::new(
                error.span(),
                "write options as `name = \"…\"`, or as a word such as `read_only`",
            )
        })?;
        let word = key.to_string();
        if seen.contains(&word) {
            errors.at(&key, format!("`{word}` is given twice: remove one of them"));
        }
        match word.as_str() {
            "name" => {
                let name = string(input, &key)?;
                if let Err(message) = text::check_name(&name.value()) {
                    errors.at(&name, message);
                }
                self.name = Some(name);
            }
            "description" => self.description = Some(string(input, &key)?),
            "title" => self.title = Some(string(input, &key)?),
            "max_execution" => {
                let duration = string(input, &key)?;
                match text::milliseconds(&duration.value()) {
                    Ok(milliseconds) => self.max_execution_ms = Some(milliseconds),
                    Err(message) => errors.at(&duration, message),
                }
            }
            "attributes" => self.attributes = Some(object(input, &key)?),
            "validate" => {
                self.validate = Some(function(input, &key, "`fn(&Args) -> Vec<String>`")?)
            }
            "visible" => self.visible = Some(function(input, &key, "`fn(&Context) -> bool`")?),
            "output" if input.peek(Token![=]) => {
                input.parse::<Token![=]>()?;
                self.output = Some(Output::Given(input.parse()?));
            }
            "output" => self.output = Some(Output::Returned(key)),
            "read_only" => self.read_only = flag(input, &key)?,
            "idempotent" => self.idempotent = flag(input, &key)?,
            "destructive" => self.destructive = flag(input, &key)?,
            "open_world" => self.open_world = flag(input, &key)?,
            "needs" => self.needs = Some(needs::read(input, &key, errors)?),
            _ => return Err(unknown(&key)),
        }
        seen.push(word);
        Ok(())
    }
}

fn unknown(key: &Ident) -> syn::Error {
    let message = match text::nearest(&key.to_string(), &KNOWN) {
        Some(near) => format!("`#[tool(…)]` has no option `{key}`: did you mean `{near}`?"),
        None => format!("`#[tool(…)]` has no option `{key}`; its options are {}", KNOWN.join(", ")),
    };
    syn::Error::new(key.span(), message)
}

fn string(input: ParseStream<'_>, key: &Ident) -> syn::Result<LitStr> {
    let example = match key.to_string().as_str() {
        "max_execution" => "2s",
        _ => "…",
    };
    let wrong = |span| syn::Error::new(span, format!("write `{key} = \"{example}\"`"));
    if !input.peek(Token![=]) {
        return Err(wrong(key.span()));
    }
    input.parse::<Token![=]>()?;
    input.parse().map_err(|error: syn::Error| wrong(error.span()))
}

fn flag(input: ParseStream<'_>, key: &Ident) -> syn::Result<bool> {
    if input.peek(Token![=]) || input.peek(syn::token::Paren) {
        return Err(syn::Error::new(
            key.span(),
            format!("`{key}` takes no value: write the word alone, or leave it out"),
        ));
    }
    Ok(true)
}

fn function(input: ParseStream<'_>, key: &Ident, shape: &str) -> syn::Result<Expr> {
    if !input.peek(Token![=]) {
        return Err(syn::Error::new(
            key.span(),
            format!("write `{key} = name_of_a_function`, a {shape}"),
        ));
    }
    input.parse::<Token![=]>()?;
    input.parse()
}

fn object(input: ParseStream<'_>, key: &Ident) -> syn::Result<Group> {
    let wrong = |span| {
        syn::Error::new(span, "write `attributes = { \"team\": \"math\" }`, any JSON object")
    };
    if !input.peek(Token![=]) {
        return Err(wrong(key.span()));
    }
    input.parse::<Token![=]>()?;
    if !input.peek(syn::token::Brace) {
        return Err(wrong(input.span()));
    }
    input.parse()
}
