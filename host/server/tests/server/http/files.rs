//! A file from its upload to the component that reads it.

use serde_json::{Value, json};
use toolcell::{Component, Engine, Registry, Tenant};
use toolcell_server::artifacts::{ArtifactOptions, Artifacts};
use toolcell_server::auth::ApiKeyStore;
use toolcell_server::{Authenticator, HttpServer, ListenOptions, ServedTools, Service};

use super::client::{request, send};

#[tokio::test(flavor = "multi_thread")]
async fn component_reads_only_uploads_of_calling_tenant() {
    let engine = Engine::builder().build().expect("an engine");
    let component =
        Component::load(&engine, toolcell_test_guests::bytes("reader")).await.expect("a component");
    let registry = Registry::new();
    registry.register_all(component.tools().iter().cloned()).expect("names of their own");
    let dir = tempfile::tempdir().expect("a directory");
    let artifacts = Artifacts::open(&dir.path().join("artifacts"), ArtifactOptions::default())
        .expect("a store");
    let served = ServedTools::new(&registry)
        .with_tenant("acme", Tenant::default())
        .with_tenant("globex", Tenant::default());
    let service = Service::builder(served).artifacts(artifacts).build().expect("a service");
    let keys = ApiKeyStore::open(dir.path().join("keys.json")).expect("a store");
    let [acme, globex] =
        ["acme", "globex"].map(|name| keys.add(name).expect("a key").key.expose().to_owned());
    let server =
        HttpServer::bind(service, Authenticator::api_keys(keys), ListenOptions::default()).await;
    let server = server.expect("a server");
    let address = server.address();
    tokio::spawn(server.serve(std::future::pending()));
    let ask = async |key: &str, line: &str, kind: &str, body: &str| -> Value {
        let headers = format!("Authorization: Bearer {key}\r\nContent-Type: {kind}\r\n");
        send(address, request(line, &headers, body).as_bytes()).await.expect("a response").json()
    };
    let uploaded = ask(&acme, "POST /v1/artifacts?name=a.csv", "text/csv", "1,2").await;
    let call = async |key: &str, file: &Value| {
        let call = json!({"name": "reader", "arguments": {"file": file}}).to_string();
        ask(key, "POST /v1/calls", "application/json", &call).await["outcome"].clone()
    };
    assert_eq!(call(&acme, &uploaded["uri"]).await["ok"]["value"], "1,2");
    assert_eq!(call(&globex, &uploaded["uri"]).await["refusal"]["kind"], "invalid_arguments");
    for path in ["/input/a.csv", "/etc/passwd"] {
        assert_eq!(
            call(&acme, &json!(path)).await["refusal"]["kind"],
            "invalid_arguments",
            "{path}"
        );
    }
}
