//! The failure that a tool reports.

use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::json::Json;

/// A failure of the tool. A model reads the message, so say what went wrong and what to change.
///
/// Every type that is `Display` converts into a failure, so `?` works on every error. Therefore
/// `Failure` itself is neither `Display` nor `Error`: read [`Failure::message`].
///
/// ```
/// use std::time::Duration;
/// use toolcell_guest::{Failure, json, tool};
///
/// /// Halves an even number.
/// #[tool]
/// fn half(number: String) -> Result<i64, Failure> {
///     let number: i64 = number.parse()?;
///     if number % 2 != 0 {
///         return Err(Failure::new("the number is odd: give an even one").data(json!({ "number": number })));
///     }
///     Ok(number / 2)
/// }
///
/// assert_eq!(half("8".into()), Ok(4));
/// let parsed = half("eight".into()).expect_err("not a number");
/// assert_eq!(parsed.message(), "invalid digit found in string");
///
/// let busy = Failure::new("the service is busy").retry_after(Duration::from_secs(2));
/// assert_eq!(busy.is_retryable(), Some(true));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub(crate) message: String,
    pub(crate) data: Option<Json>,
    pub(crate) retryable: Option<bool>,
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    /// A failure with this message and no details.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), data: None, retryable: None, retry_after: None }
    }

    /// Adds details for programs.
    #[must_use]
    pub fn data(mut self, data: impl Serialize) -> Self {
        self.data = Some(Json::of(&data));
        self
    }

    /// Sets whether the same call may succeed later.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = Some(retryable);
        self
    }

    /// Sets the time after which to try again. The failure is then retryable unless set otherwise.
    ///
    /// # Units
    /// Sent as whole milliseconds, rounded up.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self.retryable.get_or_insert(true);
        self
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The details, if there are any.
    pub fn details(&self) -> Option<Value> {
        self.data.as_ref()?.parse()
    }

    /// `Some(true)` if the same call may succeed later. `None` if the tool does not say.
    pub fn is_retryable(&self) -> Option<bool> {
        self.retryable
    }

    pub(crate) fn unwritable(what: &str, problem: &str) -> Self {
        Self::new(format!("the tool's {what} cannot be written as JSON: {problem}"))
    }
}

impl<E: Display> From<E> for Failure {
    /// Takes the error's text in alternate form, which for `anyhow::Error` is the whole chain of
    /// causes.
    fn from(error: E) -> Self {
        Self::new(format!("{error:#}"))
    }
}
