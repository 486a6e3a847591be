//! Extends the lists of a section that narrows grants, as text to paste.
//!
//! The section of a tool or of a tenant can list which of the component's grants remain. If such a
//! list denies a request, `explain`, `run` and `learn` call [`narrowed_lines`] with the place of
//! the section and the denied requests. It returns a line for each list that must change: the old
//! list with the requests added, and the line that it replaces. A kind that the section does not
//! list is not narrowed by it and gets no line.

use std::collections::{BTreeMap, BTreeSet};

use toolcell::grants::{Request, toml_text};

use super::{joined, span};
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
    let line = |(kind, new): (&str, BTreeSet<String>)| {
        let old = rules.part(&[section, &[kind]].concat())?;
        let new = new.into_iter().collect::<Vec<_>>().join(", ");
        let inner = old.text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        Some(match inner.filter(|inner| !inner.contains('#')) {
            Some(inner) => {
                format!("{kind} = [{}]  # in place of {}", joined(inner, &new), span(&old))
            }
            None => format!("# add to `{kind}`, {}: {new}", span(&old)),
        })
    };
    added.into_iter().filter_map(line).collect()
}
