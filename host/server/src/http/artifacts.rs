//! Routes of artifacts: upload, list, read with ranges, delete.
//!
//! An artifact is content that the server keeps outside of messages; each belongs to a tenant.
//! `POST /v1/artifacts` stores the body and answers with the artifact's URI. `GET` returns the
//! list, or one artifact by its id, whole or one range of bytes; the content is read while it is
//! sent. `DELETE` removes one. A server without an artifact store answers `no_artifacts`.
//!
//! An artifact is sent as a download with its own media type, so that no browser guesses a type or
//! displays it. An unknown artifact, an expired one and another tenant's have the same answer. Not
//! here: the store, in `artifacts/`.

use std::ops::Range;
use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, body::Body};
use bytes::Bytes;
use futures_util::stream;
use http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::problem::{Failed, Problem, Refused};
use super::{Caller, Shared, body, tools};
use crate::artifacts::{Artifact, ArtifactError, ArtifactInfo, Artifacts, BYTES};
use crate::tenants::principal::Principal;
use crate::tenants::refused::RequestError;

/// Bytes of a response that are read at once.
const PIECE: usize = 64 << 10;

/// The query of an upload.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Upload {
    /// The name under which a tool sees the file, for example `input.csv`.
    #[param(pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$")]
    name: Option<String>,
}

/// The artifacts of a tenant.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Listed {
    /// By id.
    artifacts: Vec<ArtifactInfo>,
}

/// Stores the body as an artifact of the tenant. Its `uri` can be given to a tool whose schema has
/// `"format": "toolcell-file"`.
#[utoipa::path(post, path = "/v1/artifacts", operation_id = "upload", params(Upload), security(("bearer" = [])),
    request_body(content = Option<Vec<u8>>, content_type = "application/octet-stream"), responses(
    (status = 201, body = ArtifactInfo, description = "The answer"),
    Refused, Failed,
))]
pub(super) async fn upload(
    Caller { shared, principal, .. }: Caller,
    upload: Result<Query<Upload>, QueryRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let Query(Upload { name }) = upload.map_err(tools::invalid_query)?;
    let artifacts = store(&shared, &principal)?;
    let (parts, received) = request.into_parts();
    let mime_type = match parts.headers.get(CONTENT_TYPE) {
        Some(value) => value.to_str().map_err(|_| problem(ArtifactError::InvalidType))?.to_owned(),
        None => BYTES.to_owned(),
    };
    let limit = artifacts.options().artifact;
    let read = body::read_bytes(&shared, &parts, received, limit).await?;
    let put = move || artifacts.put(principal.tenant(), &read.bytes, name.as_deref(), &mime_type);
    Ok((StatusCode::CREATED, Json(blocking(put).await?)).into_response())
}

/// The artifacts of the tenant.
#[utoipa::path(get, path = "/v1/artifacts", operation_id = "list_artifacts", security(("bearer" = [])), responses(
    (status = 200, body = Listed, description = "The answer"),
    Refused,
))]
pub(super) async fn list(
    Caller { shared, principal, .. }: Caller,
) -> Result<Json<Listed>, Problem> {
    let artifacts = store(&shared, &principal)?;
    blocking(move || Ok(Json(Listed { artifacts: artifacts.list(principal.tenant()) }))).await
}

/// The content of an artifact, or one range of it.
#[utoipa::path(get, path = "/v1/artifacts/{id}", operation_id = "get_artifact", params(("id" = String, Path, description = "The artifact's id")), security(("bearer" = [])), responses(
    (status = 200, body = Vec<u8>, content_type = "application/octet-stream", description = "The content, with its own type"),
    (status = 206, body = Vec<u8>, content_type = "application/octet-stream", description = "The bytes that the header `Range` asks for"),
    (status = 304, description = "The client has the content already: `If-None-Match` has its `ETag`"),
    Refused, Failed,
))]
pub(super) async fn get(
    Caller { shared, principal, .. }: Caller,
    id: Result<Path<String>, PathRejection>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path(id) = id.map_err(|_| tools::invalid_path())?;
    let artifacts = store(&shared, &principal)?;
    let artifact = blocking(move || artifacts.artifact(principal.tenant(), &id)).await?;
    let size = artifact.info.size;
    let tag = format!("\"{}\"", artifact.info.id);
    let text =
        |value: &str| HeaderValue::from_str(value).unwrap_or(HeaderValue::from_static(BYTES));
    if header_text(&headers, IF_NONE_MATCH).is_some_and(|tags| has_tag(tags, &tag)) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, text(&tag))]).into_response());
    }
    // A range of another method is ignored (RFC 9110, 14.2).
    let is_asked = method == Method::GET
        && headers.get(IF_RANGE).is_none_or(|value| value.as_bytes() == tag.as_bytes());
    let range = if is_asked { range(&headers, size) } else { Ranged::Whole };
    let (status, range) = match range {
        Ranged::Whole => (StatusCode::OK, 0..size),
        Ranged::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Ranged::Unsatisfiable => {
            let detail =
                format!("the range begins after the end of the artifact, which has {size} bytes");
            let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "invalid_range", detail);
            let problem = problem.with_hint("request a range that begins within the artifact");
            let size = [(CONTENT_RANGE, format!("bytes */{size}"))];
            return Ok((size, problem).into_response());
        }
    };
    let name = artifact.info.name.as_deref().unwrap_or("artifact");
    let headers = [
        (CONTENT_TYPE, text(&artifact.info.mime_type)),
        (CONTENT_LENGTH, HeaderValue::from(range.end - range.start)),
        // A page that a tool made must not run with this server's origin.
        (CONTENT_DISPOSITION, text(&format!("attachment; filename=\"{name}\""))),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
        (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (ETAG, text(&tag)),
    ];
    let part = (status == StatusCode::PARTIAL_CONTENT)
        .then(|| format!("bytes {}-{}/{size}", range.start, range.end - 1))
        .map(|part| [(CONTENT_RANGE, part)]);
    Ok((status, headers, part, stream_content(artifact, range)).into_response())
}

/// Removes an artifact of the tenant.
#[utoipa::path(delete, path = "/v1/artifacts/{id}", operation_id = "delete_artifact", params(("id" = String, Path, description = "The artifact's id")), security(("bearer" = [])), responses(
    (status = 204, description = "It is removed"),
    Refused, Failed,
))]
pub(super) async fn remove(
    Caller { shared, principal, .. }: Caller,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path(id) = id.map_err(|_| tools::invalid_path())?;
    let artifacts = store(&shared, &principal)?;
    blocking(move || artifacts.remove(principal.tenant(), &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the store, if the principal has access.
fn store(shared: &Shared, principal: &Principal) -> Result<Artifacts, Problem> {
    if !shared.service.serves(principal) {
        return Err(RequestError::NoAccess.into());
    }
    shared.service.artifacts().cloned().ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "artifacts_disabled", "this server keeps no artifacts")
            .with_hint("send the content in the arguments of the call")
    })
}

/// Runs work that blocks on the disk on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ArtifactError> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(problem),
        Err(_) => Err(problem(std::io::Error::other("the work panicked").into())),
    }
}

fn problem(error: ArtifactError) -> Problem {
    let (status, code, hint) = match &error {
        ArtifactError::NotFound => (
            StatusCode::NOT_FOUND,
            "unknown_artifact",
            "upload it again: artifacts are kept for a limited time",
        ),
        ArtifactError::TooLarge { .. } => {
            (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "split the content")
        }
        ArtifactError::Quota => (
            StatusCode::INSUFFICIENT_STORAGE,
            "artifact_quota_exceeded",
            "delete artifacts that are not needed",
        ),
        ArtifactError::InvalidName => {
            (StatusCode::BAD_REQUEST, "invalid_name", "leave the name out, or correct it")
        }
        ArtifactError::InvalidType => {
            (StatusCode::BAD_REQUEST, "invalid_type", "correct the header `Content-Type`")
        }
        ArtifactError::DiskFull(error) => {
            tracing::error!(%error, "the disk of the artifact store is full");
            let hint = "delete artifacts that are not needed, or ask the operator to make room on the disk";
            (StatusCode::INSUFFICIENT_STORAGE, "disk_full", hint)
        }
        ArtifactError::Io(error) => {
            tracing::error!(%error, "the artifact store failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "internal", "try again later")
        }
    };
    Problem::new(status, code, error.to_string()).with_hint(hint)
}

/// The part of the content that a request asks for.
#[derive(Debug, PartialEq)]
enum Ranged {
    Whole,
    Part(Range<u64>),
    Unsatisfiable,
}

/// Returns the range of bytes that a request asks for. Other units and several ranges get the whole
/// content (RFC 9110, 14.2).
fn range(headers: &HeaderMap, size: u64) -> Ranged {
    let asked = header_text(headers, RANGE).and_then(|text| text.strip_prefix("bytes="));
    let Some((first, last)) = asked.and_then(|text| text.trim().split_once('-')) else {
        return Ranged::Whole;
    };
    let has_digits_only = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !has_digits_only(first) || !has_digits_only(last) {
        return Ranged::Whole;
    }
    let number = |text: &str| text.parse().unwrap_or(u64::MAX);
    let part = match (first, last) {
        ("", "") => return Ranged::Whole,
        ("", last) => size.saturating_sub(number(last))..size,
        (first, "") => number(first)..size,
        (first, last) => number(first)..number(last).saturating_add(1).min(size),
    };
    if part.is_empty() { Ranged::Unsatisfiable } else { Ranged::Part(part) }
}

fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn has_tag(tags: &str, tag: &str) -> bool {
    tags.split(',')
        .map(str::trim)
        .any(|known| known == "*" || known.trim_start_matches("W/") == tag)
}

/// Returns a body that reads the content while it is sent.
fn stream_content(artifact: Artifact, range: Range<u64>) -> Body {
    let artifact = Arc::new(artifact);
    Body::from_stream(stream::try_unfold(range, move |range| {
        let artifact = Arc::clone(&artifact);
        async move {
            let left = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
            if left == 0 {
                return Ok(None);
            }
            let at = range.start;
            let piece =
                tokio::task::spawn_blocking(move || artifact.piece(at, left.min(PIECE))).await;
            let piece = Bytes::from(piece.map_err(std::io::Error::other)??);
            let next = at + piece.len() as u64..range.end;
            Ok::<_, std::io::Error>(Some((piece, next)))
        }
    }))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use axum::Router;
    use axum::body::{Body, to_bytes};
    use http::header::{CONTENT_TYPE, HOST, RANGE};
    use http::{HeaderMap, Request};
    use serde_json::{Value, json};
    use toolcell::outcome::{Output, Part};
    use toolcell::{Definition, Registry, Tool};
    use toolcell_test_guests::rows;
    use tower::ServiceExt as _;

    use super::{Ranged, range};
    use crate::artifacts::{ArtifactOptions, Artifacts, Write};
    use crate::http::router;
    use crate::{Authenticator, HttpOptions, ServedTools, Service};

    /// Sends a request to a server with this store. Returns the status and the body.
    async fn send_request(artifacts: &Artifacts, path: &str, body: String) -> (u16, Value) {
        let registry = Registry::new();
        let long = Output::from_message("").with_part(Part::Text { text: "long".repeat(10) });
        let definition = Definition::new("long", "Answers at length.").unwrap();
        let tool = Tool::native(definition, async move |_: Value| long.clone()).unwrap();
        registry.register(tool).unwrap();
        let service = Service::builder(ServedTools::new(&registry)).artifacts(artifacts.clone());
        let service = service.build().unwrap();
        let routes = router(service, Authenticator::open(), HttpOptions::default(), Router::new());
        let request =
            Request::post(path).header(HOST, "localhost").header(CONTENT_TYPE, "application/json");
        let answer = routes.oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// An upload that cannot be stored is refused; content of a result that cannot be stored stays
    /// in the result.
    #[tokio::test]
    async fn full_disk_is_reported_and_fails_no_call() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/artifacts.md");
        let row = "| an upload for which the disk of the server has no room | 507 | `disk_full` |";
        assert!(std::fs::read_to_string(page).unwrap().lines().any(|line| line == row), "{row}");
        let full: [Write; 2] = [
            |_, _| Err(ErrorKind::StorageFull.into()),
            |_, _| Err(ErrorKind::QuotaExceeded.into()),
        ];
        for write in full {
            let options = ArtifactOptions { threshold: 10, ..ArtifactOptions::default() };
            let artifacts = Artifacts::with_write(options, write).unwrap();
            let (status, told) = send_request(&artifacts, "/v1/artifacts", "{}".into()).await;
            assert_eq!((status, &told["code"]), (507, &json!("disk_full")), "{told}");
            assert!(told["hint"].as_str().unwrap().contains("disk"), "{told}");
            let (status, told) =
                send_request(&artifacts, "/v1/calls", json!({"name": "long"}).to_string()).await;
            assert_eq!(status, 200, "{told}");
            let text = &told["outcome"]["ok"]["parts"][0]["text"];
            assert_eq!(*text, "long".repeat(10), "{told}");
            assert!(artifacts.list(None).is_empty(), "nothing is half kept");
        }
        let broken: Write = |_, _| Err(ErrorKind::Other.into());
        let artifacts = Artifacts::with_write(ArtifactOptions::default(), broken).unwrap();
        let (status, told) = send_request(&artifacts, "/v1/artifacts", "{}".into()).await;
        assert_eq!((status, &told["code"]), (500, &json!("internal")), "{told}");
    }

    #[test]
    fn range_is_clamped_to_content_length() {
        for (text, expected) in rows::<(&str, &str)>("http/artifacts", "ranges") {
            let headers = HeaderMap::from_iter([(RANGE, text.parse().unwrap())]);
            assert_eq!(format!("{:?}", range(&headers, 10)), expected, "{text}");
        }
        assert_eq!(range(&HeaderMap::new(), 10), Ranged::Whole);
    }
}
