//! The format of `toolcell.lock`: the approved version of each component of a configuration.
//!
//! The lock file is a TOML file beside the configuration that a team keeps under version control.
//! [`parsed`] returns an [`ApprovedVersion`] for each component (digest, imports, publisher, the
//! tools' definitions with their hashes), and [`to_text`] writes them. The text is sorted and equal
//! for equal content, so that a diff shows changes only. A damaged text, wrong hashes or a later
//! version of the format are an error with the line, and nothing is approved. [`lock_path`] gives
//! the lock file's path for a configuration. The list of approved versions that are kept for a
//! rollback uses the format too.
//!
//! Not here: reading and replacing the file, in `configuration/lock.rs`; changes since the
//! approval, in `difference`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toolcell::component::ComponentKind;
use toolcell::grants::toml_text;
use toolcell::{Component, Definition};

use crate::error::Error;
use crate::problem::{Problem, Problems};
use crate::schema::{At, NAME, is_name};
use crate::text::clean;

/// The version of the file format.
const VERSION: i64 = 1;
const HEADER: &str = "# Made by `toolcell approve`; keep it under version control.";
/// The file extension.
const ENDING: &str = "lock";

/// Returns the path of a configuration's lock, which is beside it. That of `toolcell.toml` is
/// `toolcell.lock`; others append `.lock` to their configuration's name.
pub(crate) fn lock_path(config: &Path) -> Result<PathBuf, Error> {
    let name = config.file_name().unwrap_or_default();
    let usual = Path::new(NAME).with_extension(ENDING);
    let own =
        if name == NAME { usual.clone() } else { Path::new(name).with_added_extension(ENDING) };
    let rename = format!("give it another name, for instance `{NAME}`");
    let (problem, hint) = if Path::new(name).extension().is_some_and(|ending| ending == ENDING) {
        (
            "that is the name of a lock".to_owned(),
            format!("name the configuration, not its lock, or {rename}"),
        )
    } else if name != NAME && own == usual {
        (format!("its lock would have the same name as the lock of `{NAME}`"), rename)
    } else {
        return Ok(config.with_file_name(own));
    };
    let message =
        format!("a configuration file cannot have the name `{}`: {problem}", config.display());
    Err(Error::file(message, hint))
}

/// The definitions and imports of a component, when it was approved or now.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovedVersion {
    /// `sha256:` and 64 hex digits.
    pub digest: String,
    /// The use of the component: the text of a [`ComponentKind`].
    pub kind: String,
    /// The names of its imports.
    pub imports: BTreeSet<String>,
    /// The publisher who signed it, if a signature was required.
    pub publisher: Option<String>,
    /// The definitions of its tools by name.
    pub tools: BTreeMap<String, Definition>,
}

impl ApprovedVersion {
    /// Returns the definitions and imports of a loaded component.
    pub fn of(component: &Component, publisher: Option<String>) -> Self {
        let seen = component.inspection();
        Self {
            digest: seen.digest.clone(),
            kind: component.kind().to_string(),
            imports: seen.imports.iter().map(|(name, _)| name.clone()).collect(),
            publisher,
            tools: component.described().map(|tool| (tool.name.clone(), tool.clone())).collect(),
        }
    }
}

#[derive(Deserialize)]
struct Head {
    version: At<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "version")]
    _version: i64,
    #[serde(default)]
    components: BTreeMap<String, At<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    digest: String,
    /// Absent: the component describes its tools itself.
    #[serde(rename = "as")]
    kind: Option<String>,
    imports: BTreeSet<String>,
    publisher: Option<String>,
    #[serde(default)]
    tools: BTreeMap<String, Tool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    hash: At<String>,
    definition: At<String>,
}

/// Parses the text. `restore` is the hint for a file that was modified.
pub(crate) fn parsed(
    path: &Path,
    text: &str,
    restore: &str,
) -> Result<BTreeMap<String, ApprovedVersion>, Error> {
    let shown = path.display().to_string();
    approved(&Problems::new(&shown, text), restore)
        .map_err(|problem| Error::invalid(&shown, vec![*problem]))
}

/// Parses the text. One damaged entry is enough to reject the file.
fn approved(
    problems: &Problems<'_>,
    restore: &str,
) -> Result<BTreeMap<String, ApprovedVersion>, Box<Problem>> {
    let damaged = |span: &Range<usize>, what: String| {
        Box::new(problems.at(span, format!("the lock is damaged: {what}"), restore))
    };
    let unread = |error: toml::de::Error| {
        damaged(&error.span().unwrap_or_default(), error.message().to_owned())
    };
    // The version is checked first: nothing else is known of a later format.
    let At { value: version, span } =
        toml::from_str::<Head>(problems.text).map_err(unread)?.version;
    if version != VERSION {
        let message =
            format!("the lock has version {version}, this toolcell reads version {VERSION}");
        let hint = "use the toolcell that made it, or a later one";
        return Err(Box::new(problems.at(&span, message, hint)));
    }
    let file = toml::from_str::<File>(problems.text).map_err(unread)?;
    let mut components = BTreeMap::new();
    for (name, At { value, span }) in file.components {
        // Names are written without quotes.
        if !is_name(&name) {
            let name = name.escape_debug();
            return Err(damaged(&span, format!("`{name}` is not the name of a component")));
        }
        let Entry { digest, kind, imports, publisher, tools: said } = value;
        let mut tools = BTreeMap::new();
        for (tool, said) in said {
            let definition = definition(&tool, &said)
                .map_err(|(at, what)| damaged(&at.span, format!("{what} `{tool}`")))?;
            tools.insert(tool, definition);
        }
        let kind = kind.unwrap_or_else(|| ComponentKind::Tools.to_string());
        components.insert(name, ApprovedVersion { digest, kind, imports, publisher, tools });
    }
    Ok(components)
}

/// Parses a definition. The error is the damaged value and the problem, which the name of the tool
/// follows.
fn definition<'a>(
    name: &str,
    said: &'a Tool,
) -> Result<Definition, (&'a At<String>, &'static str)> {
    let Tool { hash, definition } = said;
    let parsed = serde_json::from_str::<Definition>(&definition.value)
        .map_err(|_| (definition, "this is not a definition of"))?;
    if parsed.name != name || !is_name(name) {
        return Err((definition, "this is not the definition of"));
    }
    if parsed.hash() != hash.value {
        return Err((hash, "this is not the hash of the definition of"));
    }
    Ok(parsed)
}

pub(crate) fn to_text<'a>(
    components: impl IntoIterator<Item = (&'a String, &'a ApprovedVersion)>,
) -> String {
    let mut text = format!("{HEADER}\nversion = {VERSION}\n");
    let components: BTreeMap<_, _> = components.into_iter().collect();
    for (name, ApprovedVersion { digest, kind, imports, publisher, tools }) in components {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n[components.{name}]\ndigest = {}\n", quoted(digest));
        if *kind != ComponentKind::Tools.to_string() {
            let _ = writeln!(text, "as = {}", quoted(kind));
        }
        text.push_str("imports = [");
        for import in imports {
            let _ = write!(text, "\n    {},", quoted(import));
        }
        text.push_str(if imports.is_empty() { "]\n" } else { "\n]\n" });
        if let Some(publisher) = publisher {
            let _ = writeln!(text, "publisher = {}", quoted(publisher));
        }
        for (tool, definition) in tools {
            let (hash, json) = (quoted(&definition.hash()), pretty(definition));
            let _ = write!(
                text,
                "\n[components.{name}.tools.{tool}]\nhash = {hash}\ndefinition = '''\n{json}\n'''\n"
            );
        }
    }
    text
}

/// Quotes text for TOML, with invisible characters escaped.
fn quoted(text: &str) -> String {
    let shown = |c: char| {
        if toolcell::tool::is_invisible(c) {
            format!("\\U{:08X}", u32::from(c))
        } else {
            c.to_string()
        }
    };
    toml_text(text).chars().map(shown).collect()
}

/// Formats the definition as JSON for reviewing a diff of the file: one member a line, invisible
/// characters escaped, and without the delimiter of the literal that contains it.
fn pretty(definition: &Definition) -> String {
    let json =
        serde_json::to_value(definition).and_then(|value| serde_json::to_string_pretty(&value));
    let json = clean::json(&json.unwrap_or_default());
    if json.contains("''") { json.replace('\'', "\\u0027") } else { json }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcell_test_guests::rows;

    use super::*;

    fn component(description: &str) -> ApprovedVersion {
        let definition = json!({ "name": "t", "description": description, "parameters": { "b": 1.5, "a": [null, "'"] } });
        let definition: Definition = serde_json::from_value(definition).unwrap();
        ApprovedVersion {
            digest: "sha256:00".into(),
            kind: "tools".into(),
            imports: ["toolcell:tool/kv@0.1.0", "a\"\n\u{202e}"].map(str::to_owned).into(),
            publisher: None,
            tools: [("t".to_owned(), definition)].into(),
        }
    }

    #[test]
    fn each_configuration_has_its_own_lock() {
        for (config, expected) in
            rows::<(&str, Option<&str>)>("approval/lock", "each_configuration_has_its_own_lock")
        {
            let place = lock_path(&Path::new("/a").join(config));
            let found = place.as_ref().ok().map(PathBuf::as_path);
            assert_eq!(found, expected.map(Path::new), "{config}");
            let has_hint = |failure: Error| failure.hint().contains("another name");
            assert!(place.is_ok() || place.is_err_and(has_hint), "{config}");
        }
    }

    #[test]
    fn lock_round_trips_any_description() {
        for description in rows::<&str>("approval/lock", "lock_round_trips_any_description") {
            let mut signed = component("x");
            signed.publisher = Some("p".into());
            signed.kind = r#"command {"name":"x"}"#.into();
            let components = BTreeMap::from([
                ("b".to_owned(), component(description)),
                ("a-1_".to_owned(), signed),
            ]);
            let text = to_text(&components);
            assert!(text.starts_with(HEADER), "{text}");
            assert!(text.find("[components.a-1_]") < text.find("[components.b]"), "{text}");
            let is_clean = |c: char| c == '\n' || c == '\'' || clean::text(&String::from(c)).1 == 0;
            assert!(text.chars().all(is_clean), "{text}");
            assert_eq!(parsed(Path::new("l"), &text, "").unwrap(), components, "{text}");
            assert_eq!(to_text(&parsed(Path::new("l"), &text, "").unwrap()), text);
        }
    }

    /// Each error has its line.
    #[test]
    fn damaged_lock_approves_nothing() {
        let good = to_text(&BTreeMap::from([("a".to_owned(), component("what it does"))]));
        assert!(parsed(Path::new("l"), &good, "").is_ok());
        for (from, to, line, needle) in
            rows::<(&str, &str, usize, &str)>("approval/lock", "damaged_lock_approves_nothing")
        {
            let error =
                parsed(Path::new("l"), &good.replacen(from, to, 1), "restore it").unwrap_err();
            let problem = error.problems().first().unwrap();
            assert!(error.to_string().contains(needle), "{to}: {error}");
            assert!(line == 1 || problem.line == line, "{to}: {error}");
            assert!(!problem.hint.is_empty());
        }
        for end in 0..good.len() {
            if let Ok(components) = parsed(Path::new("l"), &good[..end], "") {
                let is_empty = components.values().all(|approved| approved.tools.is_empty());
                assert!(is_empty || end == good.len() - 1, "{end}");
            }
        }
    }
}
