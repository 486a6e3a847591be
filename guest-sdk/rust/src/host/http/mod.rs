//! HTTP requests to servers that an operator grants. A request and its response are each held in
//! memory as a whole.
//!
//! ```
//! use toolcell_guest::{Failure, http};
//!
//! fn temperature(city: &str) -> Result<f64, Failure> {
//!     let answer = http::get("https://api.example.com/v1/now").query("city", city).send()?.success()?;
//!     Ok(answer.json()?)
//! }
//!
//! http::answer_with(|request| {
//!     assert_eq!(request.url(), "https://api.example.com/v1/now?city=S%C3%A3o%20Paulo");
//!     Ok(http::Response::new(200).with_body("31.5"))
//! });
//! assert_eq!(temperature("São Paulo"), Ok(31.5));
//! ```
//!
//! Redirects are not followed: the response has the redirect's status and `location`. Crates that
//! use `wasi:http` work under the same grants. In native tests, [`answer_with`] answers the
//! requests.

mod error;
mod response;

use std::time::Duration;

use serde::Serialize;

use super::imports;
use super::secrets::Secret;
use crate::json::Json;

pub use error::Error;
pub use response::Response;

/// A request that is not sent yet.
#[derive(Clone, Debug)]
#[must_use = "a request is sent only by `send`"]
pub struct Request<'a> {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) secret: Option<&'a Secret>,
    /// The reason why the request cannot be sent, found while it was built.
    problem: Option<String>,
}

macro_rules! methods {
    ($($function:ident $method:literal,)*) => { $(
        #[doc = concat!("A `", $method, "` of this URL: absolute, `http` or `https`.")]
        pub fn $function<'a>(url: impl Into<String>) -> Request<'a> {
            Request::new($method, url.into())
        }
    )* };
}

methods! {
    get "GET",
    head "HEAD",
    options "OPTIONS",
    post "POST",
    put "PUT",
    patch "PATCH",
    delete "DELETE",
}

impl<'a> Request<'a> {
    fn new(method: &'static str, mut url: String) -> Self {
        // A fragment is never sent, and a query that is appended after it would be lost.
        url.truncate(url.find('#').unwrap_or(url.len()));
        Self {
            method,
            url,
            headers: Vec::new(),
            body: None,
            timeout: None,
            secret: None,
            problem: None,
        }
    }

    /// Adds a header. The host sets `host`, `content-length` and the headers of the connection.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a pair to the URL's query, percent-encoded. Use it for text that a model wrote.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.url.push(if self.url.contains('?') { '&' } else { '?' });
        encode(name, &mut self.url);
        self.url.push('=');
        encode(value, &mut self.url);
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sets the body to this value as JSON, and the header `content-type`. If the value cannot be
    /// written as JSON, [`Request::send`] fails.
    pub fn json(mut self, value: impl Serialize) -> Self {
        match Json::of(&value).text() {
            Ok(text) => self.header("content-type", "application/json").body(text),
            Err(problem) => {
                self.problem = Some(format!("its body cannot be written as JSON: {problem}"));
                self
            }
        }
    }

    /// Has the host put a secret into the request. The operator chooses the place: a header or the
    /// query.
    pub fn secret(mut self, secret: &'a Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Sets the time limit of the whole request. The remaining time of the call also limits it.
    ///
    /// # Units
    /// Sent as whole milliseconds, rounded up.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends the request and waits for the whole response, whatever its status. To accept only
    /// success, call [`Response::success`] on it.
    ///
    /// # Errors
    /// [`Error`].
    pub fn send(self) -> Result<Response, Error> {
        match self.problem {
            None => imports::send(self),
            Some(problem) => Err(Error::Invalid(problem)),
        }
    }
}

/// Accessors for native tests, which check what was sent.
impl Request<'_> {
    /// The method, `GET` for instance.
    #[must_use]
    pub fn method(&self) -> &str {
        self.method
    }

    /// The URL with its query.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The value of the first header with this name, ignoring case.
    #[must_use]
    pub fn sent_header(&self, name: &str) -> Option<&str> {
        response::find(&self.headers, name)
    }

    /// The body, if there is one.
    #[must_use]
    pub fn sent_body(&self) -> Option<&[u8]> {
        self.body.as_deref()
    }

    /// The name of the secret that the host would put into the request.
    #[must_use]
    pub fn secret_name(&self) -> Option<String> {
        self.secret.map(Secret::name)
    }
}

/// For native tests: lets this function answer the requests of this thread from now on. In a cell
/// it does nothing.
pub fn answer_with(answer: impl Fn(&Request<'_>) -> Result<Response, Error> + 'static) {
    imports::answer_with(answer);
}

/// Percent-encodes all characters except the unreserved ones of RFC 3986.
fn encode(text: &str, into: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(byte.into());
        } else {
            into.extend([
                '%',
                HEX[usize::from(byte >> 4)].into(),
                HEX[usize::from(byte & 15)].into(),
            ]);
        }
    }
}
