//! Reads the body of a request under limits, and checks that it is JSON.
//!
//! The routes and the MCP endpoint call it after the request was authenticated. It returns the
//! bytes together with [`RequestResources`], which hold the request's slot and the room for its
//! bytes until its work has ended. The bytes of all bodies in memory are bounded; they count as
//! they arrive, and each tenant leaves room for others. A body that is too long, too slow or
//! encoded is refused with a [`Problem`]. Of a body over the limit, at most as much again is read
//! and discarded, because many clients read no answer before they have sent everything.
//!
//! [`parse`] then converts the bytes to a type; it refuses duplicate members, deep nesting and a
//! value that is not an object.
//!
//! Source: docs/threat-model.md, rows 18, 72 and 78.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Limited};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use toolcell::Json;
use toolcell::controls::{bound, enforced};
use toolcell::tenant::{Reservation, ShareRule};

use super::problem::Problem;
use super::{Place, Shared};
use crate::auth::single_header;
use crate::tenants::principal::Principal;
use crate::tenants::share::rule;

/// The code of the problem for a body over the limit.
const TOO_LARGE: &str = "body_too_large";
/// Characters of the beginning and the end of an error.
const DETAIL_ENDS: [usize; 2] = [240, 160];

/// Time limit for a whole body.
const BODY_TIME: Duration = Duration::from_secs(60);
/// Time to read the rest of a body over the limit.
const REST_TIME: Duration = Duration::from_secs(5);

/// A body that was read, and the resources of its request.
pub(crate) struct Read {
    pub(crate) bytes: Bytes,
    pub(crate) resources: RequestResources,
}

/// The resources of a request until its work has ended, even if its connection ends before: its
/// slot among the open requests, and the room for the bytes that it keeps in memory.
#[derive(Debug)]
pub(crate) struct RequestResources {
    room: Mutex<Reservation>,
    rule: ShareRule,
    _place: Option<Place>,
}

/// Returns what the work of a request keeps of the request's resources until it has ended.
pub(crate) fn kept_by_work<T>(resources: T) -> Option<T> {
    enforced!(WorkPlaces).then_some(resources)
}

impl RequestResources {
    /// Reserves room for `bytes` more. Returns true if there was room.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        self.room.lock().grow_by(bytes as u64, self.rule).is_ok()
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
        let (code, detail) = ("unsupported_media_type", "the body is not declared as JSON");
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code, detail)
            .with_hint("send the header `Content-Type: application/json`"));
    }
    read_bytes(shared, parts, body, shared.options.body).await
}

/// Reads a body of any type with at most `limit` bytes. Counts a refusal.
pub(super) async fn read_bytes(
    shared: &Shared,
    parts: &Parts,
    mut body: Body,
    limit: usize,
) -> Result<Read, Problem> {
    let principal = parts.extensions.get::<Principal>().cloned().unwrap_or_else(Principal::local);
    let read = if is_plain(&parts.headers) {
        let place = parts.extensions.get::<Place>().cloned();
        let read = read_within(shared, &principal, &mut body, limit, place).await;
        let is_too_large = read.as_ref().is_err_and(|problem| problem.code == TOO_LARGE);
        if is_too_large && !parts.headers.contains_key(EXPECT) {
            discard_rest(body, limit).await;
        }
        read
    } else {
        let detail = "the header `Content-Encoding` says that the body is compressed or encoded: this server decodes no body";
        let problem =
            Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding", detail);
        Err(problem.with_hint("send the body as it is, without `Content-Encoding`"))
    };
    read.inspect_err(|problem| shared.service.refused(&principal, problem.code))
}

/// Reads and discards the rest of a body over the limit, if it is at most about as much again. Many
/// clients read no answer before they have sent the whole body, and would see only a closed
/// connection.
async fn discard_rest(body: Body, limit: usize) {
    if body.size_hint().lower() > 2 * limit as u64 {
        return;
    }
    let rest = async {
        let mut rest = Limited::new(body, limit);
        while let Some(Ok(_)) = rest.frame().await {}
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
    let rule = rule(shared.service.is_shared() && enforced!(BodyShare));
    let mut room = shared.bodies.hold(principal.state());
    let idle = shared.options.body_idle;
    let too_large = || {
        let detail = format!("the body is longer than {limit} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE, detail)
    };
    let most = bound!(BodyBytes, limit);
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let end = Instant::now() + BODY_TIME;
    let mut bytes = BytesMut::new();
    loop {
        let next = (Instant::now() + idle.min(BODY_TIME)).min(end);
        let frame = tokio::time::timeout_at(next, body.frame()).await.map_err(|_| {
            let detail = "the body did not arrive in time";
            Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", detail)
        })?;
        let data = match frame {
            None => break,
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(_)) => {
                return Err(Problem::bad_request("incomplete_body", "the body ended too early"));
            }
        };
        let length = bytes.len() + data.len();
        if length > most {
            return Err(too_large());
        }
        if room.grow_to(length as u64, rule).is_err() {
            return Err(busy());
        }
        bytes.extend_from_slice(&data);
    }
    let resources = RequestResources { room: Mutex::new(room), rule, _place: place };
    Ok(Read { bytes: bytes.freeze(), resources })
}

/// Returns the problem of a request for whose bytes there is no room now.
pub(super) fn busy() -> Problem {
    let detail = "the server holds as many bytes of requests as it may";
    let busy = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail);
    busy.with_retry_after(Duration::from_secs(1))
}

/// Parses the body. Duplicate members, deep nesting and trailing text are refused.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|_| bad("the body is not UTF-8".into()))?;
    Json::check(text).map_err(|fault| bad(format!("the body is {fault}")))?;
    // Derived code would also accept an array, by the order of the members.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(bad("the body does not fit: an object is expected".into()));
    }
    serde_json::from_str(text).map_err(|error| {
        // Tracking the path costs time: the text is parsed again with it only after a fault.
        let again =
            serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_str(text));
        let path = again.err().map(|again| again.path().to_string());
        invalid_member(&path.unwrap_or_default(), &error)
    })
}

/// Returns the problem of a member that does not fit, at this path; `.` is the whole body.
pub(super) fn invalid_member(path: &str, error: &serde_json::Error) -> Problem {
    let member = match path {
        "" | "." => String::new(),
        path => {
            // Cut before it is escaped, which can make it six times as long.
            let beginning: String = path.chars().take(DETAIL_ENDS[0]).collect();
            format!("`{}`: ", beginning.escape_debug())
        }
    };
    bad(format!("the body does not fit: {member}{error}"))
}

/// Returns the problem of a body. The middle of a long detail is cut out, because it can repeat
/// members of the body. Its end says what is expected, and where.
fn bad(detail: String) -> Problem {
    let [beginning, end] = DETAIL_ENDS;
    let cut = detail.chars().count().saturating_sub(beginning + end);
    let detail = if cut == 0 {
        detail
    } else {
        let kept = detail.chars().take(beginning).chain(['…']);
        kept.chain(detail.chars().skip(beginning + cut)).collect()
    };
    Problem::bad_request("invalid_body", detail).with_hint("GET /openapi.json describes the body")
}

/// Returns true if the body has no content coding.
fn is_plain(headers: &HeaderMap) -> bool {
    headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Returns true if the body is declared as `application/json`, with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let Ok(Some(kind)) = single_header(headers, CONTENT_TYPE) else { return false };
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::forms::CallBody;

    #[test]
    fn problem_of_a_long_member_is_short() {
        let long = "x".repeat(1 << 20);
        for (body, expected) in [
            (format!(r#"{{"{long}": 1}}"#), "`, expected one of `id`, `name`, "),
            (format!(r#"{{"limits": {{"{long}": 1}}}}"#), "`, expected `timeout_ms` or `fuel` at"),
            (format!(r#"{{"limits": {{"fuel": "{long}"}}}}"#), "`limits.fuel`: "),
            (format!(r#"{{"limits": "{long}"}}"#), "`limits`: "),
            (format!(r#"{{"{long}": 1, "{long}": 2}}"#), "` appears twice in one object at"),
        ] {
            let detail = parse::<CallBody>(body.as_bytes()).unwrap_err().detail;
            let beginning: String = detail.chars().take(600).collect();
            assert!(detail.contains(expected), "{beginning} lacks {expected}");
            assert!(detail.len() < 600, "{} bytes: {beginning}", detail.len());
        }
    }
}
