//! Converts grants on the command line, `--grant KIND=RULE`, to the text of a configuration.
//!
//! These grants are for development: they apply to a component that no configuration names.
//! `Configuration::with_command_line_grants` calls [`items`] with the options, which returns their
//! values or an error for an unknown kind or an incomplete rule. [`to_text`] then writes a
//! configuration with one component that has these grants, and maps its lines to the options; the
//! usual parser reads it. A rule cannot end the list or string that contains it. [`store`] names
//! the key-value store of such a component, which is separate from the stores of configured ones.

use std::path::Path;

use sha2::{Digest as _, Sha256};
use toml::Value;
use toolcell::grants::{GrantKind, toml_text};
use toolcell::names;

use crate::error::Error;
use crate::text::hint_command::quoted;

/// The key for the use of a component, which is in the component's own section.
const KIND_KEY: &str = "as";

/// One value of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    /// The kind; none for the use of the component.
    kind: Option<GrantKind>,
    /// The name of a variable or secret.
    name: Option<String>,
    value: Value,
}

/// Returns the name of a file's key-value store, which no component of a configuration can have.
pub(crate) fn store(component: &Path) -> String {
    let path = std::fs::canonicalize(component).unwrap_or_else(|_| component.to_owned());
    let digest = format!("{:x}", Sha256::digest(path.as_os_str().as_encoded_bytes()));
    format!("dev:{}", &digest[..32])
}

/// Returns the text of the configuration, and for each of its lines the index in `typed` of its
/// option.
pub(crate) fn to_text(
    name: &str,
    component: &Path,
    items: &[(usize, Item)],
) -> (String, Vec<Option<usize>>) {
    let mut lines = vec![
        (None, format!("[components.{name}]")),
        (None, format!("path = {}", toml_text(&component.to_string_lossy()))),
    ];
    let used_as = items.iter().filter(|(_, item)| item.kind.is_none());
    lines.extend(
        used_as
            .map(|(typed, item)| (Some(*typed), format!("{KIND_KEY} = {}", inline(&item.value)))),
    );
    lines.push((None, format!("[components.{name}.grants]")));
    for kind in GrantKind::all().filter(|kind| kind.row().is_list()) {
        let mut of_kind = items.iter().filter(|(_, item)| item.kind == Some(kind)).peekable();
        if of_kind.peek().is_some() {
            lines.push((None, format!("{} = [", kind.key())));
            lines.extend(
                of_kind.map(|(typed, item)| (Some(*typed), format!("{},", inline(&item.value)))),
            );
            lines.push((None, "]".to_owned()));
        }
    }
    for (typed, Item { kind, name, value }) in items {
        let place = match (name, kind) {
            (Some(name), Some(kind)) => format!("{}.{}", kind.key(), toml_text(name)),
            (None, Some(kind @ GrantKind::Scratch)) => kind.key().to_owned(),
            _ => continue,
        };
        lines.push((Some(*typed), format!("{place} = {}", inline(value))));
    }
    let text = lines.iter().map(|(_, line)| format!("{line}\n")).collect();
    (text, lines.into_iter().map(|(typed, _)| typed).collect())
}

/// Formats a value on one line.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => toml_text(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Table(members) => {
            let member = |(name, value): (&String, &Value)| {
                format!("{} = {}", toml_text(name), inline(value))
            };
            format!("{{ {} }}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
            value.to_string()
        }
    }
}

/// Parses the options to values of a configuration, each with its index in `typed`.
pub(crate) fn items(typed: &[String]) -> Result<Vec<(usize, Item)>, Error> {
    let mut items = Vec::new();
    for (place, typed) in typed.iter().enumerate() {
        let read = read(typed);
        let read = read.map_err(|(problem, hint)| {
            Error::usage(format!("`--grant {}`: {problem}", quoted(typed)), hint)
        });
        items.extend(read?.into_iter().map(|item| (place, item)));
    }
    // A revealed value is read from the variable of its name by default.
    for at in 0..items.len() {
        let (place, Item { kind: Some(GrantKind::Reveal), value: Value::String(name), .. }) =
            &items[at]
        else {
            continue;
        };
        let (place, kind, name) = (*place, Some(GrantKind::Secrets), Some(name.clone()));
        if !items.iter().any(|(_, item)| item.kind == kind && item.name == name) {
            items.push((place, Item { kind, name, value: Value::Table(toml::Table::new()) }));
        }
    }
    Ok(items)
}

/// Parses one `KIND=RULE`. The error is the problem and a hint.
fn read(typed: &str) -> Result<Vec<Item>, (String, String)> {
    let (kind, rule) =
        typed.split_once('=').map_or((typed, None), |(kind, rule)| (kind, Some(rule.trim())));
    let item = |kind: Option<GrantKind>, name: Option<&str>, value: Value| Item {
        kind,
        name: name.map(str::to_owned),
        value,
    };
    let text = |text: &str| Value::String(text.to_owned());
    let table = |members: &[(&str, &str)]| {
        let members = members.iter().map(|(key, said)| ((*key).to_owned(), text(said)));
        Value::Table(members.collect())
    };
    let rule = rule.filter(|rule| !rule.is_empty());
    if kind.trim() == KIND_KEY {
        let rule = rule.ok_or_else(|| without(GrantKind::Kv))?;
        return Ok(vec![item(None, None, value(rule)?.unwrap_or_else(|| text(rule)))]);
    }
    let Some(kind) = GrantKind::of_word(kind.trim()) else {
        let listed = || format!("a kind is {}", GrantKind::listed(|row| [row.words[0]]));
        let hint = names::did_you_mean(kind.trim(), GrantKind::words(), listed);
        return Err((format!("there is no kind `{}`", kind.trim().escape_debug()), hint));
    };
    let item = |name: Option<&str>, value: Value| item(Some(kind), name, value);
    let Some(rule) = rule else {
        return if kind == GrantKind::Scratch {
            Ok(vec![item(None, Value::Boolean(true))])
        } else {
            Err(without(kind))
        };
    };
    match (kind, value(rule)?) {
        (_, Some(Value::Table(members))) if kind.row().is_table() => {
            Ok(members.into_iter().map(|(name, value)| item(Some(&name), value)).collect())
        }
        (_, Some(Value::Array(values))) if kind.row().is_list() => {
            Ok(values.into_iter().map(|value| item(None, value)).collect())
        }
        (_, Some(value)) => Ok(vec![item(None, value)]),
        (GrantKind::Scratch, None) => {
            Ok(vec![item(None, rule.parse().map_or_else(|_| text(rule), Value::Boolean))])
        }
        (GrantKind::Environment, None) => {
            let (name, value) = rule.split_once('=').ok_or_else(|| without(kind))?;
            Ok(vec![item(Some(name), text(value))])
        }
        (GrantKind::Secrets, None) => {
            let (name, destination) = rule.split_once('=').ok_or_else(|| without(kind))?;
            let destination = destination.trim();
            let said = value(destination)?;
            let said = said.unwrap_or_else(|| table(&[("destination", destination)]));
            Ok(vec![item(Some(name.trim()), said)])
        }
        (GrantKind::Directories, None) => {
            let parted = rule
                .split_once(' ')
                .and_then(|(access, rest)| Some((access, rest.trim().split_once('=')?)));
            let (access, (name, path)) = parted.ok_or_else(|| without(kind))?;
            let members = [("access", access), ("name", name), ("path", path)];
            Ok(vec![item(None, table(&members))])
        }
        (_, None) => Ok(vec![item(None, text(rule))]),
    }
}

/// Parses a list or a table in TOML. Returns `None` for other text.
fn value(rule: &str) -> Result<Option<Value>, (String, String)> {
    if !rule.starts_with(['[', '{']) {
        return Ok(None);
    }
    match format!("x = {rule}").parse::<toml::Table>() {
        Ok(mut table) => Ok(table.remove("x")),
        Err(error) => Err((
            error.message().to_owned(),
            "write a value as `toolcell.toml` has it, or a plain rule".to_owned(),
        )),
    }
}

fn without(kind: GrantKind) -> (String, String) {
    (
        "the rule is incomplete".to_owned(),
        format!("write for instance `--grant {}`", quoted(kind.row().example)),
    )
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    /// Each option with the equivalent text of a configuration.
    #[test]
    fn grant_options_mean_the_same_as_configuration() {
        for (typed, expected) in rows::<(&str, &str)>(
            "grants/typed_grants",
            "grant_options_mean_the_same_as_configuration",
        ) {
            let (text, lines) =
                to_text("x", Path::new("x.wasm"), &items(&[typed.to_owned()]).unwrap());
            let head = "[components.x]\npath = \"x.wasm\"\n[components.x.grants]\n";
            assert_eq!(text, format!("{head}{expected}"), "{typed}");
            assert_eq!(lines.len(), text.lines().count());
            assert!(text.parse::<toml::Table>().is_ok(), "{text}");
        }
        for (typed, problem) in rows::<(&str, &str)>("grants/typed_grants", "invalid_grant_options")
        {
            let (said, hint) = read(typed).unwrap_err();
            assert!(said.contains(problem) && !hint.is_empty(), "{typed}: {said}");
        }
    }

    #[test]
    fn example_of_each_kind_is_a_grant() {
        for kind in GrantKind::all() {
            let items = read(kind.row().example).unwrap();
            assert!(items.iter().all(|item| item.kind == Some(kind)), "{kind:?}");
        }
    }

    #[test]
    fn development_store_is_never_a_configured_one() {
        let store = store(Path::new("notes.wasm"));
        assert!(!crate::schema::is_name(&store) && store.starts_with("dev:"), "{store}");
    }
}
