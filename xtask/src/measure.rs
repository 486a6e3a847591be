//! Measures the inner quality of the repository.
//!
//! In: the files of the checkout. Out: a table of rows, each with its value now and its goal.
//! Not here: the numbers that tests enforce; `exact` counts them, `ceilings` lists their bounds.
//!
//! *Host code* is the code that the crates in `host/` compile without tests: the modules reachable
//! from their `lib.rs`, `main.rs` and `bin/`, without items behind `#[cfg(test)]`. *Test code* is
//! all other Rust of `host/` and `guest-sdk/` except build scripts and templates, and the whole of
//! `tests/`. A line counts if it has a token that is not of a comment.
//! *Hand-written pages* are all Markdown files except `docs/commands.md`.

#[cfg(test)]
mod ceilings;
mod cycles;
mod exact;
mod lines;
mod names;
mod pages;
mod repository;
mod source;
mod tree;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use crate::shell;
use repository::Repository;

/// Prints the rows as a table, or as JSON.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let is_json = match arguments {
        [] => false,
        ["--json"] => true,
        _ => bail!("`measure` takes `--json` or nothing"),
    };
    let repository = Repository::read(shell::root())?;
    let rows =
        [lines::rows(&repository), exact::rows(&repository)?, pages::rows(&repository)?].concat();
    if is_json {
        shell::print(&format!("{:#}\n", rows.iter().map(Row::json).collect::<Value>()));
    } else {
        shell::print(&rows.iter().map(Row::text).collect::<String>());
    }
    Ok(())
}

/// A measurement: its name, value and goal.
#[derive(Clone)]
struct Row {
    what: &'static str,
    now: usize,
    goal: &'static str,
    /// Parts of `now`, by crate or by place.
    parts: Vec<(String, Value)>,
}

impl Row {
    fn new(what: &'static str, now: usize, goal: &'static str) -> Self {
        Self { what, now, goal, parts: Vec::new() }
    }

    fn parts<V: Into<Value>>(mut self, parts: impl IntoIterator<Item = (String, V)>) -> Self {
        self.parts.extend(parts.into_iter().map(|(part, value)| (part, value.into())));
        self
    }

    fn text(&self) -> String {
        let mut text = format!("{:<44} {:>8}   {}\n", self.what, self.now, self.goal);
        for (part, value) in &self.parts {
            let line = match value.as_str() {
                Some(value) => format!("  {part}: {value}\n"),
                None => format!("  {part:<42} {value:>8}\n"),
            };
            text.push_str(&line);
        }
        text
    }

    fn json(&self) -> Value {
        json!({ "row": self.what, "now": self.now, "goal": self.goal, "parts": Map::from_iter(self.parts.clone()) })
    }
}
