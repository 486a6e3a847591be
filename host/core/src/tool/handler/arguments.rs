//! Keeps a call's arguments as a parsed tree, for handlers (the code of tools) that read them.
//!
//! The executor parses the arguments to check them, and keeps the tree in [`Arguments`] if the
//! handler reads it; otherwise the text is parsed again at the first use. A call has at most one
//! tree, shared by its attempts: the first attempt that uses it takes it. For closures, a whole
//! number that a tree cannot hold exactly is a string with all its digits. The tree's share of the
//! bytes of all kept trees is held as long as any attempt exists.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::Value;
use toolcell_contract::json::{exact, fits, parse_measured};

use crate::tenant::share::Reservation;

/// The tree of a call's arguments, if one is kept.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    tree: Option<Arc<CheckedTree>>,
    read: OnceLock<Value>,
    /// The tree with all digits, if it differs.
    exact: OnceLock<Value>,
}

/// The tree that was checked, until it is read or taken. All attempts at a call share it.
#[derive(Debug)]
struct CheckedTree {
    checked: Mutex<Option<Value>>,
    /// The tree's share of the bytes of all kept trees. It also counts for the tree of a later
    /// attempt.
    _held: Option<Reservation>,
}

impl Arguments {
    /// Keeps a tree that was checked.
    pub(crate) fn with_tree(tree: Value, held: Option<Reservation>) -> Self {
        let kept = CheckedTree { checked: Mutex::new(Some(tree)), _held: held };
        Self { tree: Some(Arc::new(kept)), ..Self::default() }
    }

    /// Returns the arguments for an attempt at the call. The first attempt that uses the tree takes
    /// it; later ones parse the text again.
    pub(crate) fn of_an_attempt(&self) -> Self {
        Self { tree: self.tree.clone(), ..Self::default() }
    }

    /// Returns the tree of this text.
    pub(crate) fn read(&self, text: &str) -> &Value {
        self.read.get_or_init(|| self.checked().unwrap_or_else(|| parsed(text)))
    }

    /// Returns the tree of this text, with all digits of its whole numbers.
    pub(crate) fn read_exact(&self, text: &str) -> &Value {
        match exact(text, fits) {
            Cow::Borrowed(text) => self.read(text),
            Cow::Owned(text) => self.exact.get_or_init(|| parsed(&text)),
        }
    }

    /// Returns the same tree as [`read_exact`](Self::read_exact), as an owned value.
    pub(crate) fn take_exact(&self, text: &str) -> Value {
        match exact(text, fits) {
            Cow::Borrowed(text) => self.take(text),
            Cow::Owned(text) => {
                drop(self.checked());
                parsed(&text)
            }
        }
    }

    /// Returns the tree of this text as an owned value.
    fn take(&self, text: &str) -> Value {
        self.checked().or_else(|| self.read.get().cloned()).unwrap_or_else(|| parsed(text))
    }

    /// Returns true if a tree is kept.
    #[cfg(test)]
    pub(crate) fn is_kept(&self) -> bool {
        self.tree.as_ref().is_some_and(|kept| kept.checked.lock().is_some())
            || self.read.get().is_some()
    }

    fn checked(&self) -> Option<Value> {
        self.tree.as_ref()?.checked.lock().take()
    }
}

/// Parses the arguments. Blank text is an empty object, as in the check.
fn parsed(text: &str) -> Value {
    parse_measured(if text.trim().is_empty() { "{}" } else { text }).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Fails without: the use of the kept tree.
    #[test]
    fn kept_argument_tree_is_reused_or_reparsed() {
        let kept = Arguments::with_tree(json!({"kept": 1}), None);
        assert_eq!(*kept.read("{}"), json!({"kept": 1}));
        assert_eq!(kept.take("{}"), json!({"kept": 1}), "a copy of what was read");
        let taken = Arguments::with_tree(json!({"kept": 1}), None);
        assert_eq!(taken.take("{}"), json!({"kept": 1}));
        assert!(!taken.is_kept());
        assert_eq!(*taken.read(r#"{"text": 2}"#), json!({"text": 2}));
        assert_eq!(Arguments::default().take(""), json!({}));
    }

    /// Fails without: the tree that attempts share.
    #[test]
    fn attempts_share_one_argument_tree() {
        let kept = Arguments::with_tree(json!({"kept": 1}), None);
        let [first, second] = [kept.of_an_attempt(), kept.of_an_attempt()];
        assert_eq!(first.take("{}"), json!({"kept": 1}));
        assert!(!kept.is_kept() && !second.is_kept());
        assert_eq!(second.take(r#"{"text": 2}"#), json!({"text": 2}));
    }
}
