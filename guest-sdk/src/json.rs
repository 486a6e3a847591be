//! Values on their way to JSON text: written once, when the author hands them over; a failure is kept, not thrown.
//!
//! Invariant: whoever builds a `Json` never sees an error; whoever reads one must decide what a failure becomes.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// JSON text, or why the author's value could not become any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Json(Result<String, String>);

impl Json {
    pub(crate) fn of(value: &(impl Serialize + ?Sized)) -> Self {
        Self(serde_json::to_string(value).map_err(|error| error.to_string()))
    }

    pub(crate) fn text(self) -> Result<String, String> {
        self.0
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }

    /// The value again, for tests and for reading back. None where there is no such value.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.0.as_deref().ok()?).ok()
    }
}
