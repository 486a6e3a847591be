//! Tests of requests through the operator's proxy.
//!
//! A small proxy on this machine records the heads that it receives. The tests check that it is
//! asked for a checked address and never for a name or a private address, that the certificate is
//! still checked, that its refusals become errors, that its password is never shown, and that
//! replaced settings apply to clones. The last test checks which failures the callback for missing
//! connections reports.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;

use super::server::{Scripted, head};
use super::tls::start_site;
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
    is_allowed: bool,
) -> (String, Vec<String>) {
    let (server, heads) = proxy(answer).await;
    let proxy = Proxy::new(&format!("http://us%40er:secret@127.0.0.1:{}", server.port)).unwrap();
    assert!(!format!("{proxy:?}").contains("secret"));
    let rule: HttpRule = url.parse().unwrap();
    let rule = if is_allowed { rule.with_private(["127.0.0.0/8".parse().unwrap()]) } else { rule };
    let egress = Egress::new()
        .with_resolver(Scripted::new([["127.0.0.1"]]))
        .with_root_certificates(roots)
        .with_proxy(proxy);
    let result = send(&egress, &rights([rule]), get(url)).await;
    let said = match result {
        Ok(response) => String::from_utf8(response.into_body().to_vec()).unwrap(),
        Err(error) => error.to_string(),
    };
    let heads = heads.lock().clone();
    (said, heads)
}

#[tokio::test]
async fn proxied_requests_go_to_checked_addresses() {
    const OPEN: &str = "HTTP/1.1 200 Connection established\r\nvia: x\r\n\r\n";
    let site = start_site(&["good.example"], |_, name| {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{name}", name.len())
    })
    .await;
    let own = || RootCertificates::none().with_pem(site.authority.as_bytes()).unwrap();
    let plain = Server::responding("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nplain").await;
    let (https, http) = (site.server.port, plain.port);
    for (url, answer, roots, is_allowed, expected, is_asked) in [
        (format!("https://good.example:{https}/"), OPEN, own(), true, "good.example", true),
        (format!("http://good.example:{http}/"), OPEN, own(), true, "plain", true),
        (
            format!("https://good.example:{https}/"),
            OPEN,
            RootCertificates::default(),
            true,
            "is not signed by",
            true,
        ),
        (format!("https://bad.example:{https}/"), OPEN, own(), true, "is for another name", true),
        // The proxy is not asked for an address that may not be connected to.
        (
            format!("https://good.example:{https}/"),
            OPEN,
            own(),
            false,
            "not on the public internet",
            false,
        ),
        (
            format!("http://good.example:{http}/"),
            "HTTP/1.1 403 No\r\n\r\n",
            own(),
            true,
            "with status 403",
            true,
        ),
        (
            format!("http://good.example:{http}/"),
            "hello\r\n\r\n",
            own(),
            true,
            "not answer as an HTTP proxy",
            true,
        ),
    ] {
        let (said, heads) = send_through_proxy(&url, answer, roots, is_allowed).await;
        assert!(said.contains(expected), "{url} {answer}: {said}");
        let port = if url.starts_with("https") { https } else { http };
        let head = format!(
            "CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\
             Proxy-Authorization: Basic dXNAZXI6c2VjcmV0\r\n\r\n"
        );
        assert_eq!(heads, if is_asked { vec![head] } else { Vec::new() }, "{url}");
    }
}

#[test]
fn bad_proxy_url_is_refused_without_its_password() {
    for url in [
        "",
        "proxy:3128",
        "https://u:secret@proxy",
        "http://u:secret@proxy/path",
        "socks5://u:secret@proxy",
    ] {
        let fault = Proxy::new(url).unwrap_err();
        assert!(
            !fault.to_string().contains("secret") && fault.hint.contains("http://proxy"),
            "{url}: {fault}"
        );
    }
}

#[tokio::test]
async fn clones_use_replaced_proxy_and_roots() {
    let (server, heads) = proxy("HTTP/1.1 200 Connection established\r\n\r\n").await;
    let site = start_site(&["good.example"], |_, _| {
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_owned()
    })
    .await;
    let url = format!("https://good.example:{}/", site.server.port);
    let rule: HttpRule = url.parse().unwrap();
    let rights = rights([rule.with_private(["127.0.0.0/8".parse().unwrap()])]);
    let egress = Egress::new().with_resolver(Scripted::new([["127.0.0.1"]]));
    let clone = egress.clone();
    assert_eq!(kind(&send(&clone, &rights, get(&url)).await), "unreachable");
    let proxy = Proxy::new(&format!("http://127.0.0.1:{}", server.port)).unwrap();
    egress.replace(
        Some(proxy),
        RootCertificates::none().with_pem(site.authority.as_bytes()).unwrap(),
    );
    assert_eq!(
        (kind(&send(&clone, &rights, get(&url)).await), heads.lock().len()),
        ("response", 1)
    );
    egress.replace(None, RootCertificates::none());
    assert_eq!(
        (kind(&send(&clone, &rights, get(&url)).await), heads.lock().len()),
        ("unreachable", 1)
    );
}

/// A request that was refused is reported by its error only.
#[tokio::test]
async fn only_failed_connections_are_reported() {
    let silent = Server::start(|stream| async move {
        let _open = stream;
        std::future::pending().await
    })
    .await;
    let answering = Server::responding("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let own = || ["127.0.0.0/8".parse().unwrap()];
    for (url, is_private, addresses, expected, is_told) in [
        (
            format!("http://a.example:{}/", answering.port),
            true,
            vec!["127.0.0.1"],
            "response",
            false,
        ),
        (
            format!("http://a.example:{}/", answering.port),
            false,
            vec!["127.0.0.1"],
            "private",
            false,
        ),
        (format!("http://a.example:{closed}/"), true, vec!["127.0.0.1"], "unreachable", true),
        (format!("http://a.example:{}/", answering.port), true, vec![], "unreachable", true),
        (format!("https://a.example:{}/", silent.port), true, vec!["127.0.0.1"], "timeout", true),
    ] {
        let told = Arc::<AtomicUsize>::default();
        let seen = Arc::clone(&told);
        let rule: HttpRule = url.parse().unwrap();
        let rights = rights([if is_private { rule.with_private(own()) } else { rule }]);
        let egress = Egress::new().with_resolver(Scripted::of([addresses
            .iter()
            .map(|address: &&str| address.parse().unwrap())
            .collect()]));
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
