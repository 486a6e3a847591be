//! Finds the free names of a module: names that it uses and does not define.

use oxc_ast::AstKind;
use oxc_ast::ast::{Argument, CallExpression, Expression, ObjectPropertyKind, Program};
use oxc_semantic::{Semantic, SemanticBuilder};
use oxc_span::Span;
use oxc_syntax::operator::UnaryOperator;
use serde_json::{Value, json};

use crate::place;

/// Options of `toLocaleString` and its variants that the runtime without `Intl` supports.
const PLAIN: [&str; 3] = ["minimumFractionDigits", "maximumFractionDigits", "useGrouping"];
/// Options of `localeCompare` that the runtime without `Intl` supports.
const PLAIN_ORDER: [&str; 2] = ["numeric", "sensitivity"];
/// Classes of `Intl` that no runtime has.
const NO_INTL: [&str; 3] = ["DisplayNames", "DurationFormat", "Segmenter"];

/// Returns the free names, each with its first place.
///
/// `is_asked` is true for a name that the module also tests with `typeof`, as in `typeof process`:
/// the module works without it. In a package `process.env.NODE_ENV` is not a use of `process`,
/// because the build replaces it. `Intl` is also listed for `globalThis.Intl` and for a method with
/// options that require it. `locale de-CH` is listed for a literal locale other than English.
pub(crate) fn names(source: &str, program: &Program<'_>, is_package: bool) -> Vec<Value> {
    of(source, &SemanticBuilder::new().with_build_nodes(true).build(program).semantic, is_package)
}

/// Like [`names`], for a module that is already analysed.
pub(crate) fn of(source: &str, semantic: &Semantic<'_>, is_package: bool) -> Vec<Value> {
    let (scoping, nodes) = (semantic.scoping(), semantic.nodes());
    let is_asked = |node| {
        let parent = nodes.parent_kind(node);
        matches!(parent, AstKind::UnaryExpression(unary) if unary.operator == UnaryOperator::Typeof)
    };
    let unresolved = scoping.root_unresolved_references().iter();
    let found = unresolved.filter_map(|(name, references)| {
        let is_replaced = |node| {
            let env = nodes.parent_id(node);
            let is_of = |node, name| {
                matches!(nodes.kind(node), AstKind::StaticMemberExpression(member) if member.property.name == name)
            };
            is_package && name == "process" && is_of(env, "env") && is_of(nodes.parent_id(env), "NODE_ENV")
        };
        let references = || references.iter().map(|reference| scoping.get_reference(*reference));
        let references = || references().filter(|reference| !is_replaced(reference.node_id()));
        let first =
            references().filter(|reference| reference.is_value()).map(|reference| semantic.reference_span(reference));
        let first: Option<Span> = first.min_by_key(|span| span.start);
        Some((name.to_string(), first?, references().any(|reference| is_asked(reference.node_id()))))
    });
    let intl = nodes.iter().filter_map(|node| match node.kind() {
        AstKind::CallExpression(call) if needs_intl(call) => {
            Some(("Intl".to_owned(), call.span, false))
        }
        // Also `self["Intl"]` and `const { Intl: own } = globalThis`.
        AstKind::IdentifierName(name) if name.name == "Intl" => {
            Some(("Intl".to_owned(), name.span, false))
        }
        AstKind::StringLiteral(text) if text.value == "Intl" => {
            Some(("Intl".to_owned(), text.span, false))
        }
        AstKind::StaticMemberExpression(member)
            if member.object.is_specific_id("Intl")
                && NO_INTL.contains(&member.property.name.as_str()) =>
        {
            Some((format!("Intl.{}", member.property.name), member.span, false))
        }
        _ => None,
    });
    let locales = nodes.iter().filter_map(|node| {
        let locale = match node.kind() {
            AstKind::CallExpression(call) => other_locale(&call.callee, &call.arguments),
            AstKind::NewExpression(call) => other_locale(&call.callee, &call.arguments),
            _ => None,
        };
        locale.map(|(locale, span)| (format!("locale {locale}"), span, false))
    });
    let mut found: Vec<_> = found.chain(intl).chain(locales).collect();
    found.sort_by_key(|(_, span, _)| span.start);
    let found = found.into_iter().map(|(name, span, is_asked)| {
        let (line, column) = place(source, span.start as usize);
        json!({ "name": name, "line": line, "column": column, "is_asked": is_asked })
    });
    found.collect()
}

/// Returns the literal locale of a call, if it is not English.
fn other_locale<'a>(
    callee: &Expression<'a>,
    arguments: &[Argument<'a>],
) -> Option<(&'a str, Span)> {
    let member = callee.get_member_expr()?;
    let argument = match member.static_property_name()? {
        "toLocaleString" | "toLocaleDateString" | "toLocaleTimeString" => 0,
        "localeCompare" => 1,
        "DateTimeFormat" | "NumberFormat" | "Collator" | "PluralRules" | "ListFormat"
        | "RelativeTimeFormat"
            if member.object().is_specific_id("Intl") =>
        {
            0
        }
        _ => return None,
    };
    let Argument::StringLiteral(locale) = arguments.get(argument)? else { return None };
    let base = locale.value.split("-u-").next().unwrap_or_default();
    let is_english = base.eq_ignore_ascii_case("en") || base.eq_ignore_ascii_case("en-US");
    (!is_english).then_some((locale.value.as_str(), locale.span))
}

/// Returns true for a call of `localeCompare`, `toLocaleString`, `toLocaleDateString` or
/// `toLocaleTimeString` with options that the runtime without `Intl` may not support.
fn needs_intl(call: &CallExpression<'_>) -> bool {
    let Some(member) = call.callee.get_member_expr() else { return false };
    let name = member.static_property_name().unwrap_or_default();
    let (at, plain) = match name {
        "toLocaleString" | "toLocaleDateString" | "toLocaleTimeString" => (1, &PLAIN[..]),
        "localeCompare" => (2, &PLAIN_ORDER[..]),
        _ => return false,
    };
    if call.arguments.iter().any(Argument::is_spread) {
        return true;
    }
    match call.arguments.get(at) {
        None => false,
        Some(Argument::ObjectExpression(options)) => {
            !options.properties.iter().all(|property| match property {
                ObjectPropertyKind::ObjectProperty(property) => {
                    property.key.static_name().is_some_and(|name| plain.contains(&name.as_ref()))
                }
                ObjectPropertyKind::SpreadProperty(_) => false,
            })
        }
        Some(_) => true,
    }
}
