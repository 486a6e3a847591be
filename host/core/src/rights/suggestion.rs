//! Lines of configuration that would grant something: what a denial, a refusal and an explanation say, to be pasted.
//!
//! In: requests and needs, a stranger's words among them. Out: TOML, the kinds in one order, each once.
//! Invariants: a stranger's text stays text: whatever it holds, it ends no string and begins no grant of its own.

use std::collections::{BTreeMap, BTreeSet};

use super::Request;
use crate::definition::Need;
use crate::grants::HttpRule;

/// What stands in a line for what only the operator knows.
pub const PLACEHOLDER: &str = "…";

/// A kind of grant, in the order in which they are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Http,
    Directories,
    Environment,
    Secrets,
    Reveal,
    Keys,
}

/// Grants that could be added, as lines of configuration.
#[derive(Debug, Default, Clone)]
pub struct Suggestion(BTreeMap<Kind, BTreeSet<String>>);

impl Suggestion {
    /// What one request would need.
    #[must_use]
    pub fn of(request: &Request<'_>) -> Self {
        let mut suggestion = Self::default();
        suggestion.add(request);
        suggestion
    }

    /// What a need would.
    #[must_use]
    pub fn of_need(need: &Need) -> Self {
        let mut suggestion = Self::default();
        suggestion.add_need(need);
        suggestion
    }

    /// Adds the smallest grant for a request.
    pub fn add(&mut self, request: &Request<'_>) {
        match request {
            Request::Http { method, target } => {
                self.insert(Kind::Http, toml_text(&HttpRule::smallest(*method, target).to_string()));
            }
            Request::File { access, path } => self.insert(Kind::Directories, directory(path, &access.to_string())),
            Request::Environment { name } => self.insert(Kind::Environment, variable(name)),
            Request::Secret { name } => self.insert(Kind::Secrets, secret(name)),
            Request::Reveal { name } => self.insert(Kind::Reveal, toml_text(name)),
            Request::Key { access, key } => self.insert(Kind::Keys, toml_text(&format!("{access} {key}"))),
            Request::Keys { prefix } => self.insert(Kind::Keys, toml_text(&format!("read {prefix}*"))),
        }
    }

    /// Adds what a definition declares.
    pub fn add_need(&mut self, need: &Need) {
        let Need { kind, pattern, .. } = need;
        match kind.as_str() {
            "http" => self.insert(Kind::Http, toml_text(pattern)),
            "filesystem" => {
                if let Some((access @ ("read" | "write"), path)) = pattern.split_once(' ') {
                    self.insert(Kind::Directories, directory(path, access));
                }
            }
            "environment" => self.insert(Kind::Environment, variable(pattern)),
            "secret" => self.insert(Kind::Secrets, secret(pattern)),
            "reveal" => self.insert(Kind::Reveal, toml_text(pattern)),
            "kv" => self.insert(Kind::Keys, toml_text(pattern)),
            // A need of no kind is refused when the component is loaded.
            _ => {}
        }
    }

    fn insert(&mut self, kind: Kind, item: String) {
        self.0.entry(kind).or_default().insert(item);
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One line for each kind.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |(kind, items): (&Kind, &BTreeSet<String>)| {
            let items = items.iter().cloned().collect::<Vec<_>>().join(", ");
            match kind {
                Kind::Http => format!("http = [{items}]"),
                Kind::Directories => format!("directories = [{items}]"),
                Kind::Environment => format!("environment = {{ {items} }}"),
                Kind::Secrets => format!("secrets = {{ {items} }}"),
                Kind::Reveal => format!("reveal = [{items}]"),
                Kind::Keys => format!("kv = [{items}]"),
            }
        };
        self.0.iter().map(line).collect()
    }
}

/// A text as a string of TOML, in one line whatever it holds.
#[must_use]
pub fn toml_text(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if is_bare { name.to_owned() } else { toml_text(name) }
}

fn directory(name: &str, access: &str) -> String {
    format!("{{ name = {}, path = \"{PLACEHOLDER}\", access = \"{access}\" }}", toml_text(name))
}

fn variable(name: &str) -> String {
    format!("{} = \"{PLACEHOLDER}\"", key(name))
}

fn secret(name: &str) -> String {
    format!("{} = {{ for = \"{PLACEHOLDER}\" }}", key(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::{Decision, Rights};

    #[test]
    fn lines_are_those_of_a_denial() {
        for asked in [
            "GET https://a.example/x?q=1",
            "DELETE http://127.0.0.1:8080/",
            "read /data/x",
            "write /data",
            "environment LANG",
            "secret token",
            "reveal token",
            "kv read k",
            "kv write notes/1",
            "kv list notes/",
        ] {
            let request = Request::parse(asked).unwrap();
            let Decision::Denied(denial) = Rights::default().allows(&request) else { panic!("{asked}") };
            assert_eq!(Suggestion::of(&request).lines(), [denial.grant], "{asked}");
        }
    }

    /// A guest may ask for anything, also for what looks like the end of a line and a grant of everything.
    #[test]
    fn a_strangers_words_grant_nothing() {
        for name in
            ["a\"]\nhttp = [\"https://evil.example\"]\n#", "'''", "\"", "x = 1 }, y", "", "\\", "\u{202e}", "]]"]
        {
            for asked in [format!("secret {name}"), format!("reveal {name}"), format!("kv write k{name}")] {
                let Ok(request) = Request::parse(&asked) else { continue };
                let lines = Suggestion::of(&request).lines();
                let table: toml::Table = lines.join("\n").parse().unwrap_or_else(|error| panic!("{error}: {lines:?}"));
                assert_eq!((table.len(), table.contains_key("http")), (1, false), "{lines:?}");
            }
        }
    }

    #[test]
    fn kinds_stand_once() {
        let mut both = Suggestion::default();
        for asked in ["kv read b", "GET https://b.example/", "kv read a", "GET https://a.example/", "kv read a"] {
            both.add(&Request::parse(asked).unwrap());
        }
        let expected =
            ["http = [\"GET https://a.example/\", \"GET https://b.example/\"]", "kv = [\"read a\", \"read b\"]"];
        assert_eq!(both.lines(), expected);
    }
}
