//! Tests of servers that break HTTP, flood the client, close too early or never answer.
//!
//! A table has byte strings that a server sends and the expected kind of result, from valid answers
//! to ambiguous lengths. Further tests check that floods are read only up to a limit, that a
//! truncated body is an error, that one deadline covers every stage, and that a dropped request or
//! body frees its connection.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolcell_test_guests::rows;

use super::server::head;
use super::*;

#[tokio::test]
async fn valid_answers_parse_and_malformed_ones_are_errors() {
    for (answer, expected) in
        rows::<(&str, &str)>("capability/http/misbehaving", "misbehaving_answers_are_errors")
    {
        let server = Server::responding(answer).await;
        let result = send(&Egress::new(), &local(&server), get(&server.url("/"))).await;
        assert_eq!(kind(&result), expected, "{answer:?}: {result:?}");
        if let Ok(response) = result {
            let body = if answer.contains("ok") { "ok" } else { "" };
            assert_eq!(response.body(), body, "{answer:?}");
            assert!(!response.headers().contains_key("transfer-encoding"), "{response:?}");
        }
    }
}

#[tokio::test]
async fn redirect_is_returned_not_followed() {
    let elsewhere = Server::echoing().await;
    let answer = format!(
        "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
        elsewhere.url("/")
    );
    let server = Server::responding(answer).await;
    let response = send(&Egress::new(), &local(&server), get(&server.url("/"))).await.unwrap();
    assert_eq!(response.status(), 302);
    assert_eq!(response.headers()["location"], elsewhere.url("/"));
    let next = send(&Egress::new(), &local(&server), get(&elsewhere.url("/"))).await;
    assert_eq!((kind(&next), elsewhere.connections()), ("denied", 0));
}

/// A server that repeats some bytes as long as the client reads.
async fn flooding(first: &'static str, again: impl Into<Vec<u8>>) -> Server {
    let again: Arc<[u8]> = again.into().into();
    Server::start(move |mut stream| {
        let again = Arc::clone(&again);
        async move {
            head(&mut stream).await;
            let _ = stream.write_all(first.as_bytes()).await;
            while stream.write_all(&again).await.is_ok() {}
        }
    })
    .await
}

#[tokio::test]
async fn response_flood_is_read_up_to_its_bound() {
    const OK: &str = "HTTP/1.1 200 OK\r\n";
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let floods: Vec<(&'static str, Vec<u8>, &str)> = vec![
        ("HTTP/1.1 200 OK\r\n\r\n", vec![b'x'; 64 << 10], "over budget"),
        (CHUNKED, b"1\r\nx\r\n".repeat(1000), "over budget"),
        (CHUNKED, [b"ffff\r\n", &*vec![b'x'; 0xffff], b"\r\n"].concat(), "over budget"),
        (CHUNKED, b"1;a=b;c=d\r\nx\r\n".repeat(1000), "broken"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;", vec![b'a'; 64 << 10], "broken"),
        (CHUNKED, vec![b'0'; 64 << 10], "over budget"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
            b"x: y\r\n".repeat(1000),
            "broken",
        ),
        ("", b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1000), "over budget"),
        ("", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(1000), "over budget"),
        (OK, b"x: y\r\n".repeat(1000), "broken"),
        (OK, [b"x: ", &*vec![b'y'; 1000], b"\r\n"].concat(), "broken"),
        ("HTTP/1.1 200 OK\r\nx: ", vec![b'y'; 64 << 10], "broken"),
        ("HTTP/1.1 200 ", vec![b'y'; 64 << 10], "broken"),
    ];
    for (first, again, expected) in floods {
        let shown = String::from_utf8_lossy(&again[..again.len().min(20)]).into_owned();
        let server = flooding(first, again).await;
        let (budget, deadline) = (Budget::new(1, 1 << 20, 256 << 10), Instant::now() + AMPLE);
        let (rights, outgoing) = (local(&server), get(&server.url("/")));
        let egress = Egress::new();
        let result =
            in_time(egress.send(&rights, &budget, outgoing, Secrets::default(), deadline)).await;
        assert_eq!(kind(&result), expected, "{first:?} {shown:?}");
    }
}

#[tokio::test]
async fn hundred_headers_are_accepted_a_thousand_refused() {
    for (count, expected) in [(99, "response"), (1000, "broken")] {
        let headers: String = (0..count).map(|number| format!("x-{number}: y\r\n")).collect();
        let server =
            Server::responding(format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n"))
                .await;
        let result = send(&Egress::new(), &local(&server), get(&server.url("/"))).await;
        assert_eq!(kind(&result), expected, "{count}");
    }
}

#[tokio::test]
async fn truncated_body_is_an_error() {
    // Bytes that a server sends before it closes its connection may arrive before a reset, or not.
    for (answer, closed, reset) in
        rows::<(&str, &str, Vec<&str>)>("capability/http/misbehaving", "truncated_body_is_an_error")
    {
        for linger in [None, Some(Duration::ZERO)] {
            let server = Server::start(move |mut stream| async move {
                head(&mut stream).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                // With zero linger, the connection is reset instead of closed.
                let _ = stream.set_zero_linger_if(linger.is_some());
            })
            .await;
            let result = send(&Egress::new(), &local(&server), get(&server.url("/"))).await;
            let expected = if linger.is_some() { &reset[..] } else { &[closed] };
            assert!(expected.contains(&kind(&result)), "{answer:?}: {result:?}");
        }
    }
}

trait Reset {
    fn set_zero_linger_if(&self, is_wanted: bool) -> std::io::Result<()>;
}

impl Reset for tokio::net::TcpStream {
    fn set_zero_linger_if(&self, is_wanted: bool) -> std::io::Result<()> {
        if is_wanted { self.set_zero_linger() } else { Ok(()) }
    }
}

/// A server that sends some bytes, and then a little more every ten milliseconds.
async fn slow_drip(first: &'static str, again: &'static [u8]) -> Server {
    Server::start(move |mut stream| async move {
        head(&mut stream).await;
        let _ = stream.write_all(first.as_bytes()).await;
        let mut drops = tokio::time::interval(Duration::from_millis(10));
        while stream.write_all(again).await.is_ok() {
            drops.tick().await;
        }
    })
    .await
}

#[tokio::test]
async fn one_deadline_covers_every_stage() {
    let silent = Server::start(|mut stream| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let half_a_head = Server::responding("HTTP/1.1 200 OK\r\nx: ").await;
    let half_a_body =
        Server::responding("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await;
    let one_chunk =
        Server::responding("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n").await;
    let no_end = Server::responding("HTTP/1.1 200 OK\r\n\r\nx").await;
    let drips = [
        slow_drip("HTTP/1.1 200 OK\r\n\r\n", b"x").await,
        slow_drip("HTTP/1.1 200 OK\r\nx: ", b"x").await,
    ];
    let chunks =
        slow_drip("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n").await;
    let reads_nothing = Server::start(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    // More than the system buffers for a connection that is not read from.
    let upload = Bytes::from(vec![b'x'; 7 << 20]);
    let stages =
        [&silent, &half_a_head, &half_a_body, &one_chunk, &no_end, &drips[0], &drips[1], &chunks];
    let stages = stages.map(|server| (server, "http", Bytes::new()));
    let others = [(&silent, "https", Bytes::new()), (&reads_nothing, "http", upload)];
    for (server, scheme, body) in stages.into_iter().chain(others) {
        let url = server.url("/").replace("http", scheme);
        let rule: HttpRule = format!("POST {url}").parse().unwrap();
        let rights = rights([rule.with_private(["127.0.0.0/8".parse().unwrap()])]);
        for own in [true, false] {
            let mut outgoing = Outgoing { method: Method::Post, body: body.clone(), ..get(&url) };
            let deadline = if own { AMPLE } else { SHORT };
            outgoing.timeout = Some(if own { SHORT } else { Duration::MAX });
            let deadline = Instant::now() + deadline;
            let (egress, budget) = (Egress::new(), Budget::default());
            let result =
                in_time(egress.send(&rights, &budget, outgoing, Secrets::default(), deadline))
                    .await;
            assert_eq!(kind(&result), "timeout", "{url}: {result:?}");
        }
    }
    // A timeout of zero means the shortest time.
    let mut outgoing = get(&silent.url("/"));
    outgoing.timeout = Some(Duration::ZERO);
    assert_eq!(kind(&send(&Egress::new(), &local(&silent), outgoing).await), "timeout");
}

/// Never answers, or panics.
struct FailingResolver(bool);

impl Resolver for FailingResolver {
    fn resolve(&self, _host: &str, _port: u16) -> ResolveFuture {
        assert!(!self.0, "a resolver of an embedder's own");
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn deadline_covers_dns_and_connection_wait() {
    let rights = rights(["http://slow.example".parse().unwrap()]);
    let egress = Egress::new().with_resolver(FailingResolver(false)).with_connections(1);
    let (budget, soon) = (Budget::default(), Instant::now() + SHORT);
    let ends = (0..3).map(|_| {
        egress.send(&rights, &budget, get("http://slow.example/"), Secrets::default(), soon)
    });
    for end in futures_util::future::join_all(ends).await {
        assert_eq!(kind(&end), "timeout");
    }
    assert_eq!(egress.connections.all.available_permits(), 1);
    let panicking = Egress::new().with_resolver(FailingResolver(true));
    let sent = AssertUnwindSafe(send(&panicking, &rights, get("http://slow.example/")))
        .catch_unwind()
        .await;
    assert!(sent.is_err(), "the caller hears of the panic");
}

#[tokio::test]
async fn dropped_request_or_body_frees_its_connection() {
    let server = Server::responding("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await;
    let (egress, rights) = (Egress::new().with_connections(1), local(&server));
    let (budget, deadline) = (Budget::default(), Instant::now() + AMPLE);
    let admitted = || {
        let Outgoing { method, target, .. } = get(&server.url("/"));
        admit(&rights, &budget, method, &target).unwrap()
    };
    for _ in 0..3 {
        let response = egress
            .open(admitted(), &budget, get(&server.url("/")), Secrets::default(), deadline)
            .await
            .unwrap();
        assert_eq!(egress.connections.all.available_permits(), 0);
        let waiting =
            egress.open(admitted(), &budget, get(&server.url("/")), Secrets::default(), deadline);
        assert!(tokio::time::timeout(SHORT, waiting).await.is_err(), "there is one connection");
        drop(response);
        drop(egress.connections.all.acquire().await.unwrap());
    }
    // The last owner, dropped inside of a task.
    let response = egress
        .open(admitted(), &budget, get(&server.url("/")), Secrets::default(), deadline)
        .await
        .unwrap();
    drop(egress);
    drop(response);
}
