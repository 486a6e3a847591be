//! Names that a module uses and that nothing in it defines.

use oxc_ast::AstKind;
use oxc_ast::ast::{Argument, CallExpression, ObjectPropertyKind, Program};
use oxc_semantic::{Semantic, SemanticBuilder};
use oxc_span::Span;
use oxc_syntax::operator::UnaryOperator;
use serde_json::{Value, json};

use crate::place;

/// Options that the runtime without `Intl` honours.
const PLAIN: [&str; 3] = ["minimumFractionDigits", "maximumFractionDigits", "useGrouping"];

/// The names, each with its first place. `is_asked` is true of a name that the module also asks the type of, as in
/// `typeof process`: it goes on without it. `Intl` is among them, too, for
/// `globalThis.Intl` and for a method with options that need it.
pub(crate) fn names(source: &str, program: &Program<'_>) -> Vec<Value> {
    of(source, &SemanticBuilder::new().with_build_nodes(true).build(program).semantic)
}

/// As [`names`], of a module that was analysed.
pub(crate) fn of(source: &str, semantic: &Semantic<'_>) -> Vec<Value> {
    let (scoping, nodes) = (semantic.scoping(), semantic.nodes());
    let is_asked = |node| {
        let parent = nodes.parent_kind(node);
        matches!(parent, AstKind::UnaryExpression(unary) if unary.operator == UnaryOperator::Typeof)
    };
    let unresolved = scoping.root_unresolved_references().iter();
    let found = unresolved.filter_map(|(name, references)| {
        let references = || references.iter().map(|reference| scoping.get_reference(*reference));
        let first = references().filter(|reference| reference.is_value()).map(|reference| semantic.reference_span(reference));
        let first: Option<Span> = first.min_by_key(|span| span.start);
        Some((name.as_str(), first?, references().any(|reference| is_asked(reference.node_id()))))
    });
    let calls = nodes.iter().filter_map(|node| match node.kind() {
        AstKind::CallExpression(call) if needs_intl(call) => Some(("Intl", call.span, false)),
        AstKind::StaticMemberExpression(member) if member.property.name == "Intl" => Some(("Intl", member.span, false)),
        _ => None,
    });
    let mut found: Vec<_> = found.chain(calls).collect();
    found.sort_by_key(|(_, span, _)| span.start);
    let found = found.into_iter().map(|(name, span, is_asked)| {
        let (line, column) = place(source, span.start as usize);
        json!({ "name": name, "line": line, "column": column, "is_asked": is_asked })
    });
    found.collect()
}

/// A call of `toLocaleString`, `toLocaleDateString` or `toLocaleTimeString` with options that plain English may not have.
fn needs_intl(call: &CallExpression<'_>) -> bool {
    let Some(member) = call.callee.get_member_expr() else { return false };
    let name = member.static_property_name().unwrap_or_default();
    if !["toLocaleString", "toLocaleDateString", "toLocaleTimeString"].contains(&name) {
        return false;
    }
    match call.arguments.get(1) {
        None => false,
        Some(Argument::ObjectExpression(options)) => !options.properties.iter().all(|property| match property {
            ObjectPropertyKind::ObjectProperty(property) => {
                property.key.static_name().is_some_and(|name| PLAIN.contains(&name.as_ref()))
            }
            ObjectPropertyKind::SpreadProperty(_) => false,
        }),
        Some(_) => true,
    }
}
