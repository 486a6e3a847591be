//! Tells which kinds of requests a component can make at all.
//!
//! A component can use a grant only if it imports an interface of the host for it; otherwise the
//! grant is useless. [`can_use`] takes a component's imports and a kind of need or key of the
//! configuration, and returns true if some import can use it; true also for a kind that it does not
//! know. [`can_request`] does so for a request. `explain`, `inspect` and the search for rules
//! without effect use them.

use toolcell::component::Inspection;
use toolcell::grants::Request;

/// A kind of need, the key of its grants, and prefixes of the imports that can use them.
const KINDS: [(&str, &str, &[&str]); 7] = [
    ("http", "http", &["toolcell:tool/http@", "wasi:http/"]),
    ("kv", "kv", &["toolcell:tool/kv@"]),
    ("secret", "secrets", &["toolcell:tool/secrets@", "toolcell:tool/http@"]),
    ("reveal", "reveal", &["toolcell:tool/reveal@"]),
    ("filesystem", "directories", &["wasi:filesystem/"]),
    ("environment", "environment", &["wasi:cli/environment@"]),
    ("invoke", "invoke", &["toolcell:tool/invoke@"]),
];

/// The text about a request or a rule that no import can use.
pub(crate) const NO_IMPORT_TEXT: &str = "the component imports nothing that can use it";

/// Returns true if a component imports anything that can use this kind of need, or the grants under
/// this key. True for unknown words.
pub(crate) fn can_use(component: &Inspection, kind: &str) -> bool {
    let known = KINDS.iter().find(|(need, key, _)| [need, key].contains(&&kind));
    let is_imported =
        |start: &&str| component.imports.iter().any(|(name, _)| name.starts_with(start));
    known.is_none_or(|(_, _, starts)| starts.iter().any(is_imported))
}

/// Returns true if a component can make such a request.
pub(crate) fn can_request(component: &Inspection, request: &Request<'_>) -> bool {
    can_use(component, super::rule_lines::keys(request).0)
}
