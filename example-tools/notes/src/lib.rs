//! A tool that keeps notes between calls.
//!
//! One tool has all the actions, because each tool has a store of its own. `notebook` stores the
//! notes.

mod notebook;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcell_guest::{Failure, Outcome, tool, tools};

/// What to do with a note.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// Write a new note. A title that is taken is an error.
    Add,
    /// Read the note of this title.
    Get,
    /// The titles of all notes, in alphabetical order.
    List,
    /// Delete the note of this title.
    Delete,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// What to do.
    action: Action,
    /// The note's title, for every action but `list`.
    #[schemars(length(min = 1, max = 200))]
    title: Option<String>,
    /// The note's text, for `add`.
    #[schemars(length(max = 10_000))]
    text: Option<String>,
}

/// Checks that `title` and `text` are present exactly if the action takes them.
fn complete(args: &Args) -> Vec<String> {
    let (title, text, name) = match args.action {
        Action::Add => (true, true, "add"),
        Action::Get => (true, false, "get"),
        Action::List => (false, false, "list"),
        Action::Delete => (true, false, "delete"),
    };
    let wrong = |member: &str, wanted: bool, given: bool| match (wanted, given) {
        (true, false) => Some(format!("`{name}` needs a `{member}`")),
        (false, true) => Some(format!("`{name}` takes no `{member}`: leave it out")),
        (true, true) | (false, false) => None,
    };
    [wrong("title", title, args.title.is_some()), wrong("text", text, args.text.is_some())]
        .into_iter()
        .flatten()
        .collect()
}

/// Keeps notes for later conversations: adds, gets, lists and deletes them by title.
#[tool(
    title = "Notes",
    validate = complete,
    max_execution = "10s",
    needs = [kv("write notes/*", "to keep the notes")],
)]
fn notes(Args { action, title, text }: Args) -> Result<Outcome, Failure> {
    let title = title.unwrap_or_default();
    Ok(match action {
        Action::Add => Outcome::ok(notebook::add(&title, &text.unwrap_or_default())?),
        Action::Get => Outcome::ok(notebook::get(&title)?),
        Action::List => Outcome::ok(notebook::list()?),
        Action::Delete => Outcome::ok(notebook::delete(&title)?),
    })
}

tools![notes];
