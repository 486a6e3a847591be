//! Tests of the bytes that arrive at a server, and of requests that are never sent.

use super::*;

/// Headers that a request must not have: names and values. Guests send the same list by
/// `wasi:http`.
const SMUGGLED: &str = include_str!("cases/smuggled.json");

async fn sent_text(outgoing: impl Fn(&Server) -> Outgoing) -> String {
    let server = Server::echoing().await;
    let outgoing = outgoing(&server);
    let response = send(&Egress::new(), &local(&server), outgoing).await.unwrap();
    String::from_utf8(response.into_body().to_vec())
        .unwrap()
        .replace(&server.port.to_string(), "PORT")
}

#[tokio::test]
async fn request_has_origin_form_and_one_host() {
    for (path, expected) in rows::<(&str, &str)>("capability/http/wire", "paths") {
        let seen = sent_text(|server| get(&server.url(path))).await;
        let first = seen.lines().next().unwrap().replace("%5E", "^");
        assert_eq!(first, format!("GET {expected} HTTP/1.1"), "{path}");
        assert_eq!(seen.matches("host: 127.0.0.1:PORT\r\n").count(), 1, "{seen}");
        assert_eq!(seen.to_lowercase().matches("host:").count(), 1, "{seen}");
    }
}

#[tokio::test]
async fn request_arrives_with_its_headers_and_length() {
    let seen = sent_text(|server| {
        let outgoing = with_header(get(&server.url("/x")), "X-One", "1");
        let outgoing = with_header(outgoing, "accept-encoding", "gzip");
        with_header(outgoing, "Cookie", b"a=\xc3\xbc")
    })
    .await;
    let expected = "GET /x HTTP/1.1\r\nhost: 127.0.0.1:PORT\r\nx-one: 1\r\naccept-encoding: gzip\r\ncookie: a=\u{fc}\r\n\
                    connection: close\r\n\r\n";
    assert_eq!(seen, expected);
    for (method, body, length) in [
        (Method::Get, "", None),
        (Method::Delete, "", None),
        (Method::Get, "some", Some("4")),
        (Method::Post, "", Some("0")),
        (Method::Put, "more", Some("4")),
    ] {
        let seen =
            sent_text(|server| Outgoing { method, body: body.into(), ..get(&server.url("/")) })
                .await;
        let found = seen.lines().find_map(|line| line.strip_prefix("content-length: "));
        assert_eq!(found, length, "{method:?} {body}: {seen}");
        assert!(!seen.contains("transfer-encoding"), "{seen}");
    }
}

#[tokio::test]
async fn reserved_or_ambiguous_headers_are_never_sent() {
    let refused: Vec<(String, String)> = serde_json::from_str(SMUGGLED).unwrap();
    assert_eq!(refused.len(), 60);
    let server = Server::echoing().await;
    let (egress, rights) = (Egress::new(), local(&server));
    for (name, value) in refused {
        let outgoing = with_header(get(&server.url("/?canary")), &name, &value);
        let result = send(&egress, &rights, outgoing).await;
        assert_eq!(kind(&result), "invalid", "{name:?}: {value:?}");
    }
    let mut many = get(&server.url("/"));
    many.headers = (0..=MAX_HEADERS).map(|number| (format!("x-{number}"), Vec::new())).collect();
    let long = with_header(get(&server.url("/")), "x", vec![b'x'; MAX_HEAD]);
    for outgoing in [many, long] {
        assert_eq!(kind(&send(&egress, &rights, outgoing).await), "invalid");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn ungranted_request_is_never_sent() {
    let server = Server::echoing().await;
    let (egress, rights) = (Egress::new(), local(&server));
    let port = format!("http://127.0.0.1:{}/", server.port.wrapping_add(1).max(1));
    for outgoing in [
        Outgoing { method: Method::Patch, ..get(&server.url("/")) },
        get(&port),
        get(&server.url("/").replace("http:", "https:")),
        get("http://evil.example/"),
    ] {
        assert_eq!(kind(&send(&egress, &rights, outgoing.clone()).await), "denied", "{outgoing:?}");
    }
    let ungranted = send(&egress, &Rights::default(), get(&server.url("/?canary"))).await;
    assert_eq!(kind(&ungranted), "denied");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn call_gets_32_requests_and_frees_every_connection() {
    let server = Server::echoing().await;
    let (egress, rights, budget) =
        (Egress::new().with_connections(4), local(&server), Budget::default());
    let sends = (0..10_000).map(|_| spend(&egress, &rights, &budget, get(&server.url("/"))));
    let ends: Vec<_> = futures_util::future::join_all(sends).await.iter().map(kind).collect();
    assert_eq!(ends.iter().filter(|end| **end == "response").count(), 32);
    assert_eq!(ends.iter().filter(|end| **end == "over budget").count(), 10_000 - 32);
    assert_eq!(server.connections(), 32);
    let all = egress.connections.all.acquire_many(4);
    assert!(tokio::time::timeout(AMPLE, all).await.unwrap().is_ok());
}

#[tokio::test]
async fn byte_budget_covers_all_requests_of_a_call() {
    let server = Server::responding(ok(&"x".repeat(150))).await;
    let (egress, rights) = (Egress::new(), local(&server));
    let body = Bytes::from(vec![b'x'; 1000]);
    for budget in [Budget::new(9, 3500, 1 << 20), Budget::new(9, 1 << 20, 600)] {
        for number in 0..9 {
            let body = body.clone();
            let outgoing = Outgoing { method: Method::Post, body, ..get(&server.url("/")) };
            let result = spend(&egress, &rights, &budget, outgoing).await;
            let expected = if number < 3 { "response" } else { "over budget" };
            assert_eq!(kind(&result), expected, "{number}: {budget:?}");
        }
    }
}

/// A guest's request is checked before the first piece of its body and charged for each piece, so
/// that no piece is held for a refused request.
#[tokio::test]
async fn request_is_admitted_before_its_body_arrives() {
    let server = Server::responding(ok("")).await;
    let (rights, budget) = (local(&server), Budget::new(3, 1000, 1000));
    let Outgoing { method, target, .. } = get(&server.url("/"));
    let elsewhere = Target::parse("http://elsewhere.example/").unwrap();
    let refused = admit(&rights, &budget, method, &elsewhere);
    assert!(matches!(refused, Err(SendError::Denied(_))), "and it counts");
    let mut admitted = admit(&rights, &budget, method, &target).unwrap();
    admitted.charge(&budget, 600).unwrap();
    assert!(matches!(admitted.charge(&budget, 500), Err(SendError::OverBudget(..))));
    let other = Outgoing { target: elsewhere, ..get(&server.url("/")) };
    let deadline = Instant::now() + AMPLE;
    let sent = Egress::new().open(admitted, &budget, other, Secrets::default(), deadline).await;
    assert!(matches!(sent, Err(SendError::Invalid(_))), "what was admitted is what is sent");
    admit(&rights, &budget, method, &target).unwrap();
    assert!(matches!(admit(&rights, &budget, method, &target), Err(SendError::OverBudget(..))));
}

#[tokio::test]
async fn compressed_response_is_not_decompressed() {
    // Zeros, compressed a thousand to one, without end.
    let bomb = [&b"\x1f\x8b\x08\0\0\0\0\0\x02\xff\xed\xc1"[..], &[0; 4000]].concat();
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length";
    let head = format!("{head}: {}\r\n\r\n", bomb.len());
    let server = Server::responding([head.as_bytes(), &bomb].concat()).await;
    assert_eq!(fetch(&server).await.unwrap().body()[..], bomb[..]);
}
