//! Answers `tools/call`: makes one call of the service, forwards its progress, and passes its
//! questions to the client.
//!
//! The handler of requests (`mcp/handler.rs`) calls [`call`] with the tool's name and the request.
//! It returns a tool's result, or an error of the protocol. A tool can ask a person a question. In
//! a session the question is sent to the client while the request waits, for at most 16 rounds.
//! Without a session the answer to the request is a request for input, and the client repeats its
//! request with the person's answer. Each round is a call of its own with the same arguments.
//!
//! A cancelled request cancels its call and waits for its end, so the guest (the running tool) runs
//! no longer than its grace period.

mod notices;
mod question;
pub(in crate::mcp) mod result;
mod tool_result;

use std::pin::pin;
use std::sync::Arc;

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ContentBlock, ElicitRequest, ErrorData,
    ServerNotification,
};
use toolcell::call::Resume;
use toolcell::{CallContext, Event, Json, Question, ToolCall};

use super::{Handler, resources};
use crate::mcp::message::raw::Raw;
use crate::mcp::request::{self, Answer, Request};
use crate::mcp::session::client::{TOO_MANY_QUESTIONS, too_many_questions};
use crate::service::calls::{self, CallRequest};
use crate::service::request_id::RequestId;
use crate::tenants::refused::RequestError;
use notices::Notices;
use question::Retry;

/// The most rounds of questions in one request of a session.
const MAX_ROUNDS: usize = 16;
/// Answers the request.
pub(super) async fn call(
    handler: &Handler,
    name: String,
    request: &Request,
) -> Result<Answer, ErrorData> {
    let [arguments, responses, state] =
        request.params.members(["arguments", "inputResponses", "requestState"]);
    if arguments.as_ref().is_some_and(|arguments| !arguments.is_object()) {
        return Err(request.invalid_params());
    }
    let arguments = arguments.as_ref().map_or("{}", Raw::as_str);
    let call = ToolCall::new(request.id.to_string(), name, arguments);
    let is_modern = request.is_modern();
    let mut resume = match state {
        None => question::in_meta(request.meta.resume.as_ref())?,
        Some(state) => {
            let state = state.text().ok_or_else(|| request.invalid_params())?;
            match question::answer_of_retry(handler, &state, responses.as_ref(), &call).await? {
                Retry::Answered(resume) => Some(resume),
                Retry::Unanswered(question) => {
                    let form = question::form(&question).ok_or_else(|| {
                        let text = "the request has no answer to the tool's question";
                        ErrorData::invalid_params(text, None)
                    })?;
                    return question::input_required(handler, form, question, &call).await;
                }
                Retry::Refused(result) => return result.answer(is_modern),
            }
        }
    };
    // The last answered question, over the stream of this request.
    let mut answered = None;
    for _ in 0..MAX_ROUNDS {
        let (question, form) = match call_once(handler, &call, resume.take(), request).await {
            Ok(answer) => {
                let asked = answer.question().filter(|_| request.client.has_forms());
                match asked.and_then(|question| Some((question.clone(), question::form(question)?)))
                {
                    Some(asked) => asked,
                    None => {
                        let is_promised = handler.promises_a_value(&call.name);
                        let mut result = result::of(&answer.completion, is_promised, is_modern)?;
                        if let (Some(artifacts), Some(value)) =
                            (handler.service.artifacts(), result.cut_value())
                            && let Some(link) =
                                resources::store_value(artifacts, &handler.principal, value).await
                        {
                            result.content.insert(1, ContentBlock::resource_link(link));
                        }
                        return result.answer(is_modern);
                    }
                }
            }
            Err(refused) => {
                match answered.take().and_then(|question| question_with_fault(question, &refused)) {
                    Some(asked) => asked,
                    None => return result::of_refused(&refused)?.answer(is_modern),
                }
            }
        };
        if is_modern {
            return question::input_required(handler, form, question, &call).await;
        }
        match elicit(handler, form, question.clone(), request).await? {
            Retry::Answered(given) => (resume, answered) = (Some(given), Some(question)),
            Retry::Refused(result) => return result.answer(is_modern),
            Retry::Unanswered(_) => {
                let text = "the client's answer does not have the requested form";
                return Err(ErrorData::invalid_params(text, None));
            }
        }
    }
    Err(ErrorData::internal_error(
        format!("the call has no result after {MAX_ROUNDS} questions"),
        None,
    ))
}

/// Returns the question with the fault of its answer, if the call was refused for an invalid
/// answer.
fn question_with_fault(
    question: Question,
    refused: &RequestError,
) -> Option<(Question, ElicitRequest)> {
    let RequestError::InvalidAnswer(refusal) = refused else { return None };
    let mut shown = question.clone();
    shown.question = format!("{}\n({refusal})", question.question);
    Some((question, question::form(&shown)?))
}

/// One call of the service.
async fn call_once(
    handler: &Handler,
    call: &ToolCall,
    resume: Option<Resume>,
    asked: &Request,
) -> Result<calls::CallResponse, RequestError> {
    let id = RequestId::generate();
    let mut request = CallRequest::new(call.clone());
    request.request_id = Some(id.clone());
    let mut context = CallContext::default();
    context.resume = resume;
    for (name, value) in asked.meta.trace_members() {
        context.extensions.insert(name.to_owned(), Json::from(serde_json::Value::from(value)));
    }
    request.options.context = context.into();
    request.options.stop_grace = handler.options.stop_grace;
    let notices = Notices::new(asked, &call.name);
    if asked.client.can_receive() && notices.is_wanted() {
        request.events = Some(Arc::new(move |event: Event| notices.notify(event)));
    }
    let mut is_cancelled = false;
    let mut running = pin!(handler.service.call(&handler.principal, request));
    let answer = loop {
        tokio::select! {
            // Polled first, so that the call is registered when it is cancelled.
            biased;
            answer = &mut running => break answer,
            () = asked.cancelled.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                // Fails only if the call has ended.
                let _ = handler.service.cancel(&handler.principal, &id);
            }
        }
    };
    if let Ok(answer) = &answer {
        tracing::Span::current().record("tool", &answer.completion.tool);
    }
    answer
}

/// Asks the client's user, over the stream of the request. A question over the limit gives a result
/// that says so.
async fn elicit(
    handler: &Handler,
    form: ElicitRequest,
    question: Question,
    request: &Request,
) -> Result<Retry, ErrorData> {
    let failed = |text: &str| {
        ErrorData::internal_error(format!("the client did not answer the question: {text}"), None)
    };
    let refused =
        |error: &ErrorData| Ok(Retry::Refused(question::refused_for_room(&question, error)));
    let Some(_place) = handler.questions.enter(&handler.principal) else {
        handler.service.refused(&handler.principal, TOO_MANY_QUESTIONS);
        return refused(&too_many_questions("tenant"));
    };
    let bytes = serde_json::to_vec(&form).map_or(0, |text| text.len());
    // Stored three times: as a question, as a message, and for a client that resumes its stream.
    if !request.take(3 * bytes) {
        return refused(&request::busy_error());
    }
    let mut pending = match request.client.open(&form) {
        Ok(pending) => pending,
        Err(error) => return refused(&error),
    };
    let reply = tokio::select! {
        biased;
        () = request.cancelled.cancelled() => {
            let params = CancelledNotificationParam::new(Some(pending.id.clone()), None);
            request.client.notify(ServerNotification::from(CancelledNotification::new(params)));
            return Err(ErrorData::internal_error("the request was cancelled", None));
        }
        reply = pending.reply() => reply.map_err(failed)?,
    };
    match reply.answer {
        Ok(result) => {
            let parsed = question::parse_elicitation(question.clone(), &result);
            Ok(parsed.unwrap_or(Retry::Unanswered(question)))
        }
        Err(error) => {
            let text = error.member("message").and_then(|message| message.text());
            Err(failed(&text.unwrap_or_else(|| "it answered with an error".to_owned())))
        }
    }
}
