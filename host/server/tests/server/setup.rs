//! The tools, keys and servers of the tests.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use toolcell::tool::NativeFn;
use toolcell::{Component, Definition, Engine, Registry, Tenant, Tool};
use toolcell_server::auth::ApiKeyStore;
use toolcell_server::{Authenticator, HttpServer, ListenOptions, ServedTools, Service};

/// Far longer than any wait takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

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

/// Returns when no request is running, and each `wait` that began has ended.
pub(crate) async fn is_over(service: &Service, waits: &mut mpsc::UnboundedReceiver<&'static str>) {
    let over = async {
        while service.running() != 0 {
            yield_now().await;
        }
        let mut more = 0;
        loop {
            match waits.try_recv() {
                Ok("started") => more += 1,
                Ok(_) => more -= 1,
                Err(_) if more == 0 => break,
                Err(_) => yield_now().await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, over).await.expect("nothing is kept");
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

/// Returns the cells of the table on a page whose first line begins with this text.
pub(crate) fn table(page: &'static str, head: &str) -> Vec<Vec<&'static str>> {
    let lines = page.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}
