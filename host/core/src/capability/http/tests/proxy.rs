//! Tests of requests through the operator's proxy, and of the report of missing connections.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;

use super::server::{Scripted, head};
use super::tls::{echo_server_name, only, start_site};
use super::*;

/// Starts a proxy. Returns it with the heads of the requests that it receives.
async fn proxy(answer: &'static str) -> (Server, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&heads);
    let server = Server::start(move |mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            let head = head(&mut stream).await;
            let address = head.split(' ').nth(1).unwrap_or_default().to_owned();
            seen.lock().push(head);
            let _ = stream.write_all(answer.as_bytes()).await;
            if let Ok(mut other) = TcpStream::connect(address).await {
                let _ = copy_bidirectional(&mut stream, &mut other).await;
            }
        }
    })
    .await;
    (server, heads)
}

/// Requests this URL through a proxy that gives this answer. Returns the response or the error, and
/// the heads that the proxy received.
async fn send_through_proxy(
    url: &str,
    answer: &'static str,
    roots: RootCertificates,
    rights: Rights,
) -> (String, Vec<String>) {
    let (server, heads) = proxy(answer).await;
    let proxy = Proxy::new(&format!("http://us%40er:secret@127.0.0.1:{}", server.port)).unwrap();
    assert!(!format!("{proxy:?}").contains("secret"));
    let egress = Egress::new()
        .with_resolver(Scripted::new([["127.0.0.1"]]))
        .with_root_certificates(roots)
        .with_proxy(proxy);
    let said = match send(&egress, &rights, get(url)).await {
        Ok(response) => String::from_utf8(response.into_body().to_vec()).unwrap(),
        Err(error) => error.to_string(),
    };
    let heads = heads.lock().clone();
    (said, heads)
}

#[tokio::test]
async fn proxied_requests_go_to_checked_addresses() {
    let site = start_site(&["good.example"], echo_server_name).await;
    let plain = Server::responding(ok("plain")).await;
    let requests = rows::<(&str, &str, bool, bool, &str)>("capability/http/proxy", "requests");
    for (url, answer, is_trusted, is_allowed, expected) in requests {
        let port = if url.starts_with("https") { site.server.port } else { plain.port };
        let url = url.replace("PORT", &port.to_string());
        let roots = if is_trusted { only(&site.authority) } else { RootCertificates::default() };
        let rights = if is_allowed { loopback(&url) } else { rights([url.parse().unwrap()]) };
        let (said, heads) = send_through_proxy(&url, answer, roots, rights).await;
        assert!(said.contains(expected), "{url} {answer}: {said}");
        let head = format!(
            "CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\
             Proxy-Authorization: Basic dXNAZXI6c2VjcmV0\r\n\r\n"
        );
        // The proxy is not asked for an address that may not be connected to.
        assert_eq!(heads, if is_allowed { vec![head] } else { Vec::new() }, "{url}");
    }
}

#[test]
fn bad_proxy_url_is_refused_without_its_password() {
    for url in rows::<&str>("capability/http/proxy", "bad_urls") {
        let fault = Proxy::new(url).unwrap_err();
        let text = fault.to_string();
        assert!(!text.contains("secret") && fault.hint.contains("http://proxy"), "{url}: {text}");
    }
}

#[tokio::test]
async fn clones_use_replaced_proxy_and_roots() {
    let (server, heads) = proxy("HTTP/1.1 200 Connection established\r\n\r\n").await;
    let site = start_site(&["good.example"], echo_server_name).await;
    let url = format!("https://good.example:{}/", site.server.port);
    let rights = loopback(&url);
    let egress = Egress::new().with_resolver(Scripted::new([["127.0.0.1"]]));
    let clone = egress.clone();
    assert_eq!(kind(&send(&clone, &rights, get(&url)).await), "unreachable");
    let proxy = Proxy::new(&format!("http://127.0.0.1:{}", server.port)).unwrap();
    egress.replace(Some(proxy), only(&site.authority));
    let result = send(&clone, &rights, get(&url)).await;
    assert_eq!((kind(&result), heads.lock().len()), ("response", 1));
    egress.replace(None, RootCertificates::none());
    let result = send(&clone, &rights, get(&url)).await;
    assert_eq!((kind(&result), heads.lock().len()), ("unreachable", 1));
}

/// A request that was refused is reported by its error only.
#[tokio::test]
async fn only_failed_connections_are_reported() {
    let silent = Server::start(|stream| async move {
        let _open = stream;
        std::future::pending().await
    })
    .await;
    let answering = Server::responding(ok("ok")).await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let own: Vec<std::net::IpAddr> = vec!["127.0.0.1".parse().unwrap()];
    for (scheme, port, is_private, addresses, expected, is_told) in [
        ("http", answering.port, true, &own, "response", false),
        ("http", answering.port, false, &own, "private", false),
        ("http", closed, true, &own, "unreachable", true),
        ("http", answering.port, true, &Vec::new(), "unreachable", true),
        ("https", silent.port, true, &own, "timeout", true),
    ] {
        let url = format!("{scheme}://a.example:{port}/");
        let told = Arc::<AtomicUsize>::default();
        let seen = Arc::clone(&told);
        let rights = if is_private { loopback(&url) } else { rights([url.parse().unwrap()]) };
        let egress = Egress::new().with_resolver(Scripted::of([addresses.clone()]));
        let egress = egress.on_no_connection(move || {
            seen.fetch_add(1, Ordering::SeqCst);
        });
        let mut request = get(&url);
        request.times.connect = (expected == "timeout").then_some(SHORT);
        assert_eq!(kind(&send(&egress, &rights, request).await), expected, "{url}");
        assert_eq!(told.load(Ordering::SeqCst), usize::from(is_told), "{url} {expected}");
        let proxied = egress.with_proxy(Proxy::new(&format!("http://127.0.0.1:{closed}")).unwrap());
        assert_ne!(kind(&send(&proxied, &rights, get(&url)).await), "response", "{url}");
        assert_eq!(told.load(Ordering::SeqCst), usize::from(is_told), "{url} through a proxy");
    }
}
