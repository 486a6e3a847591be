//! Tells which kinds of requests a component can make at all.
//!
//! A component can use a grant only if it imports an interface of the host for it; otherwise the
//! grant is useless. [`can_use`] takes a component's imports and a kind of grant, and returns true
//! if some import can use it. `explain`, `inspect` and the search for rules without effect use it.

use toolcell::component::Inspection;
use toolcell::grants::GrantKind;

/// The text about a request or a rule that no import can use.
pub(crate) const NO_IMPORT_TEXT: &str = "the component imports nothing that can use it";

/// Returns true if a component imports anything that can use grants of this kind.
pub(crate) fn can_use(component: &Inspection, kind: GrantKind) -> bool {
    let is_used = |start: &&str| component.imports.iter().any(|(name, _)| name.starts_with(start));
    kind.row().imports.iter().any(is_used)
}
