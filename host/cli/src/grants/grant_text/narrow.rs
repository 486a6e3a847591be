//! Extends the lists of a section that narrows grants, as text to paste.
//!
//! The section of a tool or of a tenant can list which of the component's grants remain. If such a
//! list denies a request, `explain`, `run` and `learn` call [`narrowed_lines`] with the place of
//! the section and the denied requests. It returns a line for each list that must change: the old
//! list with the requests added, and the line that it replaces. A section that is one inline table
//! gets one line. A kind that the section does not list is not narrowed by it and gets no line.

use std::collections::{BTreeMap, BTreeSet};

use toolcell::grants::{Request, toml_text};

use super::{replacement, span};
use crate::config::Config;
use crate::grants::decision;
use crate::grants::rule_lines::{Item, RuleLines};

/// Returns the lists of the section at this place of the configuration, with these requests added.
/// A kind that the section does not list is not narrowed by it, and gets no line.
pub(crate) fn narrowed_lines(
    config: &Config,
    section: &[&str],
    requests: &[Request<'_>],
) -> Vec<String> {
    let Some(rules) = RuleLines::read(config) else { return Vec::new() };
    let mut added = BTreeMap::<&str, BTreeSet<String>>::new();
    for request in requests {
        let key = request.kind().row().section;
        let is_there = |item: &Item| decision::covers(request, &item.text);
        if !rules.items(&[section, &[key]].concat()).iter().any(is_there) {
            added.entry(key).or_default().insert(toml_text(&request.rule()));
        }
    }
    let (mut lines, mut edits) = (Vec::new(), Vec::new());
    for (kind, new) in added {
        let place = [section, &[kind]].concat();
        let Some(old) = rules.part(&place) else { continue };
        let new = new.into_iter().collect::<Vec<_>>().join(", ");
        match rules.appended(&place, &new) {
            Some(edit) => edits.push((old, edit)),
            None => lines.push(format!("# add to `{kind}`, {}: {new}", span(&old))),
        }
    }
    let inline = rules.part(section).filter(|whole| whole.text.starts_with('{'));
    match inline.filter(|_| !edits.is_empty()) {
        Some(whole) => {
            let edits = edits.into_iter().map(|(_, edit)| edit).collect();
            lines.extend(replacement(&rules, &whole, edits));
        }
        None => lines.extend(
            edits.into_iter().filter_map(|(old, edit)| replacement(&rules, &old, vec![edit])),
        ),
    }
    lines
}
