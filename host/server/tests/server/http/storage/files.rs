//! A file from its upload to the component that reads it.

use serde_json::{Value, json};
use toolcell::Engine;
use toolcell_server::artifacts::{ArtifactOptions, Artifacts};
use toolcell_server::{Authenticator, ListenOptions, Service};
use toolcell_test_guests::bytes;

use crate::http::client::{self, bearer};
use crate::setup::{keys, loaded, registry, start, two_tenants};

#[tokio::test(flavor = "multi_thread")]
async fn component_reads_only_uploads_of_calling_tenant() {
    let engine = Engine::builder().build().expect("an engine");
    let served = two_tenants(&registry(loaded(&engine, bytes("reader")).await));
    let place = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::open(place.path(), ArtifactOptions::default()).unwrap();
    let service = Service::builder(served).artifacts(artifacts).build().expect("a service");
    let (keys, [acme, globex], _dir) = keys(["acme", "globex"]);
    let address = start(service, Authenticator::api_keys(keys), ListenOptions::default()).await;
    let ask = async |key: &str, line: &str, kind: &str, body: &str| -> Value {
        let headers = format!("{}Content-Type: {kind}\r\n", bearer(key));
        client::ask(address, line, &headers, body).await.json()
    };
    let uploaded = ask(&acme, "POST /v1/artifacts?name=a.csv", "text/csv", "1,2").await;
    let call = async |key: &str, file: &Value| {
        let call = json!({"name": "reader", "arguments": {"file": file}}).to_string();
        ask(key, "POST /v1/calls", "application/json", &call).await["outcome"].clone()
    };
    assert_eq!(call(&acme, &uploaded["uri"]).await["ok"]["value"], "1,2");
    assert_eq!(call(&globex, &uploaded["uri"]).await["refusal"]["kind"], "invalid_arguments");
    for path in ["/input/a.csv", "/etc/passwd"] {
        let refused = call(&acme, &json!(path)).await;
        assert_eq!(refused["refusal"]["kind"], "invalid_arguments", "{path}");
    }
    // A file that the disk has damaged is no fault of the arguments.
    for tenant in std::fs::read_dir(place.path()).unwrap() {
        let file = tenant.unwrap().path().join(uploaded["id"].as_str().unwrap());
        if file.exists() {
            std::fs::write(file, "-").unwrap();
        }
    }
    assert_eq!(call(&acme, &uploaded["uri"]).await["refusal"]["kind"], "unavailable");
}
