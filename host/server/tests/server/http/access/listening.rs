//! The addresses at which a server listens, and those that it refuses.

use std::net::SocketAddr;

use toolcell_server::listener::BindError;
use toolcell_server::{Authenticator, HttpOptions, HttpServer, ListenOptions, Service};
use toolcell_test_guests::rows;

use crate::http::client::{JSON, ask};
use crate::http::fixture::{served, tools};
use crate::http::page::is_as_the_page_says;
use crate::setup::{self, serving, start};

#[tokio::test]
async fn public_address_needs_keys_and_tls() {
    let service = Service::builder(served(&tools().0)).build().unwrap();
    let (store, [], _dir) = setup::keys([]);
    let keys = || Authenticator::api_keys(store.clone());
    let open_now = Authenticator::open_until_keys(store.clone());
    let public: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let at = |address: SocketAddr| ListenOptions { address, ..ListenOptions::default() };
    let behind_proxy = |address| ListenOptions { behind_proxy: true, ..at(address) };
    let bind = async |auth: Authenticator, options: ListenOptions| {
        HttpServer::bind(service.clone(), auth, options).await
    };
    for address in [public, "[::]:0".parse().unwrap()] {
        for options in [at(address), behind_proxy(address)] {
            let bound = bind(Authenticator::open(), options).await;
            assert!(matches!(bound, Err(BindError::Open(_))), "{address}");
        }
        assert!(matches!(bind(keys(), at(address)).await, Err(BindError::Plain(_))), "{address}");
    }
    assert!(bind(keys(), behind_proxy(public)).await.is_ok());
    assert!(matches!(bind(open_now, behind_proxy(public)).await, Err(BindError::Open(_))));
    let local = bind(Authenticator::open(), ListenOptions::default()).await.unwrap();
    assert!(local.address().ip().is_loopback());
}

#[tokio::test]
async fn invalid_hosts_and_origins_are_refused() {
    let with = |http: HttpOptions| {
        ListenOptions { http, ..ListenOptions::default() }.check(&Authenticator::open())
    };
    for (host, is_valid) in rows::<(&str, bool)>("server/http/listening", "hosts") {
        let checked = with(HttpOptions { hosts: vec![host.into()], ..HttpOptions::default() });
        assert_eq!(checked.is_ok(), is_valid, "{host}");
        assert!(matches!(checked, Ok(()) | Err(BindError::Host(_))), "{host}");
    }
    for (origin, is_valid) in rows::<(&str, bool)>("server/http/listening", "origins") {
        let checked = with(HttpOptions { origins: vec![origin.into()], ..HttpOptions::default() });
        assert_eq!(checked.is_ok(), is_valid, "{origin}");
        assert!(matches!(checked, Ok(()) | Err(BindError::Origin(_))), "{origin}");
    }
}

#[tokio::test]
async fn total_body_bytes_are_bounded() {
    let http = HttpOptions { bodies: 1 << 10, ..HttpOptions::default() };
    let options = ListenOptions { http, ..ListenOptions::default() };
    let address = start(serving(&tools().0), Authenticator::open(), options).await;
    for (length, fits) in [(16, true), (2 << 10, false)] {
        let body = format!(r#"{{"name": "echo"}}{}"#, " ".repeat(length - 16));
        let reply = ask(address, "POST /v1/calls", JSON, &body).await;
        if fits {
            assert_eq!(reply.status, 200, "{reply:?}");
        } else {
            is_as_the_page_says("more bytes of bodies than the server holds", Some(&reply));
        }
        assert_eq!(reply.header("retry-after").is_none(), fits);
    }
}
