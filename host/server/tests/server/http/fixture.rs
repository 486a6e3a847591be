//! The fixture: a server with native tools and three tenants.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use toolcell::clock::ManualClock;
use toolcell::tenant::Quota;
use toolcell::tool::Invocation;
use toolcell::{Outcome, Question, Registry, Sealer, Tenant, Tool};
use toolcell_server::auth::ApiKeyStore;
use toolcell_server::{
    Authenticator, HttpOptions, HttpServer, ListenOptions, ServedTools, Service, ServiceLimits,
};

use super::client::{JSON, Reply, ask, bearer, request, send};
use crate::setup::{self, named, native};

/// The most bytes of a body.
pub(crate) const BODY: usize = 64 << 10;
/// The most concurrent requests of one tenant: half of all.
pub(crate) const IN_FLIGHT: usize = 3;

/// A running server.
pub(crate) struct Fixture {
    pub(crate) address: SocketAddr,
    pub(crate) service: Service,
    pub(crate) keys: ApiKeyStore,
    pub(crate) clock: ManualClock,
    /// The clock by which states expire. They expire after one day.
    pub(crate) expiry: ManualClock,
    pub(crate) acme: String,
    /// Another key of the same tenant.
    pub(crate) acme_too: String,
    pub(crate) globex: String,
    /// The key of a tenant with two calls a minute.
    pub(crate) small: String,
    /// The key of a tenant that is not served.
    pub(crate) gone: String,
    pub(crate) revoked: String,
    /// `started` and `stopped` of the tool `wait`.
    pub(crate) waits: mpsc::UnboundedReceiver<&'static str>,
    shutdown: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
    _dir: tempfile::TempDir,
}

/// Returns the tools, and the messages of the tool `wait`.
pub(crate) fn tools() -> (Registry, mpsc::UnboundedReceiver<&'static str>) {
    let echo = named("echo")
        .with_parameters(json!({"type": "object", "properties": {"n": {"type": "number"}}}));
    let ask = async |_: Value, call: Arc<Invocation>| match &call.context.resume {
        None => Outcome::AskUser(
            Question::new("Really?")
                .with_answer_schema(json!({"type": "boolean"}))
                .with_state(json!({"secret": 7})),
        ),
        Some(resume) => Outcome::ok(json!([
            resume.answer.to_value(),
            resume.state.as_ref().map(|state| state.to_value())
        ])),
    };
    let (wait, waits) = setup::wait();
    let registry = setup::registry([
        Tool::native(echo, async |arguments: Value| arguments).unwrap(),
        native("hidden", async |_: Value| json!("hidden")).with_visibility(|_, _| false),
        native("ask", ask),
        wait,
    ]);
    (registry, waits)
}

/// Returns the tools and quotas of the tenants.
pub(crate) fn served(registry: &Registry) -> ServedTools {
    let quota = Quota { calls_per_minute: Some(2), ..Quota::default() };
    let echo = Some(vec!["echo".parse().expect("a rule")]);
    ServedTools::new(registry)
        .with_tenant("acme", Tenant::default())
        .with_tenant("globex", Tenant { tools: echo, ..Tenant::default() })
        .with_tenant("small", Tenant { quota, ..Tenant::default() })
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        Self::with(ListenOptions::default()).await
    }

    pub(crate) async fn with(options: ListenOptions) -> Self {
        let http = HttpOptions {
            body: BODY,
            body_idle: Duration::from_millis(100),
            ..HttpOptions::default()
        };
        Self::with_http(options, http).await
    }

    pub(crate) async fn with_http(options: ListenOptions, http: HttpOptions) -> Self {
        let (registry, waits) = tools();
        let clock = ManualClock::new();
        let limits = ServiceLimits { in_flight: 2 * IN_FLIGHT, calls_per_request: 4, page: 2 };
        let expiry = ManualClock::new();
        let sealer = Sealer::generate().unwrap().with_clock(Arc::new(expiry.clone()));
        let service = Service::builder(served(&registry))
            .sealer(sealer)
            .clock(clock.clone())
            .limits(limits)
            .build()
            .unwrap();
        let (keys, [acme, acme_too, globex, small, gone], dir) =
            setup::keys(["acme", "acme", "globex", "small", "gone"]);
        let revoked = keys.add("acme").unwrap();
        assert!(keys.revoke(&revoked.id).unwrap());
        let options = ListenOptions {
            http: HttpOptions { origins: vec!["https://app.example.com".into()], ..http },
            ..options
        };
        let auth = Authenticator::api_keys(keys.clone());
        let server = HttpServer::bind(service.clone(), auth, options).await.unwrap();
        let address = server.address();
        let (shutdown, ended) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async {
            let _ = ended.await;
        }));
        Self {
            address,
            service,
            keys,
            clock,
            expiry,
            acme,
            acme_too,
            globex,
            small,
            gone,
            revoked: revoked.key.expose().to_owned(),
            waits,
            shutdown: Some(shutdown),
            serving,
            _dir: dir,
        }
    }

    /// Sends one request with this key.
    pub(crate) async fn ask(&self, key: &str, line: &str, headers: &str, body: &str) -> Reply {
        let kind = if body.is_empty() { "" } else { JSON };
        ask(self.address, line, &format!("{}{kind}{headers}", bearer(key)), body).await
    }

    /// Sends a request without a body, with the first key.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask(&self.acme, &format!("GET {path}"), "", "").await
    }

    pub(crate) async fn usage(&self) -> Value {
        self.get("/v1/usage").await.json()
    }

    /// Sends a request with the first key.
    pub(crate) async fn post(&self, path: &str, headers: &str, body: &str) -> Reply {
        self.ask(&self.acme, &format!("POST {path}"), headers, body).await
    }

    /// Cancels the request of this id.
    pub(crate) async fn cancel(&self, key: &str, id: &str) -> Reply {
        self.ask(key, &format!("DELETE /v1/calls/{id}"), "", "").await
    }

    /// Returns the headers of a JSON body with the first key.
    pub(crate) fn headers(&self) -> String {
        format!("{}{JSON}", bearer(&self.acme))
    }

    /// Calls a tool with this key.
    pub(crate) async fn call(&self, key: &str, headers: &str, body: &str) -> Reply {
        self.ask(key, "POST /v1/calls", headers, body).await
    }

    /// Calls a tool in a task of its own.
    pub(crate) fn begin(&self, key: &str, headers: &str, body: &str) -> JoinHandle<Option<Reply>> {
        let headers = format!("{}{JSON}{headers}", bearer(key));
        let (address, bytes) = (self.address, request("POST /v1/calls", &headers, body));
        tokio::spawn(async move { send(address, bytes.as_bytes()).await })
    }

    /// Starts a call of `wait` with the first key and this id, and returns when it is running.
    pub(crate) async fn waiting(&mut self, id: &str) -> JoinHandle<Option<Reply>> {
        let named = format!("x-request-id: {id}\r\n");
        let running = self.begin(&self.acme, &named, r#"{"name": "wait"}"#);
        assert_eq!(self.waits.recv().await, Some("started"));
        running
    }

    /// Shuts the server down.
    pub(crate) fn shut_down(&mut self) {
        if let Some(shutdown) = self.shutdown.take() {
            let _ = shutdown.send(());
        }
    }

    /// Returns when the server has ended.
    pub(crate) async fn wait(self) {
        self.serving.await.unwrap();
    }
}
