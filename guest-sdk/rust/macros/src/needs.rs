//! Parses the option `needs = [kind("pattern", "reason"), …]`.
//!
//! Invariants: every need that is accepted here has a form that a host can parse.
//! Not here: the hosts and keys that exist, which only the operator knows.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{LitStr, Token};

use crate::errors::Errors;
use crate::text;

/// Kinds of needs.
/// Source: the `need` of `wit/toolcell.wit`, and the host that reads it.
const KINDS: [&str; 7] = ["http", "filesystem", "environment", "secret", "reveal", "kv", "invoke"];

/// HTTP methods.
/// Source: the same.
const METHODS: [&str; 7] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];

/// One need, such as `http("GET https://api.example.com/v1", "to look up the weather")`.
pub(crate) struct Need {
    pub(crate) kind: String,
    pub(crate) pattern: LitStr,
    pub(crate) reason: LitStr,
}

/// Parses the rest of the option after the word `needs`.
pub(crate) fn read(
    input: ParseStream<'_>,
    key: &Ident,
    errors: &mut Errors,
) -> syn::Result<Vec<Need>> {
    if !input.peek(Token![=]) {
        return Err(wrong(key.span(), "http"));
    }
    input.parse::<Token![=]>()?;
    if !input.peek(syn::token::Bracket) {
        return Err(wrong(input.span(), "http"));
    }
    let list;
    syn::bracketed!(list in input);
    let mut needs = Vec::new();
    while !list.is_empty() {
        match one(&list, errors) {
            Ok(need) => needs.push(need),
            Err(error) => {
                errors.push(error);
                text::skip_to_comma(&list);
            }
        }
        if !list.is_empty() && list.parse::<Token![,]>().is_err() {
            errors.push(list.error("write a comma between two needs"));
            text::skip_to_comma(&list);
            let _ = list.parse::<Token![,]>();
        }
    }
    Ok(needs)
}

fn one(list: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Need> {
    let kind = list.call(Ident::parse_any).map_err(|error| wrong(error.span(), "http"))?;
    let word = kind.to_string();
    if !KINDS.contains(&word.as_str()) {
        let message = format!("`{word}` is not a kind of need; the kinds are {}", KINDS.join(", "));
        return Err(syn::Error::new(kind.span(), message));
    }
    let span = kind.span();
    if !list.peek(syn::token::Paren) {
        return Err(wrong(span, &word));
    }
    let content;
    syn::parenthesized!(content in list);
    let texts = content.parse_terminated(<LitStr as syn::parse::Parse>::parse, Token![,]);
    let mut texts = texts.map_err(|_| wrong(span, &word))?.into_iter();
    let (Some(pattern), Some(reason), None) = (texts.next(), texts.next(), texts.next()) else {
        return Err(wrong(span, &word));
    };
    if !is_readable(&word, &pattern.value()) {
        let example = example(&word);
        errors.at(
            &pattern,
            format!(
                "`{}` is not a pattern for `{word}`: write it like `{example}`",
                pattern.value()
            ),
        );
    }
    if reason.value().trim().is_empty() {
        errors.at(
            &reason,
            "the reason is empty: tell the operator in one sentence why the tool needs this",
        );
    }
    Ok(Need { kind: word, pattern, reason })
}

fn wrong(span: proc_macro2::Span, kind: &str) -> syn::Error {
    let example = example(kind);
    syn::Error::new(
        span,
        format!("write `needs = [{kind}(\"{example}\", \"why, in one sentence\")]`"),
    )
}

fn example(kind: &str) -> &'static str {
    match kind {
        "filesystem" => "read /data",
        "environment" => "LANG",
        "secret" | "reveal" => "api_token",
        "kv" => "write notes/*",
        "invoke" => "lookup",
        _ => "GET https://api.example.com/v1",
    }
}

/// Returns true if the pattern roughly has a form that a host can parse.
fn is_readable(kind: &str, pattern: &str) -> bool {
    let access =
        || pattern.split_once(' ').filter(|(access, _)| matches!(*access, "read" | "write"));
    match kind {
        "http" => {
            let (methods, target) = pattern.split_once(' ').unwrap_or(("GET", pattern));
            let has_host =
                |scheme| target.strip_prefix(scheme).is_some_and(|host| !host.is_empty());
            methods.split(',').all(|method| METHODS.contains(&method))
                && (has_host("https://") || has_host("http://"))
        }
        "filesystem" => access().is_some_and(|(_, path)| path.starts_with('/')),
        "kv" => access().is_some_and(|(_, key)| {
            !key.is_empty() && !key.strip_suffix('*').unwrap_or(key).contains('*')
        }),
        _ => !pattern.is_empty() && !pattern.contains(char::is_whitespace),
    }
}
