//! What an embedder serves beside the tools of the service: prompts, resources, completion, and
//! tools of its own.
//!
//! In: a request and its [`Asked`]. Out: an answer in the SDK's types.
//! Not here: the tools of the service, which go through its admission (`call`).

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, ConstString, ErrorData, GetPromptRequestMethod, GetPromptRequestParams,
    GetPromptResponse, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, PaginatedRequestParams, ReadResourceRequestMethod,
    ReadResourceRequestParams, ReadResourceResponse, RequestId, RequestMetaObject,
    ServerCapabilities, SubscribeRequestMethod, Tool, UnsubscribeRequestMethod,
};

use super::client::Client;
use super::wire;
use crate::principal::Principal;

/// An answer that is being made.
pub type Answering<'a, T> = BoxFuture<'a, Result<T, ErrorData>>;

/// A request that an extension answers: its sender, its id, its metadata, and the way back to the
/// client.
#[derive(Debug)]
#[non_exhaustive]
pub struct Asked {
    /// The sender.
    pub principal: Principal,
    /// The id of the request.
    pub id: RequestId,
    /// The metadata of the request.
    pub meta: RequestMetaObject,
    /// The client.
    pub client: Client,
}

/// Serves what MCP has beside tools, and tools that need the protocol itself. Each method is
/// answered with "method not found" unless it is implemented.
///
/// # Cancel safety
/// A future is dropped when the client cancels the request.
pub trait McpExtension: Send + Sync + 'static {
    /// Adds what the extension can do to what the server tells its clients. [`Nothing`](Self) is
    /// added by default.
    fn capabilities(&self, _capabilities: &mut ServerCapabilities) {}

    /// Further tools. They are listed after those of the service, which have precedence.
    fn tools(&self, _principal: &Principal) -> Vec<Tool> {
        Vec::new()
    }

    /// Calls a tool of [`tools`](Self::tools). `None`: the extension has no such tool.
    fn call_tool(
        &self,
        _request: CallToolRequestParams,
        _asked: Asked,
    ) -> Option<Answering<'_, CallToolResponse>> {
        None
    }

    /// A page of the prompts.
    fn list_prompts(
        &self,
        _page: PaginatedRequestParams,
        _asked: Asked,
    ) -> Answering<'_, ListPromptsResult> {
        not_found::<ListPromptsRequestMethod, _>()
    }

    /// One prompt.
    fn get_prompt(
        &self,
        _request: GetPromptRequestParams,
        _asked: Asked,
    ) -> Answering<'_, GetPromptResponse> {
        not_found::<GetPromptRequestMethod, _>()
    }

    /// Completes an argument of a prompt or of a resource template.
    fn complete(
        &self,
        _request: CompleteRequestParams,
        _asked: Asked,
    ) -> Answering<'_, CompleteResult> {
        not_found::<CompleteRequestMethod, _>()
    }

    /// A page of the resources.
    fn list_resources(
        &self,
        _page: PaginatedRequestParams,
        _asked: Asked,
    ) -> Answering<'_, ListResourcesResult> {
        not_found::<ListResourcesRequestMethod, _>()
    }

    /// A page of the templates of resources.
    fn list_resource_templates(
        &self,
        _page: PaginatedRequestParams,
        _asked: Asked,
    ) -> Answering<'_, ListResourceTemplatesResult> {
        not_found::<ListResourceTemplatesRequestMethod, _>()
    }

    /// The content of a resource.
    fn read_resource(
        &self,
        _request: ReadResourceRequestParams,
        _asked: Asked,
    ) -> Answering<'_, ReadResourceResponse> {
        not_found::<ReadResourceRequestMethod, _>()
    }

    /// Begins to tell a session about changes of the resource at this URI.
    fn subscribe(&self, _uri: String, _asked: Asked) -> Answering<'_, ()> {
        not_found::<SubscribeRequestMethod, _>()
    }

    /// Ends what [`subscribe`](Self::subscribe) began.
    fn unsubscribe(&self, _uri: String, _asked: Asked) -> Answering<'_, ()> {
        not_found::<UnsubscribeRequestMethod, _>()
    }
}

fn not_found<M: ConstString, T: Send + 'static>() -> Answering<'static, T> {
    Box::pin(std::future::ready(Err(wire::unknown_method(M::VALUE))))
}

/// No extension.
pub(super) struct Nothing;

impl McpExtension for Nothing {}
