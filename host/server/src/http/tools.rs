//! Routes that list tools: one page of them, or one tool by its name.
//!
//! `GET /v1/tools` returns the tools that the principal (the authenticated sender: a key or user of
//! a tenant) sees, sorted by name, with a cursor for the next page; `GET /v1/tools/{name}` returns
//! one. The parameter `format` chooses the library's own definitions (the default) or the format of
//! a model provider, such as `openai`. Some definitions cannot be expressed in a provider's format.
//! The list leaves them out or changes them and says so in `notes`; the route of one tool refuses a
//! tool that cannot be expressed.
//!
//! Not here: the choice of the visible tools, in `service/catalogue.rs`.

use std::str::FromStr as _;
use std::sync::LazyLock;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolcell::tenant::PerTenant;
use toolcell::{Provider, Tool};

use super::Caller;
use super::problem::{Problem, Refused};
use super::schemas::{ListedTool, Note};
use crate::service::catalogue::Page;
use crate::tenants::principal::Principal;

/// Characters of a query's fault in an error.
const QUERY_PROBLEM: usize = 200;

/// The query of a list of tools.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Listing {
    /// The format: `toolcell` (the default), `openai`, `openai-responses`, `anthropic`, `gemini`,
    /// `mcp` or `agui`.
    #[param(schema_with = formats)]
    format: Option<String>,
    /// The beginning of the page: `next_cursor` of the page before.
    cursor: Option<String>,
}

/// One page of the tools, sorted by name.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Tools {
    /// The tools, in the requested format.
    #[schema(value_type = Vec<ListedTool>)]
    tools: Value,
    /// The parts that the format could not express, and their changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Note>, required = false)]
    notes: Vec<toolcell::provider::Note>,
    /// The beginning of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Lists the tools that the principal sees, sorted by name, page by page.
#[utoipa::path(get, path = "/v1/tools", operation_id = "list_tools", params(Listing), security(("bearer" = [])), responses(
    (status = 200, body = Tools, description = "The answer"),
    Refused,
))]
pub(super) async fn list(
    Caller { shared, principal, .. }: Caller,
    listing: Result<Query<Listing>, QueryRejection>,
) -> Result<Json<Tools>, Problem> {
    let Query(Listing { format, cursor }) = listing.map_err(invalid_query)?;
    let provider = provider(format.as_deref())?;
    let Page { tools, next, .. } = shared.service.tools(&principal, cursor.as_deref()).await?;
    // A page may be empty and have a next one: the format may not express any tool of it.
    let (tools, notes) = match provider {
        Some(provider) => {
            let convert = move || provider.page(tools.iter().map(Tool::definition));
            let page = in_turn(&principal, convert).await?;
            (page.value, page.notes)
        }
        None => (tools.iter().map(|tool| json!(tool.definition())).collect(), Vec::new()),
    };
    Ok(Json(Tools { tools, notes, next_cursor: next }))
}

/// One tool, as an item of the list.
#[utoipa::path(get, path = "/v1/tools/{name}", operation_id = "get_tool", params(("name" = String, Path, description = "The tool's name"), Listing), security(("bearer" = [])), responses(
    (status = 200, body = ListedTool, description = "The answer"),
    Refused,
))]
pub(super) async fn one(
    Caller { shared, principal, .. }: Caller,
    name: Result<Path<String>, PathRejection>,
    listing: Result<Query<Listing>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let Query(Listing { format, .. }) = listing.map_err(invalid_query)?;
    let provider = provider(format.as_deref())?;
    let Path(name) = name.map_err(|_| invalid_path())?;
    let tool = shared.service.tool(&principal, &name).await?;
    let Some(provider) = provider else { return Ok(Json(json!(tool.definition()))) };
    let convert = move || provider.definitions([tool.definition()]);
    let converted = in_turn(&principal, convert).await?;
    let converted = converted.map_err(|error| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "inexpressible", error.to_string())
            .with_hint(error.hint())
    })?;
    let tools = converted.value;
    let only =
        tools.as_array().filter(|tools| tools.len() == 1).and_then(|tools| tools.first().cloned());
    Ok(Json(only.unwrap_or(tools)))
}

/// Converts definitions on a thread that may block, one request at a time. Authors wrote them, and
/// a page with large schemas can take seconds. A tenant has one request in the line of all.
async fn in_turn<T: Send + 'static>(
    principal: &Principal,
    convert: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    static OWN_TURNS: LazyLock<PerTenant<Semaphore>> = LazyLock::new(PerTenant::default);
    static TURN: Semaphore = Semaphore::const_new(1);
    let own = OWN_TURNS.get(principal.state(), || Semaphore::new(1));
    let _own = own.acquire().await.map_err(|_| Problem::internal())?;
    let turn = TURN.acquire().await.map_err(|_| Problem::internal())?;
    let converted = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        convert()
    });
    converted.await.map_err(|_| Problem::internal())
}

fn provider(format: Option<&str>) -> Result<Option<Provider>, Problem> {
    match format {
        None | Some("toolcell") => Ok(None),
        Some(format) => Provider::from_str(format).map(Some).map_err(|_| {
            let names: Vec<_> = Provider::ALL.iter().map(|provider| provider.name()).collect();
            Problem::bad_request("invalid_format", "there is no such format of tools")
                .with_hint(format!("write `toolcell` or one of: {}", names.join(", ")))
        }),
    }
}

/// The format names that [`provider`] reads.
fn formats() -> utoipa::openapi::Object {
    let names =
        std::iter::once("toolcell").chain(Provider::ALL.iter().map(|provider| provider.name()));
    let words = utoipa::openapi::Object::builder().schema_type(utoipa::openapi::Type::String);
    words.enum_values(Some(names)).build()
}

pub(super) fn invalid_query(rejection: QueryRejection) -> Problem {
    // The innermost error names the parameter.
    let mut problem: &dyn std::error::Error = &rejection;
    while let Some(cause) = problem.source() {
        problem = cause;
    }
    let problem: String = problem.to_string().chars().take(QUERY_PROBLEM).collect();
    Problem::bad_request("invalid_query", format!("the query cannot be read: {problem}"))
        .with_hint("GET /openapi.json lists the parameters")
}

/// The path is not UTF-8.
pub(super) fn invalid_path() -> Problem {
    Problem::bad_request("invalid_path", "the path is not valid")
}
