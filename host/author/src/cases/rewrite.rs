//! Writes endings into a file of test cases and keeps the rest of its text.
//!
//! The runner of cases calls [`write_endings`] after the cases of a file have run with `--update`,
//! that is, when the author accepts the endings that were seen as the new expectations. It takes
//! the file, the expected content after the change, and the numbers of the cases to change. It
//! finds the places of the members in the YAML or JSON text and edits only these, so comments,
//! order and layout of everything else stay. The file is written only if the new text parses to the
//! expected content, and is replaced as a whole. Otherwise, for example if a case is an alias of
//! YAML, it stays as it is and an error is returned.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::iter::Peekable;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

use saphyr_parser::{Event, Parser, Span};
use serde_json::{Map, Value};
use tempfile::NamedTempFile;

use super::file::{Expect, Suite, parse};
use crate::{Error, Result};

/// The member of a case that has its expected ending.
const EXPECT: &str = "expect";
/// Columns. An ending that fits this width is written on one line.
const WIDTH: usize = 120;

/// A value of the text with its position, in characters.
struct Node {
    place: Range<usize>,
    /// The column of its first character.
    column: usize,
    kind: Kind,
}

enum Kind {
    Text(String),
    List(Vec<Node>),
    /// Names and values. `in_braces`: written as in JSON; otherwise one name a line.
    Map {
        entries: Vec<(Node, Node)>,
        in_braces: bool,
    },
    Alias,
}

impl Node {
    fn text(&self) -> &str {
        if let Kind::Text(text) = &self.kind { text } else { "" }
    }

    fn member(&self, name: &str) -> Option<&(Node, Node)> {
        let Kind::Map { entries, .. } = &self.kind else { return None };
        entries.iter().find(|(key, _)| key.text() == name)
    }
}

/// Writes the endings of the cases with these numbers into the file. Apart from them, the file must
/// still parse to `suite`.
pub(super) fn write_endings(path: &Path, suite: &Suite, updated: &[usize]) -> Result<()> {
    let text = fs::read_to_string(path).map_err(Error::file("read", path))?;
    let endings: Vec<_> = updated
        .iter()
        .filter_map(|number| Some((*number, suite.cases.get(*number)?.expect.as_ref()?)))
        .collect();
    let written = with_endings(&text, &endings);
    // Writes only a text that parses to the expected suite: the file may have changed since, or its
    // cases may be aliases of YAML.
    let Some(written) = written.filter(|written| parse(path, written).as_ref() == Ok(suite)) else {
        let message = format!(
            "{}: the endings that were seen cannot be written into the text",
            path.display()
        );
        let hint =
            "run again without `--update`, and write the endings that it tells into the file";
        return Err(Error::cases(message, hint));
    };
    replace(path, &written).map_err(Error::file("write", path))
}

/// Replaces the text of a file atomically: on a full disk, the old text stays. The file keeps its
/// permissions and, if this process may set it, its owner. A link to it stays a link.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize()?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    // A file that must not be written is not replaced either.
    let old = File::options().write(true).open(&path)?.metadata()?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    let _ = fchown(file.as_file(), Some(old.uid()), Some(old.gid()));
    file.as_file().set_permissions(old.permissions())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}

/// Returns the text with the endings of the cases with these numbers. Returns `None` if the text
/// does not contain a case literally (an alias, for instance).
fn with_endings(text: &str, endings: &[(usize, &Expect)]) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    let begins = |event: &Event<'_>| {
        !matches!(event, Event::Nothing | Event::StreamStart | Event::DocumentStart(_))
    };
    let events =
        Parser::new_from_str(text).map_while(Result::ok).skip_while(|(event, _)| !begins(event));
    let root = Reader { events: events.peekable(), text: &characters }.node()?;
    let Kind::List(cases) = &root.member("cases")?.1.kind else { return None };
    let edits: Option<Vec<_>> = endings
        .iter()
        .map(|(number, ending)| edits(cases.get(*number)?, ending, &characters))
        .collect();
    let mut written = characters;
    // From the last to the first, so that earlier positions stay valid.
    for (place, new) in edits?.into_iter().flatten().rev() {
        written.splice(place, new.chars());
    }
    Some(written.into_iter().collect())
}

/// A range of characters, and the text that replaces it.
type Edit = (Range<usize>, String);

/// Returns the edits of a case in the order of the text. If the old ending spans several lines, its
/// members that still hold and its comments stay.
fn edits(case: &Node, ending: &Expect, text: &[char]) -> Option<Vec<Edit>> {
    let Value::Object(ending) = serde_json::to_value(ending).ok()? else { return None };
    let Kind::Map { entries, in_braces } = &case.kind else { return None };
    let quotes = if *in_braces { "\"" } else { "" };
    let members = |entries, in_braces, column| {
        let layout = if in_braces { Layout::Braces { quotes } } else { Layout::Lines { column } };
        Members { entries, layout, text }
    };
    if let Some((_, old)) = case.member(EXPECT)
        && let Kind::Map { entries, in_braces } = &old.kind
        && let Some((first, _)) = entries.first()
        && (!in_braces || text.get(old.place.clone())?.contains(&'\n'))
    {
        return members(entries, *in_braces, first.column).edits_to(ending, |_| false);
    }
    let new = [(EXPECT.to_owned(), Value::Object(ending))].into_iter().collect();
    members(entries, *in_braces, case.column).edits_to(new, |_| true)
}

/// The layout of an object's members.
enum Layout {
    /// Each member on lines of its own, which start at this column.
    Lines { column: usize },
    /// One after the other, with these quotes around their names.
    Braces { quotes: &'static str },
}

/// The members of an object in the text.
struct Members<'a> {
    entries: &'a [(Node, Node)],
    layout: Layout,
    text: &'a [char],
}

impl Members<'_> {
    /// Returns the edits that turn the members into `new` plus the old members that `is_kept`
    /// accepts. Members with an equal value stay as they are written.
    fn edits_to(
        &self,
        mut new: Map<String, Value>,
        is_kept: impl Fn(&str) -> bool,
    ) -> Option<Vec<Edit>> {
        let (mut edits, mut gone) = (Vec::new(), Vec::new());
        for (number, (key, value)) in self.entries.iter().enumerate() {
            match new.remove(key.text()) {
                Some(same) if self.is_same(value, &same) => {}
                Some(other) => edits.push(self.replaced(key, value, &other)),
                None if is_kept(key.text()) => {}
                None => gone.push(number),
            }
        }
        let mut added = new.iter().map(|(name, value)| self.member_text(name, value));
        // New members replace removed ones.
        let taken = gone.len().min(added.len());
        edits.extend(
            gone.drain(..taken)
                .zip(&mut added)
                .map(|(number, member)| (self.member_range(number), member)),
        );
        gone.iter().for_each(|number| edits.extend(self.removed(*number, &gone)));
        let added: Vec<_> = added.collect();
        edits.extend(
            added.into_iter().map(|member| self.appended(&member)).collect::<Option<Vec<_>>>()?,
        );
        edits.sort_by_key(|(place, _)| place.start);
        Some(edits)
    }

    fn is_same(&self, node: &Node, value: &Value) -> bool {
        let old: String = self.text.get(node.place.clone()).into_iter().flatten().collect();
        let old = old.replace(&format!("\n{}", " ".repeat(node.column)), "\n");
        serde_norway::from_str::<Value>(&old).is_ok_and(|old| old == *value)
    }

    fn member_range(&self, number: usize) -> Range<usize> {
        let (key, value) = &self.entries[number];
        key.place.start..value.place.end.max(key.place.end)
    }

    /// Replaces the value of a name. If no colon is found, it is added with the value.
    fn replaced(&self, key: &Node, value: &Node, new: &Value) -> Edit {
        let end = key.place.end;
        match self.next(end, ':') {
            Some(colon) => (colon + 1..value.place.end.max(colon + 1), self.value(key.text(), new)),
            None => (end..end, format!(":{}", self.value(key.text(), new))),
        }
    }

    fn member_text(&self, name: &str, value: &Value) -> String {
        let quotes = if let Layout::Braces { quotes } = self.layout { quotes } else { "" };
        format!("{quotes}{name}{quotes}:{}", self.value(name, value))
    }

    /// Returns the text after the colon: one line if it fits, otherwise a YAML block.
    fn value(&self, name: &str, value: &Value) -> String {
        let Layout::Lines { column } = self.layout else { return format!(" {value}") };
        let line = match value {
            // The names of an expectation need no quotes.
            Value::Object(members) if name == EXPECT => {
                let members = members.iter().map(|(name, value)| format!("{name}: {value}"));
                format!(" {{ {} }}", members.collect::<Vec<_>>().join(", "))
            }
            Value::Object(_) | Value::Array(_) => format!(" {value}"),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return format!(" {value}");
            }
        };
        if column + name.chars().count() + 1 + line.chars().count() <= WIDTH {
            return line;
        }
        let indent = format!("\n{}", " ".repeat(column + 2));
        // Every JSON value has a YAML form.
        serde_norway::to_string(value)
            .map_or(line, |block| format!("{indent}{}", block.trim_end().replace('\n', &indent)))
    }

    /// Removes a member. A line that becomes empty is removed with its comment; in braces, a comma
    /// is removed too.
    fn removed(&self, number: usize, gone: &[usize]) -> Vec<Edit> {
        let mut place = self.member_range(number);
        let mut edits = Vec::new();
        if matches!(self.layout, Layout::Braces { .. }) {
            let before = (0..number).rev().find(|number| !gone.contains(number));
            if let Some(comma) = self.next(place.end, ',') {
                place.end = comma + 1;
            } else if let Some(comma) =
                before.and_then(|before| self.next(self.member_range(before).end, ','))
            {
                edits.push((comma..comma + 1, String::new()));
            }
        }
        let line = self.line_of(&place);
        let of =
            |place: Range<usize>| self.text.get(place).into_iter().flatten().collect::<String>();
        let (before, after) = (of(line.start..place.start), of(place.end..line.end));
        let is_alone =
            before.trim().is_empty() && (after.trim().is_empty() || after.trim().starts_with('#'));
        let spaces = after.chars().take_while(|character| *character == ' ').count();
        edits.push((if is_alone { line } else { place.start..place.end + spaces }, String::new()));
        edits
    }

    /// Inserts a member after the last one; in the layout of lines, also after the comment that
    /// follows it.
    fn appended(&self, member: &str) -> Option<Edit> {
        let end = self.member_range(self.entries.len().checked_sub(1)?).end;
        Some(match self.layout {
            Layout::Braces { .. } => (end..end, format!(", {member}")),
            Layout::Lines { column } => {
                let end = self.line_of(&(end..end)).end;
                (end..end, format!("\n{}{member}", " ".repeat(column)))
            }
        })
    }

    /// Returns the position of `wanted`, if only spaces and comments come before it.
    fn next(&self, from: usize, wanted: char) -> Option<usize> {
        written_after(self.text, from).filter(|(_, found)| *found == wanted).map(|(place, _)| place)
    }

    /// Returns the range of whole lines around this range, with the line break before them.
    fn line_of(&self, place: &Range<usize>) -> Range<usize> {
        let is_end = |character: &&char| **character != '\n';
        let before = self.text.iter().take(place.start).rev().take_while(is_end).count();
        let after = self.text.iter().skip(place.end).take_while(is_end).count();
        (place.start - before).saturating_sub(1)..place.end + after
    }
}

/// Returns the end of the closing brace after a collection's last value. The parser reports it only
/// if no comma comes before it.
fn closed(text: &[char], mut from: usize) -> Option<usize> {
    while let Some((place, ',')) = written_after(text, from) {
        from = place + 1;
    }
    written_after(text, from).map(|(place, _)| place + 1)
}

/// Returns the first character that is neither whitespace nor in a comment.
fn written_after(text: &[char], from: usize) -> Option<(usize, char)> {
    let mut is_comment = false;
    let found = text.iter().enumerate().skip(from).find(|(_, character)| {
        is_comment = **character != '\n' && (is_comment || **character == '#');
        !is_comment && !character.is_whitespace()
    });
    found.map(|(place, character)| (place, *character))
}

/// Builds the tree of nodes from parser events.
struct Reader<'a, I: Iterator> {
    events: Peekable<I>,
    text: &'a [char],
}

impl<'e, I: Iterator<Item = (Event<'e>, Span)>> Reader<'_, I> {
    fn node(&mut self) -> Option<Node> {
        let (event, span) = self.events.next()?;
        let (start, column) = (span.start.index(), span.start.col());
        // The start of a list without braces can be the brace of its first item, but has no length.
        let in_braces = !span.is_empty()
            && self.text.get(start).is_some_and(|first| matches!(first, '{' | '['));
        let (kind, end) = match event {
            Event::Scalar(text, ..) => (Kind::Text(text.into_owned()), span.end.index()),
            Event::Alias(_) => (Kind::Alias, span.end.index()),
            Event::SequenceStart(..) => {
                let (items, end) = self.items(start, in_braces)?;
                (Kind::List(items), end)
            }
            Event::MappingStart(..) => {
                let (items, end) = self.items(start, in_braces)?;
                let (mut items, mut entries) = (items.into_iter(), Vec::new());
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    entries.push((key, value));
                }
                (Kind::Map { entries, in_braces }, end)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return None,
        };
        // A multi-line text ends with a line break, which is not part of the node.
        let place = self.text.get(start..end)?;
        let spaces = place.iter().rev().take_while(|character| character.is_whitespace()).count();
        Some(Node { place: start..end - spaces, column, kind })
    }

    /// Reads the values of an open collection, and returns them with its end. Without braces, it
    /// ends with its last value.
    fn items(&mut self, start: usize, in_braces: bool) -> Option<(Vec<Node>, usize)> {
        let mut items: Vec<Node> = Vec::new();
        while !matches!(self.events.peek()?.0, Event::SequenceEnd | Event::MappingEnd) {
            items.push(self.node()?);
        }
        self.events.next()?;
        let end = items.last().map(|last| last.place.end);
        Some(if in_braces {
            (items, closed(self.text, end.unwrap_or(start + 1))?)
        } else {
            (items, end?)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use toolcell_test_guests::rows;

    use super::*;

    fn ending(json: &str) -> Expect {
        serde_json::from_str(json).expect("an ending")
    }

    /// Shows the text that replaces `old`, with the ending `{"ok": "é"}` for the second case.
    #[test]
    fn writing_an_ending_keeps_the_rest_of_the_text() {
        let around = |case: &str| {
            format!(
                "# Äther\ncases:\n  - name: a # first\n\n{case}\n  # the last\n  - {{name: c}}\n"
            )
        };
        for (case, expected) in
            rows::<(&str, &str)>("cases/rewrite", "writing_an_ending_keeps_the_rest_of_the_text")
        {
            let written = with_endings(&around(case), &[(1, &ending(r#"{"ok": "é"}"#))]);
            assert_eq!(written.as_deref(), Some(&*around(expected)), "{case}");
        }
    }

    #[test]
    fn several_endings_are_written_even_into_json() {
        let text = "{\n  \"cases\": [\n    {\"name\": \"a\"},\n    {\"name\": \"b\", \"expect\": null}\n  ]\n}\n";
        let (one, two) = (ending(r#"{"halt": "one"}"#), ending(r#"{"ok": null}"#));
        let written = with_endings(text, &[(0, &one), (1, &two)]).expect("written");
        let expected = text
            .replace("\"a\"}", "\"a\", \"expect\": {\"halt\":\"one\"}}")
            .replace("null", "{\"ok\":null}");
        assert_eq!(written, expected);
    }

    #[test]
    fn long_ending_has_one_line_per_value() {
        let long = ending(&serde_json::json!({"ok": {"a": "x".repeat(100), "b": [1]}}).to_string());
        let written = with_endings("cases:\n- name: a\n", &[(0, &long)]).expect("written");
        let expected = format!(
            "cases:\n- name: a\n  expect:\n    ok:\n      a: {}\n      b:\n      - 1\n",
            "x".repeat(100)
        );
        assert_eq!(written, expected);
    }

    #[test]
    fn unchanged_member_keeps_its_text_and_comment() {
        let text =
            |members: &str| format!("cases:\n  - name: a\n    expect:\n{members}    seed: 1\n");
        let old = text("      ok: 1\n      # a number\n      ok_schema: {type: integer} # any\n");
        let new = text("      ok: 2\n      # a number\n      ok_schema: {type: integer} # any\n");
        let ending = ending(r#"{"ok": 2, "ok_schema": {"type": "integer"}}"#);
        assert_eq!(with_endings(&old, &[(0, &ending)]), Some(new));
        let old = text("      ok_schema: {type: integer} # any\n");
        let new = text("      ok_schema: {type: integer} # any\n      ok: 2\n");
        assert_eq!(with_endings(&old, &[(0, &ending)]), Some(new));
        let old = "cases:\n  - name: a\n    expect: { # why\n      ok_schema: {type: integer} # any\n    }\n";
        let new = old.replace("integer} #", "integer}, ok: 2 #");
        assert_eq!(with_endings(old, &[(0, &ending)]), Some(new));
        let old = "{\"cases\": [{\"name\": \"a\", \"expect\": {\n  \"ok_schema\": {\"type\": \"integer\"}\n}}]}\n";
        let new = old.replace("\"integer\"}", "\"integer\"}, \"ok\": 2");
        assert_eq!(with_endings(old, &[(0, &ending)]), Some(new));
    }

    /// Another name of the old file keeps the old text: that text was never overwritten.
    #[test]
    fn file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, link, old] =
            ["cases.yaml", "link.yaml", "old.yaml"].map(|name| folder.path().join(name));
        let text = "cases:\n  - name: a\n";
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("permitted");
        // Only root can give a file away.
        let _ = chown(&file, Some(1), Some(1));
        let rights = || {
            let found = fs::metadata(&file).expect("there");
            (found.uid(), found.gid(), found.permissions().mode() & 0o777)
        };
        let before = rights();
        fs::hard_link(&file, &old).expect("linked");
        symlink("cases.yaml", &link).expect("linked");
        let mut suite = parse(&link, text).expect("cases");
        suite.cases[0].expect = Some(ending(r#"{"ok": 1}"#));
        write_endings(&link, &suite, &[0]).expect("written");
        let read = |path| fs::read_to_string(path).expect("text");
        assert_eq!(
            (read(&old), read(&file)),
            (text.to_owned(), format!("{text}    expect: {{ ok: 1 }}\n"))
        );
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(rights(), before);
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 3);
    }

    #[test]
    fn aliased_or_missing_case_is_not_written() {
        for text in ["cases:\n  - &a {name: a}\n  - *a\n", "cases: []\n", "", "- a\n", "cases: {\n"]
        {
            assert_eq!(with_endings(text, &[(1, &ending(r#"{"ok": 1}"#))]), None, "{text}");
        }
    }
}
