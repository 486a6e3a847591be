//! Tests of servers that break HTTP, flood the client, close too early or never answer.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tokio::io::AsyncWriteExt as _;

use super::server::{Lookup, head};
use super::*;

#[tokio::test]
async fn valid_answers_parse_and_malformed_ones_are_errors() {
    for (answer, expected) in rows::<(&str, &str)>("capability/http/misbehaving", "answers") {
        let server = Server::responding(answer).await;
        let result = fetch(&server).await;
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
    let url = elsewhere.url("/");
    let answer = format!("HTTP/1.1 302 Found\r\nlocation: {url}\r\ncontent-length: 0\r\n\r\n");
    let server = Server::responding(answer).await;
    let response = fetch(&server).await.unwrap();
    assert_eq!(response.status(), 302);
    assert_eq!(response.headers()["location"], url);
    let next = send(&Egress::new(), &local(&server), get(&url)).await;
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
    let floods = rows::<(&str, [&str; 3], usize, &str)>("capability/http/misbehaving", "floods");
    for (first, [before, text, after], times, expected) in floods {
        let server = flooding(first, [before, &text.repeat(times), after].concat()).await;
        let (rights, budget) = (local(&server), Budget::new(1, 1 << 20, 256 << 10));
        let result = in_time(spend(&Egress::new(), &rights, &budget, get(&server.url("/")))).await;
        assert_eq!(kind(&result), expected, "{first:?} {before:?} {text:?}");
    }
}

#[tokio::test]
async fn hundred_headers_are_accepted_a_thousand_refused() {
    for (count, expected) in [(99, "response"), (1000, "broken")] {
        let headers: String = (0..count).map(|number| format!("x-{number}: y\r\n")).collect();
        let answer = format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n");
        let result = fetch(&Server::responding(answer).await).await;
        assert_eq!(kind(&result), expected, "{count}");
    }
}

#[tokio::test]
async fn truncated_body_is_an_error() {
    // Bytes that a server sends before it closes its connection may arrive before a reset, or not.
    let truncated = rows::<(&str, &str, Vec<&str>)>("capability/http/misbehaving", "truncated");
    for (answer, closed, reset) in truncated {
        for is_reset in [false, true] {
            let server = Server::start(move |mut stream| async move {
                head(&mut stream).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                // With zero linger, the connection is reset instead of closed.
                if is_reset {
                    let _ = stream.set_zero_linger();
                }
            })
            .await;
            let result = fetch(&server).await;
            let expected = if is_reset { &reset[..] } else { &[closed] };
            assert!(expected.contains(&kind(&result)), "{answer:?}: {result:?}");
        }
    }
}

/// A server that sends some bytes, and then a little more every ten milliseconds, or nothing.
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
    let silent = Server::responding("").await;
    let mut stages = Vec::new();
    for (first, again) in rows::<(&str, &str)>("capability/http/misbehaving", "stages") {
        stages.push((slow_drip(first, again.as_bytes()).await, "http", Bytes::new()));
    }
    let reads_nothing = Server::start(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    // More than the system buffers for a connection that is not read from.
    let upload = Bytes::from(vec![b'x'; 7 << 20]);
    stages.push((Server::responding("").await, "https", Bytes::new()));
    stages.push((reads_nothing, "http", upload));
    for (number, (server, scheme, body)) in stages.into_iter().enumerate() {
        let url = server.url("/").replace("http", scheme);
        let rights = loopback(&format!("POST {url}"));
        for own in [true, false] {
            let mut outgoing = Outgoing { method: Method::Post, body: body.clone(), ..get(&url) };
            let (timeout, left) = if own { (SHORT, AMPLE) } else { (Duration::MAX, SHORT) };
            outgoing.timeout = Some(timeout);
            let (egress, budget, deadline) =
                (Egress::new(), Budget::default(), Instant::now() + left);
            let sent = egress.send(&rights, &budget, outgoing, Secrets::default(), deadline);
            let result = in_time(sent).await;
            assert_eq!(kind(&result), "timeout", "{number}, {url}: {result:?}");
        }
    }
    // A timeout of zero means the shortest time.
    let mut outgoing = get(&silent.url("/"));
    outgoing.timeout = Some(Duration::ZERO);
    assert_eq!(kind(&send(&Egress::new(), &local(&silent), outgoing).await), "timeout");
}

#[tokio::test]
async fn deadline_covers_dns_and_connection_wait() {
    let rights = rights(["http://slow.example".parse().unwrap()]);
    let egress = Egress::new().with_resolver(Lookup(|_| None)).with_connections(1);
    let (budget, soon) = (Budget::default(), Instant::now() + SHORT);
    let ends = (0..3).map(|_| {
        egress.send(&rights, &budget, get("http://slow.example/"), Secrets::default(), soon)
    });
    for end in futures_util::future::join_all(ends).await {
        assert_eq!(kind(&end), "timeout");
    }
    assert_eq!(egress.connections.all.available_permits(), 1);
    let panicking =
        Egress::new().with_resolver(Lookup(|_| panic!("a resolver of an embedder's own")));
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
    let open = || {
        let outgoing = get(&server.url("/"));
        let admitted = admit(&rights, &budget, outgoing.method, &outgoing.target).unwrap();
        egress.open(admitted, &budget, outgoing, Secrets::default(), deadline)
    };
    for _ in 0..3 {
        let response = open().await.unwrap();
        assert_eq!(egress.connections.all.available_permits(), 0);
        let waiting = tokio::time::timeout(SHORT, open()).await;
        assert!(waiting.is_err(), "there is one connection");
        drop(response);
        drop(egress.connections.all.acquire().await.unwrap());
    }
    // The last owner, dropped inside of a task.
    let response = open().await.unwrap();
    drop(egress);
    drop(response);
}
