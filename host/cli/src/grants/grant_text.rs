//! Writes grants as text to paste into a configuration: the lines and their place.
//!
//! Commands that suggest grants call [`pasted`] or [`advice`] with the wanted grants, the component
//! and the configuration. It returns lines of TOML with the instruction where to put them: in the
//! component's section, in a new section, in place of existing lines, or as `--grant` options.
//! [`steps`] returns what remains to do, such as setting the value of a secret. A configuration
//! with these lines in this place is valid TOML, and no existing grant is lost. Lines that replace
//! old ones are the old text with the additions in it. Where that is not possible, for example
//! because a part has a header of its own, the line is a comment that says what to add.
//!
//! The section of a tool or of a tenant can list which of the component's grants remain. If such a
//! list denies a request, [`narrowed_lines`] returns the lists with the request added.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolcell::Grants;
use toolcell::component::ComponentKind;
use toolcell::grants::{Access, Directory, GrantKind, Request, Suggestion, toml_text};

use super::decision;
use super::rule_lines::{Edit, Item, REPLACED, RuleLines};
use crate::config::{
    self, ComponentConfig, Config, Development, ResolvedComponent, Section, quoted,
};
use crate::os::env;

/// Lines to paste, and their place.
pub(crate) struct Pasted {
    /// The end of a sentence: "add these lines to `toolcell.toml`".
    pub(crate) order: String,
    pub(crate) lines: Vec<String>,
}

/// A part of the grants that is to be replaced.
pub(crate) struct Change {
    /// The key of the grants that contains the part.
    pub(crate) kind: &'static str,
    pub(crate) part: Item,
    /// The text before the part, for a comment that names it.
    pub(crate) key: &'static str,
    pub(crate) text: String,
}

impl Change {
    /// Returns the change as JSON.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "line": self.part.line, "kind": self.kind, "text": format!("{}{}", self.key, self.text) })
    }
}

/// Returns the lines that add the suggested grants to a component and apply the changes. The order
/// calls them `shown`, such as "these lines".
pub(crate) fn pasted(
    config: &Config,
    chosen: &ResolvedComponent<'_>,
    suggestion: &Suggestion,
    changes: &[Change],
    shown: &str,
) -> Pasted {
    let file = config.file.as_deref().unwrap_or(config::NAME);
    let lines = suggestion.to_paste();
    // A component whose grants were typed is not in the file.
    match chosen
        .configured
        .filter(|(_, configured)| configured.development != Some(Development::CommandLine))
    {
        Some((name, ComponentConfig { section: Section { line, has_grants: true }, .. })) => {
            let lines = widened_lines(config, chosen, name, suggestion, changes).unwrap_or(lines);
            // A part of the section can have a header of its own, further below.
            let is_below = lines.iter().any(|line| line.starts_with("# "));
            let below =
                if is_below { " and below (a comment names the line that it is for)" } else { "" };
            let order = format!(
                "apply {shown} to the grants of [components.{name}] in `{file}`, line {line}{below}"
            );
            Pasted { order, lines }
        }
        Some((name, ComponentConfig { section: Section { line, has_grants: false }, .. })) => {
            let rules = RuleLines::read(config);
            if let Some(lines) = rules.and_then(|rules| inline_lines(&rules, name, suggestion)) {
                let order =
                    format!("apply {shown} to [components.{name}] in `{file}`, line {line}");
                return Pasted { order, lines };
            }
            let order = format!(
                "add {shown} to `{file}`, below the last line of the component's section, which begins in line {line}"
            );
            Pasted { order, lines: section(name, lines) }
        }
        None => {
            let name = free_name(config, &chosen.path);
            let path = toml_text(&path_in_config(config, &chosen.path));
            let kind = chosen.kind();
            let used_as =
                (kind != ComponentKind::Tools).then(|| format!("as = {}", toml_text(kind.word())));
            let head = [format!("[components.{name}]"), format!("path = {path}")];
            let head = head.into_iter().chain(used_as);
            let order = match &config.file {
                Some(_) => format!("add {shown} to `{file}`"),
                None => format!("create `{file}` with {shown}"),
            };
            let lines = head.chain(section(&name, lines)).collect();
            Pasted { order, lines }
        }
    }
}

/// Returns the lines and their place as one text for a hint: for the configuration, or for the
/// command if no configuration names the component. The preparatory steps come last, because they
/// are equal for both.
pub(crate) fn advice(
    config: &Config,
    chosen: &ResolvedComponent<'_>,
    suggestion: &Suggestion,
) -> String {
    let steps = steps(chosen, suggestion);
    let steps =
        if steps.is_empty() { String::new() } else { format!("\nthen:\n- {}", steps.join("\n- ")) };
    let development = chosen.development();
    if let Some(Development::CommandLine) = development {
        return format!("to allow it, add to the command:\n{}{steps}", options(suggestion));
    }
    let Pasted { order, lines } = pasted(config, chosen, suggestion, &[], "these lines");
    let approve =
        approval(config, chosen).map(|approve| format!(", and {approve}")).unwrap_or_default();
    let file = format!("to allow it, {order}{approve}:\n{}", lines.join("\n"));
    if chosen.configured.is_some() {
        return format!("{file}{steps}");
    }
    let [run, batch] = ["run", "batch"].map(|command| config.hint.command(command, &[], &[]));
    let options = options(suggestion);
    format!(
        "{file}\nor, to try it without a configuration, add to {run} or {batch}:\n{options}{steps}"
    )
}

/// Returns the approval command that is needed after a change of the file; none if the component
/// needs no approval.
pub(crate) fn approval(config: &Config, chosen: &ResolvedComponent<'_>) -> Option<String> {
    let approve = || format!("approve it with {}", config.hint.command("approve", &[], &[]));
    chosen.development().is_none().then(approve)
}

/// Returns the suggestion as options of a command, in one line.
fn options(suggestion: &Suggestion) -> String {
    let options = suggestion.to_paste();
    options.iter().map(|line| option(line)).collect::<Vec<_>>().join(" ")
}

/// Returns one grant as an option.
pub(crate) fn option(grant: &str) -> String {
    format!("--grant {}", quoted(grant))
}

fn section(name: &str, lines: Vec<String>) -> Vec<String> {
    [format!("[components.{name}.grants]")].into_iter().chain(lines).collect()
}

/// Returns the lines for a component without grants that is an inline table: TOML does not allow a
/// header for a part of it. None for another component.
fn inline_lines(rules: &RuleLines, name: &str, suggestion: &Suggestion) -> Option<Vec<String>> {
    rules.part(&["components", name]).filter(|part| part.text.starts_with('{'))?;
    merged(rules, &["components", name, "grants"], suggestion.additions(), &[])
}

/// Returns the lists of the section at this place of the configuration, with these requests added.
/// A kind that the section does not list is not narrowed by it, and gets no line.
pub(crate) fn narrowed_lines(
    config: &Config,
    section: &[&str],
    requests: &[Request<'_>],
) -> Vec<String> {
    let Some(rules) = RuleLines::read(config) else { return Vec::new() };
    let mut added = BTreeMap::<_, BTreeSet<String>>::new();
    for request in requests {
        let key = request.kind().row().section;
        let list = [section, &[key]].concat();
        let is_there = |item: &Item| decision::covers(request, &item.text);
        if rules.part(&list).is_some() && !rules.items(&list).iter().any(is_there) {
            added.entry(key).or_default().insert(toml_text(&request.rule()));
        }
    }
    let added = added.into_iter().map(|(key, items)| (key, Vec::from_iter(items)));
    merged(&rules, section, added.collect(), &[]).unwrap_or_default()
}

/// Returns the lines for a section that has grants. A directory that overlaps with a granted one
/// gets no entry of its own, unless both are only read: a configuration does not allow overlapping
/// directories with different access.
fn widened_lines(
    config: &Config,
    chosen: &ResolvedComponent<'_>,
    name: &str,
    suggestion: &Suggestion,
    changed: &[Change],
) -> Option<Vec<String>> {
    let grants = chosen.grants();
    let clashes: Vec<_> = suggestion
        .directories()
        .filter_map(|(wanted, access)| Some((wanted, access, clash(&grants, wanted, access)?)))
        .collect();
    let rules = RuleLines::read(config)?;
    let items = rules.items(&["components", name, "grants", "directories"]);
    let line =
        |granted: &str| items.iter().find(|item| item.text == granted).map_or(0, |item| item.line);
    let changes = clashes.iter().map(|(wanted, access, granted)| {
        let granted = &granted.name;
        let (line, shown) = (line(granted), toml_text(granted));
        if Path::new(granted).starts_with(wanted) && granted != wanted {
            // Under the name of the outer directory, the tool would not find the files that it has
            // below the granted one.
            let wanted = toml_text(wanted);
            return format!(
                "# {wanted} cannot be granted beside {shown} of line {line}: let the tool use files below {shown}"
            );
        }
        format!("# in line {line}, set for the directory {shown}: access = \"{access}\"")
    });
    let left_out: Vec<_> = clashes.iter().map(|(wanted, _, _)| *wanted).collect();
    let rest = suggestion.without_directories(&left_out).additions();
    let rest = merged(&rules, &["components", name, "grants"], rest, changed)?;
    Some(changes.chain(rest).collect())
}

/// Returns the steps that are needed before the lines work.
pub(crate) fn steps(chosen: &ResolvedComponent<'_>, suggestion: &Suggestion) -> Vec<String> {
    let grants = chosen.grants();
    let is_there = |(wanted, access): &(&str, Access)| clash(&grants, wanted, *access).is_some();
    let there: Vec<_> =
        suggestion.directories().filter(is_there).map(|(wanted, _)| wanted).collect();
    // The source of a known secret's value is given already.
    let known = grants.secret_names(None);
    suggestion.without_directories(&there).without_secrets(known).steps()
}

/// Returns the granted directory that keeps this one from being granted separately.
fn clash<'a>(grants: &'a Grants, wanted: &str, access: Access) -> Option<&'a Directory> {
    grants.directories.iter().find(|granted| {
        let (name, wanted) = (Path::new(&granted.name), Path::new(wanted));
        let are_read = granted.access == Access::Read && access == Access::Read;
        wanted.starts_with(name) || name.starts_with(wanted) && !are_read
    })
}

/// Returns the lines that add items, by their key, to the section at this place of the
/// configuration, and apply the changes.
fn merged(
    rules: &RuleLines,
    section: &[&str],
    mut additions: Vec<(&'static str, Vec<String>)>,
    changes: &[Change],
) -> Option<Vec<String>> {
    for change in changes {
        if !additions.iter().any(|(kind, _)| *kind == change.kind) {
            additions.push((change.kind, Vec::new()));
        }
    }
    let (mut by_hand, mut replaced, mut new) = (Vec::new(), Vec::new(), Vec::new());
    for (kind, mut items) in additions {
        let place = [section, &[kind]].concat();
        // A table has one item of a name. The items of a list are in quotes or braces.
        let there = rules.items(&place);
        items.retain(|item| {
            let name = item.split(" = ").next().unwrap_or_default();
            !there.iter().any(|old| old.text == name)
        });
        let changes: Vec<_> = changes.iter().filter(|change| change.kind == kind).collect();
        if items.is_empty() && changes.is_empty() {
            continue;
        }
        let text = items.join(", ");
        let Some(old) = rules.part(&place) else {
            let (open, close) = GrantKind::of_word(kind)?.row().brackets;
            new.push(format!("{kind} = {open}{text}{close}"));
            continue;
        };
        let added = if kind == "scratch" {
            Some((old.span.clone(), text.clone()))
        } else {
            rules.appended(&place, &text)
        };
        if let Some(added) = added {
            let changes =
                changes.iter().map(|change| (change.part.span.clone(), change.text.clone()));
            let added = Some(added).filter(|_| !items.is_empty());
            let edits: Vec<Edit> = changes.chain(added).collect();
            replaced.push((old, edits));
            continue;
        }
        by_hand.extend(changes.iter().map(|Change { part, key, text, .. }| {
            format!("# in line {}, write {key}{text} in place of {}", part.line, part.text)
        }));
        if items.is_empty() {
            continue;
        }
        let span = span(&old);
        if old.text.starts_with('[') && !old.text.starts_with("[[") {
            by_hand.push(format!("# add below [{}], {span}:", place.join(".")));
            by_hand.extend(items);
        } else {
            // The user has to edit an item in dotted keys, or with a header for each part.
            by_hand.push(format!("# add to `{kind}`, {span}: {text}"));
        }
    }
    // The section or the whole component can be one inline table.
    let inline =
        [(section, ""), (section.get(..2)?, "grants.")].into_iter().find_map(|(place, key)| {
            Some((rules.part(place).filter(|part| part.text.starts_with('{'))?, place, key))
        });
    if let Some((whole, place, key)) = inline
        && !(replaced.is_empty() && new.is_empty())
    {
        let mut edits: Vec<_> = replaced.into_iter().flat_map(|(_, edits)| edits).collect();
        if !new.is_empty() {
            let added: Vec<_> = new.drain(..).map(|line| format!("{key}{line}")).collect();
            edits.push(rules.appended(place, &added.join(", "))?);
        }
        replaced = vec![(whole, edits)];
    }
    let mut lines = by_hand;
    for (old, edits) in replaced {
        lines.push(replacement(rules, &old, edits)?);
    }
    // New lines are written like an old key beside them: in dotted keys they begin with `grants.`.
    let keys = rules.items(section);
    let beside = keys.iter().map(|key| rules.before(key)).find(|before| !before.starts_with('['));
    let header = rules.part(section).map(|part| part.text.trim().to_owned()).unwrap_or_default();
    let has_header = header.starts_with('[')
        && header.trim_end_matches([']', ' ', '"', '\'']).ends_with("grants");
    // If only parts have headers, such as `[components.NAME.grants.secrets]`, a line for the
    // grants themselves needs their header first.
    if !new.is_empty() && beside.is_none() && !keys.is_empty() && !has_header {
        lines.push(format!("[{}]", section.join(".")));
    }
    let prefix = beside.unwrap_or_default();
    lines.extend(new.into_iter().map(|line| format!("{prefix}{line}")));
    Some(lines)
}

/// Returns the lines of an item with these edits, and a comment with the lines that they replace.
fn replacement(rules: &RuleLines, old: &Item, edits: Vec<Edit>) -> Option<String> {
    let text = rules.edited(old, edits)?;
    Some(format!("{text}{REPLACED}{}", span(old)))
}

/// Returns the lines of an item, in words.
fn span(item: &Item) -> String {
    match item.text.trim_end().matches('\n').count() {
        0 => format!("line {}", item.line),
        more => format!("lines {} to {}", item.line, item.line + more),
    }
}

/// Returns an unused name for a component that is not in the configuration: the name of its file,
/// with a number if needed.
fn free_name(config: &Config, path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String =
        stem.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).take(60).collect();
    // A word that begins with `-` is an option of a command.
    let name = name.trim_start_matches('-');
    let name = if name.is_empty() { "NAME" } else { name };
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let is_written = |name: &str| {
        config
            .components
            .get(name)
            .is_some_and(|written| written.development != Some(Development::CommandLine))
    };
    names.find(|name| !is_written(name)).unwrap_or_default()
}

/// Returns a component's path as the configuration has to write it: relative to the configuration's
/// directory.
fn path_in_config(config: &Config, path: &Path) -> String {
    let here = env::current_dir().and_then(fs::canonicalize).ok();
    let home = config.path.as_deref().and_then(Path::parent);
    let is_elsewhere = home.is_some() && here.as_deref() != home;
    let absolute = fs::canonicalize(path).ok().filter(|_| is_elsewhere);
    absolute.as_deref().unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests;
