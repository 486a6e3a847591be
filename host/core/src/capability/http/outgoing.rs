//! Converts a tool's request to the HTTP/1.1 request that is written to the connection.
//!
//! An [`Outgoing`] is the request as the tool asked for it. `into_request` checks its headers, adds
//! `host`, the credentials, `connection: close` and the length, and returns a request in
//! origin-form (path and query only). It is refused if it sets a header that only the host may set,
//! if it has more than 100 headers or more than 64 KiB of them, if a credential is not granted for
//! it, or if the tool already set the header or parameter of a credential.
//! Invariants: there is one `host` header, that of the checked target. Only the host sets headers
//! about length, connection and forwarding. No byte is written that some parsers of HTTP read as
//! the end of a header and others do not.
//! Source: RFC 9112; docs/contract.md, section 7.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, IF_RANGE, RANGE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use http_body_util::Full;
use toolcell_contract::controls::enforced;
use toolcell_contract::grants::{Method, Target};

use super::credential::{Credential, InjectionPoint};
use super::send_error::invalid;
use super::{MAX_HEAD, MAX_HEADERS, SendError};

/// Headers that only the host sets, because they define where a message ends, its recipient, or the
/// path that it took.
const FORBIDDEN: [&str; 18] = [
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-real-ip",
    // Some servers take the method, path or host from these headers, which would bypass the check.
    "x-http-method",
    "x-method-override",
    "x-http-method-override",
    "x-host",
    "x-http-host-override",
];
/// Prefixes of further headers that only the host sets.
const FORBIDDEN_BEGINNINGS: [&str; 4] = ["proxy-", "x-forwarded-", "x-original-", "x-rewrite-"];

/// A request as a tool asks for it.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    /// Its method.
    pub(crate) method: Method,
    /// The URL of the request.
    pub(crate) target: Target,
    /// Names and values, in the order in which they are sent.
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    /// The body. An empty body is not sent.
    pub(crate) body: Bytes,
    /// Time limit of the request. It cannot exceed the call's deadline.
    pub(crate) timeout: Option<Duration>,
    /// Time limits of the request's parts.
    pub(crate) times: Times,
}

/// Time limits of the parts of a request, each counted by itself; zero is the shortest time, not
/// unlimited time. Source: `wasi:http`, `request-options`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    /// From the request to a connection: the wait for a free one, name lookup, connecting and TLS.
    pub(crate) connect: Option<Duration>,
    /// From the connection to the head of the response, including the upload of the request's body.
    pub(crate) first_byte: Option<Duration>,
    /// Each wait for the next piece of the response's body.
    pub(crate) between_bytes: Option<Duration>,
}

impl Outgoing {
    /// Returns the request's deadline, at most the call's.
    pub(super) fn deadline(&self, call: Instant) -> Instant {
        let own = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        own.map_or(call, |own| own.min(call))
    }

    /// Returns the request as it is written. Credentials are added last, after the tool's own
    /// headers were checked.
    pub(super) fn into_request(
        self,
        credentials: &[Credential],
    ) -> Result<http::Request<Full<Bytes>>, SendError> {
        let Self { method, mut target, headers, body, timeout: _, times: _ } = self;
        let given = checked(&headers)?;
        let mut all = HeaderMap::new();
        all.insert(HOST, value("host", target.authority().as_bytes())?);
        all.extend(given);
        for credential in credentials {
            if !credential.bound_to.covers(method, &target) && enforced!(SecretBinding) {
                // The error does not quote the rule, so that a tool does not learn which hosts
                // accept the secret.
                let problem = "is not for this request: see `destination` in its grant";
                return Err(invalid(format!("the secret `{}` {problem}", credential.name)));
            }
        }
        let is_partial = [RANGE, IF_RANGE].iter().any(|name| all.contains_key(name));
        if !credentials.is_empty() && is_partial && enforced!(WholeAnswers) {
            let problem = "with a secret it must not ask for a part of the response";
            return Err(invalid(format!("{problem} (`range`, `if-range`)")));
        }
        let guards_places = enforced!(SecretPlace);
        let taken = |place: &str, name: &str| {
            let problem = "the tool must not set it";
            invalid(format!("the host puts a secret into the {place} `{name}`: {problem}"))
        };
        for credential in credentials {
            match &credential.placing {
                InjectionPoint::Header(name, _) if is_forbidden(name.as_str()) && guards_places => {
                    let problem = "cannot carry a secret: name another header in the grant";
                    return Err(invalid(format!("the header `{name}` {problem}")));
                }
                InjectionPoint::Header(name, _) if all.contains_key(name) && guards_places => {
                    return Err(taken("header", name.as_str()));
                }
                InjectionPoint::Header(name, value) => {
                    all.insert(name, value.clone());
                }
                InjectionPoint::Query(name, _) if has_parameter(&target, name) => {
                    return Err(taken("parameter", name));
                }
                InjectionPoint::Query(name, secret) => {
                    target = target.with_query_pair(name, secret.expose())
                }
            }
        }
        // Each connection is used once.
        all.insert(CONNECTION, HeaderValue::from_static("close"));
        if !body.is_empty() || matches!(method, Method::Post | Method::Put | Method::Patch) {
            all.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let mut request = http::Request::new(Full::new(body));
        *request.method_mut() = http::Method::from_bytes(method.as_str().as_bytes())
            .map_err(|_| invalid("its method is unknown to HTTP"))?;
        *request.uri_mut() = origin_form(&target)?;
        *request.headers_mut() = all;
        Ok(request)
    }
}

/// Returns the bytes of a request, as far as the tool chose them.
pub(super) fn size(request: &http::Request<Full<Bytes>>, body: usize) -> u64 {
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    (path + head_size(request.headers()) + body) as u64
}

/// Returns the bytes of all headers.
pub(super) fn head_size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

fn checked(headers: &[(String, Vec<u8>)]) -> Result<HeaderMap, SendError> {
    if headers.len() > MAX_HEADERS {
        return Err(invalid(format!("it has more than {MAX_HEADERS} headers")));
    }
    if headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > MAX_HEAD {
        return Err(invalid(format!("its headers have more than {MAX_HEAD} bytes")));
    }
    let mut all = HeaderMap::new();
    for (written, bytes) in headers {
        let name = HeaderName::from_bytes(written.as_bytes()).map_err(|_| {
            invalid(format!("`{}` is not a valid name of a header", quoted(written)))
        })?;
        if is_forbidden(name.as_str()) && enforced!(OwnHeaders) {
            let name = quoted(name.as_str());
            return Err(invalid(format!("the tool must not set the header `{name}`")));
        }
        let value = value(name.as_str(), bytes)?;
        all.append(name, value);
    }
    Ok(all)
}

/// Returns true if only the host may set this header. Reads `_` as `-`, as some servers do.
fn is_forbidden(name: &str) -> bool {
    let name = name.replace('_', "-");
    FORBIDDEN.contains(&name.as_str())
        || FORBIDDEN_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Refuses values with control characters, such as line breaks.
fn value(name: &str, bytes: &[u8]) -> Result<HeaderValue, SendError> {
    HeaderValue::from_bytes(bytes).map_err(|_| {
        invalid(format!("the header `{}` has a value with a control character", quoted(name)))
    })
}

fn has_parameter(target: &Target, name: &str) -> bool {
    let query = target.query().unwrap_or_default();
    url::form_urlencoded::parse(query.as_bytes())
        .any(|(parameter, _)| parameter.eq_ignore_ascii_case(name))
}

fn origin_form(target: &Target) -> Result<Uri, SendError> {
    let path = match target.query() {
        Some(query) => PathAndQuery::try_from(format!("{}?{query}", target.path())),
        None => PathAndQuery::try_from(target.path()),
    };
    path.map(Uri::from)
        .map_err(|_| invalid("its path or its query has a character that HTTP does not allow"))
}

/// Shortens untrusted text and replaces its control characters.
fn quoted(word: &str) -> String {
    word.chars().take(60).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
