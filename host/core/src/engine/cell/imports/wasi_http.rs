//! Implements `wasi:http` for guests (the WebAssembly code of tools), so that ordinary HTTP
//! libraries work.
//!
//! wasmtime's own host provides the types of the interface and collects the guest's request;
//! [`Hooks`] is what it calls to send it. The request is admitted by its head: counted and checked
//! against the rights. Then its whole body is read and charged to the budget of the call, and
//! [`http`](crate::capability::http) sends it, as it does for the import `http`. An error becomes
//! an error code of `wasi:http`, and a denial also an event.
//! Invariants: there is no other path for these requests. A body is complete before the request is
//! sent. The bodies of all requests of a call may hold as many bytes as the call may send. In a dry
//! run (a call that records what it would need) a request that is not granted or writes something
//! is not sent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{borrow::Cow, sync::Arc};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderName, Request, Response, request::Parts};
use http_body_util::{BodyExt as _, Full};
use toolcell_contract::controls::bound;
use toolcell_contract::grants::{Method, Target, rights::Request as GrantRequest};
use tracing::{Instrument as _, Span};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::pipe::SinkOutputStream;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types};
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttp,
    WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, p2::body::HostOutgoingBody,
};

use super::http::{STAND_IN, STAND_IN_TYPE, is_sent, report_denial};
use crate::capability::http::{
    self as egress, Admitted, DEFAULT_SENT, Outgoing, SendError, Share, TimeoutPhase, Times,
};
use crate::engine::cell::bounds::host_memory::{CHUNK, FIELDS};
use crate::engine::cell::host_span::{host_span, note_end, note_request};
use crate::engine::cell::{Cell, Scope};
use crate::tool::handler::Invocation;

/// The name of the interface in wasmtime's own host.
const TYPES: &str = "wasi:http/types@0.2.12";

/// Links the interfaces.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    let options = wasmtime_wasi_http::p2::bindings::LinkOptions::default();
    outgoing_handler::add_to_linker::<Cell, WasiHttp>(linker, Cell::wasi_http)?;
    types::add_to_linker::<Cell, WasiHttp>(linker, &(&options).into(), Cell::wasi_http)?;
    linker.allow_shadowing(true);
    linker.instance(TYPES)?.func_wrap("[method]outgoing-body.write", body_stream)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Calls wasmtime's own `write` of a body, and wraps its stream so that it takes the body before
/// the request is sent.
fn body_stream(
    mut store: StoreContextMut<'_, Cell>,
    (body,): (Resource<HostOutgoingBody>,),
) -> wasmtime::Result<(Result<Resource<DynOutputStream>, ()>,)> {
    Cell::traced("types", "[method]outgoing-body.write");
    let cell = store.data_mut();
    let stream = types::HostOutgoingBody::write(&mut cell.wasi_http(), body)?;
    if let (Ok(stream), Some(state)) = (&stream, &cell.wasi_http) {
        let stream = cell.table.get_mut(stream)?;
        let inner = std::mem::replace(stream, Box::new(SinkOutputStream));
        *stream = Box::new(BodyStream {
            inner,
            held: BytesMut::new(),
            written_bytes: Arc::clone(&state.hooks.written_bytes),
        });
    }
    Ok((stream,))
}

/// The state of `wasi:http` in a cell, built at its first use.
pub(crate) struct WasiHttpState {
    context: WasiHttpCtx,
    hooks: Hooks,
}

impl WasiHttpState {
    /// Returns the bytes that the guest has written into bodies of requests.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.hooks.written_bytes.load(Ordering::Relaxed)
    }
}

impl Cell {
    fn wasi_http(&mut self) -> WasiHttpCtxView<'_> {
        // It cannot return an error; the next tick ends the cell.
        let _ = self.count_host_call();
        let state = self.wasi_http.get_or_insert_with(|| {
            let mut context = WasiHttpCtx::new();
            context.set_field_size_limit(FIELDS);
            let hooks = Hooks { scope: self.scope.clone(), written_bytes: Arc::default() };
            Box::new(WasiHttpState { context, hooks })
        });
        WasiHttpCtxView { ctx: &mut state.context, table: &mut self.table, hooks: &mut state.hooks }
    }
}

struct Hooks {
    scope: Scope,
    /// Bytes that the guest has written into bodies of requests, refused ones included.
    written_bytes: Arc<AtomicU64>,
}

/// The stream of a request's body. It collects writes into pieces of [`CHUNK`] bytes, so that a
/// body of many small writes fits wasmtime's channel.
struct BodyStream {
    inner: DynOutputStream,
    held: BytesMut,
    written_bytes: Arc<AtomicU64>,
}

/// Returns true if the bodies of a call hold more than it may send.
fn is_too_much(written: u64) -> bool {
    written > bound!(SentBytes, DEFAULT_SENT)
}

impl OutputStream for BodyStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let size = bytes.len() as u64;
        let written = self.written_bytes.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if is_too_much(written) {
            let error = types::ErrorCode::HttpRequestBodySize(Some(written));
            return Err(StreamError::LastOperationFailed(error.into()));
        }
        self.held.extend_from_slice(&bytes);
        while self.held.len() >= CHUNK {
            self.inner.write(self.held.split_to(CHUNK).freeze())?;
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        // Only its error matters, which means that the request is over. There is room for every
        // permitted write.
        self.inner.check_write()?;
        Ok(CHUNK)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for BodyStream {
    async fn ready(&mut self) {}
}

impl Drop for BodyStream {
    fn drop(&mut self) {
        if !self.held.is_empty() {
            // Fails if the request has ended: nothing reads its body.
            let _ = self.inner.write(std::mem::take(&mut self.held).freeze());
        }
    }
}

type Sent = (Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl WasiHttpHooks for Hooks {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        // A library sets the length itself. It is checked against the body, and set again when the
        // request is sent.
        Arc::new(|name: &HeaderName| DEFAULT_FORBIDDEN_HEADERS.contains(name))
    }

    fn p2_outgoing_body_buffer_chunks(&mut self) -> usize {
        // Room for the most that a call may send.
        (DEFAULT_SENT as usize).div_ceil(CHUNK)
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _processed: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Sent, Error>> + Send> {
        let (scope, written) = (self.scope.clone(), Arc::clone(&self.written_bytes));
        let budget = scope.invocation.egress_budget();
        let (head, body) = request.into_parts();
        // Checked now instead of when the body is complete: the body of a refused request is not
        // collected further.
        let span = host_span(&self.scope.invocation, "wasi:http", "handle");
        let admitted = self.admit(&head, &span);
        let sending = async move {
            let done: Box<dyn Future<Output = Result<(), Error>> + Send> =
                Box::new(std::future::ready(Ok(())));
            let (method, target, admitted) = admitted?;
            let Some(mut admitted) = admitted else {
                collect_body(body, |bytes| budget.take_sent(bytes as u64)).await?;
                return Ok((placeholder_response()?, done));
            };
            let body = collect_body(body, |bytes| admitted.charge(&budget, bytes)).await?;
            // If a write failed, the body is incomplete.
            let written = written.load(Ordering::Relaxed);
            if is_too_much(written) {
                return Err(Error::HttpRequestBodySize(Some(written)));
            }
            let (headers, times) = (headers(&head), times(options));
            let outgoing = Outgoing { method, target, headers, body, timeout: None, times };
            let secrets = scope.secrets(Vec::new()).await.map_err(fault)?;
            let (egress, latest) = (&scope.resources.egress, scope.latest());
            let response = egress.open(admitted, &budget, outgoing, secrets, latest).await;
            let ended = response.as_ref().map(|response| response.status().as_u16());
            note_end(&Span::current(), ended);
            let response = response.map_err(|error| report_error(&scope.invocation, error))?;
            Ok((response.map(|body| body.map_err(fault).boxed_unsync()), done))
        };
        Box::new(sending.instrument(span))
    }
}

impl Hooks {
    /// Counts a request, and checks it by its head. Returns no admission for a request that a dry
    /// run answers with a stand-in.
    fn admit(
        &self,
        head: &Parts,
        span: &Span,
    ) -> Result<(Method, Target, Option<Admitted>), Error> {
        let method = Method::parse(head.method.as_str()).ok_or(Error::HttpRequestMethodInvalid)?;
        let target =
            Target::parse(&head.uri.to_string()).map_err(|_| Error::HttpRequestUriInvalid)?;
        let Scope { resources, invocation, rights, .. } = &self.scope;
        if resources.recorder.is_some() {
            let request = GrantRequest::Http { method, target: Cow::Borrowed(&target) };
            self.scope.authorize(&request).map_err(|_denial| Error::HttpRequestDenied)?;
            if !is_sent(rights, &request) {
                return Ok((method, target, None));
            }
        }
        let admitted = egress::admit(rights, &invocation.egress_budget(), method, &target);
        let admitted = admitted.map_err(|error| {
            note_end(span, Err(&error));
            report_error(invocation, error)
        })?;
        note_request(span, method, &target);
        Ok((method, target, Some(admitted)))
    }
}

/// Builds the answer to a request that is not sent.
fn placeholder_response() -> Result<Response<WasiBody>, Error> {
    let (name, value) = STAND_IN_TYPE;
    let body = Full::new(Bytes::from_static(STAND_IN.as_bytes())).map_err(|never| match never {});
    let response = Response::builder().header(name, value).body(body.boxed_unsync());
    response.map_err(|error| Error::InternalError(Some(error.to_string())))
}

/// Returns the request's headers, without the two that the host sets.
fn headers(head: &Parts) -> Vec<(String, Vec<u8>)> {
    let theirs = head.headers.iter().filter(|(name, _)| ![HOST, CONTENT_LENGTH].contains(name));
    theirs.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec())).collect()
}

/// Returns the time limits of the request's parts, as the guest sets them. The whole request ends
/// with the call.
fn times(options: Option<RequestOptions>) -> Times {
    let options = options.unwrap_or_default();
    Times {
        connect: options.connect_timeout,
        first_byte: options.first_byte_timeout,
        between_bytes: options.between_bytes_timeout,
    }
}

/// Collects the whole body, and counts its bytes against the budget as they come.
async fn collect_body(
    mut body: WasiBody,
    mut pay: impl FnMut(usize) -> Result<(), SendError>,
) -> Result<Bytes, Error> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        pay(data.len()).map_err(fault)?;
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// Reports a denial as an event, and converts the error.
fn report_error(invocation: &Invocation, error: SendError) -> Error {
    report_denial(invocation, &error);
    fault(error)
}

fn fault(error: SendError) -> Error {
    match error {
        SendError::Denied(_) => Error::HttpRequestDenied,
        SendError::Private(_) => Error::DestinationIpProhibited,
        SendError::Invalid(problem) => {
            Error::InternalError(Some(format!("the request cannot be sent: {problem}")))
        }
        SendError::Unreachable(_) => Error::DestinationUnavailable,
        SendError::Timeout(TimeoutPhase::Connect) => Error::ConnectionTimeout,
        SendError::Timeout(TimeoutPhase::BetweenBytes) => Error::ConnectionReadTimeout,
        SendError::Timeout(TimeoutPhase::FirstByte | TimeoutPhase::Whole) => {
            Error::HttpResponseTimeout
        }
        SendError::OverBudget(Share::Requests, _) => Error::ConnectionLimitReached,
        SendError::OverBudget(Share::Sent, _) => Error::HttpRequestBodySize(None),
        SendError::OverBudget(Share::Received, _) => Error::HttpResponseBodySize(None),
        SendError::OverBudget(Share::Framing, _) => Error::HttpProtocolError,
        SendError::OverBudget(Share::Closed, _) => Error::HttpRequestDenied,
        SendError::Broken(_) => Error::HttpProtocolError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_send_error_has_a_distinct_code() {
        let over = |share| SendError::OverBudget(share, "too much".to_owned());
        let mut codes = Vec::new();
        for (error, expected) in [
            (SendError::Timeout(TimeoutPhase::Connect), "ConnectionTimeout"),
            (SendError::Timeout(TimeoutPhase::FirstByte), "HttpResponseTimeout"),
            (SendError::Timeout(TimeoutPhase::BetweenBytes), "ConnectionReadTimeout"),
            (over(Share::Requests), "ConnectionLimitReached"),
            (over(Share::Sent), "HttpRequestBodySize(None)"),
            (over(Share::Received), "HttpResponseBodySize(None)"),
            (over(Share::Framing), "HttpProtocolError"),
            (over(Share::Closed), "HttpRequestDenied"),
        ] {
            let code = format!("{:?}", fault(error));
            assert_eq!(code, expected);
            assert!(!codes.contains(&code), "{code} stands for two things");
            codes.push(code);
        }
    }
}
