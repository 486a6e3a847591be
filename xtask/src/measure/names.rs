//! Reads names: those at the root of a crate, and those of the project's private language.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};

use super::tree::{Crate, Use};

/// Words that name modules, types and functions, each with better words.
///
/// A word that begins with a capital stands for types alone, because its lower-case form is a plain
/// word.
const PRIVATE: [(&str, &str); 53] = [
    ("arrived", "`admitted`, `checked`, `called` or `settled`"),
    ("asking", "pending request"),
    ("book", "request table"),
    ("burial", "`ChildExit`"),
    ("Chosen", "resolved component"),
    ("Configured", "component config"),
    ("defence", "control"),
    ("dice", "seeded rng"),
    ("ear", "reply channel"),
    ("ended", "`settled`"),
    ("Examination", "inspection"),
    ("fair", "fair queue"),
    ("fence fenced", "panic guard"),
    ("flights", "single-flight"),
    ("Found Held Kept Named Shown Terms Way Written", "the thing that it is"),
    ("habit", "latency class"),
    ("judged", "`checked`"),
    ("keep", "`supervise`"),
    ("keeper", "supervisor"),
    ("let_in_again", "`reinstate`"),
    ("made", "`admitted`"),
    ("Matter", "review"),
    ("Missing", "`OnMissingGrant`"),
    ("News", "worker message"),
    ("not_made", "cancelled"),
    ("Order", "host message"),
    ("owned_context", "`set_identity(&mut context, …)`"),
    ("Party", "`Flow`"),
    ("perform", "run"),
    ("Placed", "injection"),
    ("pulse", "run state"),
    ("quick", "fast lane"),
    ("Reach", "cell capabilities"),
    ("retained", "host-memory charge"),
    ("Said", "notification"),
    ("screen screening", "outbound scan"),
    ("SecretUse", "secret grant"),
    ("see_to_it", "`notify`"),
    ("Seen", "reviewed"),
    ("shapes", "token patterns"),
    ("shares", "blocking pool"),
    ("slow", "slow lane"),
    ("smith", "generated components"),
    ("stage", "fixture"),
    ("Standing", "import status"),
    ("stands", "`enforced`"),
    ("Stop", "`LimitReached`"),
    ("theatre", "scenario"),
    ("Tie", "`KillOnDrop`"),
    ("told", "progress, or `called`"),
    ("turns", "compile quota, or flow state"),
    ("veil veiled", "call redactor"),
    ("ward", "`Worker`"),
];

/// Returns the names that a module exports, except those of its public modules, which is where the
/// names of a crate belong.
///
/// A glob of an own module counts as the public names of that module.
pub(super) fn exported(tree: &Crate, at: &[String]) -> BTreeSet<String> {
    let Some(module) = tree.modules.get(at) else { return BTreeSet::new() };
    let is_module =
        |name: &String| tree.modules.contains_key(&[at, std::slice::from_ref(name)].concat());
    let items = module
        .items
        .iter()
        .filter(|(name, public)| **public && !is_module(name))
        .map(|(name, _)| name.clone());
    // A re-exported module is a public module.
    let is_name = |used: &&Use| {
        used.public && (used.name == "*" || !tree.modules.contains_key(&[at, &used.path].concat()))
    };
    let uses = module.uses.iter().filter(is_name).flat_map(|used| {
        // A glob of a foreign crate leads nowhere: it resolves to the module itself.
        let target =
            Some(tree.resolve(at, &used.path)).filter(|target| used.name == "*" && target != at);
        target.map_or_else(|| BTreeSet::from([used.name.clone()]), |target| exported(tree, &target))
    });
    items.chain(uses).collect()
}

/// Returns the private words one by one, each with its better word.
pub(super) fn words() -> impl Iterator<Item = (&'static str, &'static str)> {
    PRIVATE.iter().flat_map(|(words, better)| words.split(' ').map(move |word| (word, *better)))
}

/// Counts the private words among the names that some code gives: to items, and by `as` to imports.
pub(super) fn private(tokens: &TokenStream, counts: &mut BTreeMap<&'static str, usize>) {
    const KINDS: [&str; 8] = ["as", "enum", "fn", "mod", "struct", "trait", "type", "union"];
    let mut after_kind = false;
    for token in tokens.clone() {
        let is_kind =
            matches!(&token, TokenTree::Ident(name) if KINDS.iter().any(|kind| name == kind));
        match token {
            TokenTree::Group(group) => private(&group.stream(), counts),
            TokenTree::Ident(name) if after_kind => {
                let name = name.to_string();
                for (word, _) in words().filter(|(word, _)| means(word, &name)) {
                    *counts.entry(word).or_default() += 1;
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        after_kind = is_kind;
    }
}

/// Returns true if a name is this private word; `not_made` matches `NotMade` as well.
fn means(word: &str, name: &str) -> bool {
    let camel = || word.split('_').filter_map(|part| Some((part.chars().next()?, part.get(1..)?)));
    word == name
        || camel()
            .map(|(first, rest)| format!("{}{rest}", first.to_uppercase()))
            .collect::<String>()
            == name
}

#[test]
fn public_modules_are_not_root_names() {
    let tree = Crate::of(&[
        (
            "src/lib.rs",
            "mod a; pub mod b { pub struct C; } pub use a::{D, E as F}; pub use a::g::*; pub use a::l; use a::H; pub const I: u8 = 0;",
        ),
        (
            "src/a.rs",
            "pub struct D; pub struct E; pub struct H; pub mod l { pub struct M; } pub(crate) mod g { pub fn j() {} fn k() {} pub use super::H; }",
        ),
    ]);
    assert_eq!(exported(&tree, &[]).into_iter().collect::<Vec<_>>(), ["D", "F", "H", "I", "j"]);
}

#[test]
fn private_words_match_whole_item_names() {
    let mut counts = BTreeMap::new();
    let code = "mod veil { struct Veil; struct NotMade; fn unveil(veil: Veil) {} } impl A { fn told() {} fn stop() {} } enum Stop {} use a::B as Kept;";
    private(&code.parse().unwrap(), &mut counts);
    assert_eq!(
        counts.into_iter().collect::<Vec<_>>(),
        [("Kept", 1), ("Stop", 1), ("not_made", 1), ("told", 1), ("veil", 2)]
    );
}
