//! Secrets that the host provides to a tool.
//!
//! A [`Secret`] is a handle: [`http::Request::secret`](crate::http::Request::secret) has the host
//! put its value into a request, and the tool never sees it. [`reveal`] is for the rare tool that
//! must compute with the value.
//!
//! In native tests, [`set`] provides secrets:
//!
//! ```
//! use toolcell_guest::{Failure, http, secrets, tool};
//!
//! /// Tells the weather of a city.
//! #[tool(needs = [
//!     http("GET https://api.example.com/v1", "to look up the weather"),
//!     secret("weather_key", "to authenticate there"),
//! ])]
//! fn weather(city: String) -> Result<f64, Failure> {
//!     let key = secrets::get("weather_key")?;
//!     let answer = http::get("https://api.example.com/v1/now").query("city", &city).secret(&key).send()?.success()?;
//!     Ok(answer.json()?)
//! }
//!
//! // Without the secret, the error says what to grant.
//! assert!(weather("Bern".into()).is_err());
//!
//! secrets::set("weather_key", "not a real key");
//! http::answer_with(|_| Ok(http::Response::new(200).with_body("21.5")));
//! assert_eq!(weather("Bern".into()), Ok(21.5));
//! ```

use std::fmt;

use super::imports;

/// A handle of a secret, without its value.
#[derive(Debug)]
pub struct Secret(pub(crate) imports::Secret);

impl Secret {
    /// The name of the secret.
    pub fn name(&self) -> String {
        self.0.name()
    }
}

/// The reason why a secret is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The tool does not have the grant. The text says what the operator can grant.
    Denied(String),
    /// The secret is granted, but the host does not have its value now.
    Unavailable(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(sentence) => f.write_str(sentence),
            Self::Unavailable(problem) => write!(f, "the secret is not available: {problem}"),
        }
    }
}

impl std::error::Error for Error {}

/// Returns a handle of the secret with this name, without its value. Needs the grant `secret`.
///
/// # Errors
/// [`Error`].
pub fn get(name: &str) -> Result<Secret, Error> {
    imports::secret(name).map(Secret)
}

/// Returns the value of the secret with this name. Needs the grant `reveal`.
///
/// Operators rarely grant it: a tool that reads a value can send it to every host that it is
/// granted. For a request use [`get`].
///
/// # Errors
/// [`Error`].
pub fn reveal(name: &str) -> Result<String, Error> {
    imports::reveal(name)
}

/// For native tests: sets a secret of this thread. In a cell it does nothing.
pub fn set(name: impl Into<String>, value: impl Into<String>) {
    imports::set_secret(name.into(), value.into());
}
