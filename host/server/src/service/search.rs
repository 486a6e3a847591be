//! Full-text search over tools: names, descriptions and parameters, ranked by BM25.
//!
//! The tool `tools_search` builds an [`Index`] from the definitions of a tenant's tools at its
//! first call. [`Index::search`] takes words and returns names of tools that contain one of them,
//! the best match first. The index is an SQLite table in memory. Words in a name weigh more than
//! those in a description, and these more than those of parameters; frequent words such as "the"
//! are left out.
//!
//! Equal definitions and words give the same names in the same order. Text of a query is never
//! interpreted as query syntax.

use std::fmt::Write as _;

use parking_lot::Mutex;
use rusqlite::{Connection, params};
use serde_json::Value;
use toolcell::Definition;

/// Finds tools. A word weighs 4 in a name, 2 in a description, and 1 in a parameter's name or
/// description.
const SELECT: &str = "SELECT id FROM tools WHERE tools MATCH ?1 ORDER BY bm25(tools, 0.0, 4.0, 2.0, 1.0), id LIMIT ?2";
/// The most words of a query that are searched for.
const MAX_WORDS: usize = 32;
/// The deepest nesting of a schema's properties that is indexed.
const MAX_DEPTH: usize = 4;
/// Words that occur in most sentences and do not distinguish tools.
const STOP_WORDS: [&str; 44] = [
    "a", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "for", "from",
    "how", "i", "if", "in", "is", "it", "its", "me", "my", "of", "on", "one", "or", "our",
    "please", "that", "the", "their", "them", "there", "this", "to", "tool", "use", "want", "was",
    "what", "which", "with", "you",
];

/// An in-memory index of tools.
#[derive(Debug)]
pub(crate) struct Index(Mutex<Connection>);

impl Index {
    /// Indexes these definitions.
    ///
    /// # Errors
    /// [`rusqlite::Error`] if there is not enough memory.
    pub(crate) fn new<'a>(
        definitions: impl IntoIterator<Item = &'a Definition>,
    ) -> rusqlite::Result<Self> {
        let mut connection = Connection::open_in_memory()?;
        connection.execute_batch(
            "CREATE VIRTUAL TABLE tools USING fts5(id UNINDEXED, name, description, parameters, tokenize = 'porter unicode61')",
        )?;
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO tools VALUES (?1, ?2, ?3, ?4)")?;
            for Definition { name, description, parameters, .. } in definitions {
                let mut text = String::new();
                if let Some(schema) = parameters {
                    describe(schema, MAX_DEPTH, &mut text);
                }
                insert.execute(params![name, words(name).join(" "), description, text])?;
            }
        }
        transaction.commit()?;
        Ok(Self(Mutex::new(connection)))
    }

    /// Returns the names of at most `most` tools that contain a word of the query, the best match
    /// first; equal matches by name.
    ///
    /// # Errors
    /// [`rusqlite::Error`] if there is not enough memory.
    pub(crate) fn search(&self, query: &str, most: usize) -> rusqlite::Result<Vec<String>> {
        let wanted = expression(query);
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let connection = self.0.lock();
        let mut select = connection.prepare(SELECT)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = select.query_map(params![wanted, most], |row| row.get(0))?;
        rows.collect()
    }
}

/// Converts the query to the index's syntax: any of its words, each in quotation marks.
fn expression(query: &str) -> String {
    let mut words = words(query);
    let mut seen = std::collections::HashSet::new();
    words.retain(|word| seen.insert(word.clone()));
    let telling: Vec<_> =
        words.iter().filter(|word| !STOP_WORDS.contains(&word.as_str())).collect();
    // A query of stop words only is searched for as it is.
    let chosen = if telling.is_empty() { words.iter().collect() } else { telling };
    let quoted: Vec<_> =
        chosen.into_iter().take(MAX_WORDS).map(|word| format!("\"{word}\"")).collect();
    quoted.join(" OR ")
}

/// Splits a text into words in lower case: letters and digits, split where `camelCase` begins a new
/// word.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in text.chars() {
        let begins = !c.is_alphanumeric() || (c.is_uppercase() && was_lower);
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Appends the names and descriptions of a schema's properties.
fn describe(schema: &Value, depth: usize, text: &mut String) {
    if let Some(description) = schema.get("description").and_then(Value::as_str) {
        let _ = write!(text, "{description} ");
    }
    if depth == 0 {
        return;
    }
    for (name, property) in
        schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        let _ = write!(text, "{} ", words(name).join(" "));
        describe(property, depth - 1, text);
    }
    if let Some(items) = schema.get("items") {
        describe(items, depth - 1, text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcell_test_guests::rows;

    use super::*;

    fn definition(name: &str, description: &str, parameters: Value) -> Definition {
        Definition::new(name, description).expect("a name").with_parameters(parameters)
    }

    #[test]
    fn search_matches_name_description_and_parameters() {
        let definitions = [
            definition("createInvoice", "Creates an invoice for a customer.", json!({})),
            definition(
                "list_files",
                "Lists the files of a directory.",
                json!({"properties": {"maxDepth": {}}}),
            ),
            definition(
                "weather",
                "Current temperature and wind.",
                json!({"properties": {"city": {"description": "A town's name"}}}),
            ),
            definition("say", "Says \"NEAR(a b)\" AND more*", json!({})),
        ];
        let index = Index::new(&definitions).expect("an index");
        for (query, expected) in rows::<(&str, Vec<&str>)>("service/search", "queries") {
            assert_eq!(index.search(query, 5).expect("a search"), expected, "{query:?}");
        }
        assert_eq!(index.search("invoice files", 1).expect("a search").len(), 1);
    }

    #[test]
    fn equal_matches_are_sorted_by_name() {
        let definitions = ["c", "a", "b"].map(|name| definition(name, "the same text", json!({})));
        let index = Index::new(&definitions).expect("an index");
        assert_eq!(index.search("text", 5).expect("a search"), ["a", "b", "c"]);
    }
}
