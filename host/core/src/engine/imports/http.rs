//! The import `http`: one request and its whole response.
//!
//! Not here: what a request may be and where it may go ([`egress`](crate::egress)), which is the same for `wasi:http`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{Instrument as _, Span};
use wasmtime::component::{HasSelf, Linker, Resource};

use super::secrets::{Handle, hide, told};
use crate::egress::{Credential, Outgoing, SendError, Times};
use crate::engine::bindings::toolcell::tool::http;
use crate::engine::cell::Cell;
use crate::engine::host_span::{host_span, note_end, note_request};
use crate::grants::{Access, Method, Target};
use crate::rights::{Decision, Request, Rights};

/// What a request is answered with that is not sent in a dry run, and its type.
pub(super) const STAND_IN: &str = "{}";
pub(super) const STAND_IN_TYPE: (&str, &str) = ("content-type", "application/json");

/// Whether a dry run sends a request: it is granted, and only reads.
pub(super) fn is_sent(rights: &Rights, request: &Request<'_>) -> bool {
    let Request::Http { method, .. } = request else { return false };
    method.access() == Access::Read && rights.allows(request) == Decision::Allowed
}

/// When a request ends whose call has no deadline that a clock can say.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Links it.
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
        let _served = self.served();
        let secret = credential.map(|handle| self.table.get(&handle).map(|handle| handle.name.clone())).transpose()?;
        let span = host_span(&self.invocation, "http", "send");
        let sent = match outgoing(request) {
            Ok(outgoing) => self.sent(outgoing, secret.as_deref()).instrument(span.clone()).await,
            Err(problem) => Err(SendError::Invalid(problem)),
        };
        note_end(&span, sent.as_ref().map(|response| response.status));
        Ok(sent.map_err(fault))
    }
}

impl Cell {
    async fn sent(&mut self, outgoing: Outgoing, secret: Option<&str>) -> Result<http::Response, SendError> {
        let request = Request::Http { method: outgoing.method, target: Cow::Borrowed(&outgoing.target) };
        self.authorize(&request)?;
        note_request(&Span::current(), outgoing.method, &outgoing.target);
        if let Some(recorder) = self.recorder() {
            if let Some(name) = secret {
                self.authorize(&Request::Secret { name: name.into() })?;
                recorder.secret(name, outgoing.method, &outgoing.target);
            }
            if secret.is_some() || !is_sent(self.rights(), &request) {
                let (name, value) = STAND_IN_TYPE;
                let headers = vec![(name.to_owned(), value.to_owned())];
                return Ok(http::Response { status: 200, headers, body: STAND_IN.into() });
            }
        }
        let mut credentials = Vec::new();
        if let Some(name) = secret {
            credentials.push(self.credential(name).await?);
        }
        let (egress, rights, budget) =
            (self.world().egress.clone(), self.shared_rights(), self.invocation.egress_budget());
        let screening = self.screening();
        let secrets = screening.secrets(credentials).await?;
        let sent = egress.send(&rights, &budget, outgoing, secrets, self.latest()).await;
        let response = sent.inspect_err(|error| self.tell(error))?;
        let text = |(name, value)| Some((name, String::from_utf8(value).ok()?));
        Ok(http::Response {
            status: response.status,
            headers: response.headers.into_iter().filter_map(text).collect(),
            body: response.body.into(),
        })
    }

    /// A secret, to be put into a request. The right to it is asked for again: its handle may be older than nothing, and the
    /// decision costs nothing.
    async fn credential(&mut self, name: &str) -> Result<Credential, SendError> {
        self.authorize(&Request::Secret { name: name.into() })?;
        let unavailable = || SendError::Invalid(format!("the secret `{name}` is not available"));
        let used = self.rights().granted().secrets.get(name).cloned().ok_or_else(unavailable)?;
        let (source, context) = (Arc::clone(&self.world().secrets), Arc::clone(&self.invocation.context));
        let veil = self.veil();
        let secret = source.secret(context.tenant.as_deref(), name).await.map_err(|error| {
            tracing::error!(name, %error, "a granted secret is not available");
            unavailable()
        })?;
        if !hide(veil, name, &secret).await {
            return Err(unavailable());
        }
        Credential::new(name, &used, secret)
    }

    /// Tells observers what was denied on the way out, after all that was asked here.
    fn tell(&self, error: &SendError) {
        if let Some(denial) = error.denial() {
            self.invocation.denied(denial);
        }
    }

    /// When a request of this call ends at the latest.
    pub(super) fn latest(&self) -> Instant {
        self.invocation.deadline().unwrap_or_else(|| Instant::now() + LONGEST)
    }
}

fn outgoing(request: http::Request) -> Result<Outgoing, String> {
    let http::Request { method, url, headers, body, timeout_ms } = request;
    let shown: String = method.chars().take(20).collect();
    Ok(Outgoing {
        method: Method::parse(&method)
            .ok_or_else(|| format!("`{}` is not a supported method", shown.escape_debug()))?,
        target: Target::parse(&url).map_err(|problem| format!("the URL cannot be used: {problem}"))?,
        headers: headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect(),
        body: body.unwrap_or_default().into(),
        timeout: timeout_ms.map(Duration::from_millis),
        times: Times::default(),
    })
}

fn fault(error: SendError) -> http::Fault {
    match error {
        SendError::Denied(denial) => http::Fault::Denied(told(&denial)),
        SendError::Private(_) => http::Fault::Denied(format!("{error}; {}", error.hint())),
        SendError::Invalid(problem) => http::Fault::Invalid(problem),
        SendError::Unreachable(problem) => http::Fault::Unreachable(problem),
        SendError::Timeout(_) => http::Fault::Timeout,
        SendError::OverBudget(_, problem) => http::Fault::OverBudget(problem),
        SendError::Broken(problem) => http::Fault::Broken(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Methods and URLs come as a tool wrote them: what is neither is no request, before anything is asked for it.
    #[test]
    fn what_is_no_method_or_no_place_is_no_request() {
        const URL: &str = "https://a.example/x";
        for (method, url, expected) in [
            ("GET", URL, true),
            ("DELETE", URL, true),
            ("CONNECT", URL, false),
            ("TRACE", URL, false),
            ("get", URL, false),
            ("PURGE", URL, false),
            ("", URL, false),
            ("GET ", URL, false),
            ("GET /x HTTP/1.1\r\nhost: internal\r\n\r\nGET", URL, false),
            ("GET", "/x", false),
            ("GET", "*", false),
            ("GET", "a.example:443", false),
            ("GET", "https://a.example//internal.example/", false),
            ("GET", "https://user@a.example/", false),
            ("GET", "https://a.example/ HTTP/1.1\r\nhost: internal", false),
        ] {
            let (method, url) = (method.to_owned(), url.to_owned());
            let request = http::Request { method, url, headers: Vec::new(), body: None, timeout_ms: None };
            let shown = format!("{request:?}");
            assert_eq!(outgoing(request).is_ok(), expected, "{shown}");
        }
    }
}
