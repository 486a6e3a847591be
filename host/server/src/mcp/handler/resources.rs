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

/// Asks the store about a tenant, on a thread that may block.
async fn ask_store<T: Send + 'static>(
    artifacts: &Artifacts,
    principal: &Principal,
    ask: impl FnOnce(&Artifacts, Option<&str>) -> T + Send + 'static,
) -> Result<T, ErrorData> {
    let (artifacts, principal) = (artifacts.clone(), principal.clone());
    let asking = tokio::task::spawn_blocking(move || ask(&artifacts, principal.tenant()));
    asking.await.map_err(failed)
}

/// Lists the artifacts of the principal's tenant.
pub(super) async fn list(
    artifacts: &Artifacts,
    principal: &Principal,
) -> Result<Vec<Resource>, ErrorData> {
    let listed = ask_store(artifacts, principal, Artifacts::list).await?;
    Ok(listed.into_iter().map(resource).collect())
}

/// Returns the bytes of memory that an answer with the content of this URI takes while it is made
/// and sent: the content, its text, and the text of the answer. `None`: there is no such content.
pub(in crate::mcp) async fn room(
    artifacts: &Artifacts,
    principal: &Principal,
    uri: &str,
) -> Option<usize> {
    let id = id_of(uri)?.to_owned();
    let info =
        ask_store(artifacts, principal, move |artifacts, tenant| artifacts.info(tenant, &id));
    usize::try_from(info.await.ok()?.ok()?.size.min(MAX_READ)).ok().map(|size| 3 * size)
}

/// Returns the content of an artifact.
pub(super) async fn read(
    artifacts: &Artifacts,
    principal: &Principal,
    uri: String,
) -> Result<ReadResourceResult, ErrorData> {
    ask_store(artifacts, principal, move |artifacts, tenant| {
        let id = id_of(&uri).unwrap_or_default();
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
            let text = format!(
                "the artifact has {} bytes; at most {MAX_READ} can be read at once",
                info.size
            );
            let hint = format!("read it over HTTP: GET /v1/artifacts/{id}");
            let data = json!({"code": "artifact_too_large", "hint": hint});
            return Err(ErrorData::invalid_params(text, Some(data)));
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
    })
    .await?
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
    let value = value.clone();
    let stored = ask_store(artifacts, principal, move |artifacts, tenant| {
        artifacts.put_unrequested(tenant, value.as_str().as_bytes())
    });
    stored.await.ok()?.map(resource).inspect_err(|error| {
        tracing::debug!(%error, tenant = principal.tenant(), "a large value could not be stored as an artifact: it has no link");
    })
    .ok()
}

/// Returns the error of an unknown resource.
pub(super) fn not_found() -> ErrorData {
    let data = json!({"code": "unknown_artifact", "hint": "list the resources: artifacts expire"});
    ErrorData::resource_not_found("there is no such artifact", Some(data))
}

/// Returns the error of a cursor that no page has.
pub(super) fn invalid_cursor() -> ErrorData {
    let hint = "list the resources from the start, without a cursor";
    let data = json!({"code": "invalid_cursor", "hint": hint});
    ErrorData::invalid_params("the cursor is not valid", Some(data))
}

fn resource(info: ArtifactInfo) -> Resource {
    let name = info.name.clone().unwrap_or_else(|| info.link_name());
    let mut resource = Resource::new(info.uri, name);
    resource.mime_type = Some(info.mime_type);
    resource.size = Some(info.size);
    resource
}

fn failed(error: impl std::fmt::Display) -> ErrorData {
    tracing::error!(%error, "the artifact store failed");
    ErrorData::internal_error("the artifact store failed", None)
}
