//! The methods of MCP, for one session or one stateless request of one principal.
//!
//! In: requests that the SDK has decoded. Out: the service's and the extension's answers.
//! Invariants: a handler serves one principal only.
#![expect(deprecated, reason = "clients of the session era use the log and the subscriptions of the protocol")]

use std::borrow::Cow;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ServerHandler;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use serde_json::{Map, Value};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::call::{self, Way};
use super::changes::Changes;
use super::extension::Asked;
use super::methods::METHODS;
use super::{McpOptions, definitions, resources, result, wire};
use crate::principal::Principal;
use crate::service::Service;
use crate::trace::{RequestSpan, TraceContext};

/// The revisions that are served, oldest first.
pub(super) const VERSIONS: [ProtocolVersion; 3] =
    [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];
/// Those that the stateless era does not have.
const REMOVED: [&str; 6] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "roots/list"];

/// The span of the request that is being handled: that of the HTTP request, or one of its own.
fn request_span(context: &RequestContext<RoleServer>, method: &'static str) -> Span {
    let parts = context.extensions.get::<http::request::Parts>();
    if let Some(RequestSpan(span)) = parts.and_then(|parts| parts.extensions.get()) {
        return span.clone();
    }
    let span = tracing::info_span!(
        parent: None,
        "request",
        mcp = method,
        tool = Empty,
        trace_id = Empty,
        parent_id = Empty,
        trace_flags = Empty,
        trace_state = Empty,
    );
    let [parent, state] = ["traceparent", "tracestate"].map(|name| context.meta.get(name).and_then(Value::as_str));
    if let Some(trace) = parent.and_then(|parent| TraceContext::parse(parent, state)) {
        trace.record(&span);
    }
    span
}

/// Answers the requests of one principal. Cheap to clone.
#[derive(Clone)]
pub(super) struct Handler(Arc<Inner>);

struct Inner {
    service: Service,
    principal: Principal,
    options: Arc<McpOptions>,
    /// The level that a client of the session era asked for.
    level: Mutex<LoggingLevel>,
    end: CancellationToken,
    /// Ends what runs for the session.
    _ended: DropGuard,
}

impl Handler {
    /// `end` is cancelled when the session ends, if there is one.
    pub(super) fn new(
        service: Service,
        principal: Principal,
        options: Arc<McpOptions>,
        end: CancellationToken,
    ) -> Self {
        let ended = end.clone().drop_guard();
        let level = Mutex::new(LoggingLevel::Info);
        Self(Arc::new(Inner { service, principal, options, level, end, _ended: ended }))
    }

    pub(super) fn service(&self) -> &Service {
        &self.0.service
    }

    pub(super) fn principal(&self) -> &Principal {
        &self.0.principal
    }

    pub(super) fn options(&self) -> &McpOptions {
        &self.0.options
    }

    pub(super) fn end(&self) -> &CancellationToken {
        &self.0.end
    }

    /// Whether the request is of the stateless era.
    pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
        context.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
    }

    /// The least severe level of the log that the client gets. In the stateless era a request asks for it.
    pub(super) fn log_level(&self, context: &RequestContext<RoleServer>) -> Option<LoggingLevel> {
        if Self::is_stateless(context) { context.meta.log_level() } else { Some(*self.0.level.lock()) }
    }

    /// Whether the tool has a schema of its values.
    pub(super) fn promises_a_value(&self, name: &str) -> bool {
        let view = self.0.service.view(&self.0.principal);
        view.is_ok_and(|view| view.tools.get(name).is_some_and(|tool| tool.definition().output.is_some()))
    }

    /// Whether the SDK would only hand on a call of this tool: the tool is the service's, and no header carries an argument of it.
    pub(super) fn is_plain(&self, name: &str) -> bool {
        let view = self.0.service.view(&self.0.principal);
        let is_plain = |tool: &toolcell::Tool| !definitions::has_header_parameters(tool.definition());
        view.is_ok_and(|view| view.tools.get(name).is_some_and(is_plain))
    }

    fn asked(&self, request: RequestContext<RoleServer>) -> Asked {
        Asked { principal: self.0.principal.clone(), request }
    }

    fn capabilities(&self) -> ServerCapabilities {
        let mut capabilities = ServerCapabilities::default();
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(true);
        capabilities.tools = Some(tools);
        capabilities.logging = Some(Map::new());
        if self.0.service.artifacts().is_some() {
            capabilities.resources = Some(ResourcesCapability::default());
        }
        self.0.options.extension.capabilities(&mut capabilities);
        capabilities
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(self.capabilities());
        info.protocol_version = ProtocolVersion::V_2025_11_25;
        info.server_info = Implementation::new(&self.0.options.name, env!("CARGO_PKG_VERSION"));
        info.instructions.clone_from(&self.0.options.instructions);
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Owned(VERSIONS.to_vec())
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = page.and_then(|page| page.cursor);
        let page = self.0.service.tools(&self.0.principal, cursor.as_deref()).await;
        let page = page.map_err(|refused| result::error_of(&refused))?;
        let stateless = Self::is_stateless(&context);
        let mut listed = ListToolsResult::default();
        listed.tools = page.tools.iter().filter_map(|tool| definitions::listed(tool.definition(), stateless)).collect();
        if page.next.is_none() {
            listed.tools.extend(self.0.options.extension.tools(&self.0.principal));
        }
        listed.next_cursor = page.next;
        Ok(listed)
    }

    /// For the comparison of headers with arguments: a tool without such arguments is not needed.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let view = self.0.service.view(&self.0.principal).ok()?;
        match view.tools.get(name) {
            // What decides by itself whether it is visible is not told by an error either.
            Some(tool) if tool.definition().checks.visible => None,
            Some(tool) if !definitions::has_header_parameters(tool.definition()) => None,
            Some(tool) => definitions::listed(tool.definition(), true),
            None => self.0.options.extension.tools(&self.0.principal).into_iter().find(|tool| tool.name == name),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let view = self.0.service.view(&self.0.principal).map_err(|refused| result::error_of(&refused))?;
        if !view.tools.contains_key(request.name.as_ref())
            && let Some(answering) = self.0.options.extension.call_tool(request.clone(), self.asked(context.clone()))
        {
            let mut answer = tokio::select! {
                answer = answering => answer?,
                () = context.ct.cancelled() => {
                    return Err(ErrorData::internal_error("the request was cancelled", None));
                }
            };
            if let CallToolResponse::Complete(result) = &mut answer {
                result.result_type.get_or_insert(ResultType::COMPLETE);
            }
            return Ok(answer);
        }
        let span = request_span(&context, "tools/call");
        let way = if Self::is_stateless(&context) { Way::Stateless } else { Way::Session };
        let request = call::Request {
            capabilities: context.client_capabilities(),
            level: self.log_level(&context),
            way: way(context.peer),
            id: context.id,
            params: request,
            meta: context.meta,
            cancelled: context.ct,
        };
        call::call(self, request).instrument(span).await
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut result = self.0.options.extension.list_prompts(page.unwrap_or_default(), self.asked(context)).await?;
        result.result_type.get_or_insert(ResultType::COMPLETE);
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let mut answer = self.0.options.extension.get_prompt(request, self.asked(context)).await?;
        if let GetPromptResponse::Complete(result) = &mut answer {
            result.result_type.get_or_insert(ResultType::COMPLETE);
        }
        Ok(answer)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let mut result = self.0.options.extension.complete(request, self.asked(context)).await?;
        result.result_type.get_or_insert(ResultType::COMPLETE);
        Ok(result)
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let page = page.unwrap_or_default();
        let is_first = page.cursor.is_none();
        let listed = self.0.options.extension.list_resources(page, self.asked(context)).await;
        let mut result = match (listed, self.0.service.artifacts()) {
            (listed, Some(artifacts)) if is_first => {
                let mut listed = match listed {
                    // The extension has no resources of its own.
                    Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => ListResourcesResult::default(),
                    listed => listed?,
                };
                listed.resources.extend(resources::list(artifacts, &self.0.principal).await?);
                listed
            }
            (listed, _) => listed?,
        };
        result.result_type.get_or_insert(ResultType::COMPLETE);
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut result =
            self.0.options.extension.list_resource_templates(page.unwrap_or_default(), self.asked(context)).await?;
        result.result_type.get_or_insert(ResultType::COMPLETE);
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let mut answer = match self.0.service.artifacts() {
            Some(artifacts) if resources::is_artifact(&request.uri) => {
                resources::read(artifacts, &self.0.principal, request.uri).await?.into()
            }
            artifacts => match self.0.options.extension.read_resource(request, self.asked(context)).await {
                // There is the method, because there are artifacts, and no resource of the extension.
                Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND && artifacts.is_some() => {
                    return Err(resources::not_found());
                }
                answer => answer?,
            },
        };
        if let ReadResourceResponse::Complete(result) = &mut answer {
            result.result_type.get_or_insert(ResultType::COMPLETE);
        }
        Ok(answer)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.options.extension.subscribe(request.uri, self.asked(context)).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.options.extension.unsubscribe(request.uri, self.asked(context)).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if Self::is_stateless(&context) {
            return Err(wire::unknown_method(SetLevelRequestMethod::VALUE));
        }
        *self.0.level.lock() = request.level;
        Ok(())
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = Changes::new(self.0.service.clone(), self.0.principal.clone());
        let told = async { while changes.next().await && context.sink().notify_tool_list_changed().await.is_ok() {} };
        tokio::select! {
            () = told => {}
            () = context.cancelled() => {}
        }
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut changes = Changes::new(self.0.service.clone(), self.0.principal.clone());
        let (end, peer) = (self.0.end.clone(), context.peer);
        tokio::spawn(async move {
            let told = async { while changes.next().await && peer.notify_tool_list_changed().await.is_ok() {} };
            tokio::select! {
                () = told => {}
                () = end.cancelled() => {}
            }
        });
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let is_removed = Self::is_stateless(&context) && REMOVED.contains(&request.method.as_str());
        if METHODS.contains(&request.method.as_str()) && !is_removed {
            let text = format!("the params do not fit `{}`", request.method);
            return Err(ErrorData::invalid_params(text, None));
        }
        Err(wire::unknown_method(&request.method))
    }
}
