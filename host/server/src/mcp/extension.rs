//! The interface for an embedder's own prompts, resources, completion and tools, beside the
//! service's tools.
//!
//! An embedder (the program that uses this library) implements [`McpExtension`] and sets it in the
//! options of the MCP server. The handler of requests (`mcp/handler.rs`) calls its methods for
//! `prompts/*`, `resources/*`, `completion/complete`, and for a call of a tool that only the
//! extension has. A method takes the parameters in the types of the MCP SDK (the crate `rmcp`) and
//! an [`ExtensionRequest`], which has the sender, the id, the metadata and the client. It returns
//! the answer as a future, which is dropped when the client cancels the request. A method that is
//! not implemented answers "method not found".
//!
//! Not here: the tools of the service, whose calls pass its quotas and limits, in
//! `mcp/handler/call.rs`.

use futures_util::future::BoxFuture;
use rmcp::model::*;

use super::message::wire;
use super::session::client::Client;
use crate::tenants::principal::Principal;

/// The future of an answer.
pub type AnswerFuture<'a, T> = BoxFuture<'a, Result<T, ErrorData>>;

/// A request that an extension answers: its sender, its id, its metadata, and its client.
#[derive(Debug)]
#[non_exhaustive]
pub struct ExtensionRequest {
    /// The sender.
    pub principal: Principal,
    /// The id of the request.
    pub id: RequestId,
    /// The metadata of the request.
    pub meta: RequestMetaObject,
    /// The client.
    pub client: Client,
}

/// Serves the parts of MCP beside the service's tools, and tools that need the protocol itself. A
/// method that is not implemented answers with "method not found".
///
/// # Cancel safety
/// A future is dropped when the client cancels the request.
pub trait McpExtension: Send + Sync + 'static {
    /// Adds the extension's capabilities to those that the server declares. By default it adds
    /// none.
    fn capabilities(&self, _capabilities: &mut ServerCapabilities) {}

    /// Further tools. They are listed after those of the service, which have precedence.
    fn tools(&self, _principal: &Principal) -> Vec<Tool> {
        Vec::new()
    }

    /// Calls a tool of [`tools`](Self::tools). Returns an error of the protocol if it is gone.
    fn call_tool(
        &self,
        _request: CallToolRequestParams,
        _asked: ExtensionRequest,
    ) -> AnswerFuture<'_, CallToolResponse> {
        Box::pin(std::future::ready(Err(ErrorData::invalid_params("there is no such tool", None))))
    }

    /// Returns a page of the prompts.
    fn list_prompts(
        &self,
        _page: PaginatedRequestParams,
        _asked: ExtensionRequest,
    ) -> AnswerFuture<'_, ListPromptsResult> {
        not_found("prompts/list")
    }

    /// Returns one prompt.
    fn get_prompt(
        &self,
        _request: GetPromptRequestParams,
        _asked: ExtensionRequest,
    ) -> AnswerFuture<'_, GetPromptResponse> {
        not_found("prompts/get")
    }

    /// Completes an argument of a prompt or of a resource template.
    fn complete(
        &self,
        _request: CompleteRequestParams,
        _asked: ExtensionRequest,
    ) -> AnswerFuture<'_, CompleteResult> {
        not_found("completion/complete")
    }

    /// Returns a page of the resources.
    fn list_resources(
        &self,
        _page: PaginatedRequestParams,
        _asked: ExtensionRequest,
    ) -> AnswerFuture<'_, ListResourcesResult> {
        not_found("resources/list")
    }

    /// Returns a page of the resource templates.
    fn list_resource_templates(
        &self,
        _page: PaginatedRequestParams,
        _asked: ExtensionRequest,
    ) -> AnswerFuture<'_, ListResourceTemplatesResult> {
        not_found("resources/templates/list")
    }

    /// Returns the content of a resource.
    fn read_resource(
        &self,
        _request: ReadResourceRequestParams,
        _asked: ExtensionRequest,
    ) -> AnswerFuture<'_, ReadResourceResponse> {
        not_found("resources/read")
    }

    /// Begins to notify a session of changes of the resource at this URI.
    fn subscribe(&self, _uri: String, _asked: ExtensionRequest) -> AnswerFuture<'_, ()> {
        not_found("resources/subscribe")
    }

    /// Ends the notifications that [`subscribe`](Self::subscribe) began.
    fn unsubscribe(&self, _uri: String, _asked: ExtensionRequest) -> AnswerFuture<'_, ()> {
        not_found("resources/unsubscribe")
    }
}

fn not_found<T: Send + 'static>(method: &str) -> AnswerFuture<'static, T> {
    Box::pin(std::future::ready(Err(wire::unknown_method(method))))
}

/// An extension without any feature.
pub(super) struct NoExtension;

impl McpExtension for NoExtension {}
