//! The body of a request: read under limits, and checked to be JSON.
//!
//! Invariants: a body is read after its request was authenticated; the bytes of all bodies that are
//! kept are bounded, and they count as they arrive; one tenant leaves room to others; of a body
//! that is longer than allowed, at most as much again is read, and kept nowhere.
//! Source: docs/threat-model.md, rows 18, 72 and 78.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use toolcell::Json;
use toolcell::defence::{Defence, stands};

use super::problem::Problem;
use super::{Place, Shared};
use crate::principal::Principal;
use crate::share::Share;

/// The code of a body that is longer than allowed.
const TOO_LARGE: &str = "body_too_large";
/// Characters of a member's path that an error shows.
const MAX_PATH: usize = 200;

/// Time for the rest of a body that is longer than allowed.
const REST_TIME: Duration = Duration::from_secs(5);

/// A body that was read, and what its request holds.
pub(crate) struct Read {
    pub(crate) bytes: Bytes,
    pub(crate) held: Held,
}

/// What a request holds until its work has ended, also if its connection ends before: its place
/// among the open requests, and room for the bytes that it makes the server keep.
#[derive(Debug)]
pub(crate) struct Held {
    room: Mutex<Share>,
    is_shared: bool,
    _place: Option<Place>,
}

impl Held {
    /// Takes room for so many more bytes. Returns whether there was room.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        self.room.lock().grow_by(bytes, self.is_shared)
    }
}

/// Reads a JSON body.
pub(super) async fn read(shared: &Shared, request: Request) -> Result<Read, Problem> {
    let (parts, body) = request.into_parts();
    read_parts(shared, &parts, body).await
}

/// Reads the JSON body of the request with these parts.
pub(crate) async fn read_parts(
    shared: &Shared,
    parts: &Parts,
    body: Body,
) -> Result<Read, Problem> {
    if !is_json(&parts.headers) {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "the body is not declared as JSON",
        )
        .with_hint("send the header `Content-Type: application/json`"));
    }
    let limit = shared.options.body;
    read_bytes(shared, parts, body, limit).await
}

/// Reads a body of any type that has at most so many bytes. A refusal is counted.
pub(super) async fn read_bytes(
    shared: &Shared,
    parts: &Parts,
    body: Body,
    limit: usize,
) -> Result<Read, Problem> {
    let principal = parts.extensions.get::<Principal>().cloned().unwrap_or_else(Principal::local);
    let read = match is_plain(&parts.headers) {
        true => {
            let mut body = body;
            let place = parts.extensions.get::<Place>().cloned();
            let read = read_within(shared, &principal, &mut body, limit, place).await;
            if read.as_ref().is_err_and(|problem| problem.code == TOO_LARGE) && !parts.headers.contains_key(EXPECT) {
                drop_rest(body, limit).await;
            }
            read
        }
        false => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_encoding",
            "the header `Content-Encoding` says that the body is compressed or encoded: this server decodes no body",
        )
        .with_hint("send the body as it is, without `Content-Encoding`")),
    };
    read.inspect_err(|problem| shared.service.refused(&principal, problem.code))
}

/// Reads what is left of a body that is longer than allowed, if it is about as much again. Many
/// clients read no answer before they have sent the whole body, and a connection that is closed
/// before would be all that they see.
async fn drop_rest(mut body: Body, limit: usize) {
    if body.size_hint().lower() > 2 * limit as u64 {
        return;
    }
    let rest = async {
        let mut left = limit;
        while let Some(Ok(frame)) = body.frame().await {
            let Some(less) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else {
                break;
            };
            left = less;
        }
    };
    let _ = tokio::time::timeout(REST_TIME, rest).await;
}

async fn read_within(
    shared: &Shared,
    principal: &Principal,
    body: &mut Body,
    limit: usize,
    place: Option<Place>,
) -> Result<Read, Problem> {
    let is_shared = shared.service.is_shared();
    let mut room = shared.bodies.share(principal);
    let idle = shared.options.body_idle;
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            TOO_LARGE,
            format!("the body is longer than {limit} bytes"),
        )
    };
    if body.size_hint().lower() > limit as u64 && stands(Defence::BodyBytes) {
        return Err(too_large());
    }
    let end = Instant::now() + shared.options.body_time;
    let mut bytes = BytesMut::new();
    loop {
        let next = (Instant::now() + idle).min(end);
        let frame = tokio::time::timeout_at(next, body.frame()).await.map_err(|_| {
            Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "body_timeout",
                "the body did not arrive in time",
            )
        })?;
        let data = match frame {
            None => break,
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(_)) => {
                return Err(Problem::new(
                    StatusCode::BAD_REQUEST,
                    "body_incomplete",
                    "the body ended too early",
                ));
            }
        };
        if bytes.len() + data.len() > limit && stands(Defence::BodyBytes) {
            return Err(too_large());
        }
        if !room.grow_to(bytes.len() + data.len(), is_shared) {
            let detail = "the server holds as many bytes of requests as it may";
            let busy = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail);
            return Err(busy.with_retry_after(Duration::from_secs(1)));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Read {
        bytes: bytes.freeze(),
        held: Held { room: Mutex::new(room), is_shared, _place: place },
    })
}

/// The body as a form. Duplicate members, deep nesting and trailing text are refused.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|_| bad("the body is not UTF-8".into()))?;
    Json::check(text).map_err(|fault| bad(format!("the body is {fault}")))?;
    // Derived code would read an array as well, by the order of the members.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(bad("the body does not fit: an object is expected".into()));
    }
    serde_json::from_str(text).map_err(|error| {
        // To keep the path costs time: it is looked for where it is needed.
        let again =
            serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_str(text));
        unfit(&again.err().map(|again| again.path().to_string()).unwrap_or_default(), &error)
    })
}

/// The member at this path does not fit; `.` is the whole body.
pub(super) fn unfit(path: &str, error: &serde_json::Error) -> Problem {
    let path: String = path.chars().take(MAX_PATH).flat_map(char::escape_debug).collect();
    let member = if ["", "."].contains(&&*path) { String::new() } else { format!("`{path}`: ") };
    bad(format!("the body does not fit: {member}{error}"))
}

fn bad(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad_body", detail)
        .with_hint("GET /openapi.json describes the body")
}

/// Whether the body is sent as it is.
fn is_plain(headers: &HeaderMap) -> bool {
    headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Whether the body is declared as `application/json`, with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(kind), None) = (types.next(), types.next()) else { return false };
    let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}
