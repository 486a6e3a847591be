//! Stores notes: the text of each under the key `notes/` plus its title.
//!
//! Invariants: a note is never overwritten, not even by two simultaneous calls that add the same
//! title.

use serde::Serialize;
use toolcell_guest::{Failure, kv};

/// Prefix of all keys: the one that the tool declares in its needs.
const PREFIX: &str = "notes/";

/// Most titles in one list, so that a model can still read it.
const MOST: usize = 500;

/// A note.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Note {
    pub(crate) title: String,
    pub(crate) text: String,
}

/// Titles, and true if there are more.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Titles {
    pub(crate) titles: Vec<String>,
    pub(crate) more: bool,
}

pub(crate) fn add(title: &str, text: &str) -> Result<Note, Failure> {
    match kv::compare_and_swap(&key(title), None, text)? {
        Some(_) => Ok(Note { title: title.to_owned(), text: text.to_owned() }),
        None => Err(Failure::new(format!(
            "there is a note `{title}` already: delete it first, or take another title"
        ))),
    }
}

pub(crate) fn get(title: &str) -> Result<Note, Failure> {
    let entry = kv::get(&key(title))?.ok_or_else(|| missing(title))?;
    Ok(Note { title: title.to_owned(), text: entry.text()?.to_owned() })
}

pub(crate) fn list() -> Result<Titles, Failure> {
    let mut keys = kv::list(PREFIX);
    let titles = keys.by_ref().take(MOST).map(|key| key.map(|key| key[PREFIX.len()..].to_owned()));
    let titles = titles.collect::<Result<_, _>>()?;
    Ok(Titles { titles, more: keys.next().is_some() })
}

pub(crate) fn delete(title: &str) -> Result<Note, Failure> {
    let note = get(title)?;
    if kv::delete(&key(title))? { Ok(note) } else { Err(missing(title)) }
}

fn key(title: &str) -> String {
    format!("{PREFIX}{title}")
}

fn missing(title: &str) -> Failure {
    Failure::new(format!("there is no note `{title}`: `list` shows the titles"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles() -> Vec<String> {
        list().expect("a list").titles
    }

    #[test]
    fn note_is_added_read_listed_and_deleted() {
        add("tea", "buy Earl Grey").expect("added");
        add("Ärger", "none").expect("added");
        assert_eq!(titles(), ["tea", "Ärger"]);
        assert_eq!(get("tea").expect("a note").text, "buy Earl Grey");
        assert_eq!(delete("tea").expect("deleted").text, "buy Earl Grey");
        assert_eq!(titles(), ["Ärger"]);
        for gone in [get("tea"), delete("tea")] {
            let failure = gone.expect_err("it was deleted");
            assert_eq!(failure.message(), "there is no note `tea`: `list` shows the titles");
        }
    }

    #[test]
    fn no_note_is_overwritten() {
        add("milk", "one").expect("added");
        let failure = add("milk", "two").expect_err("taken");
        assert!(failure.message().contains("already"), "{failure:?}");
        assert_eq!(get("milk").expect("a note").text, "one");
    }

    #[test]
    fn truncated_list_says_there_is_more() {
        for number in 0..=MOST {
            add(&format!("{number:04}"), "").expect("added");
        }
        let list = list().expect("a list");
        assert_eq!((list.titles.len(), list.more), (MOST, true));
    }
}
