//! The addresses at which a server listens, and those that it refuses.

use std::net::SocketAddr;

use toolcell_server::auth::ApiKeyStore;
use toolcell_server::listener::BindError;
use toolcell_server::{
    Authenticator, HttpOptions, HttpServer, ListenOptions, ServedTools, Service,
};

use super::client::{request, send};
use super::fixture::{served, tools};
use super::page::is_as_the_page_says;

#[tokio::test]
async fn public_address_needs_keys_and_tls() {
    let service = Service::builder(served(&tools().0)).build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let keys = || Authenticator::api_keys(ApiKeyStore::open(dir.path().join("keys.json")).unwrap());
    let public: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let at = |address: SocketAddr| ListenOptions { address, ..ListenOptions::default() };
    let bind = async |auth: Authenticator, options: ListenOptions| {
        HttpServer::bind(service.clone(), auth, options).await
    };
    for address in [public, "[::]:0".parse().unwrap()] {
        assert!(matches!(bind(Authenticator::open(), at(address)).await, Err(BindError::Open(_))));
        assert!(matches!(
            bind(Authenticator::open(), ListenOptions { behind_proxy: true, ..at(address) }).await,
            Err(BindError::Open(_))
        ));
        assert!(matches!(bind(keys(), at(address)).await, Err(BindError::Plain(_))));
    }
    assert!(bind(keys(), ListenOptions { behind_proxy: true, ..at(public) }).await.is_ok());
    let open_now =
        Authenticator::open_until_keys(ApiKeyStore::open(dir.path().join("keys.json")).unwrap());
    assert!(matches!(
        bind(open_now, ListenOptions { behind_proxy: true, ..at(public) }).await,
        Err(BindError::Open(_))
    ));
    assert!(
        bind(Authenticator::open(), ListenOptions::default())
            .await
            .unwrap()
            .address()
            .ip()
            .is_loopback()
    );
}

#[tokio::test]
async fn invalid_hosts_and_origins_are_refused() {
    let with = |http: HttpOptions| {
        ListenOptions { http, ..ListenOptions::default() }.check(&Authenticator::open())
    };
    for host in ["tools.example.com", "10.0.0.1", "[::1]", "localhost"] {
        assert!(
            with(HttpOptions { hosts: vec![host.into()], ..HttpOptions::default() }).is_ok(),
            "{host}"
        );
    }
    for host in [
        "",
        "https://tools.example.com",
        "tools.example.com:443",
        "a/b",
        "a b",
        "*.example.com",
        "me@host",
    ] {
        assert!(
            matches!(
                with(HttpOptions { hosts: vec![host.into()], ..HttpOptions::default() }),
                Err(BindError::Host(_))
            ),
            "{host}"
        );
    }
    let written = ["https://App.example.com:443/", "https://app.example.com/"];
    for origin in
        [&["https://app.example.com", "http://localhost:3000", "http://[::1]:3000"][..], &written]
            .concat()
    {
        assert!(
            with(HttpOptions { origins: vec![origin.into()], ..HttpOptions::default() }).is_ok(),
            "{origin}"
        );
    }
    for origin in [
        "",
        "*",
        "null",
        "app.example.com",
        "https://app.example.com/a",
        "https://*.example.com",
        "ftp://a",
    ] {
        assert!(
            matches!(
                with(HttpOptions { origins: vec![origin.into()], ..HttpOptions::default() }),
                Err(BindError::Origin(_))
            ),
            "{origin}"
        );
    }
}

#[tokio::test]
async fn total_body_bytes_are_bounded() {
    let service = Service::builder(ServedTools::new(&tools().0)).build().unwrap();
    let options = ListenOptions {
        http: HttpOptions { bodies: 1 << 10, ..HttpOptions::default() },
        ..ListenOptions::default()
    };
    let server = HttpServer::bind(service, Authenticator::open(), options).await.unwrap();
    let address = server.address();
    tokio::spawn(server.serve(std::future::pending()));
    for (length, fits) in [(16, true), (2 << 10, false)] {
        let body = format!(r#"{{"name": "echo"}}{}"#, " ".repeat(length - 16));
        let bytes = request("POST /v1/calls", "Content-Type: application/json\r\n", &body);
        let reply = send(address, bytes.as_bytes()).await.unwrap();
        if fits {
            assert_eq!(reply.status, 200, "{reply:?}");
        } else {
            is_as_the_page_says("more bytes of bodies than the server holds", Some(&reply));
        }
        assert_eq!(reply.header("retry-after").is_none(), fits);
    }
}
