//! Implements the import `http`, by which a guest sends one request and gets the whole response.
//!
//! A guest (the WebAssembly code of a tool) calls `send`, which waits for the response, or `start`,
//! which returns a handle, then `subscribe` and `finish`. Each request is parsed, checked against
//! the rights of the call, and given to [`http`](crate::capability::http) with the secret that the
//! guest names by a handle. An error becomes a case of the guest's `fault`: denied, invalid,
//! unreachable, timeout, over budget, broken. A denial is also an event for observers.
//! In a dry run (a call that records what it would need), a request that is not granted, writes
//! something or uses a secret is not sent: the guest gets the stand-in `{}`.
//! Not here: the rules for requests and their targets, which are the same for `wasi:http`
//! ([`http`](crate::capability::http)).

use std::time::{Duration, Instant};
use std::{borrow::Cow, pin::Pin, sync::Arc};

use ::http::{HeaderName, HeaderValue};
use futures_util::future::maybe_done;
use toolcell_contract::grants::rights::{Decision, Request, Rights};
use toolcell_contract::grants::{Access, Method, Target};
use tracing::{Instrument as _, Span};
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use super::secrets::denial_text;
use crate::capability::http::{self as egress, Credential, Outgoing, SendError, Times};
use crate::engine::cell::bindings::{Handle, Pending, PendingResponse, bytes_of};
use crate::engine::cell::host_span::{host_span, note_end, note_request};
use crate::engine::cell::{Cell, Scope, bindings::toolcell::tool::http};
use crate::tool::handler::Invocation;

/// The body and the content type of the answer to a request that a dry run does not send.
pub(super) const STAND_IN: &str = "{}";
pub(super) const STAND_IN_TYPE: (&str, &str) = ("content-type", "application/json");

/// Returns true if a dry run sends a request: it is granted, and only reads.
pub(super) fn is_sent(rights: &Rights, request: &Request<'_>) -> bool {
    let Request::Http { method, .. } = request else { return false };
    method.access() == Access::Read && rights.allows(request) == Decision::Allowed
}

/// The time limit of a request whose call has no deadline.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Links the interface.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    http::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)
}

impl http::Host for Cell {
    async fn send(
        &mut self,
        request: http::Request,
        credential: Option<Resource<Handle>>,
    ) -> wasmtime::Result<Result<http::Response, http::Fault>> {
        self.called("http", "send")?;
        self.run_state.waits();
        let sent = match self.started(request, credential).await? {
            Ok(going) => going.await,
            Err(error) => Err(error),
        };
        Ok(sent.map_err(fault))
    }

    async fn start(
        &mut self,
        request: http::Request,
        credential: Option<Resource<Handle>>,
    ) -> wasmtime::Result<Result<Resource<Pending>, http::Fault>> {
        self.called("http", "start")?;
        self.run_state.waits();
        let body = request.body.as_ref().map_or(0, Vec::len);
        let bytes = request.url.len() + body + bytes_of(&request.headers);
        let charge = self.files().host_memory.charge(bytes as u64)?;
        match self.started(request, credential).await? {
            Ok(going) => {
                Ok(Ok(self.table.push(Pending { response: maybe_done(going), charge })?))
            }
            Err(error) => Ok(Err(fault(error))),
        }
    }
}

impl http::HostPending for Cell {
    fn subscribe(&mut self, pending: Resource<Pending>) -> wasmtime::Result<Resource<DynPollable>> {
        self.called("http", "[method]pending.subscribe")?;
        subscribe(&mut self.table, pending)
    }

    async fn finish(
        &mut self,
        pending: Resource<Pending>,
    ) -> wasmtime::Result<Result<http::Response, http::Fault>> {
        self.called("http", "[method]pending.finish")?;
        self.run_state.waits();
        let pending = self.table.get_mut(&pending)?;
        pending.ready().await;
        let sent = Pin::new(&mut pending.response).take_output();
        let taken = || SendError::Invalid("its response was taken before".to_owned());
        Ok(sent.ok_or_else(taken).flatten().map_err(fault))
    }

    fn drop(&mut self, pending: Resource<Pending>) -> wasmtime::Result<()> {
        self.table.delete(pending)?;
        Ok(())
    }
}

impl Cell {
    /// Checks a request, and sends it.
    async fn started(
        &mut self,
        request: http::Request,
        credential: Option<Resource<Handle>>,
    ) -> wasmtime::Result<Result<PendingResponse, SendError>> {
        let secret = credential
            .map(|handle| self.table.get(&handle).map(|handle| handle.name.clone()))
            .transpose()?;
        let span = host_span(&self.scope.invocation, "http", "send");
        let prepared = async { self.prepared(outgoing(request)?, secret.as_deref()).await };
        let going = prepared.instrument(span.clone()).await;
        let going = going.inspect_err(|error| note_end(&span, Err(error)));
        Ok(going.map(|going| -> PendingResponse {
            Box::pin(async move {
                let sent = going.instrument(span.clone()).await;
                note_end(&span, sent.as_ref().map(|response| response.status));
                sent
            })
        }))
    }

    /// Sends a request if it is allowed. In a dry run it may return a stand-in.
    async fn prepared(
        &mut self,
        outgoing: Outgoing,
        secret: Option<&str>,
    ) -> Result<PendingResponse, SendError> {
        let request =
            Request::Http { method: outgoing.method, target: Cow::Borrowed(&outgoing.target) };
        self.scope.authorize(&request)?;
        note_request(&Span::current(), outgoing.method, &outgoing.target);
        if let Some(recorder) = &self.scope.resources.recorder {
            if let Some(name) = secret {
                self.scope.authorize(&Request::Secret { name: name.into() })?;
                recorder.secret(name, outgoing.method, &outgoing.target);
            }
            if secret.is_some() || !is_sent(&self.scope.rights, &request) {
                let (name, value) = STAND_IN_TYPE;
                let headers = vec![(name.to_owned(), value.to_owned())];
                let response = http::Response { status: 200, headers, body: STAND_IN.into() };
                return Ok(Box::pin(std::future::ready(Ok(response))));
            }
        }
        let mut credentials = Vec::new();
        if let Some(name) = secret {
            credentials.push(self.scope.credential(name).await?);
        }
        let secrets = self.scope.secrets(credentials).await?;
        let Scope { invocation, resources, rights, .. } = &self.scope;
        let (invocation, latest) = (Arc::clone(invocation), self.scope.latest());
        let budget = invocation.egress_budget();
        let begun = egress::admit(rights, &budget, outgoing.method, &outgoing.target)
            .and_then(|admitted| {
                resources.egress.begin(admitted, &budget, outgoing, secrets, latest)
            })
            .inspect_err(|error| report_denial(&invocation, error))?;
        Ok(Box::pin(async move {
            let response =
                begun.collect().await.inspect_err(|error| report_denial(&invocation, error))?;
            let text = |(name, value): (&HeaderName, &HeaderValue)| {
                Some((name.to_string(), std::str::from_utf8(value.as_bytes()).ok()?.to_owned()))
            };
            Ok(http::Response {
                status: response.status().as_u16(),
                headers: response.headers().iter().filter_map(text).collect(),
                body: response.into_body().into(),
            })
        }))
    }
}

impl Scope {
    /// Returns the time by which a request of this call must end.
    pub(super) fn latest(&self) -> Instant {
        self.invocation.deadline().unwrap_or_else(|| Instant::now() + REQUEST_TIMEOUT)
    }

    /// Returns a secret for injection into a request. Checks the right to it again, since the
    /// handle may be old and the check is cheap.
    async fn credential(&self, name: &str) -> Result<Credential, SendError> {
        self.authorize(&Request::Secret { name: name.into() })?;
        let unavailable = || SendError::Invalid(format!("the secret `{name}` is not available"));
        let used = self.rights.granted().secrets.get(name).ok_or_else(unavailable)?;
        let secret = self.secret_value(name).await.ok_or_else(unavailable)?;
        Credential::new(name, used, secret)
    }
}

/// Reports a denial of a request in [`http`](crate::capability::http) as an event.
pub(super) fn report_denial(invocation: &Invocation, error: &SendError) {
    if let Some(denial) = error.denial() {
        invocation.denied(denial);
    }
}

fn outgoing(request: http::Request) -> Result<Outgoing, SendError> {
    let http::Request { method, url, headers, body, timeout_ms } = request;
    let not_a_method = || {
        let shown: String = method.chars().take(20).collect();
        SendError::Invalid(format!("`{}` is not a supported method", shown.escape_debug()))
    };
    Ok(Outgoing {
        method: Method::parse(&method).ok_or_else(not_a_method)?,
        target: Target::parse(&url)
            .map_err(|problem| SendError::Invalid(format!("the URL cannot be used: {problem}")))?,
        headers: headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect(),
        body: body.unwrap_or_default().into(),
        timeout: timeout_ms.map(Duration::from_millis),
        times: Times::default(),
    })
}

fn fault(error: SendError) -> http::Fault {
    match error {
        SendError::Denied(denial) => http::Fault::Denied(denial_text(&denial)),
        SendError::Private(ref host) => http::Fault::Denied(format!("{error}; {}", host.hint)),
        SendError::Invalid(problem) => http::Fault::Invalid(problem),
        SendError::Unreachable(problem) => http::Fault::Unreachable(problem),
        SendError::Timeout(_) => http::Fault::Timeout,
        SendError::OverBudget(_, problem) => http::Fault::OverBudget(problem),
        SendError::Broken(problem) => http::Fault::Broken(problem),
    }
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    /// A method or URL that cannot be parsed makes no request, and no right is checked.
    #[test]
    fn bad_method_or_url_makes_no_request() {
        let requests = rows::<(&str, &str, bool)>("engine/cell/imports/http", "requests");
        for (method, url, expected) in requests {
            let (method, url) = (method.to_owned(), url.to_owned());
            let request =
                http::Request { method, url, headers: Vec::new(), body: None, timeout_ms: None };
            let shown = format!("{request:?}");
            assert_eq!(outgoing(request).is_ok(), expected, "{shown}");
        }
    }
}
