//! Replaces `process.env.NODE_ENV` by a constant: packages read it, and only Node has it.

use oxc_ast::ast::{
    AssignmentExpression, AssignmentTarget, Expression, Program, StaticMemberExpression,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};

/// The value that bundlers use in builds for production.
const VALUE: &str = "\"production\"";

/// Returns the text with the constant in place of the variable. Pads it with spaces, so that lines
/// and columns stay the same.
pub(crate) fn in_text(source: &str, program: &Program<'_>) -> String {
    let mut found = EnvReads::default();
    found.visit_program(program);
    let mut text = source.to_owned();
    for span in found.0 {
        let place = span.start as usize..span.end as usize;
        let width = place.len();
        text.replace_range(place, &format!("{VALUE:width$}"));
    }
    text
}

#[derive(Default)]
struct EnvReads(Vec<Span>);

impl<'a> Visit<'a> for EnvReads {
    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        if is_variable(member) {
            self.0.push(member.span());
        } else {
            walk::walk_static_member_expression(self, member);
        }
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        // The left side of an assignment stays, because a constant cannot be assigned to.
        let is_set = matches!(&assignment.left, AssignmentTarget::StaticMemberExpression(left) if is_variable(left));
        if is_set {
            self.visit_expression(&assignment.right);
        } else {
            walk::walk_assignment_expression(self, assignment);
        }
    }
}

fn is_variable(member: &StaticMemberExpression<'_>) -> bool {
    let Expression::StaticMemberExpression(object) = &member.object else { return false };
    let is_process =
        matches!(&object.object, Expression::Identifier(name) if name.name == "process");
    is_process && object.property.name == "env" && member.property.name == "NODE_ENV"
}
