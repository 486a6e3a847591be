//! `tools/call`: one call of the service, with what the client hears and says while it runs.
//!
//! In: the request. Out: a result, a request for input, or an error.
//! Invariants: a cancelled request asks its call to end, and waits until it has: the guest runs no longer than its grace; each
//! round of a question is a call of its own, with the same arguments.
#![expect(deprecated, reason = "clients of the session era use the log of the protocol")]

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, ClientCapabilities, ClientResult,
    ElicitRequest, ErrorData, LoggingLevel, RequestId as RpcId, RequestMetaObject, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleServer, ServiceError};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolcell::{CallContext, DEFAULT_SEAL_LIFETIME, Event, Question, Resume, Sealer, ToolCall};

use super::handler::Handler;
use super::notices::Notices;
use super::question::{self, Retry};
use super::{result, wire};
use crate::calls::{Answer, CallRequest};
use crate::refused::Refused;
use crate::request_id::RequestId;

/// Rounds of questions in one request of a session.
const MAX_ROUNDS: usize = 16;
/// Events that wait to be told. Further ones are left out.
const EVENTS: usize = 256;
/// Time for the last events to be told after the call has ended.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// One request.
pub(super) struct Request {
    pub(super) id: RpcId,
    pub(super) params: CallToolRequestParams,
    pub(super) meta: RequestMetaObject,
    /// What the client can do.
    pub(super) capabilities: Option<ClientCapabilities>,
    /// Cancelled when the client cancels the request.
    pub(super) cancelled: CancellationToken,
    /// The least severe level of the log that the client gets.
    pub(super) level: Option<LoggingLevel>,
    pub(super) way: Way,
}

/// How a client hears and is asked something before the result.
pub(super) enum Way {
    /// In the era of sessions: over the stream of the request.
    Session(Peer<RoleServer>),
    /// In the stateless era: it hears over the stream, and is asked by the result.
    Stateless(Peer<RoleServer>),
    /// In the stateless era, of a client that wants to hear nothing.
    Silent,
}

impl Way {
    fn is_stateless(&self) -> bool {
        !matches!(self, Self::Session(_))
    }

    /// Where the client hears something.
    fn peer(&self) -> Option<&Peer<RoleServer>> {
        match self {
            Self::Session(peer) | Self::Stateless(peer) => Some(peer),
            Self::Silent => None,
        }
    }
}

/// Answers the request.
pub(super) async fn call(handler: &Handler, mut request: Request) -> Result<CallToolResponse, ErrorData> {
    let params = std::mem::take(&mut request.params);
    let arguments = Value::Object(params.arguments.unwrap_or_default());
    let call = ToolCall::with_value(request.id.to_string(), params.name, &arguments);
    let sealer = || handler.service().sealer(handler.principal());
    let mut resume = match params.request_state {
        None => question::in_meta(&request.meta)?,
        Some(state) => match question::retried(&state, params.input_responses, &call, &sealer())? {
            Retry::Answered(resume) => Some(resume),
            Retry::Unanswered(question) => return ask_again(&question, &call, &sealer()),
            Retry::Refused(result) => return Ok(result.into()),
        },
    };
    // The question that was answered last, over the stream of this request.
    let mut answered = None;
    for _ in 0..MAX_ROUNDS {
        let (question, form) = match once(handler, &call, resume.take(), &request).await {
            Ok(answer) => {
                let asked = answer.question().filter(|_| request.can_be_asked());
                match asked.and_then(|question| Some((question.clone(), question::form(question)?))) {
                    Some(asked) => asked,
                    None => {
                        let is_promised = handler.promises_a_value(&call.name);
                        return result::of(&answer.completion, is_promised, request.way.is_stateless()).map(Into::into);
                    }
                }
            }
            Err(refused) => match answered.take().and_then(|question| asked_again(question, &refused)) {
                Some(asked) => asked,
                None => return result::of_refused(&refused).map(Into::into),
            },
        };
        let Way::Session(peer) = &request.way else {
            return question::input_required(form, &question, &call, &sealer()).map(Into::into);
        };
        match elicit(form, question.clone(), peer, &request.cancelled).await? {
            Retry::Answered(given) => (resume, answered) = (Some(given), Some(question)),
            Retry::Refused(result) => return Ok(result.into()),
            Retry::Unanswered(_) => {
                return Err(ErrorData::invalid_params("the client's answer does not have the requested form", None));
            }
        }
    }
    Err(ErrorData::internal_error(format!("the tool asked more than {MAX_ROUNDS} questions"), None))
}

/// The same question with what was wrong about its answer, if that is why the call was refused.
fn asked_again(question: Question, refused: &Refused) -> Option<(Question, ElicitRequest)> {
    let Refused::InvalidAnswer(refusal) = refused else { return None };
    let mut told = question.clone();
    told.question = format!("{}\n({refusal})", question.question);
    Some((question, question::form(&told)?))
}

/// The same question again, for a request that came without its answer.
fn ask_again(question: &Question, call: &ToolCall, sealer: &Sealer) -> Result<CallToolResponse, ErrorData> {
    match question::form(question) {
        Some(form) => question::input_required(form, question, call, sealer).map(Into::into),
        None => Err(ErrorData::invalid_params("the request has no answer to the tool's question", None)),
    }
}

/// One call of the service.
async fn once(handler: &Handler, call: &ToolCall, resume: Option<Resume>, asked: &Request) -> Result<Answer, Refused> {
    let id = RequestId::generate();
    let mut request = CallRequest::new(call.clone());
    request = request.with_request_id(id.clone()).with_context(call_context(resume, &asked.meta));
    request = request.with_stop_grace(handler.options().stop_grace);
    let notices = asked
        .way
        .peer()
        .map(|peer| Notices::new(peer.clone(), asked.meta.get_progress_token(), asked.level, &call.name));
    let mut notices = notices.filter(Notices::is_wanted);
    let mut events = notices.is_some().then(|| {
        let (sender, events) = mpsc::channel(EVENTS);
        request.events = Some(Arc::new(move |event: Event| drop(sender.try_send(event))));
        events
    });
    let (mut is_told, mut is_cancelled) = (events.is_none(), false);
    let mut telling = pin!(async {
        if let (Some(notices), Some(events)) = (&mut notices, &mut events) {
            while let Some(event) = events.recv().await {
                notices.tell(event).await;
            }
        }
    });
    let answer = {
        let mut running = pin!(handler.service().call(handler.principal(), request));
        loop {
            tokio::select! {
                // First, so that the call is known when it is cancelled.
                biased;
                answer = &mut running => break answer,
                () = &mut telling, if !is_told => is_told = true,
                () = asked.ended(handler), if !is_cancelled => {
                    is_cancelled = true;
                    // Fails only for a call that has ended.
                    let _ = handler.service().cancel(handler.principal(), &id);
                }
            }
        }
    };
    if let Ok(answer) = &answer {
        tracing::Span::current().record("tool", &answer.completion.tool);
    }
    if !is_told && !is_cancelled {
        let _ = tokio::time::timeout(LAST_EVENTS, telling).await;
    }
    answer
}

/// What the tool can know of the request.
fn call_context(resume: Option<Resume>, meta: &RequestMetaObject) -> CallContext {
    let mut made = CallContext::default();
    made.resume = resume;
    for name in wire::TRACE {
        if let Some(value @ Value::String(_)) = meta.get(name) {
            made.extensions.insert(name.to_owned(), value.clone().into());
        }
    }
    made
}

impl Request {
    /// Returns when the client has cancelled the request, or its session has ended.
    async fn ended(&self, handler: &Handler) {
        tokio::select! {
            () = self.cancelled.cancelled() => {}
            () = handler.end().cancelled() => {}
        }
    }

    /// Whether the client can show a form to its user.
    fn can_be_asked(&self) -> bool {
        let declared = self.capabilities.as_ref().and_then(|capabilities| capabilities.elicitation.as_ref());
        // Without a mode, forms are meant.
        declared.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
    }
}

/// Asks the client's user, over the stream of the request.
async fn elicit(
    form: ElicitRequest,
    question: Question,
    peer: &Peer<RoleServer>,
    cancelled: &CancellationToken,
) -> Result<Retry, ErrorData> {
    let failed = |error: ServiceError| {
        ErrorData::internal_error(format!("the client did not answer the question: {error}"), None)
    };
    let options = PeerRequestOptions::with_timeout(DEFAULT_SEAL_LIFETIME);
    let request = ServerRequest::ElicitRequest(form);
    let asking = peer.send_request_with_option(request, options).await.map_err(failed)?;
    let id = asking.id.clone();
    let response = tokio::select! {
        response = asking.await_response() => response.map_err(failed)?,
        () = cancelled.cancelled() => {
            let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), None)).await;
            return Err(ErrorData::internal_error("the request was cancelled", None));
        }
    };
    if let ClientResult::ElicitResult(result) = response {
        Ok(question::elicited(question, result))
    } else {
        Ok(Retry::Unanswered(question))
    }
}
