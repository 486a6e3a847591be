//! Offers artifacts as MCP resources.
//!
//! An artifact is content that the server stores for a tenant. The handler of requests
//! (`mcp/handler.rs`) calls this module for `resources/list` and `resources/read`, and after a call
//! whose value is too long for a message, to store the value and link to it. Reading returns text
//! for textual media types and base64 for others, at most 4 MiB. [`room`] tells in advance the
//! bytes of memory that an answer will take, so that the endpoint can refuse it.
//!
//! An unknown artifact, an expired one and another tenant's have the same answer. The store itself
//! is in `artifacts/`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents};
use serde_json::json;
use toolcell::Json;

use crate::artifacts::{ArtifactError, ArtifactInfo, Artifacts, id_of};
use crate::tenants::principal::Principal;

/// The most bytes of a resource in one answer.
const MAX_READ: u64 = 4 << 20;

/// Returns true if the URI is an artifact's.
pub(super) fn is_artifact(uri: &str) -> bool {
    id_of(uri).is_some()
}

/// Lists the artifacts of the principal's tenant.
pub(super) async fn list(
    artifacts: &Artifacts,
    principal: &Principal,
) -> Result<Vec<Resource>, ErrorData> {
    let (artifacts, principal) = (artifacts.clone(), principal.clone());
    let listed = tokio::task::spawn_blocking(move || artifacts.list(principal.tenant()))
        .await
        .map_err(failed)?;
    Ok(listed.into_iter().map(resource).collect())
}

/// Returns the bytes of memory that an answer with the content of this URI takes while it is made
/// and sent: the content, its text, and the text of the answer. `None`: there is no such content.
pub(in crate::mcp) async fn room(
    artifacts: &Artifacts,
    principal: &Principal,
    uri: &str,
) -> Option<usize> {
    let (artifacts, principal, id) = (artifacts.clone(), principal.clone(), id_of(uri)?.to_owned());
    let info = tokio::task::spawn_blocking(move || artifacts.info(principal.tenant(), &id))
        .await
        .ok()?
        .ok()?;
    usize::try_from(info.size.min(MAX_READ)).ok().map(|size| 3 * size)
}

/// Returns the content of an artifact.
pub(super) async fn read(
    artifacts: &Artifacts,
    principal: &Principal,
    uri: String,
) -> Result<ReadResourceResult, ErrorData> {
    let (artifacts, principal) = (artifacts.clone(), principal.clone());
    tokio::task::spawn_blocking(move || read_now(&artifacts, principal.tenant(), &uri))
        .await
        .map_err(failed)?
}

/// Stores a value as an artifact of the principal's tenant. Returns a link to it. `None`: there is
/// no room, or it is too large to be read.
pub(super) async fn store_value(
    artifacts: &Artifacts,
    principal: &Principal,
    value: &Json,
) -> Option<Resource> {
    if value.as_str().len() as u64 > MAX_READ {
        return None;
    }
    let (artifacts, owner, value) = (artifacts.clone(), principal.clone(), value.clone());
    let put = move || artifacts.put_unrequested(owner.tenant(), value.as_str().as_bytes());
    let kept = tokio::task::spawn_blocking(put).await.map_err(failed).ok()?;
    let unkept = |error| {
        tracing::debug!(%error, tenant = principal.tenant(), "a large value could not be stored as an artifact: it has no link");
    };
    kept.map(resource).map_err(unkept).ok()
}

/// Returns the error of an unknown resource.
pub(super) fn not_found() -> ErrorData {
    let data = json!({"code": "unknown_artifact", "hint": "list the resources: artifacts expire"});
    ErrorData::resource_not_found("there is no such artifact", Some(data))
}

fn read_now(
    artifacts: &Artifacts,
    tenant: Option<&str>,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let id = id_of(uri).unwrap_or_default();
    let unread = |error| match error {
        ArtifactError::DiskFull(error) | ArtifactError::Io(error) => failed(error),
        ArtifactError::NotFound
        | ArtifactError::TooLarge { .. }
        | ArtifactError::Quota
        | ArtifactError::InvalidName
        | ArtifactError::InvalidType => not_found(),
    };
    let info = artifacts.info(tenant, id).map_err(unread)?;
    if info.size > MAX_READ {
        let text =
            format!("the artifact has {} bytes; at most {MAX_READ} can be read at once", info.size);
        let hint = format!("read it over HTTP: GET /v1/artifacts/{id}");
        return Err(ErrorData::invalid_params(
            text,
            Some(json!({"code": "artifact_too_large", "hint": hint})),
        ));
    }
    let content = artifacts.read(tenant, id).map_err(unread)?;
    let is_text =
        info.mime_type.starts_with("text/") || info.mime_type.starts_with("application/json");
    let contents = match String::from_utf8(content) {
        Ok(text) if is_text => ResourceContents::text(text, uri),
        Ok(text) => ResourceContents::blob(STANDARD.encode(text), uri),
        Err(bytes) => ResourceContents::blob(STANDARD.encode(bytes.as_bytes()), uri),
    };
    Ok(ReadResourceResult::new(vec![contents.with_mime_type(info.mime_type)]))
}

fn resource(info: ArtifactInfo) -> Resource {
    let name =
        info.name.unwrap_or_else(|| format!("artifact-{}", info.id.get(..12).unwrap_or(&info.id)));
    let mut resource = Resource::new(info.uri, name);
    resource.mime_type = Some(info.mime_type);
    resource.size = Some(info.size);
    resource
}

fn failed(error: impl std::fmt::Display) -> ErrorData {
    tracing::error!(%error, "the artifact store failed");
    ErrorData::internal_error("the artifact store failed", None)
}
