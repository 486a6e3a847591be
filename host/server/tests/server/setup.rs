//! The tools, keys and servers of the tests.

use std::net::SocketAddr;

use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use toolcell::tool::NativeFn;
use toolcell::{Component, Definition, Engine, Registry, Tenant, Tool};
use toolcell_server::auth::ApiKeyStore;
use toolcell_server::{Authenticator, HttpServer, ListenOptions, ServedTools, Service};

pub(crate) fn named(name: &str) -> Definition {
    Definition::new(name, format!("Does {name}.")).unwrap()
}

/// Returns a native tool.
pub(crate) fn native<S: 'static>(name: &str, function: impl NativeFn<S>) -> Tool {
    Tool::native(named(name), function).unwrap()
}

/// Sends `stopped` when it is dropped.
struct Waiting(mpsc::UnboundedSender<&'static str>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.send("stopped");
    }
}

/// Returns the tool `wait`, which does not end, and its messages: `started` and `stopped`.
pub(crate) fn wait() -> (Tool, mpsc::UnboundedReceiver<&'static str>) {
    let (told, waits) = mpsc::unbounded_channel();
    let wait = move |_: Value| {
        let waiting = Waiting(told.clone());
        async move {
            let _ = waiting.0.send("started");
            std::future::pending::<Value>().await
        }
    };
    (native("wait", wait), waits)
}

pub(crate) fn registry(tools: impl IntoIterator<Item = Tool>) -> Registry {
    let registry = Registry::new();
    registry.register_all(tools).unwrap();
    registry
}

/// Returns the tools of a component.
pub(crate) async fn loaded(engine: &Engine, bytes: Vec<u8>) -> Vec<Tool> {
    Component::load(engine, bytes).await.unwrap().tools().to_vec()
}

/// Returns a service with default options.
pub(crate) fn serving(registry: &Registry) -> Service {
    Service::builder(ServedTools::new(registry)).build().unwrap()
}

/// Returns these tools, served to the tenants `acme` and `globex`.
pub(crate) fn two_tenants(registry: &Registry) -> ServedTools {
    ServedTools::new(registry)
        .with_tenant("acme", Tenant::default())
        .with_tenant("globex", Tenant::default())
}

/// Returns a store with a key for each of these tenants, the keys, and their directory.
pub(crate) fn keys<const N: usize>(tenants: [&str; N]) -> (ApiKeyStore, [String; N], TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = ApiKeyStore::open(dir.path().join("keys.json")).unwrap();
    let keys = tenants.map(|tenant| store.add(tenant).unwrap().key.expose().to_owned());
    (store, keys, dir)
}

/// Starts a server, which runs until the test ends.
pub(crate) async fn start(
    service: Service,
    auth: Authenticator,
    options: ListenOptions,
) -> SocketAddr {
    let server = HttpServer::bind(service, auth, options).await.unwrap();
    let address = server.address();
    tokio::spawn(server.serve(std::future::pending()));
    address
}
