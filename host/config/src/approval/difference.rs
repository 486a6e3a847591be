//! Compares a component with its approved version.
//!
//! The lock file (approvals) records each approved component as an [`ApprovedVersion`]: digest,
//! imports, the tools' definitions. A [`Difference`] takes the old one and the present one, and
//! compares digest, imports, publisher, kind of use and definitions. `state` returns an
//! [`ApprovalState`]: approved, other code only, changed, or new. The checks before loading use it,
//! with `sentence` for the error. `toolcell approve` shows `page`, the lines for a person, or
//! `to_json`.
//!
//! Two definitions have a change if and only if they differ. An invisible character is shown as its
//! number. The start of each change is shown, however long the changes before it are, and
//! truncation is reported. Texts are untrusted, so the time for comparing them is bounded.

mod rest;
mod text;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use toolcell::Definition;
use toolcell::component::ComponentKind;
use toolcell::tool::Suspicion;

use crate::approval::lock::ApprovedVersion;
use crate::text::clean;

/// Lines shown of one change. A long description has some dozens.
const MAX_LINES: usize = 200;
/// Characters shown of one change: enough for a replaced description of maximum size.
const MAX_CHARACTERS: usize = 10 << 10;
/// Changes that a refusal names.
const MAX_NAMED: usize = 5;
/// Time limit for a minimal difference of two texts, after which any difference is used. Both texts
/// are untrusted.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

/// The result of comparing a component with its approved version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Identical.
    Unchanged,
    /// Other code, with the same definitions and imports.
    Rebuilt,
    /// Other definitions or imports.
    Changed,
    /// Not approved before.
    New,
}

impl ApprovalState {
    /// Returns the state in one or two words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unchanged => "approved",
            Self::Rebuilt => "changed code",
            Self::Changed => "changed",
            Self::New => "new",
        }
    }
}

/// Permission to load a component, granted before it is compiled.
#[derive(Debug)]
pub struct LoadPermit<'a> {
    /// The approved version, and its name. `None`: there is nothing to compare with.
    pub(crate) approved: Option<(&'a str, &'a ApprovedVersion)>,
    pub(crate) publisher: Option<String>,
}

/// The code of a component differs from what was approved, with the same tools and imports, and it
/// may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RebuiltComponent;

/// A component before and after a change.
#[derive(Debug)]
pub struct Difference<'a> {
    /// The approved version, if there is one.
    pub old: Option<&'a ApprovedVersion>,
    /// The current version.
    pub new: &'a ApprovedVersion,
}

/// Lines for display.
#[derive(Debug, Default)]
pub struct Page {
    /// The lines.
    pub lines: Vec<String>,
    /// True if something was left out.
    pub is_cut: bool,
}

/// One change within a definition.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Change {
    /// A JSON pointer (RFC 6901).
    pointer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Value>,
}

impl<'a> Difference<'a> {
    /// Returns the result of the comparison.
    #[must_use]
    pub fn state(&self) -> ApprovalState {
        match self.old {
            None => ApprovalState::New,
            Some(old) if old == self.new => ApprovalState::Unchanged,
            Some(old)
                if self.publishers().is_none()
                    && self.kinds().is_none()
                    && old.imports == self.new.imports
                    && old.tools == self.new.tools =>
            {
                ApprovalState::Rebuilt
            }
            Some(_) => ApprovalState::Changed,
        }
    }

    /// Returns the old and the new publisher, if they differ.
    fn publishers(&self) -> Option<(&'a str, &'a str)> {
        let name =
            |approved: &'a ApprovedVersion| approved.publisher.as_deref().unwrap_or("not checked");
        self.old
            .filter(|old| old.publisher != self.new.publisher)
            .map(|old| (name(old), name(self.new)))
    }

    /// Returns the old and the new kind of use, if they differ.
    fn kinds(&self) -> Option<(&'a str, &'a str)> {
        self.old.filter(|old| old.kind != self.new.kind).map(|old| (&*old.kind, &*self.new.kind))
    }

    /// Returns the added and the removed imports.
    fn imports(&self) -> (Vec<&'a str>, Vec<&'a str>) {
        static NONE: BTreeSet<String> = BTreeSet::new();
        let (old, new) = (self.old.map_or(&NONE, |old| &old.imports), &self.new.imports);
        let added = new.difference(old).map(String::as_str);
        let removed = old.difference(new).map(String::as_str);
        (added.collect(), removed.collect())
    }

    /// Returns the tools that changed, with their changes.
    fn tools(&self) -> Vec<(&'a str, ApprovalState, Vec<Change>)> {
        let old = |name: &str| self.old.and_then(|old| old.tools.get(name));
        let known = self.old.into_iter().flat_map(|old| old.tools.keys());
        let names: BTreeSet<_> = self.new.tools.keys().chain(known).collect();
        let compared = names.into_iter().map(|name| {
            let (old, new) = (old(name), self.new.tools.get(name));
            let standing = match (old, new) {
                (None, _) => ApprovalState::New,
                (Some(old), Some(new)) if old == new => ApprovalState::Unchanged,
                (Some(_), _) => ApprovalState::Changed,
            };
            (name.as_str(), standing, changes(old, new))
        });
        compared.filter(|(_, standing, _)| *standing != ApprovalState::Unchanged).collect()
    }

    /// Returns the parts of a tool's definition that may be meant to manipulate a model.
    pub fn suspicions(&self, tool: &str) -> Vec<Suspicion> {
        self.new.tools.get(tool).map(Definition::suspicions).unwrap_or_default()
    }

    /// Summarizes the changes in one sentence.
    pub fn sentence(&self) -> String {
        if self.state() == ApprovalState::Rebuilt {
            return "its code changed".to_owned();
        }
        let (came, went) = self.imports();
        let of_tools = self.tools().into_iter().flat_map(|(tool, _, changes)| {
            changes.into_iter().map(move |change| {
                format!("{tool}: {}", clean::escaped(&rest::in_words(&change.pointer)))
            })
        });
        let publisher = self.publishers().map(|(old, new)| {
            format!("its publisher was {}, and is {new} now", clean::escaped(old))
        });
        let kind = self.kinds().map(|(old, new)| (clean::escaped(old), clean::escaped(new)));
        let kind = kind.map(|(old, new)| format!("it was used as {old}, and is used as {new} now"));
        let named: Vec<_> = publisher
            .into_iter()
            .chain(kind)
            .chain(came.iter().map(|name| format!("it also imports {}", clean::escaped(name))))
            .chain(went.iter().map(|name| format!("it no longer imports {}", clean::escaped(name))))
            .chain(of_tools)
            .collect();
        let more = named.len().saturating_sub(MAX_NAMED);
        let mut sentence = named.into_iter().take(MAX_NAMED).collect::<Vec<_>>().join("; ");
        if more > 0 {
            sentence += &format!("; and {more} more");
        }
        sentence
    }

    /// As JSON: `{"state", "digest", "publisher", "imports", "tools"}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (came, went) = self.imports();
        let tools = self.tools().into_iter().map(|(name, standing, changes)| {
            json!({
                "name": name,
                "state": standing,
                "hash": self.new.tools.get(name).map(Definition::hash),
                "changes": changes,
                "suspicions": self.suspicions(name),
            })
        });
        let mut shown = json!({
            "state": self.state(),
            "digest": { "old": self.old.map(|old| &old.digest), "new": self.new.digest },
            "publisher": { "old": self.old.map(|old| &old.publisher), "new": self.new.publisher },
            "imports": { "added": came, "removed": went },
            "tools": tools.collect::<Vec<_>>(),
        });
        if let Some((old, new)) = self.kinds() {
            shown["as"] = json!({ "old": old, "new": new });
        }
        shown
    }

    /// Returns the warnings about new and changed definitions, one a line.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (name, _, _) in self.tools() {
            for Suspicion { pointer, kind, excerpt, .. } in self.suspicions(name) {
                let (pointer, excerpt) = (clean::escaped(&pointer), clean::escaped(&excerpt));
                warnings.push(format!("{name}{pointer} {kind}: \"{excerpt}\""));
            }
        }
        warnings
    }

    /// Returns the lines for display: every tool, every place that changes, and the start of each
    /// change. Imports without effect of a new component are only counted. `shown` formats a new
    /// tool; the parts of its definition that this leaves out follow.
    pub fn page(&self, inert: &BTreeSet<String>, shown: impl Fn(&Definition) -> String) -> Page {
        let mut lines = vec![match self.old {
            Some(old) if old.digest != self.new.digest => {
                format!("  digest {} → {}", old.digest, self.new.digest)
            }
            Some(_) | None => format!("  digest {}", self.new.digest),
        }];
        lines.extend(
            self.publishers()
                .map(|(old, new)| format!("  publisher {} → {new}", clean::escaped(old))),
        );
        match (self.kinds(), self.old) {
            (Some((old, new)), _) => {
                lines.push(format!("  as {} → {}", clean::escaped(old), clean::escaped(new)))
            }
            (None, None) if self.new.kind != ComponentKind::Tools.to_string() => {
                lines.push(format!("  as {}", clean::escaped(&self.new.kind)));
            }
            (None, _) => {}
        }
        let (came, went) = self.imports();
        let (unseen, came): (Vec<_>, Vec<_>) =
            came.into_iter().partition(|name| self.old.is_none() && inert.contains(*name));
        let is_inert = |name: &str| if inert.contains(name) { " (inert)" } else { "" };
        let marked = |mark: &str, name: &str| {
            format!("    {mark} {}{}", clean::escaped(name), is_inert(name))
        };
        if !(came.is_empty() && went.is_empty() && unseen.is_empty()) {
            lines.push("  imports".to_owned());
            lines.extend(
                went.iter()
                    .map(|name| marked("-", name))
                    .chain(came.iter().map(|name| marked("+", name))),
            );
        }
        if !unseen.is_empty() {
            lines.push(format!(
                "    + {} imports for its language runtime, which give access to nothing",
                unseen.len()
            ));
        }
        let mut page = Page { lines, is_cut: false };
        for (name, standing, changes) in self.tools() {
            let word = if self.new.tools.contains_key(name) { standing.word() } else { "gone" };
            page.lines.push(format!("  tool {name}: {word}"));
            if let (ApprovalState::New, Some(new)) = (standing, self.new.tools.get(name)) {
                let mut of_tool = Page::of_new(new, &shown(new));
                // The first line is the tool's name, which is shown already.
                of_tool.lines.drain(..1.min(of_tool.lines.len()));
                page.append(of_tool);
                continue;
            }
            for change in changes {
                page.lines.push(format!("    {}", clean::escaped(&change.pointer)));
                page.append(change.page());
            }
        }
        page
    }
}

impl Page {
    /// The first lines, within the limits for one change, with a note of what is left out.
    fn beginning(lines: Vec<String>) -> Self {
        let (mut shown, mut room, mut cut) = (Vec::new(), MAX_CHARACTERS, 0);
        for line in lines {
            let length = line.chars().count();
            if shown.len() == MAX_LINES {
                room = 0;
            }
            if length <= room {
                shown.push(line);
            } else if room > 0 {
                shown.push(line.chars().take(room).collect());
            }
            cut += length.saturating_sub(room);
            room = room.saturating_sub(length);
        }
        if cut > 0 {
            shown.push(format!("      … ({cut} more characters: `--json` has all)"));
        }
        Self { lines: shown, is_cut: cut > 0 }
    }

    /// Appends another page.
    pub fn append(&mut self, other: Self) {
        self.lines.extend(other.lines);
        self.is_cut |= other.is_cut;
    }

    /// Appends several lines.
    pub fn block(&mut self, text: &str) {
        self.lines.extend(text.lines().map(str::to_owned));
    }

    /// Appends several lines, indented below a heading.
    pub fn indented(&mut self, text: &str) {
        self.lines.extend(text.lines().map(|line| format!("  {line}")));
    }
}

impl Change {
    fn page(&self) -> Page {
        Page::beginning(self.lines())
    }

    fn lines(&self) -> Vec<String> {
        let texts = |value: &Option<Value>| match value {
            None => Vec::new(),
            Some(Value::String(text)) => {
                text.split('\n').map(|line| format!("\"{}\"", clean::escaped(line))).collect()
            }
            Some(value) => vec![clean::json_line(&value.to_string())],
        };
        let (old, new) = (texts(&self.old), texts(&self.new));
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
        let difference = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_slices(&old, &new);
        let line = |change: similar::Change<&str>| match change.tag() {
            ChangeTag::Delete => Some(format!("      - {}", change.value())),
            ChangeTag::Insert => Some(format!("      + {}", change.value())),
            ChangeTag::Equal => None,
        };
        difference.iter_all_changes().filter_map(line).collect()
    }
}

fn changes(old: Option<&Definition>, new: Option<&Definition>) -> Vec<Change> {
    // A definition consists of strings, numbers and JSON, so it can be serialized.
    let value = |definition: Option<&Definition>| {
        definition.and_then(|definition| serde_json::to_value(definition).ok())
    };
    let mut found = Vec::new();
    compare("", value(old).as_ref(), value(new).as_ref(), &mut found);
    // A flag that is absent is false.
    let is_flag = |place: &str| place.starts_with("/hints/") || place.starts_with("/checks/");
    found.retain(|change| {
        change.old.is_some() || change.new != Some(Value::Bool(false)) || !is_flag(&change.pointer)
    });
    // The description, which a model reads first, comes first.
    found.sort_by_key(|change| change.pointer != "/description");
    found
}

/// Compares recursively as long as both values have the same kind. A value without parts, or with
/// parts on one side only, is one change.
fn compare(place: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<Change>) {
    if old == new {
        return;
    }
    let parts = |value: Option<&Value>| match value {
        Some(Value::Object(members)) if !members.is_empty() => members.keys().cloned().collect(),
        Some(Value::Array(items))
            if items.iter().any(|item| item.is_object() || item.is_array()) =>
        {
            (0..items.len()).map(|index| index.to_string()).collect()
        }
        Some(_) | None => Vec::new(),
    };
    let is_alike = match (old, new) {
        (Some(old), Some(new)) => {
            old.is_object() && new.is_object() || old.is_array() && new.is_array()
        }
        (None, _) | (_, None) => true,
    };
    let (mut keys, of_new) = (parts(old), parts(new));
    // If a list has only plain values on one side, both lists are shown as a whole.
    let is_whole = |value: Option<&Value>, parts: &[String]| value.is_some() && parts.is_empty();
    if !is_alike || is_whole(old, &keys) || is_whole(new, &of_new) {
        found.push(Change { pointer: place.to_owned(), old: old.cloned(), new: new.cloned() });
        return;
    }
    let known: BTreeSet<_> = keys.iter().cloned().collect();
    keys.extend(of_new.into_iter().filter(|key| !known.contains(key)));
    for key in keys {
        let part = |value: Option<&Value>| -> Option<Value> {
            let value = value?;
            match value.as_array() {
                Some(items) => items.get(key.parse::<usize>().ok()?).cloned(),
                None => value.get(&key).cloned(),
            }
        };
        let place = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
        compare(&place, part(old).as_ref(), part(new).as_ref(), found);
    }
}

#[cfg(test)]
mod tests;
