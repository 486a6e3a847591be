//! Names that a module uses and that nothing in it defines.

use oxc_ast::AstKind;
use oxc_ast::ast::Program;
use oxc_semantic::{Semantic, SemanticBuilder};
use oxc_span::Span;
use oxc_syntax::operator::UnaryOperator;
use serde_json::{Value, json};

use crate::place;

/// The names, each with its first place. A name that the module also asks the type of, as in `typeof process`, is left out: it
/// goes on without it.
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
        (!references().any(|reference| is_asked(reference.node_id()))).then_some((name.as_str(), first?))
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(_, span)| span.start);
    let found = found.into_iter().map(|(name, span)| {
        let (line, column) = place(source, span.start as usize);
        json!({ "name": name, "line": line, "column": column })
    });
    found.collect()
}
