//! Finds the requires and the exports of a CommonJS module, as far as its text shows them.

use std::collections::BTreeSet;

use oxc_ast::ast::{
    Argument, AssignmentExpression, AssignmentTarget, CallExpression, Expression, ObjectExpression,
    ObjectPropertyKind, Program,
};
use oxc_ast_visit::{Visit, walk};
use serde_json::{Value, json};

/// Returns `{"requires", "exports", "passes_on"}`.
pub(crate) fn read(program: &Program<'_>) -> Value {
    let mut found = Exports::default();
    found.visit_program(program);
    json!({ "requires": found.requires, "exports": found.exports, "passes_on": found.passes_on })
}

#[derive(Default)]
struct Exports {
    /// Specifiers of required modules.
    requires: BTreeSet<String>,
    /// Names of exports.
    exports: BTreeSet<String>,
    /// Specifiers of modules whose exports are exported again.
    passes_on: BTreeSet<String>,
}

impl<'a> Visit<'a> for Exports {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Some(specifier) = required(call) {
            self.requires.insert(specifier.to_owned());
        }
        if let Some(name) = defined(call) {
            self.exports.insert(name.to_owned());
        }
        // The call that TypeScript writes for `export *`.
        if name_of(&call.callee) == Some("__exportStar")
            && let Some(Argument::CallExpression(first)) = call.arguments.first()
            && let Some(specifier) = required(first)
        {
            self.passes_on.insert(specifier.to_owned());
        }
        walk::walk_call_expression(self, call);
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        if let AssignmentTarget::StaticMemberExpression(target) = &assignment.left {
            if is_exports(&target.object) {
                self.exports.insert(target.property.name.to_string());
            } else if is_module(&target.object) && target.property.name == "exports" {
                self.assigned(&assignment.right);
            }
        }
        walk::walk_assignment_expression(self, assignment);
    }
}

impl Exports {
    /// Records `module.exports = …`.
    fn assigned(&mut self, value: &Expression<'_>) {
        match value {
            Expression::ObjectExpression(object) => self.exports.extend(keys(object)),
            Expression::CallExpression(call) => {
                self.passes_on.extend(required(call).map(str::to_owned))
            }
            _ => {}
        }
    }
}

fn keys(object: &ObjectExpression<'_>) -> impl Iterator<Item = String> {
    object.properties.iter().filter_map(|property| match property {
        ObjectPropertyKind::ObjectProperty(property) => {
            property.key.static_name().map(|name| name.to_string())
        }
        ObjectPropertyKind::SpreadProperty(_) => None,
    })
}

/// Returns the specifier of `require("…")`.
fn required<'b>(call: &'b CallExpression<'_>) -> Option<&'b str> {
    match (name_of(&call.callee), call.arguments.as_slice()) {
        (Some("require"), [Argument::StringLiteral(specifier)]) => Some(specifier.value.as_str()),
        _ => None,
    }
}

/// Returns the name of `Object.defineProperty(exports, "name", …)`.
fn defined<'b>(call: &'b CallExpression<'_>) -> Option<&'b str> {
    let Expression::StaticMemberExpression(callee) = &call.callee else { return None };
    match call.arguments.as_slice() {
        [object, Argument::StringLiteral(name), ..]
            if callee.property.name == "defineProperty"
                && object.as_expression().is_some_and(is_exports) =>
        {
            Some(name.value.as_str())
        }
        _ => None,
    }
}

/// Returns `name`, or the last name of `tslib.name` and of `(0, tslib.name)`.
fn name_of<'b>(callee: &'b Expression<'_>) -> Option<&'b str> {
    match callee {
        Expression::Identifier(name) => Some(name.name.as_str()),
        Expression::StaticMemberExpression(member) => Some(member.property.name.as_str()),
        Expression::ParenthesizedExpression(inner) => name_of(&inner.expression),
        Expression::SequenceExpression(sequence) => sequence.expressions.last().and_then(name_of),
        _ => None,
    }
}

/// Returns true for `exports` and `module.exports`.
fn is_exports(object: &Expression<'_>) -> bool {
    match object {
        Expression::Identifier(name) => name.name == "exports",
        Expression::StaticMemberExpression(member) => {
            is_module(&member.object) && member.property.name == "exports"
        }
        _ => false,
    }
}

fn is_module(object: &Expression<'_>) -> bool {
    matches!(object, Expression::Identifier(name) if name.name == "module")
}
