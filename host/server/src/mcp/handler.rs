//! Implements the methods of MCP for the requests of one principal.
//!
//! The HTTP endpoint and the reader of lines create a [`Handler`] for a principal (the
//! authenticated sender) and give it each decoded [`Request`]. [`Handler::answer`] chooses by the
//! method's name, asks the service or the extension of the embedder (the program that uses this
//! library), and returns the result as JSON or an error of the protocol. It adapts results to the
//! era of the request. In the session era (revisions up to 2025-11-25) a client opens a session
//! first; in the era without sessions (2026-07-28) each request is self-contained.
//!
//! A client's text is parsed into a JSON tree only in its turn and within a limit of memory for
//! trees. The handler also tells clients when their list of tools has changed.

pub(super) mod call;
mod changes;
mod definitions;
pub(super) mod opening;
pub(super) mod resources;

use std::sync::Arc;

use futures_util::FutureExt as _;
use rmcp::model::*;
use serde::de::DeserializeOwned;
use serde_json::json;
use toolcell::controls::bound;

use super::McpOptions;
use super::extension::{AnswerFuture, ExtensionRequest, McpExtension};
use super::message::raw::Raw;
use super::message::wire;
use super::request::{self, Answer, Request};
use super::session::Session;
use crate::artifacts::id_of;
use crate::service::Service;
use crate::tenants::{principal::Principal, share::Places};
use call::result;

/// The supported revisions, oldest first.
pub(super) const VERSIONS: [ProtocolVersion; 3] =
    [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Answers the requests of one principal. Cheap to clone.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) service: Service,
    pub(super) principal: Principal,
    pub(super) options: Arc<McpOptions>,
    /// The open questions of each tenant.
    pub(super) questions: Arc<Places>,
}

/// Creates the counter of each tenant's open questions.
pub(super) fn question_places(options: &McpOptions) -> Arc<Places> {
    Arc::new(Places::new(bound!(OpenQuestions, options.questions)))
}

impl Handler {
    /// Returns true if the tool has an output schema.
    pub(super) fn promises_a_value(&self, name: &str) -> bool {
        let view = self.service.view(&self.principal).ok();
        let tool = view.as_ref().and_then(|view| view.tools.get(name));
        tool.is_some_and(|tool| tool.definition().output.is_some())
    }

    /// Answers a request.
    ///
    /// # Errors
    /// Errors of the protocol.
    ///
    /// # Cancel safety
    /// When dropped, the work of the request is stopped.
    pub(super) async fn answer(&self, request: &Request) -> Result<Answer, ErrorData> {
        self.dispatch(request).await.map_err(|mut error| {
            if request.is_modern() && error.code == ErrorCode::RESOURCE_NOT_FOUND {
                error.code = ErrorCode::INVALID_PARAMS;
            }
            error
        })
    }

    async fn dispatch(&self, request: &Request) -> Result<Answer, ErrorData> {
        let is_modern = request.is_modern();
        match request.method.as_str() {
            "ping" if !is_modern => request::to_raw_json(&json!({})),
            "server/discover" => {
                opening::check_complete(&request.meta)?;
                let result = DiscoverResult::from_server_info(VERSIONS.to_vec(), self.info());
                request::to_raw_json(&result)
            }
            "tools/list" => adapt_to_era(self.list_tools(request).await?, is_modern),
            "tools/call" => self.call_tool(request).await,
            "prompts/list" => self.answer_extended(request, McpExtension::list_prompts).await,
            "prompts/get" => self.answer_extended(request, McpExtension::get_prompt).await,
            "completion/complete" => self.answer_extended(request, McpExtension::complete).await,
            "resources/list" => adapt_to_era(self.list_resources(request).await?, is_modern),
            "resources/templates/list" => {
                adapt_to_era(self.list_resource_templates(request).await?, is_modern)
            }
            "resources/read" => adapt_to_era(self.read_resource(request).await?, is_modern),
            method @ ("resources/subscribe" | "resources/unsubscribe") if !is_modern => {
                let uri = request.required("uri")?;
                let (asked, _room) = request.extension_request(&self.principal).await?;
                let done = if method == "resources/subscribe" {
                    self.options.extension.subscribe(uri, asked)
                } else {
                    self.options.extension.unsubscribe(uri, asked)
                };
                self.until_cancelled(request, done).await?;
                request::to_raw_json(&json!({}))
            }
            "logging/setLevel" if !is_modern => {
                let level = request.required("level")?;
                if let Some(session) = request.client.session() {
                    *session.level.lock() = level;
                }
                request::to_raw_json(&json!({}))
            }
            "subscriptions/listen" if is_modern => self.listen(request).await,
            method => Err(wire::unknown_method(method)),
        }
    }

    /// Parses the params, and returns the extension's answer to them, unless the client cancels the
    /// request.
    async fn extended<'a, P: DeserializeOwned, T>(
        &'a self,
        request: &Request,
        ask: impl FnOnce(&'a dyn McpExtension, P, ExtensionRequest) -> AnswerFuture<'a, T>,
    ) -> Result<T, ErrorData> {
        let (params, _room) = request.tree(&self.principal).await?;
        let (asked, _more) = request.extension_request(&self.principal).await?;
        self.until_cancelled(request, ask(&*self.options.extension, params, asked)).await
    }

    /// As [`extended`](Self::extended), as JSON for the era.
    async fn answer_extended<'a, P: DeserializeOwned, T: Into<ServerResult>>(
        &'a self,
        request: &Request,
        ask: impl FnOnce(&'a dyn McpExtension, P, ExtensionRequest) -> AnswerFuture<'a, T>,
    ) -> Result<Answer, ErrorData> {
        adapt_to_era(self.extended(request, ask).await?, request.is_modern())
    }

    /// Returns the extension's answer, unless the client cancels the request.
    async fn until_cancelled<T>(
        &self,
        request: &Request,
        answering: AnswerFuture<'_, T>,
    ) -> Result<T, ErrorData> {
        let answer = request.cancelled.run_until_cancelled(answering).await;
        answer.unwrap_or_else(|| Err(ErrorData::internal_error("the request was cancelled", None)))
    }

    async fn list_tools(&self, request: &Request) -> Result<ListToolsResult, ErrorData> {
        let cursor: Option<String> = match request.params.member("cursor") {
            Some(_) => Some(request.required("cursor")?),
            None => None,
        };
        let page = self.service.tools(&self.principal, cursor.as_deref()).await;
        let page = page.map_err(|refused| result::error_of(&refused))?;
        let mut listed = ListToolsResult::default();
        let is_modern = request.is_modern();
        let shown = |tool: &toolcell::Tool| definitions::listed(tool.definition(), is_modern);
        listed.tools = page.tools.iter().filter_map(shown).collect();
        if page.next.is_none() {
            listed.tools.extend(self.options.extension.tools(&self.principal));
        }
        listed.next_cursor = page.next;
        Ok(listed)
    }

    async fn call_tool(&self, request: &Request) -> Result<Answer, ErrorData> {
        let name: String = request.required("name")?;
        let view =
            self.service.view(&self.principal).map_err(|refused| result::error_of(&refused))?;
        let is_extensions =
            || self.options.extension.tools(&self.principal).iter().any(|tool| tool.name == name);
        if !view.tools.contains_key(&name) && is_extensions() {
            return self.answer_extended(request, McpExtension::call_tool).await;
        }
        // Boxed: its future is by far the largest of the methods.
        call::call(self, name, request).boxed().await
    }

    async fn list_resources(&self, request: &Request) -> Result<ListResourcesResult, ErrorData> {
        let is_first = request.params.member("cursor").is_none();
        let listed = self.extended(request, McpExtension::list_resources).await;
        let Some(artifacts) = self.service.artifacts() else { return listed };
        let mut listed = match listed {
            // The extension has no resources of its own: the artifacts are one page.
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND && !is_first => {
                return Err(resources::invalid_cursor());
            }
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                ListResourcesResult::default()
            }
            listed => listed?,
        };
        if is_first {
            listed.resources.extend(resources::list(artifacts, &self.principal).await?);
        }
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        request: &Request,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let has_artifacts = self.service.artifacts().is_some();
        match self.extended(request, McpExtension::list_resource_templates).await {
            // The server has the method, because it has artifacts, but no templates.
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND && has_artifacts => {
                match request.params.member("cursor") {
                    Some(_) => Err(resources::invalid_cursor()),
                    None => Ok(ListResourceTemplatesResult::default()),
                }
            }
            answer => answer,
        }
    }

    async fn read_resource(&self, request: &Request) -> Result<ReadResourceResponse, ErrorData> {
        let uri: String = request.required("uri")?;
        let artifacts = self.service.artifacts();
        if let Some(artifacts) = artifacts.filter(|_| id_of(&uri).is_some()) {
            return Ok(resources::read(artifacts, &self.principal, uri).await?.into());
        }
        match self.extended(request, McpExtension::read_resource).await {
            // The server has the method, because it has artifacts, but the extension has no
            // resources.
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND && artifacts.is_some() => {
                Err(resources::not_found())
            }
            answer => answer,
        }
    }

    /// Notifies the client of changes until it cancels the request.
    async fn listen(&self, request: &Request) -> Result<Answer, ErrorData> {
        let wanted = request.params.member("notifications").filter(Raw::is_object);
        let wanted = wanted.ok_or_else(|| request.invalid_params())?;
        let wants_tools =
            wanted.member("toolsListChanged").is_some_and(|wants| wants.as_str() == "true");
        let accepted = if wants_tools { json!({"toolsListChanged": true}) } else { json!({}) };
        let meta = json!({ SUBSCRIPTION: request.id });
        let changed = json!({"method": LIST_CHANGED, "params": {"_meta": meta}});
        let watching = changes::watch(self.service.clone(), self.principal.clone(), || {
            if wants_tools {
                request.client.send_notification(&changed);
            }
            true
        });
        let params = json!({"notifications": accepted, "_meta": meta});
        request.client.send_notification(&json!({"method": ACKNOWLEDGED, "params": params}));
        request.cancelled.run_until_cancelled(watching).await;
        let mut result = SubscriptionsListenResult::complete(request.id.clone());
        result.meta.set_server_info(self.info().server_info);
        request::to_raw_json(&result)
    }

    /// Notifies the client of a session of changes, until the session ends.
    pub(super) fn tell_changes(&self, session: &Session) {
        let (common, end) = (Arc::clone(&session.common), session.end.clone());
        let changed = json!({"jsonrpc": "2.0", "method": LIST_CHANGED}).to_string();
        let notify = move || common.notify(changed.clone().into());
        let watching = changes::watch(self.service.clone(), self.principal.clone(), notify);
        tokio::spawn(async move { end.run_until_cancelled(watching).await });
    }
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Adapts the result to the era.
fn adapt_to_era(result: impl Into<ServerResult>, is_modern: bool) -> Result<Answer, ErrorData> {
    let mut result = result.into();
    if is_modern {
        name_complete(&mut result);
        result.fill_missing_cache_hints();
    } else if matches!(result, ServerResult::InputRequiredResult(_)) {
        return Err(ErrorData::invalid_request("in a session a result cannot ask for input", None));
    } else {
        result.strip_result_type_for_legacy_peer();
        result.strip_non_object_output_for_legacy_peer();
    }
    request::to_raw_json(&result)
}

/// Marks a result of the extension as complete if it has no type.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other results have a type, or none")]
fn name_complete(result: &mut ServerResult) {
    let result_type = match result {
        ServerResult::CompleteResult(result) => &mut result.result_type,
        ServerResult::GetPromptResult(result) => &mut result.result_type,
        ServerResult::ListPromptsResult(result) => &mut result.result_type,
        ServerResult::ListResourcesResult(result) => &mut result.result_type,
        ServerResult::ListResourceTemplatesResult(result) => &mut result.result_type,
        ServerResult::ReadResourceResult(result) => &mut result.result_type,
        ServerResult::CallToolResult(result) => &mut result.result_type,
        _ => return,
    };
    result_type.get_or_insert(ResultType::COMPLETE);
}
