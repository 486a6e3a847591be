//! `wasi:http`, so that ordinary HTTP libraries of guests work: the same requests by the same way out.
//!
//! Invariants: nothing is sent but by [`egress`](crate::egress); a request's body is whole before it is sent.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::{HeaderName, Request, Response};
use http_body_util::BodyExt as _;
use wasmtime::component::Linker;
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types};
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttp, WasiHttpCtx,
    WasiHttpCtxView, WasiHttpHooks,
};

use crate::egress::{Budget, Egress, Outgoing, SendError};
use crate::engine::cell::Cell;
use crate::grants::{Method, Target};
use crate::handler::Invocation;
use crate::rights::Rights;

/// Bytes of headers in memory, in one collection of them.
const FIELDS: usize = 64 << 10;
/// Bytes of a request's body, as much as one call may send in all.
const BODY: usize = 8 << 20;

/// Links it.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    let options = wasmtime_wasi_http::p2::bindings::LinkOptions::default();
    outgoing_handler::add_to_linker::<Cell, WasiHttp>(linker, Cell::wasi_http)?;
    types::add_to_linker::<Cell, WasiHttp>(linker, &(&options).into(), Cell::wasi_http)
}

/// What a cell has of `wasi:http`, made when it is first touched.
pub(in crate::engine) struct WasiHttpState {
    context: WasiHttpCtx,
    hooks: Hooks,
}

impl Cell {
    fn wasi_http(&mut self) -> WasiHttpCtxView<'_> {
        // It cannot refuse here; the next tick does.
        let _ = self.count_host_call();
        if self.wasi_http.is_none() {
            let mut context = WasiHttpCtx::new();
            context.set_field_size_limit(FIELDS);
            let hooks = Hooks {
                egress: self.world().egress.clone(),
                rights: self.shared_rights(),
                budget: self.egress_budget(),
                latest: self.latest(),
                invocation: Arc::clone(&self.invocation),
            };
            self.wasi_http = Some(Box::new(WasiHttpState { context, hooks }));
        }
        let state = self.wasi_http.as_mut().expect("made above");
        WasiHttpCtxView { ctx: &mut state.context, table: &mut self.table, hooks: &mut state.hooks }
    }
}

struct Hooks {
    egress: Egress,
    rights: Arc<Rights>,
    budget: Budget,
    latest: Instant,
    invocation: Arc<Invocation>,
}

type Sent = (Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl WasiHttpHooks for Hooks {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        // A library sets the length by itself: it is checked against the body, and set anew on the way out.
        Arc::new(|name: &HeaderName| DEFAULT_FORBIDDEN_HEADERS.contains(name))
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _processed: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Sent, Error>> + Send> {
        let (egress, rights, budget, latest) =
            (self.egress.clone(), Arc::clone(&self.rights), self.budget.clone(), self.latest);
        let invocation = Arc::clone(&self.invocation);
        Box::new(async move {
            let outgoing = outgoing(request, options).await?;
            let response = egress.open(&rights, &budget, outgoing, &[], latest).await.map_err(|error| {
                if let SendError::Denied(denial) = &error {
                    invocation.denied(denial);
                }
                fault(error)
            })?;
            let done: Box<dyn Future<Output = Result<(), Error>> + Send> = Box::new(std::future::ready(Ok(())));
            Ok((response.map(|body| body.map_err(fault).boxed_unsync()), done))
        })
    }
}

async fn outgoing(request: Request<WasiBody>, options: Option<RequestOptions>) -> Result<Outgoing, Error> {
    let (head, body) = request.into_parts();
    let method = Method::parse(head.method.as_str()).ok_or(Error::HttpRequestMethodInvalid)?;
    let target = Target::parse(&head.uri.to_string()).map_err(|_| Error::HttpRequestUriInvalid)?;
    let own = |name: &HeaderName| *name == http::header::HOST || *name == http::header::CONTENT_LENGTH;
    let headers = head.headers.iter().filter(|(name, _)| !own(name));
    let headers = headers.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec())).collect();
    // Three times are known of one request, the rest of the call's is the fourth: the longest of them bounds all of it.
    let timeout = options.and_then(|options| {
        [options.connect_timeout, options.first_byte_timeout, options.between_bytes_timeout].into_iter().flatten().max()
    });
    Ok(Outgoing { method, target, headers, body: whole(body).await?, timeout })
}

/// The whole body, as long as there is room for it.
async fn whole(mut body: WasiBody) -> Result<Bytes, Error> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if whole.len() + data.len() > BODY {
            return Err(Error::HttpRequestBodySize(Some(BODY as u64)));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

fn fault(error: SendError) -> Error {
    match error {
        SendError::Denied(_) => Error::HttpRequestDenied,
        SendError::Private(_) => Error::DestinationIpProhibited,
        SendError::Invalid(problem) => Error::InternalError(Some(problem)),
        SendError::Unreachable(_) => Error::DestinationUnavailable,
        SendError::Timeout => Error::HttpResponseTimeout,
        SendError::OverBudget(_) => Error::ConnectionLimitReached,
        SendError::Broken(_) => Error::HttpProtocolError,
    }
}
