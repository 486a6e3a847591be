//! Finds the functions of a core module that can be called.
//!
//! `trim` calls [`reachable`] with a module and a filter for its exports. It follows references
//! from the exports that stay, the start function, the tables and the globals through the bodies of
//! functions. It returns true or false for each function, imported ones first. A function in a
//! table counts as called, since an indirect call names no function.

use wasmparser::{
    ConstExpr, ElementItems, FunctionBody, Operator, OperatorsReader, Parser, Payload,
};

/// Returns for each function true if it can be called, imported functions first. `is_kept` returns
/// true for the exports that stay.
pub(super) fn reachable(
    module: &[u8],
    is_kept: impl Fn(&str) -> bool,
) -> wasmparser::Result<Vec<bool>> {
    let mut open = Vec::new();
    let (mut imported, mut bodies) = (0_usize, Vec::new());
    for payload in Parser::new(0).parse_all(module) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the other sections name no function")]
        match payload? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    imported += usize::from(matches!(import?.ty, wasmparser::TypeRef::Func(_)));
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    open.extend(
                        (export.kind == wasmparser::ExternalKind::Func && is_kept(export.name))
                            .then_some(export.index),
                    );
                }
            }
            Payload::StartSection { func, .. } => open.push(func),
            Payload::GlobalSection(section) => {
                for global in section {
                    add(&mut open, global?.init_expr.get_operators_reader())?;
                }
            }
            Payload::ElementSection(section) => {
                for element in section {
                    match element?.items {
                        ElementItems::Functions(functions) => {
                            for function in functions {
                                open.push(function?);
                            }
                        }
                        ElementItems::Expressions(_, expressions) => {
                            for expression in expressions {
                                let expression: ConstExpr<'_> = expression?;
                                add(&mut open, expression.get_operators_reader())?;
                            }
                        }
                    }
                }
            }
            Payload::CodeSectionEntry(body) => bodies.push(body),
            _ => {}
        }
    }
    let mut reached = vec![false; imported + bodies.len()];
    while let Some(function) = open.pop() {
        let Some(seen) = reached.get_mut(function as usize).filter(|seen| !**seen) else {
            continue;
        };
        *seen = true;
        let body: Option<&FunctionBody<'_>> =
            (function as usize).checked_sub(imported).and_then(|at| bodies.get(at));
        if let Some(body) = body {
            add(&mut open, body.get_operators_reader()?)?;
        }
    }
    Ok(reached)
}

/// Adds the functions that these instructions refer to.
fn add(open: &mut Vec<u32>, mut operators: OperatorsReader<'_>) -> wasmparser::Result<()> {
    while !operators.eof() {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "no other instruction of the runtime names a function"
        )]
        match operators.read()? {
            Operator::Call { function_index }
            | Operator::ReturnCall { function_index }
            | Operator::RefFunc { function_index } => open.push(function_index),
            _ => {}
        }
    }
    Ok(())
}
