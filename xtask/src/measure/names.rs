//! Reads names that are words of the project's private language.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};

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
fn private_words_match_whole_item_names() {
    let mut counts = BTreeMap::new();
    let code = "mod veil { struct Veil; struct NotMade; fn unveil(veil: Veil) {} } impl A { fn told() {} fn stop() {} } enum Stop {} use a::B as Kept;";
    private(&code.parse().unwrap(), &mut counts);
    assert_eq!(
        counts.into_iter().collect::<Vec<_>>(),
        [("Kept", 1), ("Stop", 1), ("not_made", 1), ("told", 1), ("veil", 2)]
    );
}
