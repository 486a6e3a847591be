//! `tools/call`: one call of the service, with what the client hears and says while it runs.
//!
//! In: the request's params and its context. Out: a result, a request for input, or an error.
//! Invariants: a cancelled request asks its call to end, and waits until it has: the guest runs no longer than its grace; each
//! round of a question is a call of its own, with the same arguments.

use std::pin::pin;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, ClientResult, ElicitRequest, ErrorData,
    RequestId as RpcId, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, RoleServer, ServiceError};
use serde_json::Value;
use tokio::sync::mpsc;
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

/// Answers the request.
pub(super) async fn call(
    handler: &Handler,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let stateless = Handler::is_stateless(context);
    let arguments = Value::Object(params.arguments.unwrap_or_default());
    let call = ToolCall::with_value(id_text(&context.id), params.name, &arguments);
    let sealer = || handler.service().sealer(handler.principal());
    let mut resume = match params.request_state {
        None => question::in_meta(&context.meta)?,
        Some(state) => match question::retried(&state, params.input_responses, &call, &sealer())? {
            Retry::Answered(resume) => Some(resume),
            Retry::Unanswered(question) => return ask_again(&question, &call, &sealer()),
            Retry::Refused(result) => return Ok(result.into()),
        },
    };
    // The question that was answered last, over the stream of this request.
    let mut answered = None;
    for _ in 0..MAX_ROUNDS {
        let (question, form) = match once(handler, &call, resume.take(), context).await {
            Ok(answer) => {
                let asked = answer.question().filter(|_| can_be_asked(context));
                match asked.and_then(|question| Some((question.clone(), question::form(question)?))) {
                    Some(asked) => asked,
                    None => {
                        let is_promised = handler.promises_a_value(&call.name);
                        return result::of(&answer.completion, is_promised, stateless).map(Into::into);
                    }
                }
            }
            Err(refused) => match answered.take().and_then(|question| asked_again(question, &refused)) {
                Some(asked) => asked,
                None => return result::of_refused(&refused).map(Into::into),
            },
        };
        if stateless {
            return question::input_required(form, &question, &call, &sealer()).map(Into::into);
        }
        match elicit(form, question.clone(), context).await? {
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
async fn once(
    handler: &Handler,
    call: &ToolCall,
    resume: Option<Resume>,
    context: &RequestContext<RoleServer>,
) -> Result<Answer, Refused> {
    let id = RequestId::generate();
    let (sender, mut events) = mpsc::channel(EVENTS);
    let mut request = CallRequest::new(call.clone());
    request = request.with_request_id(id.clone()).with_context(call_context(resume, context));
    request = request.with_stop_grace(handler.options().stop_grace);
    let level = handler.log_level(context);
    let mut notices = Notices::new(context.peer.clone(), context.meta.get_progress_token(), level, &call.name);
    if notices.is_wanted() {
        request = request.with_events(move |event: Event| drop(sender.try_send(event)));
    } else {
        drop(sender);
    }
    let mut telling = pin!(async {
        while let Some(event) = events.recv().await {
            notices.tell(event).await;
        }
    });
    let (mut is_told, mut is_cancelled) = (false, false);
    let answer = {
        let mut running = pin!(handler.service().call(handler.principal(), request));
        loop {
            tokio::select! {
                // First, so that the call is known when it is cancelled.
                biased;
                answer = &mut running => break answer,
                () = &mut telling, if !is_told => is_told = true,
                () = context.ct.cancelled(), if !is_cancelled => {
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
fn call_context(resume: Option<Resume>, context: &RequestContext<RoleServer>) -> CallContext {
    let mut made = CallContext::default();
    made.resume = resume;
    for name in wire::TRACE {
        if let Some(value @ Value::String(_)) = context.meta.get(name) {
            made.extensions.insert(name.to_owned(), value.clone().into());
        }
    }
    made
}

/// Whether the client can show a form to its user.
fn can_be_asked(context: &RequestContext<RoleServer>) -> bool {
    let declared = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    // Without a mode, forms are meant.
    declared.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

/// Asks the client's user, over the stream of the request.
async fn elicit(
    form: ElicitRequest,
    question: Question,
    context: &RequestContext<RoleServer>,
) -> Result<Retry, ErrorData> {
    let failed = |error: ServiceError| {
        ErrorData::internal_error(format!("the client did not answer the question: {error}"), None)
    };
    let options = PeerRequestOptions::with_timeout(DEFAULT_SEAL_LIFETIME);
    let request = ServerRequest::ElicitRequest(form);
    let asking = context.peer.send_request_with_option(request, options).await.map_err(failed)?;
    let id = asking.id.clone();
    let response = tokio::select! {
        response = asking.await_response() => response.map_err(failed)?,
        () = context.ct.cancelled() => {
            let cancelled = CancelledNotificationParam::new(Some(id), None);
            let _ = context.peer.notify_cancelled(cancelled).await;
            return Err(ErrorData::internal_error("the request was cancelled", None));
        }
    };
    if let ClientResult::ElicitResult(result) = response {
        Ok(question::elicited(question, result))
    } else {
        Ok(Retry::Unanswered(question))
    }
}

fn id_text(id: &RpcId) -> String {
    id.to_string()
}
