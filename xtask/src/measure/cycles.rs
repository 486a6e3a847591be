//! Finds cycles among the modules of one folder.
//!
//! A node is a module with all modules below it; an edge is a path in its code that leads into a
//! sibling. A name that a parent re-exports leads to the child that defines it. Edges between
//! parent and child do not count, nor does test code.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Crate, Path};

/// Edges by module: the siblings that each module uses.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// Returns the cycles of a crate: the path of the parent, and the names of the members.
pub(super) fn cycles(tree: &Crate) -> Vec<(Path, Vec<String>)> {
    let mut levels: BTreeMap<Path, Edges> = BTreeMap::new();
    for (user, module) in &tree.modules {
        for path in &module.paths {
            let used = tree.resolve(user, path);
            let common = user.iter().zip(&used).take_while(|(one, other)| one == other).count();
            if let (Some(from), Some(to)) = (user.get(common), used.get(common)) {
                let edges = levels.entry(user[..common].to_vec()).or_default();
                edges.entry(from.clone()).or_default().insert(to.clone());
            }
        }
    }
    let components = |(level, edges): (Path, Edges)| {
        components(&edges).into_iter().map(move |component| (level.clone(), component))
    };
    levels.into_iter().flat_map(components).collect()
}

/// Returns the strongly connected components of two nodes or more.
fn components(edges: &Edges) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        edges.keys().map(|node| (node, reach(edges, node))).collect();
    let mut done = BTreeSet::new();
    let mut found = Vec::new();
    for (node, reach) in &reached {
        let back = |other: &&&String| reached.get(**other).is_some_and(|back| back.contains(*node));
        let component: Vec<_> = reach.iter().filter(back).map(|name| (*name).clone()).collect();
        if component.len() > 1 && done.insert(component.clone()) {
            found.push(component);
        }
    }
    found
}

/// Returns all nodes that can be reached from a node.
fn reach<'a>(edges: &'a Edges, from: &'a String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        open.extend(edges.get(node).into_iter().flatten().filter(|next| found.insert(*next)));
    }
    found
}

#[test]
fn cycles_are_found_among_siblings_only() {
    let tree = Crate::of(&[
        ("src/lib.rs", "mod a; mod b; mod c; mod d; pub use a::A; pub use crate::b::*;"),
        (
            "src/a.rs",
            "mod e; mod f; use crate::{self as own, b::{B, G}}; pub struct A; pub(crate) use e::E;",
        ),
        // A name that the root re-exports, in a type.
        ("src/b.rs", "pub struct B; pub struct G(crate::A);"),
        // A name that a glob of the root re-exports; only tests use this module.
        ("src/c.rs", "use crate::B;"),
        ("src/d.rs", "fn h() { i!(crate::b::B) } #[cfg(test)] mod tests { use crate::c::C; }"),
        ("src/a/e.rs", "pub struct E; use super::f::F; use super::A;"),
        ("src/a/f.rs", "pub struct F(super::E);"),
    ]);
    let found: Vec<_> = cycles(&tree)
        .into_iter()
        .map(|(level, names)| (level.join("/"), names.join(" ")))
        .collect();
    assert_eq!(found, [(String::new(), "a b".to_owned()), ("a".to_owned(), "e f".to_owned())]);
}
