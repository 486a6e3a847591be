//! A call's arguments as a tree, for handlers that read them.
//!
//! Invariants: there is one tree at most. It is the one that was checked, until a handler takes it; after that, and where none
//! was kept, the text is parsed again.

use std::sync::OnceLock;

use parking_lot::Mutex;
use serde_json::Value;

use crate::json::parse_measured;
use crate::shared_bytes::Held;

/// The tree, where one is kept.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// What was checked, until it is read or taken.
    checked: Mutex<Option<Value>>,
    read: OnceLock<Value>,
    /// Of the bytes that all trees may take.
    _held: Option<Held>,
}

impl Arguments {
    /// Keeps a tree that was checked.
    pub(crate) fn kept(tree: Value, held: Option<Held>) -> Self {
        Self { checked: Mutex::new(Some(tree)), read: OnceLock::new(), _held: held }
    }

    /// The tree of this text.
    pub(crate) fn read(&self, text: &str) -> &Value {
        self.read.get_or_init(|| self.checked().unwrap_or_else(|| parsed(text)))
    }

    /// The same, given away.
    pub(crate) fn take(&self, text: &str) -> Value {
        self.checked().or_else(|| self.read.get().cloned()).unwrap_or_else(|| parsed(text))
    }

    /// Whether a tree is kept.
    #[cfg(test)]
    pub(crate) fn is_kept(&self) -> bool {
        self.checked.lock().is_some() || self.read.get().is_some()
    }

    fn checked(&self) -> Option<Value> {
        self.checked.lock().take()
    }
}

/// Blank text is an object without members, as for the check.
fn parsed(text: &str) -> Value {
    parse_measured(if text.trim().is_empty() { "{}" } else { text }).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Seen to fail with a tree that is parsed although it is kept.
    #[test]
    fn a_tree_is_read_taken_or_parsed_again() {
        let kept = Arguments::kept(json!({"kept": 1}), None);
        assert_eq!(*kept.read("{}"), json!({"kept": 1}));
        assert_eq!(kept.take("{}"), json!({"kept": 1}), "a copy of what was read");
        let taken = Arguments::kept(json!({"kept": 1}), None);
        assert_eq!(taken.take("{}"), json!({"kept": 1}));
        assert!(!taken.is_kept());
        assert_eq!(*taken.read(r#"{"text": 2}"#), json!({"text": 2}));
        assert_eq!(Arguments::default().take(""), json!({}));
    }
}
