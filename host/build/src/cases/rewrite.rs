//! Writes endings into the text of a file of cases.
//!
//! In: the text of a file, as YAML or JSON, and the endings of some of its cases. Out: the text
//! with these endings.
//! Invariants: the rest of the text stays as it is, with its comments.

use std::iter::Peekable;
use std::ops::Range;

use saphyr_parser::{Event, Parser, Span};
use serde_json::{Map, Value};

use super::file::Expect;

/// The member of a case that is its ending.
const EXPECT: &str = "expect";
/// Columns of a line up to which an ending is written on one line.
const WIDTH: usize = 120;

/// A value of the text, and where it is, in characters.
struct Node {
    place: Range<usize>,
    /// The column of its first character.
    column: usize,
    kind: Kind,
}

enum Kind {
    Text(String),
    List(Vec<Node>),
    /// Names and values. `in_braces` as in JSON, or a name on each line.
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

/// The text with the endings of the cases with these numbers. `None` if a case is not written out
/// in the text.
pub(super) fn with_endings(text: &str, endings: &[(usize, &Expect)]) -> Option<String> {
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
    // From the last to the first, so that the places of the others stay.
    for (place, new) in edits?.into_iter().flatten().rev() {
        written.splice(place, new.chars());
    }
    Some(written.into_iter().collect())
}

/// What replaces these characters.
type Edit = (Range<usize>, String);

/// What replaces which characters of a case, in the text's order. An ending of several lines keeps
/// the members that still hold, and its comments.
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
        return members(entries, *in_braces, first.column).with(ending, |_| false);
    }
    let new = [(EXPECT.to_owned(), Value::Object(ending))].into_iter().collect();
    members(entries, *in_braces, case.column).with(new, |_| true)
}

/// How the members of an object are written.
enum Layout {
    /// Each on lines of its own, from this column on.
    Lines { column: usize },
    /// One after the other, with this around their names.
    Braces { quotes: &'static str },
}

/// The members of an object in the text.
struct Members<'a> {
    entries: &'a [(Node, Node)],
    layout: Layout,
    text: &'a [char],
}

impl Members<'_> {
    /// What makes them the new ones and those that are kept. What is the same stays as it is
    /// written.
    fn with(
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
        let mut added = new.iter().map(|(name, value)| self.written(name, value));
        // A new member takes the place of one that goes.
        let taken = gone.len().min(added.len());
        edits.extend(
            gone.drain(..taken)
                .zip(&mut added)
                .map(|(number, member)| (self.place(number), member)),
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

    fn place(&self, number: usize) -> Range<usize> {
        let (key, value) = &self.entries[number];
        key.place.start..value.place.end.max(key.place.end)
    }

    /// Another value after the same name. Where nothing is written, the value begins before the
    /// colon.
    fn replaced(&self, key: &Node, value: &Node, new: &Value) -> Edit {
        let end = key.place.end;
        match self.next(end, ':') {
            Some(colon) => (colon + 1..value.place.end.max(colon + 1), self.value(key.text(), new)),
            None => (end..end, format!(":{}", self.value(key.text(), new))),
        }
    }

    fn written(&self, name: &str, value: &Value) -> String {
        let quotes = if let Layout::Braces { quotes } = self.layout { quotes } else { "" };
        format!("{quotes}{name}{quotes}:{}", self.value(name, value))
    }

    /// What follows the colon: on one line, if it fits.
    fn value(&self, name: &str, value: &Value) -> String {
        let Layout::Lines { column } = self.layout else { return format!(" {value}") };
        let line = match value {
            // Its names are known, and need no quotes.
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
        // A value of JSON has a form in YAML.
        serde_norway::to_string(value)
            .map_or(line, |block| format!("{indent}{}", block.trim_end().replace('\n', &indent)))
    }

    /// A line that has nothing else goes with its comment; in braces, a comma goes too.
    fn removed(&self, number: usize, gone: &[usize]) -> Vec<Edit> {
        let mut place = self.place(number);
        let mut edits = Vec::new();
        if matches!(self.layout, Layout::Braces { .. }) {
            let before = (0..number).rev().find(|number| !gone.contains(number));
            if let Some(comma) = self.next(place.end, ',') {
                place.end = comma + 1;
            } else if let Some(comma) =
                before.and_then(|before| self.next(self.place(before).end, ','))
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

    /// After the last one; on lines, also after a comment that follows it.
    fn appended(&self, member: &str) -> Option<Edit> {
        let end = self.place(self.entries.len().checked_sub(1)?).end;
        Some(match self.layout {
            Layout::Braces { .. } => (end..end, format!(", {member}")),
            Layout::Lines { column } => {
                let end = self.line_of(&(end..end)).end;
                (end..end, format!("\n{}{member}", " ".repeat(column)))
            }
        })
    }

    /// Where this character is, if nothing but spaces and comments is before it.
    fn next(&self, from: usize, wanted: char) -> Option<usize> {
        written_after(self.text, from).filter(|(_, found)| *found == wanted).map(|(place, _)| place)
    }

    /// The lines of this place, with the line end before them.
    fn line_of(&self, place: &Range<usize>) -> Range<usize> {
        let is_end = |character: &&char| **character != '\n';
        let before = self.text.iter().take(place.start).rev().take_while(is_end).count();
        let after = self.text.iter().skip(place.end).take_while(is_end).count();
        (place.start - before).saturating_sub(1)..place.end + after
    }
}

/// Where the brace after the last value of a collection ends: the parser says so only if no comma
/// is before it.
fn closed(text: &[char], mut from: usize) -> Option<usize> {
    while let Some((place, ',')) = written_after(text, from) {
        from = place + 1;
    }
    written_after(text, from).map(|(place, _)| place + 1)
}

/// The first character that is no space and not in a comment.
fn written_after(text: &[char], from: usize) -> Option<(usize, char)> {
    let mut is_comment = false;
    let found = text.iter().enumerate().skip(from).find(|(_, character)| {
        is_comment = **character != '\n' && (is_comment || **character == '#');
        !is_comment && !character.is_whitespace()
    });
    found.map(|(place, character)| (place, *character))
}

/// Reads a value.
struct Reader<'a, I: Iterator> {
    events: Peekable<I>,
    text: &'a [char],
}

impl<'e, I: Iterator<Item = (Event<'e>, Span)>> Reader<'_, I> {
    fn node(&mut self) -> Option<Node> {
        let (event, span) = self.events.next()?;
        let (start, column) = (span.start.index(), span.start.col());
        let in_braces = self.text.get(start).is_some_and(|first| matches!(first, '{' | '['));
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
        // A text of several lines ends with a line end, which stays.
        let place = self.text.get(start..end)?;
        let spaces = place.iter().rev().take_while(|character| character.is_whitespace()).count();
        Some(Node { place: start..end - spaces, column, kind })
    }

    /// The values of a collection that has begun, and where it ends: without braces, with its last
    /// value.
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
    use super::*;

    fn ending(json: &str) -> Expect {
        serde_json::from_str(json).expect("an ending")
    }

    /// What is written in place of `old`, with the ending `{"ok": "é"}` for the second case.
    #[test]
    fn the_rest_of_the_text_stays() {
        let around = |case: &str| {
            format!(
                "# Äther\ncases:\n  - name: a # first\n\n{case}\n  # the last\n  - {{name: c}}\n"
            )
        };
        for (case, expected) in [
            ("  - name: b", "  - name: b\n    expect: { ok: \"é\" }"),
            ("  - name: b # why", "  - name: b # why\n    expect: { ok: \"é\" }"),
            (
                "  - name: b\n    expect: { ok: 1 } # why",
                "  - name: b\n    expect: { ok: \"é\" } # why",
            ),
            (
                "  - expect:\n      ok:\n        - 1\n    name: b",
                "  - expect:\n      ok: \"é\"\n    name: b",
            ),
            (
                "  - name: b\n    expect:\n      # why\n      ok: 1 # one\n      # the end\n    seed: 1",
                "  - name: b\n    expect:\n      # why\n      ok: \"é\" # one\n      # the end\n    seed: 1",
            ),
            (
                "  - name: b\n    expect:\n      tool_error: x # old\n      message_contains: y # old\n    seed: 1",
                "  - name: b\n    expect:\n      ok: \"é\" # old\n    seed: 1",
            ),
            (
                "  - name: b\n    expect: # none yet",
                "  - name: b\n    expect: { ok: \"é\" } # none yet",
            ),
            (
                "  - name: b\n    kv:\n      k: |\n        v\n",
                "  - name: b\n    kv:\n      k: |\n        v\n    expect: { ok: \"é\" }\n",
            ),
            ("  - {name: b}", "  - {name: b, \"expect\": {\"ok\":\"é\"}}"),
            (
                "  - {name: b, expect: {ok: 1}, seed: 1}",
                "  - {name: b, expect: {\"ok\":\"é\"}, seed: 1}",
            ),
            ("  - {name: b, expect, seed: 1}", "  - {name: b, expect: {\"ok\":\"é\"}, seed: 1}"),
            (
                "  - name: b\n    expect: { # why\n      # one\n      ok: 1, # two\n      # three\n    } # four",
                "  - name: b\n    expect: { # why\n      # one\n      ok: \"é\", # two\n      # three\n    } # four",
            ),
            (
                "  - name: b\n    expect: { # why\n      ok: 1, # one\n      ok_contains: x # two\n      # three\n    }",
                "  - name: b\n    expect: { # why\n      ok: \"é\" # one\n      # three\n    }",
            ),
            (
                "  - name: b\n    expect: {\n      tool_error: x, # old\n      message_contains: y, # old\n      # the end\n    }",
                "  - name: b\n    expect: {\n      ok: \"é\", # old\n      # the end\n    }",
            ),
            (
                "  - name: b\n    expect: { tool_error: x, message_contains: y,\n      # the end\n    }",
                "  - name: b\n    expect: { ok: \"é\", \n      # the end\n    }",
            ),
            (
                "  - { name: b, expect: { # why\n      ok_contains: y, ok: 1 # old\n    } }",
                "  - { name: b, expect: { # why\n      ok: \"é\" # old\n    } }",
            ),
        ] {
            let written = with_endings(&around(case), &[(1, &ending(r#"{"ok": "é"}"#))]);
            assert_eq!(written.as_deref(), Some(&*around(expected)), "{case}");
        }
    }

    #[test]
    fn several_endings_are_written_also_into_json() {
        let text = "{\n  \"cases\": [\n    {\"name\": \"a\"},\n    {\"name\": \"b\", \"expect\": null}\n  ]\n}\n";
        let (one, two) = (ending(r#"{"halt": "one"}"#), ending(r#"{"ok": null}"#));
        let written = with_endings(text, &[(0, &one), (1, &two)]).expect("written");
        let expected = text
            .replace("\"a\"}", "\"a\", \"expect\": {\"halt\":\"one\"}}")
            .replace("null", "{\"ok\":null}");
        assert_eq!(written, expected);
    }

    #[test]
    fn a_long_ending_has_a_line_for_each_value() {
        let long = ending(&serde_json::json!({"ok": {"a": "x".repeat(100), "b": [1]}}).to_string());
        let written = with_endings("cases:\n- name: a\n", &[(0, &long)]).expect("written");
        let expected = format!(
            "cases:\n- name: a\n  expect:\n    ok:\n      a: {}\n      b:\n      - 1\n",
            "x".repeat(100)
        );
        assert_eq!(written, expected);
    }

    #[test]
    fn a_member_that_stays_keeps_its_text_and_its_comment() {
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

    #[test]
    fn a_case_that_is_elsewhere_is_not_written() {
        for text in ["cases:\n  - &a {name: a}\n  - *a\n", "cases: []\n", "", "- a\n", "cases: {\n"]
        {
            assert_eq!(with_endings(text, &[(1, &ending(r#"{"ok": 1}"#))]), None, "{text}");
        }
    }
}
