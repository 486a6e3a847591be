//! Writes endings into the text of a file of cases.
//!
//! In: the text of a file, as YAML or JSON, and the endings of some of its cases. Out: the text with these endings.
//! Invariants: the rest of the text stays as it is, with its comments.

use std::iter::Peekable;
use std::ops::Range;

use saphyr_parser::{Event, Parser, Span};
use serde_json::Value;

use super::file::Expect;

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

/// The text with the endings of the cases with these numbers. `None` if a case is not written out in the text.
pub(super) fn with_endings(text: &str, endings: &[(usize, &Expect)]) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    let begins = |event: &Event<'_>| !matches!(event, Event::Nothing | Event::StreamStart | Event::DocumentStart(_));
    let events = Parser::new_from_str(text).map_while(Result::ok).skip_while(|(event, _)| !begins(event));
    let root = Reader { events: events.peekable(), text: &characters }.node()?;
    let Kind::List(cases) = &root.member("cases")?.1.kind else { return None };
    let edits: Option<Vec<_>> =
        endings.iter().map(|(number, ending)| edits(cases.get(*number)?, ending, &characters)).collect();
    let mut written = characters;
    // From the last to the first, so that the places of the others stay.
    for (place, new) in edits?.into_iter().flatten().rev() {
        written.splice(place, new.chars());
    }
    Some(written.into_iter().collect())
}

/// What replaces which characters of a case, in the text's order.
fn edits(case: &Node, ending: &Expect, text: &[char]) -> Option<Vec<(Range<usize>, String)>> {
    match case.member("expect").map(|(_, value)| &value.kind) {
        Some(Kind::Map { entries, in_braces: false }) if !entries.is_empty() => members(entries, ending, text),
        _ => Some(vec![edit(case, ending, text)?]),
    }
}

/// The same for an ending with a name on each line: members that stay are left as they are, with their comments.
fn members(entries: &[(Node, Node)], ending: &Expect, text: &[char]) -> Option<Vec<(Range<usize>, String)>> {
    let Value::Object(mut new) = serde_json::to_value(ending).ok()? else { return None };
    let column = entries.first()?.0.column;
    let is_same = |node: &Node, value: &Value| {
        let old: String = text.get(node.place.clone()).into_iter().flatten().collect();
        let old = old.replace(&format!("\n{}", " ".repeat(node.column)), "\n");
        serde_norway::from_str::<Value>(&old).is_ok_and(|old| old == *value)
    };
    let mut edits = Vec::new();
    for (key, value) in entries {
        let place = key.place.start..value.place.end.max(key.place.end);
        match new.remove(key.text()) {
            Some(same) if is_same(value, &same) => {}
            Some(other) => edits.push((place, member(key.text(), &other, column)?)),
            None => edits.push((place, String::new())),
        }
    }
    let mut added =
        new.iter().map(|(name, value)| member(name, value, column)).collect::<Option<Vec<_>>>()?.into_iter();
    let indent = format!("\n{}", " ".repeat(column));
    // A new member takes the place of one that goes; a line without any goes with its comment.
    for (place, written) in edits.iter_mut().filter(|(_, written)| written.is_empty()) {
        match added.next() {
            Some(member) => *written = member,
            None => *place = line_of(place, text),
        }
    }
    let rest: String = added.map(|member| format!("{indent}{member}")).collect();
    if !rest.is_empty() {
        let end = entries.last()?.1.place.end;
        let end = end + text.get(end..)?.iter().take_while(|character| **character != '\n').count();
        edits.push((end..end, rest));
    }
    Some(edits)
}

/// A member of an ending: on one line, if it fits.
fn member(name: &str, value: &Value, column: usize) -> Option<String> {
    let line = format!("{name}: {value}");
    if column + line.chars().count() <= WIDTH || !(value.is_object() || value.is_array()) {
        return Some(line);
    }
    let indent = format!("\n{}", " ".repeat(column + 2));
    let block = serde_norway::to_string(value).ok()?;
    Some(format!("{name}:{indent}{}", block.trim_end().replace('\n', &indent)))
}

/// The lines of this place, with the line end before them.
fn line_of(place: &Range<usize>, text: &[char]) -> Range<usize> {
    let before = text.iter().take(place.start).rev().take_while(|character| **character != '\n').count();
    let after = text.iter().skip(place.end).take_while(|character| **character != '\n').count();
    (place.start - before).saturating_sub(1)..place.end + after
}

/// What replaces which characters of a case, if its ending is written anew.
fn edit(case: &Node, ending: &Expect, text: &[char]) -> Option<(Range<usize>, String)> {
    let Kind::Map { entries, in_braces } = &case.kind else { return None };
    let old = case.member("expect").map(|(key, value)| {
        // Where nothing is written, the value begins before the colon.
        let colon = text[key.place.end..].iter().position(|character| *character == ':').unwrap_or_default();
        key.place.start..value.place.end.max(key.place.end + colon + 1)
    });
    if *in_braces {
        let new = format!("\"expect\": {}", serde_json::to_string(ending).ok()?);
        return Some(match old {
            Some(place) => (place, new),
            None => {
                let end = entries.last()?.1.place.end;
                (end..end, format!(", {new}"))
            }
        });
    }
    let new = lines(ending, case.column)?;
    if let Some(place) = old {
        return Some((place, new));
    }
    // After a comment that follows the last value on its line.
    let end = entries.last()?.1.place.end;
    let end = end + text[end..].iter().take_while(|character| **character != '\n').count();
    Some((end..end, format!("\n{}{new}", " ".repeat(case.column))))
}

/// The member `expect` of a case whose members begin in this column: on one line, if it fits.
fn lines(ending: &Expect, column: usize) -> Option<String> {
    let Value::Object(members) = serde_json::to_value(ending).ok()? else { return None };
    let members: Vec<_> = members.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let line = format!("expect: {{ {} }}", members.join(", "));
    if column + line.chars().count() <= WIDTH {
        return Some(line);
    }
    let block = serde_norway::to_string(ending).ok()?;
    let indent = format!("\n{}", " ".repeat(column + 2));
    Some(format!("expect:{indent}{}", block.trim_end().replace('\n', &indent)))
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
                let (items, end) = self.items(in_braces)?;
                (Kind::List(items), end)
            }
            Event::MappingStart(..) => {
                let (items, end) = self.items(in_braces)?;
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

    /// The values of a collection that has begun, and where it ends: without braces, with its last value.
    fn items(&mut self, in_braces: bool) -> Option<(Vec<Node>, usize)> {
        let mut items: Vec<Node> = Vec::new();
        while !matches!(self.events.peek()?.0, Event::SequenceEnd | Event::MappingEnd) {
            items.push(self.node()?);
        }
        let (_, span) = self.events.next()?;
        let end = if in_braces { span.start.index() + 1 } else { items.last()?.place.end };
        Some((items, end))
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
        let around =
            |case: &str| format!("# Äther\ncases:\n  - name: a # first\n\n{case}\n  # the last\n  - {{name: c}}\n");
        for (case, expected) in [
            ("  - name: b", "  - name: b\n    expect: { ok: \"é\" }"),
            ("  - name: b # why", "  - name: b # why\n    expect: { ok: \"é\" }"),
            ("  - name: b\n    expect: { ok: 1 } # why", "  - name: b\n    expect: { ok: \"é\" } # why"),
            ("  - expect:\n      ok:\n        - 1\n    name: b", "  - expect:\n      ok: \"é\"\n    name: b"),
            (
                "  - name: b\n    expect:\n      # why\n      ok: 1 # one\n      # the end\n    seed: 1",
                "  - name: b\n    expect:\n      # why\n      ok: \"é\" # one\n      # the end\n    seed: 1",
            ),
            (
                "  - name: b\n    expect:\n      tool_error: x # old\n      message_contains: y # old\n    seed: 1",
                "  - name: b\n    expect:\n      ok: \"é\" # old\n    seed: 1",
            ),
            ("  - name: b\n    expect: # none yet", "  - name: b\n    expect: { ok: \"é\" } # none yet"),
            (
                "  - name: b\n    kv:\n      k: |\n        v\n",
                "  - name: b\n    kv:\n      k: |\n        v\n    expect: { ok: \"é\" }\n",
            ),
            ("  - {name: b}", "  - {name: b, \"expect\": {\"ok\":\"é\"}}"),
            ("  - {name: b, expect: {ok: 1}, seed: 1}", "  - {name: b, \"expect\": {\"ok\":\"é\"}, seed: 1}"),
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
        let expected =
            text.replace("\"a\"}", "\"a\", \"expect\": {\"halt\":\"one\"}}").replace("null", "{\"ok\":null}");
        assert_eq!(written, expected);
    }

    #[test]
    fn a_long_ending_has_a_line_for_each_value() {
        let long = ending(&serde_json::json!({"ok": {"a": "x".repeat(100), "b": [1]}}).to_string());
        let written = with_endings("cases:\n- name: a\n", &[(0, &long)]).expect("written");
        let expected =
            format!("cases:\n- name: a\n  expect:\n    ok:\n      a: {}\n      b:\n      - 1\n", "x".repeat(100));
        assert_eq!(written, expected);
    }

    #[test]
    fn a_member_that_stays_keeps_its_text_and_its_comment() {
        let text = |members: &str| format!("cases:\n  - name: a\n    expect:\n{members}    seed: 1\n");
        let old = text("      ok: 1\n      # a number\n      ok_schema: {type: integer} # any\n");
        let new = text("      ok: 2\n      # a number\n      ok_schema: {type: integer} # any\n");
        let ending = ending(r#"{"ok": 2, "ok_schema": {"type": "integer"}}"#);
        assert_eq!(with_endings(&old, &[(0, &ending)]), Some(new));
        let old = text("      ok_schema: {type: integer} # any\n");
        let new = text("      ok_schema: {type: integer} # any\n      ok: 2\n");
        assert_eq!(with_endings(&old, &[(0, &ending)]), Some(new));
    }

    #[test]
    fn a_case_that_is_elsewhere_is_not_written() {
        for text in ["cases:\n  - &a {name: a}\n  - *a\n", "cases: []\n", "", "- a\n", "cases: {\n"] {
            assert_eq!(with_endings(text, &[(1, &ending(r#"{"ok": 1}"#))]), None, "{text}");
        }
    }
}
