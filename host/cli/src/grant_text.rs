//! Grants as text to be pasted: which lines, and where they go.
//!
//! In: what is to be granted, a component, and the configuration as far as there is one. Out: lines of TOML, the place that
//! they belong to, what is to be done before they work.
//! Invariants: a configuration with these lines in this place is valid TOML; nothing that is granted is lost.

use std::fs;
use std::path::Path;

use toolcell::{Suggestion, toml_text};

use crate::config::{self, Chosen, Config, Configured, Development, Section, quoted};
use crate::env;
use crate::rule_lines::RuleLines;

/// Lines, and where they go.
pub(crate) struct Pasted {
    /// The end of a sentence: "add LINES to `toolcell.toml`".
    place: String,
    pub(crate) lines: Vec<String>,
}

/// What stands for the lines in a place.
const LINES: &str = "LINES";

impl Pasted {
    /// What to do with the lines, which are called this: "add these lines to `toolcell.toml`".
    pub(crate) fn order(&self, lines: &str) -> String {
        self.place.replacen(LINES, lines, 1)
    }
}

/// What grants this to a component.
pub(crate) fn pasted(config: &Config, chosen: &Chosen<'_>, suggestion: &Suggestion) -> Pasted {
    let file = config.file.as_deref().unwrap_or(config::NAME);
    let lines = suggestion.to_paste();
    match chosen.configured {
        Some((name, Configured { section: Section { line, has_grants: true }, .. })) => Pasted {
            place: format!("apply {LINES} to [components.{name}.grants] in `{file}`, line {line}"),
            lines: widened(config, chosen, name, suggestion).unwrap_or(lines),
        },
        Some((name, Configured { section: Section { line, has_grants: false }, .. })) => Pasted {
            place: format!(
                "add {LINES} to `{file}`, below the last line of the component's section, which begins in line {line}"
            ),
            lines: section(name, lines),
        },
        None => {
            let name = free_name(config, &chosen.path);
            let path = toml_text(&seen_from(config, &chosen.path));
            let head = [format!("[components.{name}]"), format!("path = {path}")];
            let place = match &config.file {
                Some(_) => format!("add {LINES} to `{file}`"),
                None => format!("create `{file}` with {LINES}"),
            };
            let lines = head.into_iter().chain(section(&name, lines)).collect();
            Pasted { place, lines }
        }
    }
}

/// The same in one text, for a hint.
pub(crate) fn advice(config: &Config, chosen: &Chosen<'_>, suggestion: &Suggestion) -> String {
    if let Some((_, Configured { development: Some(Development::Typed), .. })) = chosen.configured {
        return format!("to allow it, add to the command:\n{}", options(suggestion));
    }
    let pasted = pasted(config, chosen, suggestion);
    let steps = steps(chosen, suggestion);
    let steps = if steps.is_empty() { String::new() } else { format!("\nthen:\n- {}", steps.join("\n- ")) };
    let file = format!("to allow it, {}:\n{}{steps}", pasted.order("these lines"), pasted.lines.join("\n"));
    if chosen.configured.is_some() {
        return file;
    }
    format!("{file}\nor, to try it, add to `toolcell run`:\n{}", options(suggestion))
}

/// The same as options of a command, in one line.
fn options(suggestion: &Suggestion) -> String {
    let options = suggestion.to_paste();
    options.iter().map(|line| format!("--grant {}", quoted(line))).collect::<Vec<_>>().join(" ")
}

fn section(name: &str, lines: Vec<String>) -> Vec<String> {
    [format!("[components.{name}.grants]")].into_iter().chain(lines).collect()
}

/// The lines of a section that has grants. A directory that lies in a granted one, or around it, is none of its own: a
/// configuration takes no two with different access.
fn widened(config: &Config, chosen: &Chosen<'_>, name: &str, suggestion: &Suggestion) -> Option<Vec<String>> {
    let grants = chosen.grants();
    let clash = |wanted: &str| grants.directories.iter().find(|granted| nested(&granted.name, wanted));
    let clashes: Vec<_> =
        suggestion.directories().filter_map(|(wanted, access)| Some((wanted, access, clash(wanted)?))).collect();
    let rules = RuleLines::read(config)?;
    let items = rules.items(&["components", name, "grants", "directories"]);
    let line = |granted: &str| items.iter().find(|item| item.text == granted).map_or(0, |item| item.line);
    let changes = clashes.iter().map(|(wanted, access, granted)| {
        let granted = &granted.name;
        let is_outer = Path::new(granted).starts_with(wanted) && granted != wanted;
        let name = if is_outer { format!("name = {}, ", toml_text(wanted)) } else { String::new() };
        format!(
            "# in line {}, set for the directory {}: {name}access = \"{access}\"",
            line(granted),
            toml_text(granted)
        )
    });
    let left_out: Vec<_> = clashes.iter().map(|(wanted, _, _)| *wanted).collect();
    let rest = merged(&rules, name, &suggestion.without_directories(&left_out))?;
    Some(changes.chain(rest).collect())
}

/// What is to be done before the lines work.
pub(crate) fn steps(chosen: &Chosen<'_>, suggestion: &Suggestion) -> Vec<String> {
    let grants = chosen.grants();
    let is_there = |wanted: &str| grants.directories.iter().any(|granted| nested(&granted.name, wanted));
    let there: Vec<_> = suggestion.directories().map(|(wanted, _)| wanted).filter(|wanted| is_there(wanted)).collect();
    suggestion.without_directories(&there).steps()
}

/// Whether one path lies in the other.
fn nested(one: &str, other: &str) -> bool {
    Path::new(one).starts_with(other) || Path::new(other).starts_with(one)
}

/// The lines of a section that has grants: what it says of each kind, with the new items at the end.
fn merged(rules: &RuleLines, name: &str, suggestion: &Suggestion) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    for (kind, mut items) in suggestion.additions() {
        let place = ["components", name, "grants", kind];
        let is_table = ["environment", "secrets"].contains(&kind);
        if is_table {
            let there: Vec<_> = rules.items(&place).into_iter().map(|item| item.text).collect();
            let is_new = |item: &String| item.split(" = ").next().is_none_or(|key| !there.iter().any(|old| old == key));
            items.retain(is_new);
        }
        let (open, close) = match kind {
            "scratch" => ("", ""),
            _ if is_table => ("{ ", " }"),
            _ => ("[", "]"),
        };
        let new = items.join(", ");
        let Some(old) = rules.text_at(&place) else {
            lines.push(format!("{kind} = {open}{new}{close}"));
            continue;
        };
        let first = rules.line(&place)?;
        let span = match old.matches('\n').count() {
            0 => format!("line {first}"),
            more => format!("lines {first} to {}", first + more),
        };
        let has_header = if is_table { old.starts_with('[') } else { old.starts_with("[[") };
        let inner = old.strip_prefix(open.trim()).and_then(|old| old.strip_suffix(close.trim()));
        match inner.filter(|inner| !has_header && !inner.contains('#')) {
            _ if items.is_empty() => {}
            Some(_) if kind == "scratch" => lines.push(format!("{kind} = {new}  # in place of {span}")),
            Some(inner) => {
                let old: Vec<_> = inner.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
                let old = old.join(" ");
                let old = old.trim().trim_end_matches(',');
                let between = if old.is_empty() { "" } else { ", " };
                lines.push(format!("{kind} = {open}{old}{between}{new}{close}  # in place of {span}"));
            }
            None if has_header && is_table => {
                lines.push(format!("# add below [components.{name}.grants.{kind}], {span}:"));
                lines.extend(items);
            }
            // With comments in it, or a header for each item, it is the user's to edit.
            None => lines.push(format!("# add to `{kind}`, {span}: {new}")),
        }
    }
    Some(lines)
}

/// A name for a component that the configuration does not name: its file's, or that with a number.
fn free_name(config: &Config, path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String = stem.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).take(60).collect();
    let name = if name.is_empty() { "NAME".to_owned() } else { name };
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !config.components.contains_key(name)).unwrap_or(name)
}

/// A component's path as the configuration has to say it: relative to its own directory.
fn seen_from(config: &Config, path: &Path) -> String {
    let here = env::current_dir().ok();
    let home = config.path.as_deref().and_then(Path::parent);
    let is_here =
        home.is_none_or(|home| here.and_then(|here| fs::canonicalize(here).ok()).is_some_and(|here| here == home));
    let shown = if is_here { path.to_owned() } else { fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()) };
    shown.display().to_string()
}

#[cfg(test)]
mod tests {
    use toolcell::Request;

    use super::*;

    /// Whatever form the old grants have, the new lines take their place and keep them.
    #[test]
    fn old_grants_stay() {
        for (old, asked, expected) in [
            ("kv = [\"read a\"]", "kv read b", "kv = [\"read a\", \"read b\"]  # in place of line 2"),
            ("kv = [\n  \"read a\",\n]", "kv read b", "kv = [\"read a\", \"read b\"]  # in place of lines 2 to 4"),
            ("kv = []", "kv read b", "kv = [\"read b\"]  # in place of line 2"),
            ("kv = [\n  # one\n]", "kv read b", "# add to `kv`, lines 2 to 4: \"read b\""),
            (
                "environment = { A = \"1\" }",
                "environment B",
                "environment = { A = \"1\", B = \"…\" }  # in place of line 2",
            ),
            (
                "[components.x.grants.environment]\nA = \"1\"",
                "environment B",
                "# add below [components.x.grants.environment], line 2:\nB = \"…\"",
            ),
            ("secrets = { k = { for = \"https://a.example\" } }", "reveal k", "reveal = [\"k\"]"),
            ("scratch = false", "write /scratch/x", "scratch = true  # in place of line 2"),
            ("reveal = []", "kv read b", "kv = [\"read b\"]"),
        ] {
            let rules = RuleLines::of(format!("[components.x.grants]\n{old}\n"));
            let lines = merged(&rules, "x", &Suggestion::of(&Request::parse(asked).unwrap())).unwrap();
            assert_eq!(lines.join("\n"), expected, "{old}");
        }
    }
}
