//! Encodes the result of a call as the text that a model reads.
//!
//! A run and a step call it once a call has ended. The default, [`JsonEncoder`], leaves a string as
//! it is and writes any other value as JSON; a failure becomes `{"error": …}`. An embedder (the
//! program that uses this library) can replace it by an [`Encoder`] of its own. A panic of that
//! encoder is caught and counts as an [`EncodeError`], and the call then fails as
//! `encoding_failed`. If the failure cannot be encoded either, [`fallback`] makes a text, so that
//! no message is lost.
//!
//! Source: docs/contract.md, sections 3 and 5.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::failure::Failure;
use crate::json::Json;
use crate::outcome::Output;
use crate::panic_guard::{catch_panic, into_text};

/// The input of an [`Encoder`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum EncodeInput<'a> {
    /// A handler's success.
    Ok(&'a Output),
    /// The result of a halt, or the value that a policy put in place of a failure.
    Value(&'a Json),
    /// A failure.
    Failure(&'a Failure),
}

/// The error of a result that cannot be encoded, with its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EncodeError(pub String);

/// Encodes results as text for a model. A panic of the encoder counts as an [`EncodeError`].
pub trait Encoder: Send + Sync + 'static {
    /// Returns the text for the model.
    ///
    /// # Errors
    /// [`EncodeError`] if it cannot be encoded. The call then fails as `encoding_failed`, and the
    /// run's policy decides about it.
    fn encode(&self, said: EncodeInput<'_>) -> Result<String, EncodeError>;
}

impl<F> Encoder for F
where
    F: Fn(EncodeInput<'_>) -> Result<String, EncodeError> + Send + Sync + 'static,
{
    fn encode(&self, said: EncodeInput<'_>) -> Result<String, EncodeError> {
        self(said)
    }
}

/// The default encoder: leaves a string as it is, and encodes everything else as JSON. A success
/// whose value is `null` becomes its message. A failure becomes `{"error": message}`, with the
/// handler's `data`.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonEncoder;

impl Encoder for JsonEncoder {
    fn encode(&self, said: EncodeInput<'_>) -> Result<String, EncodeError> {
        match said {
            EncodeInput::Ok(output) => {
                Ok(output.stand_in().map_or_else(|| plain(&output.value), str::to_owned))
            }
            EncodeInput::Value(value) => Ok(plain(value)),
            EncodeInput::Failure(failure) => {
                Ok(failure_text(&failure.to_string(), failure.data().as_deref()))
            }
        }
    }
}

/// Encodes a failure as text for a model, in the same way for runs, steps and views.
pub(crate) fn failure_text(error: &str, data: Option<&Json>) -> String {
    #[derive(Serialize)]
    struct Reported<'a> {
        error: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Json>,
    }
    // Cannot fail: the value contains only strings and checked JSON.
    serde_json::to_string(&Reported { error, data }).unwrap_or_default()
}

/// Returns a string without its quotes, and any other value as its JSON text.
#[doc(hidden)]
pub fn plain(json: &Json) -> String {
    unquoted(json).unwrap_or_else(|| json.as_str().to_owned())
}

/// Does the same as [`plain`] without a copy.
#[doc(hidden)]
pub fn into_plain(json: Json) -> String {
    unquoted(&json).unwrap_or_else(|| json.into_string())
}

fn unquoted(json: &Json) -> Option<String> {
    if !json.as_str().trim_ascii_start().starts_with('"') {
        return None;
    }
    if let Value::String(string) = json.to_value() { Some(string) } else { None }
}

/// Returns the text that a model gets if the encoder fails for a failure as well, so that no
/// message is lost.
#[doc(hidden)]
pub fn fallback(failure: &Failure) -> String {
    failure_text(&failure.to_string(), None)
}

/// A run's encoder, with a panic guard. `None` is [`JsonEncoder`], which cannot panic and avoids a
/// copy.
#[derive(Clone, Default)]
#[doc(hidden)]
pub struct GuardedEncoder(Option<Arc<dyn Encoder>>);

impl GuardedEncoder {
    pub fn new(encoder: impl Encoder) -> Self {
        Self(Some(Arc::new(encoder)))
    }

    pub fn encode(&self, said: EncodeInput<'_>) -> Result<String, EncodeError> {
        self.encode_custom(said).unwrap_or_else(|| JsonEncoder.encode(said))
    }

    /// Returns the text of the embedder's encoder, or `None` if there is no such encoder.
    pub fn encode_custom(&self, said: EncodeInput<'_>) -> Option<Result<String, EncodeError>> {
        let encoder = self.0.as_ref()?;
        let encoded = catch_panic(|| encoder.encode(said));
        Some(encoded.unwrap_or_else(|panic| {
            Err(EncodeError(format!("the encoder panicked: {}", into_text(panic))))
        }))
    }
}

impl fmt::Debug for GuardedEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encoder")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::rows;
    use crate::outcome::HandlerError;

    #[test]
    fn strings_pass_through_and_other_values_are_json() {
        for (value, expected) in rows::<(Value, &str)>(
            "message/encode",
            "strings_pass_through_and_other_values_are_json",
        ) {
            let encoded = JsonEncoder.encode(EncodeInput::Value(&value.into()));
            assert_eq!(encoded, Ok(expected.to_owned()));
        }
    }

    #[test]
    fn failures_are_encoded_as_objects() {
        for (error, expected) in
            rows::<(HandlerError, &str)>("message/encode", "failures_are_encoded_as_objects")
        {
            let encoded = JsonEncoder.encode(EncodeInput::Failure(&Failure::Error(error)));
            assert_eq!(encoded, Ok(expected.to_owned()));
        }
    }

    #[test]
    fn encoder_panic_is_an_error() {
        let encoder = GuardedEncoder::new(|_: EncodeInput<'_>| -> Result<String, EncodeError> {
            panic!("no")
        });
        let encoded = encoder.encode(EncodeInput::Value(&Json::null()));
        assert_eq!(encoded, Err(EncodeError("the encoder panicked: no".into())));
    }
}
