//! Makes one call for a principal, the authenticated sender of a request.
//!
//! The HTTP route for calls and the MCP handler pass a [`CallRequest`] to [`Service::call`]. It
//! returns a [`CallResponse`] with the call's completion (its result and usage), also if the call
//! failed, or [`RequestError`] if the call was not made. Before the tool is looked up, the request
//! passes the limits of the server and the tenant's quota. The principal decides the tenant,
//! whatever the request's context says.
//!
//! A call to a tool that the principal may not see gets the answer of an unknown tool.

use std::fmt;
use std::sync::Arc;

use toolcell::{
    CallOptions, CallResult, Completion, Event, EventSink, Outcome, Question, Refusal, ToolCall,
    ToolError,
};

use super::request_id::RequestId;
use crate::service::Service;
use crate::tenants::{principal::Principal, refused::RequestError};

/// A request for one call.
///
/// # Defaults
/// A new request id, [`CallOptions::default`], no observer.
#[derive(Clone)]
pub struct CallRequest {
    /// The call.
    pub call: ToolCall,
    /// The id by which the request can be cancelled. `None`: a new one is generated.
    pub request_id: Option<RequestId>,
    /// The options of the call. The server sets the context's tenant and request id, and the abort
    /// signal.
    pub options: CallOptions,
    /// Receives the events of the call, for example to forward its progress. It must be quick.
    pub events: Option<Arc<dyn EventSink>>,
}

impl CallRequest {
    /// Creates a request for this call.
    #[must_use]
    pub fn new(call: ToolCall) -> Self {
        Self { call, request_id: None, options: CallOptions::default(), events: None }
    }
}

impl fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRequest")
            .field("call", &self.call)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

/// The answer to a call that was made.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallResponse {
    /// The id of the request.
    pub request_id: RequestId,
    /// The completion of the call. The state of a question is sealed.
    pub completion: Completion,
}

impl CallResponse {
    /// Returns the question, if the tool asks a person. Its sealed state comes back in
    /// [`CallContext::resume`](toolcell::CallContext::resume) with the answer.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        if let CallResult::Outcome(Outcome::AskUser(question)) = &self.completion.result {
            Some(question)
        } else {
            None
        }
    }
}

impl Service {
    /// Makes one call for the principal. A failed call is an answer, not an error.
    ///
    /// # Errors
    /// [`RequestError`] if the call was not made: [`UnknownTool`](RequestError::UnknownTool) also
    /// for an invisible tool, [`Overloaded`](RequestError::Overloaded) also if no cell became free
    /// in time, [`InvalidAnswer`](RequestError::InvalidAnswer) for an answer that does not fit the
    /// question.
    ///
    /// # Cancel safety
    /// When dropped, the guest is stopped and everything it held is freed.
    pub async fn call(
        &self,
        principal: &Principal,
        request: CallRequest,
    ) -> Result<CallResponse, RequestError> {
        let CallRequest { call, request_id, mut options, events } = request;
        let view = self.view(principal)?;
        let call = view.resolve_call(call);
        let request_id = request_id.unwrap_or_else(RequestId::generate);
        let _admitted = self.admit(principal, &view, &request_id, 1, 1, &mut options)?;
        let context = Arc::clone(&options.context);
        let Some(tool) = view.tools.get(&call.name) else {
            return Err(view.unknown_tool(&call.name, &context).await);
        };
        let mut executor = self.executor(principal, &view);
        if let Some(events) = events {
            executor = executor.with_additional_events(move |event: Event| events.emit(event));
        }
        let completion = executor.call(tool, call, options).await;
        match &completion.result {
            CallResult::Refusal(Refusal::NotVisible)
            | CallResult::ToolError(ToolError::NotFound) => {
                Err(view.unknown_tool(&tool.definition().name, &context).await)
            }
            CallResult::Refusal(Refusal::Overloaded { retry_after }) => {
                Err(RequestError::Overloaded { retry_after: *retry_after })
            }
            CallResult::Refusal(Refusal::UnknownTenant | Refusal::NoTenant) => {
                Err(RequestError::NoAccess)
            }
            CallResult::Refusal(refusal @ Refusal::InvalidAnswer(_)) => {
                Err(RequestError::InvalidAnswer(refusal.clone()))
            }
            CallResult::Outcome(_) | CallResult::ToolError(_) | CallResult::Refusal(_) => {
                Ok(CallResponse { request_id, completion })
            }
        }
    }
}
