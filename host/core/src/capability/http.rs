//! Sends the HTTP requests of tools, after it has checked them.
//!
//! There is no other way for a tool's request to leave the host. The imports of a guest (the
//! WebAssembly code of a tool) call [`admit`], which counts the request against the call's
//! [`Budget`] and checks the tool's [`Rights`], and then [`Egress::begin`] or [`Egress::open`] with
//! the [`Outgoing`], the secrets to add and a deadline. `begin` returns a request that the guest
//! can wait for later; `open` is `begin` and the wait for the head of the response. They get a
//! response, or a [`SendError`]. The stages are, in this order:
//!
//! ```text
//! count → rights → headers → secrets → scan of the tool's own text → a free connection
//!       → resolve once → check each address → connect to one of them → check its address again
//!       → TLS with the checked name → HTTP/1.1 → bounded head → bounded, redacted body
//! ```
//!
//! Invariants: one deadline covers the whole request, including the wait for a free connection.
//! Only checked addresses are connected to. A redirect is returned, never followed. Nothing is
//! decompressed for the tool. Each connection is used once, so no two tenants share one. Dropping
//! the request or the body closes its connection.
//! Source: docs/contract.md, section 7.

mod answers;
mod budget;
mod connection;
mod credential;
mod outbound_scan;
mod outgoing;
mod response;
mod route;
mod send_error;

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, RANGE};
use http::{HeaderValue, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ipnet::IpNet;
use parking_lot::RwLock;
use rustls::ClientConfig;
use tokio::time::error::Elapsed;
use tokio::time::{timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::grants::rights::{Decision, Denial, Request, Rights};
use toolcell_contract::grants::{Method, Target};
use toolcell_contract::panic_guard::resume_panic;

use crate::secrets::redact::Redactor;
use crate::tenant::slots::Slots;
use connection::connect::connect;
use connection::meter::{Meter, Metered};
use connection::resolve::{Names, addresses};
use connection::threads::Threads;
use outbound_scan::RequestScan;
use response::{ResponseTerms, accept};
use send_error::invalid;

pub use answers::CannedResponse;
pub(crate) use budget::{Budget, DEFAULT_SENT};
pub use connection::proxy::Proxy;
pub use connection::resolve::{ResolveFuture, Resolver, SystemResolver};
pub use connection::roots::RootCertificates;
pub(crate) use credential::Credential;
pub(crate) use outbound_scan::OutboundScan;
pub(crate) use outgoing::{Outgoing, Times};
pub(crate) use response::Body;
pub use route::Route;
pub(crate) use send_error::{SendError, Share, TimeoutPhase};

/// Bytes. The headers of one message.
const MAX_HEAD: usize = 64 << 10;
/// Replaces the deadline while the control `RequestDeadline` is off.
const WITHOUT_DEADLINE: Duration = Duration::from_secs(3600);
/// The number of headers in one message.
const MAX_HEADERS: usize = 100;

/// Sends the requests of tools. Cheap to clone; clones share connections and threads.
///
/// # Defaults
/// [`SystemResolver`], the certificate authorities of the public internet, no proxy,
/// [`Egress::DEFAULT_CONNECTIONS`].
#[derive(Clone)]
#[must_use]
pub struct Egress {
    names: Names,
    /// Answers in place of the network, in tests of tools.
    answers: Option<answers::Answers>,
    transport: Arc<RwLock<Transport>>,
    /// Called when a request gets no connection.
    on_no_connection: Option<Arc<dyn Fn() + Send + Sync>>,
    connections: Arc<Slots>,
    threads: Arc<Threads>,
}

/// The TLS settings, created with the first request, because most hosts never send one.
type Tls = LazyLock<Arc<ClientConfig>, Box<dyn FnOnce() -> Arc<ClientConfig> + Send>>;

/// The proxy and the trusted certificate authorities. A request takes a copy before it connects and
/// uses that copy to its end.
#[derive(Clone)]
struct Transport {
    proxy: Option<Proxy>,
    tls: Arc<Tls>,
}

impl Transport {
    fn new(
        proxy: Option<Proxy>,
        roots: impl FnOnce() -> RootCertificates + Send + 'static,
    ) -> Self {
        Self { proxy, tls: Arc::new(LazyLock::new(Box::new(|| roots().config()))) }
    }
}

impl Egress {
    /// Connections that are open at the same time, over all calls. The default is below the limit
    /// of about a thousand file descriptors that most hosts have. A tenant can hold a quarter of
    /// them, a call eight. Further requests wait, within their own time limit.
    pub const DEFAULT_CONNECTIONS: usize = 128;

    /// Creates an egress with the defaults.
    pub fn new() -> Self {
        Self {
            names: Names::new(SystemResolver),
            answers: None,
            transport: Arc::new(RwLock::new(Transport::new(None, RootCertificates::default))),
            on_no_connection: None,
            connections: Arc::new(Slots::new(Self::DEFAULT_CONNECTIONS)),
            threads: Arc::default(),
        }
    }

    /// Sets the resolver of host names.
    pub fn with_resolver(mut self, resolver: impl Resolver + 'static) -> Self {
        self.names = Names::new(resolver);
        self
    }

    /// Answers requests with this function instead of sending them, for the tests of tools. Rights,
    /// secrets, limits and redaction work as in a real request. If the function returns `None`, the
    /// tool gets the error for a server that cannot be reached.
    pub fn with_canned_responses(
        mut self,
        answers: impl Fn(Method, &Target) -> Option<CannedResponse> + Send + Sync + 'static,
    ) -> Self {
        self.answers = Some(Arc::new(answers));
        self
    }

    /// Trusts these certificate authorities and no others.
    pub fn with_root_certificates(self, roots: RootCertificates) -> Self {
        let way = Transport::new(self.way().proxy, || roots);
        Self { transport: Arc::new(RwLock::new(way)), ..self }
    }

    /// Sends all requests through this proxy. Host names are resolved on this host, and the proxy
    /// is asked for an address that was checked.
    pub fn with_proxy(self, proxy: Proxy) -> Self {
        let way = Transport { proxy: Some(proxy), ..self.way() };
        Self { transport: Arc::new(RwLock::new(way)), ..self }
    }

    /// Replaces the proxy and the trusted certificate authorities of this egress and its clones.
    /// Without a proxy, requests are sent directly. Requests in progress keep the old settings.
    pub fn replace(&self, proxy: Option<Proxy>, roots: RootCertificates) {
        *self.transport.write() = Transport::new(proxy, || roots);
    }

    /// Sets a callback for requests without a proxy that get no connection, as a hint to the
    /// operator. It is called when a name is not resolved, no server answers in time, or TLS fails.
    /// The error that the tool gets stays the same. The callback runs on an egress thread and must
    /// not block.
    pub fn on_no_connection(mut self, callback: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_no_connection = Some(Arc::new(callback));
        self
    }

    fn way(&self) -> Transport {
        self.transport.read().clone()
    }

    /// Sets the number of connections that are open at the same time, at least one.
    pub fn with_connections(mut self, connections: usize) -> Self {
        self.connections = Arc::new(Slots::new(connections));
        self
    }

    /// Returns the limit of connections, the number that are open, and the number ever opened.
    pub(crate) fn counts(&self) -> (usize, usize, u64) {
        self.connections.counts()
    }

    /// Sends a request and reads the head of the response. The body has the rest of the time.
    ///
    /// # Errors
    /// [`SendError`].
    ///
    /// # Cancel safety
    /// Dropping the future or the body closes the connection.
    pub(crate) async fn open(
        &self,
        admitted: Admitted,
        budget: &Budget,
        outgoing: Outgoing,
        secrets: Secrets,
        deadline: Instant,
    ) -> Result<Response<Body>, SendError> {
        self.begin(admitted, budget, outgoing, secrets, deadline)?.head().await
    }

    /// Starts a request, which continues on the egress threads.
    ///
    /// # Errors
    /// [`SendError`] for problems that are known before the request is sent.
    pub(crate) fn begin(
        &self,
        admitted: Admitted,
        budget: &Budget,
        outgoing: Outgoing,
        secrets: Secrets,
        deadline: Instant,
    ) -> Result<InFlight, SendError> {
        if admitted.method != outgoing.method || admitted.target != outgoing.target {
            return Err(invalid("the request is not the one that was admitted"));
        }
        let Secrets { credentials, redactor, scan } = secrets;
        let redactor =
            redactor.map_or_else(|| redactor_of(&credentials), |redactor| Ok(Some(redactor)))?;
        let deadline = if enforced!(RequestDeadline) {
            outgoing.deadline(deadline)
        } else {
            Instant::now() + WITHOUT_DEADLINE
        };
        let (length, times) = (outgoing.body.len(), outgoing.times);
        let scan = scan.map(|scan| scan.prepare(&outgoing));
        let mut request = outgoing.into_request(&credentials)?;
        let asks_for_part = request.headers().contains_key(RANGE);
        if redactor.is_some() {
            // The response is searched for secrets, which cannot be found in compressed bytes.
            request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        budget.take_sent(outgoing::size(&request, length).saturating_sub(admitted.paid))?;
        let terms = ResponseTerms {
            budget: budget.clone(),
            meter: Meter::for_head(),
            deadline,
            between_bytes: times.between_bytes,
            asks_for_part,
            redactor,
        };
        let no_threads = |_| SendError::unreachable(&admitted.target, "no threads can be started");
        let runtime = self.threads.handle().map_err(no_threads)?;
        let sent = self.clone().exchange(admitted, scan, times, request, terms);
        Ok(InFlight(AbortOnDropHandle::new(runtime.spawn(timeout_at(deadline.into(), sent)))))
    }

    /// Runs on the egress threads, under the deadline.
    async fn exchange(
        self,
        Admitted { method, target, private, paid: _ }: Admitted,
        scan: Option<RequestScan>,
        times: Times,
        request: http::Request<Full<Bytes>>,
        terms: ResponseTerms,
    ) -> Result<Response<Body>, SendError> {
        if let Some(scan) = scan {
            // Scans the requests of a call one after the other, so that a tool that guesses a
            // secret gets at most one hit per call, even with concurrent requests.
            let _turn = terms.budget.scan_permit().await?;
            scan.run(method, &target).await.inspect_err(|_| terms.budget.close())?;
        }
        let budget = &terms.budget;
        let connected = async {
            let slot = self.connections.take(&budget.0.connections, &budget.0.tenant).await;
            let slot = slot.ok_or(SendError::Timeout(TimeoutPhase::Connect))?;
            if let Some(answers) = &self.answers {
                return Ok((slot, answers::connection(answers, method, &target)?));
            }
            let way = self.way();
            // Calls the operator's callback when it is dropped, also after a timeout.
            let callback = self.on_no_connection.clone().filter(|_| way.proxy.is_none());
            let mut unconnected =
                scopeguard::guard(callback, |callback| callback.iter().for_each(|call| call()));
            let addresses = addresses(&self.names, (method, &target), &private, budget).await;
            let addresses = addresses.inspect_err(|error| {
                // A request that was refused needed no connection.
                if !matches!(error, SendError::Unreachable(_) | SendError::Timeout(_)) {
                    *unconnected = None;
                }
            })?;
            let own = times.connect.and_then(|time| Instant::now().checked_add(time));
            let deadline = own.map_or(terms.deadline, |own| own.min(terms.deadline));
            let tls = Arc::clone(&**way.tls);
            let stream = connect(&target, &addresses, way.proxy.as_ref(), tls, deadline).await?;
            *unconnected = None;
            Ok((slot, stream))
        };
        let (slot, stream) = within(times.connect, TimeoutPhase::Connect, connected).await?;
        let metered = TokioIo::new(Metered { stream, meter: terms.meter.clone() });
        let (mut sender, connection) = http1::Builder::new()
            // hyper reserves room for each of them.
            .max_headers(bound!(Headers, MAX_HEADERS).min(usize::from(u16::MAX)))
            .max_header_size(MAX_HEAD)
            .max_buf_size(MAX_HEAD)
            .handshake(metered)
            .await
            .map_err(|error| terms.fault(&error))?;
        let deadline = terms.deadline;
        let connection = AbortOnDropHandle::new(tokio::spawn(async move {
            let _slot = slot;
            // The response reports errors of the connection.
            let _ = timeout_at(deadline.into(), connection).await;
        }));
        let sent =
            async { sender.send_request(request).await.map_err(|error| terms.fault(&error)) };
        let response = within(times.first_byte, TimeoutPhase::FirstByte, sent).await?;
        accept(response, terms, connection, self.threads)
    }
}

/// A request in progress. Dropping it cancels the request.
pub(crate) struct InFlight(AbortOnDropHandle<Result<Result<Response<Body>, SendError>, Elapsed>>);

impl InFlight {
    /// Waits for the head of the response. The body has the rest of the time.
    pub(crate) async fn head(self) -> Result<Response<Body>, SendError> {
        match resume_panic(self.0.await) {
            Some(Ok(answered)) => answered,
            Some(Err(_elapsed)) => Err(SendError::Timeout(TimeoutPhase::Whole)),
            None => Err(SendError::broken("toolcell is shutting down")),
        }
    }

    /// Waits for the whole response.
    pub(crate) async fn collect(self) -> Result<Response<Bytes>, SendError> {
        let (head, body) = self.head().await?.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    }
}

/// Secrets that concern a request.
#[derive(Default)]
pub(crate) struct Secrets {
    /// Secrets that the host adds to the request.
    pub(crate) credentials: Vec<Credential>,
    /// Removes secrets from the response. `None`: a redactor for the credentials is made.
    pub(crate) redactor: Option<Redactor>,
    /// The outbound scan of the tool's own text.
    pub(crate) scan: Option<OutboundScan>,
}

/// Awaits one part of a request, for at most `time`.
async fn within<T>(
    time: Option<Duration>,
    stage: TimeoutPhase,
    part: impl Future<Output = Result<T, SendError>>,
) -> Result<T, SendError> {
    match time {
        Some(time) => timeout(time, part).await.unwrap_or(Err(SendError::Timeout(stage))),
        None => part.await,
    }
}

/// A request that the tool may make. Its body may still be missing.
#[derive(Debug)]
pub(crate) struct Admitted {
    method: Method,
    target: Target,
    private: Vec<IpNet>,
    /// Bytes of the body that the call's budget was already charged.
    paid: u64,
}

impl Admitted {
    /// Charges the budget for bytes of the body as they arrive, so that the host never holds more
    /// than may be sent.
    ///
    /// # Errors
    /// [`SendError::OverBudget`].
    pub(crate) fn charge(&mut self, budget: &Budget, bytes: usize) -> Result<(), SendError> {
        budget.take_sent(bytes as u64)?;
        self.paid += bytes as u64;
        Ok(())
    }
}

/// Counts a request against the budget and checks the rights for it.
///
/// # Errors
/// [`SendError::OverBudget`], [`SendError::Denied`].
pub(crate) fn admit(
    rights: &Rights,
    budget: &Budget,
    method: Method,
    target: &Target,
) -> Result<Admitted, SendError> {
    budget.take_request()?;
    let private = allowed(rights, method, target)?;
    Ok(Admitted { method, target: target.clone(), private, paid: 0 })
}

/// Checks the tool's rights. Returns the private networks that this request may go to.
fn allowed(rights: &Rights, method: Method, target: &Target) -> Result<Vec<IpNet>, Denial> {
    let request = Request::Http { method, target: std::borrow::Cow::Borrowed(target) };
    match rights.allows(&request) {
        Decision::Denied(denial) if enforced!(AllowList) => Err(denial),
        Decision::Denied(_) | Decision::Allowed => Ok(rights.private_networks(method, target)),
    }
}

fn redactor_of(credentials: &[Credential]) -> Result<Option<Redactor>, SendError> {
    if credentials.is_empty() || !enforced!(Redaction) {
        return Ok(None);
    }
    let redactor =
        Redactor::new(credentials.iter().map(|credential| credential.secret.clone()).collect());
    redactor.map(Some).ok_or_else(|| invalid("it has too many secrets"))
}

impl Default for Egress {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Egress({} connections free)", self.connections.all.available_permits())
    }
}

#[cfg(test)]
mod tests;
