//! Routes that make calls, and the route that cancels them.
//!
//! `POST /v1/calls` makes one call, `/v1/batch` several calls as one run, and `/v1/steps` the steps
//! of an agent loop; each answers once with JSON. `/v1/runs` answers with a stream of events while
//! the calls run. `DELETE /v1/calls/{id}` cancels the running request with that `x-request-id`.
//! Each route reads its body, converts it and calls the service.
//!
//! A request without an idempotency key ends with its connection, and its guests (the running
//! tools) are stopped. A request with a key continues in a task of its own, so that the client can
//! ask for the answer again; it can still be cancelled. Streams accept no key.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::json;
use toolcell::run::RunEvent;
use toolcell::step::{Step, TurnMemory};
use toolcell::tenant::Reservation;
use tracing::Instrument as _;

use super::guarded_body::with_guard;
use super::idempotency::{BeginResult, HEADER, REPLAYED, key_of};
use super::problem::{Failed, Problem, Refused};
use super::schemas::{Completion, RunOutcome, Steps};
use super::{Caller, Shared, body, forms};
use crate::service::Service;
use crate::service::runs::RunEvents;
use crate::tenants::principal::Principal;
use crate::tenants::refused::RequestError;
use crate::tenants::share::request_rule;

/// Time without an event after which a comment keeps the connection of a stream open.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The time after which to retry while the answers to as many calls as allowed are not sent.
const RETRY: Duration = Duration::from_secs(1);

/// Makes one call and answers with its completion, however the call ended. To answer a question,
/// repeat the call with `resume`.
#[utoipa::path(post, path = "/v1/calls", operation_id = "call", request_body = forms::CallBody, security(("bearer" = [])), responses(
    (status = 200, body = Completion, description = "The completion of the call"),
    Refused, Failed,
))]
pub(super) async fn call(caller: Caller, request: Request) -> Result<Response, Problem> {
    let (key, read) = (key_of(request.headers())?, body::read(&caller.shared, request).await?);
    let call = body::parse::<forms::CallBody>(&read.bytes)?.request(&caller.id)?;
    let work = |service: Service, sender| async move {
        service.call(&sender, call).await.map(|response| response.completion)
    };
    answer_once(caller, key, ("calls", 1), read, work).await
}

/// Makes several calls as one run and answers with its outcome.
#[utoipa::path(post, path = "/v1/batch", operation_id = "batch", request_body = forms::RunBody, security(("bearer" = [])), responses(
    (status = 200, body = RunOutcome, description = "The outcome of the run"),
    Refused, Failed,
))]
pub(super) async fn batch(caller: Caller, request: Request) -> Result<Response, Problem> {
    let (key, read) = (key_of(request.headers())?, body::read(&caller.shared, request).await?);
    let run = body::parse::<forms::RunBody>(&read.bytes)?.request(&caller.id)?;
    let calls = run.calls.len();
    let work = |service: Service, sender| async move { service.run(&sender, run).await };
    answer_once(caller, key, ("batch", calls), read, work).await
}

/// Makes several calls as one run and answers with its events, as server-sent events. Each is one
/// line of JSON; the last has the type `run_finished` or `run_halted`. The run ends with the
/// connection.
#[utoipa::path(post, path = "/v1/runs", operation_id = "run", request_body = forms::RunBody, security(("bearer" = [])), responses(
    (status = 200, body = String, content_type = "text/event-stream", description = "Server-sent events. The `data` of each is one `Event` as JSON"),
    Refused, Failed,
))]
pub(super) async fn run(caller: Caller, request: Request) -> Result<Response, Problem> {
    if request.headers().contains_key(HEADER) {
        let detail = "a stream of events is not kept: this route honours no `Idempotency-Key`";
        let problem = Problem::bad_request("invalid_idempotency_key", detail);
        return Err(problem.with_hint("leave the header out, or send the calls to `/v1/batch`"));
    }
    let body::Read { bytes, resources } = body::read(&caller.shared, request).await?;
    let run = body::parse::<forms::RunBody>(&bytes)?.request(&caller.id)?;
    drop(bytes);
    let held = body::kept_by_work(resources);
    let lines = lines(caller.shared.service.stream(&caller.principal, run).await?);
    Ok(sse(lines.map(move |line| {
        // Kept until the stream ends: the calls are in memory.
        let _held = &held;
        Event::default().data(line)
    })))
}

/// Returns the events of a run as JSON. The last is `run_halted`, or `run_finished` with the
/// numbers of calls and of failed calls.
fn lines(events: RunEvents) -> impl Stream<Item = String> + Send {
    stream::unfold((events, Some((0_usize, 0_usize))), async |(mut events, counts)| {
        let (mut calls, mut failed) = counts?;
        let Some(event) = events.next().await else {
            let last = json!({"type": "run_finished", "calls": calls, "failed": failed});
            return Some((last.to_string(), (events, None)));
        };
        let line = serde_json::to_string(&event).unwrap_or_default();
        // Line ends in valid JSON occur only between its tokens, where a tool wrote them.
        let line = line.replace(['\n', '\r'], " ");
        match event {
            RunEvent::Settled { message, .. } => {
                calls += 1;
                failed += usize::from(message.is_error);
            }
            // The last event.
            RunEvent::Halted(_) | RunEvent::Error(_) => return Some((line, (events, None))),
            RunEvent::Call(_) => {}
            // An event of a later version.
            _ => {}
        }
        Some((line, (events, Some((calls, failed)))))
    })
}

/// Streams events. A proxy forwards each one immediately.
pub(crate) fn sse(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    // Lets other tasks run now and then: a tool may report progress as fast as the client reads.
    let events = events.then(|event| async {
        tokio::task::coop::consume_budget().await;
        Ok::<_, Infallible>(event)
    });
    let events = Sse::new(events).keep_alive(keep_alive);
    ([("x-accel-buffering", "no")], events).into_response()
}

/// Makes the steps of an agent loop for several calls, and answers with them and the turn's memory.
#[utoipa::path(post, path = "/v1/steps", operation_id = "steps", request_body = forms::StepBody, security(("bearer" = [])), responses(
    (status = 200, body = Steps, description = "The steps. Send `memory` with the next request of the same turn"),
    Refused, Failed,
))]
pub(super) async fn steps(caller: Caller, request: Request) -> Result<Response, Problem> {
    let (key, read) = (key_of(request.headers())?, body::read(&caller.shared, request).await?);
    let steps = body::parse::<forms::StepBody>(&read.bytes)?;
    if !read.resources.take(steps.copied_bytes(read.bytes.len())) {
        let busy = body::busy();
        caller.shared.service.refused(&caller.principal, busy.code);
        return Err(busy.with_hint("send fewer calls at once, or less beside them"));
    }
    let steps = steps.request(&caller.id)?;
    let calls = steps.calls.len();
    let work = |service: Service, sender| async move {
        let (steps, turn) = service.steps(&sender, steps).await?;
        Ok(TakenSteps { steps, memory: turn.memory() })
    };
    answer_once(caller, key, ("steps", calls), read, work).await
}

/// The answer to steps. Written without a tree, which would round long numbers.
#[derive(Serialize)]
struct TakenSteps {
    steps: Vec<Step>,
    memory: TurnMemory,
}

/// Cancels the running request whose `x-request-id` is this: its guests are stopped, and it is
/// answered with what its calls came to. A request of another principal is not found.
#[utoipa::path(delete, path = "/v1/calls/{id}", operation_id = "cancel", params(("id" = String, Path, description = "The `x-request-id` of the running request")), security(("bearer" = [])), responses(
    (status = 202, description = "The request is being cancelled"),
    Refused,
))]
pub(super) async fn cancel(
    Caller { shared, principal, .. }: Caller,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    // An invalid id belongs to no running request.
    let id = id.ok().and_then(|Path(id)| id.parse().ok()).ok_or(RequestError::NotRunning)?;
    shared.service.cancel(&principal, &id)?;
    Ok(StatusCode::ACCEPTED)
}

/// Runs the work of a request, or returns the answer of the first request with the same idempotency
/// key. The calls of the request count until the answer is sent.
async fn answer_once<F, T>(
    Caller { shared, principal, .. }: Caller,
    key: Option<String>,
    (route, calls): (&'static str, usize),
    read: body::Read,
    work: impl FnOnce(Service, Principal) -> F,
) -> Result<Response, Problem>
where
    F: Future<Output = Result<T, RequestError>> + Send + 'static,
    T: Serialize + Send + 'static,
{
    let work = work(shared.service.clone(), principal.clone());
    let work = async {
        let answer = serde_json::to_vec(&work.await?).unwrap_or_default();
        Ok::<_, Problem>(Bytes::from(answer))
    };
    let body::Read { bytes, resources } = read;
    // The calls are in memory until they have ended.
    let held = body::kept_by_work(resources);
    // The answer to steps can repeat what is beside the calls, once for each.
    let kept = move |held| (route == "steps").then_some(held);
    let Some(key) = key else {
        drop(bytes);
        let room = room_for_answer(&shared, &principal, calls)?;
        return Ok(with_guard(json_response(work.await?), (room, kept(held))));
    };
    match shared.idempotency.begin(&principal, &key, route, &bytes)? {
        BeginResult::Repeated(answer) => {
            let room = room_for_answer(&shared, &principal, calls)?;
            let mut response = with_guard(json_response(answer), room);
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            Ok(response)
        }
        BeginResult::First(claim) => {
            drop(bytes);
            let room = room_for_answer(&shared, &principal, calls)?;
            // A task of its own: it continues if the client disconnects, and keeps the slot of its
            // request.
            let work = async move {
                let answer = work.await?;
                claim.store(answer.clone());
                Ok::<_, Problem>((answer, kept(held)))
            };
            let task = tokio::spawn(work.in_current_span());
            let (answer, held) = task.await.map_err(|_| Problem::internal())??;
            Ok(with_guard(json_response(answer), (room, held)))
        }
    }
}

/// Reserves room for the answer to these calls.
fn room_for_answer(
    shared: &Shared,
    principal: &Principal,
    calls: usize,
) -> Result<Reservation, Problem> {
    let (service, limits) = (&shared.service, shared.service.limits());
    let mut room = shared.unsent.hold(principal.state());
    // The service refuses more calls than a request can have.
    let is_possible = calls <= limits.calls_per_request.min(limits.in_flight);
    let rule = request_rule(service.is_shared());
    if is_possible && room.grow_to(calls as u64, rule).is_err() {
        // The server may have another reason.
        service.check(principal)?;
        let refused = RequestError::Overloaded { retry_after: RETRY };
        service.refused(principal, refused.code());
        return Err(refused.into());
    }
    Ok(room)
}

fn json_response(body: Bytes) -> Response {
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tasks of this runtime share one thread.
    #[tokio::test]
    async fn stream_without_pauses_lets_other_tasks_run() {
        let other = tokio::spawn(std::future::ready(()));
        let events = stream::repeat_with(|| Event::default().data("1")).take(1_000);
        let events = sse(events).into_body().into_data_stream();
        assert_eq!(events.count().await, 1_000);
        assert!(other.is_finished());
    }
}
