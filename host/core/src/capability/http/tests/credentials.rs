//! Tests of secrets that the host adds to requests, and of responses that echo them.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use super::*;

/// A value that can be spelled out.
const VALUE_SPELLED: &str = "canary-4711-of-the-test";
/// Bytes before and after deflate data: none, zlib, gzip without and with a file name, and with an
/// extra field.
const COMPRESSED: &[(&[u8], &[u8])] = &[
    (b"", b""),
    (b"\x78\x9c", b"sums"),
    (b"\x1f\x8b\x08\0\0\0\0\0\0\xff", b"sum and size"),
    (b"\x1f\x8b\x08\x08\0\0\0\0\0\xffname\0", b"sum and size"),
    (b"\x1f\x8b\x08\x06\0\0\0\0\0\xff\x02\0xxcc", b"sum and size"),
];
const VALUE: &str = "canary/+&= \"\u{fc}?";

fn injection(kind: &str) -> Injection {
    match kind {
        "bearer" => Injection::Bearer,
        "basic" => Injection::Basic { user: "ann".into() },
        "query" => Injection::Query { name: "key".into() },
        name => Injection::Header { name: name.into() },
    }
}

fn credential_of(value: &str, bound_to: &str, kind: &str) -> Result<Credential, SendError> {
    let used = SecretGrant::new(bound_to.parse().unwrap(), injection(kind));
    Credential::new("token", &used, Secret::new(value).unwrap())
}

fn credential(bound_to: &str, kind: &str) -> Result<Credential, SendError> {
    credential_of(VALUE, bound_to, kind)
}

async fn send_with(
    server: &Server,
    outgoing: Outgoing,
    credentials: &[Credential],
) -> Result<Incoming, SendError> {
    let secrets = Secrets { credentials: credentials.to_vec(), ..Secrets::default() };
    Egress::new()
        .send(&local(server), &Budget::default(), outgoing, secrets, Instant::now() + AMPLE)
        .await
}

/// Returns the request that a server receives, for a credential of this kind.
async fn received_request(kind: &str) -> String {
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::answering(move |head| {
        said.send(head.to_owned()).unwrap();
        String::new()
    })
    .await;
    let credentials = [credential(&server.url("/v1"), kind).unwrap()];
    let _ = send_with(&server, get(&server.url("/v1/x?a=b")), &credentials).await;
    heard.recv().await.unwrap()
}

#[tokio::test]
async fn secret_is_injected_where_its_grant_says() {
    let basic = STANDARD.encode(format!("ann:{VALUE}"));
    for (kind, expected) in [
        ("bearer", format!("\r\nauthorization: Bearer {VALUE}\r\n")),
        ("basic", format!("\r\nauthorization: Basic {basic}\r\n")),
        ("X-Key", format!("\r\nx-key: {VALUE}\r\n")),
        ("query", "GET /v1/x?a=b&key=canary%2F%2B%26%3D+%22%C3%BC%3F HTTP/1.1\r\n".into()),
    ] {
        let seen = received_request(kind).await;
        assert!(seen.contains(&expected), "{kind}: {seen}");
        assert!(seen.contains("\r\naccept-encoding: identity\r\n"), "{seen}");
    }
}

#[tokio::test]
async fn secret_is_sent_only_to_its_bound_destination() {
    let server = Server::echoing().await;
    let v1 = server.url("/v1");
    let plain = |path: &str| get(&server.url(path));
    let table = rows::<(&str, &str, &str, Option<(&str, &str)>, &str)>(
        "capability/http/credentials",
        "secret_is_sent_only_to_its_bound_destination",
    );
    let answered = table.iter().filter(|(.., expected)| *expected == "response").count();
    for (bound_to, kind_of, path, header, expected) in table {
        let bound_to = &bound_to.replace("PORT", &server.port.to_string());
        let mut outgoing = plain(path);
        if let Some((name, value)) = header {
            outgoing = with_header(outgoing, name, value);
        }
        let credentials = [credential(bound_to, kind_of).unwrap()];
        let result = send_with(&server, outgoing.clone(), &credentials).await;
        assert_eq!(kind(&result), expected, "{kind_of} for {bound_to}: {outgoing:?}");
        assert!(!format!("{credentials:?} {result:?}").contains("canary"));
        if let (Err(SendError::Invalid(problem)), true) = (&result, *bound_to != v1) {
            let text = "the secret `token` is not for this request: see `destination` in its grant";
            assert_eq!(problem, text);
        }
    }
    // Two credentials for one place: the second one is refused, as is a tool's own header.
    let twice = [credential(&v1, "bearer").unwrap(), credential(&v1, "basic").unwrap()];
    assert_eq!(kind(&send_with(&server, plain("/v1"), &twice).await), "invalid");
    let two = [credential(&v1, "bearer").unwrap(), credential(&v1, "query").unwrap()];
    assert_eq!(kind(&send_with(&server, plain("/v1"), &two).await), "response");
    assert_eq!(server.connections(), answered + 1);
    assert!(credential(&v1, "not a header").is_err());
}

#[tokio::test]
async fn secret_echoed_by_a_server_is_redacted() {
    for kind_of in ["bearer", "basic", "X-Key", "query"] {
        let server = Server::answering(|seen| {
            let line = seen.split_whitespace().nth(1).unwrap();
            let chunk = |c: char| format!("{:x}\r\n{c}\r\n", c.len_utf8());
            let chunks: String = seen.chars().map(chunk).collect();
            format!(
                "HTTP/1.1 302 {VALUE}\r\nlocation: {line}\r\nset-cookie: s={VALUE}\r\nx-canary: 1\r\n\
                 transfer-encoding: chunked\r\n\r\n{chunks}0\r\nx: {VALUE}\r\n\r\n"
            )
        })
        .await;
        let credentials = [credential(&server.url("/"), kind_of).unwrap()];
        let response = send_with(&server, get(&server.url("/")), &credentials).await.unwrap();
        let headers = response.headers().iter();
        let headers =
            headers.map(|(name, value)| (name, String::from_utf8_lossy(value.as_bytes())));
        let body = String::from_utf8_lossy(response.body());
        let all = format!("{:?} {body}", headers.collect::<Vec<_>>());
        assert!(all.contains("s=[redacted]"), "{kind_of}: {all}");
        assert!(all.matches("[redacted]").count() >= 2, "{kind_of}: {all}");
        let left = [VALUE, "canary/", "canary%2F", &STANDARD.encode(format!("ann:{VALUE}"))[8..]];
        assert!(left.iter().all(|left| !all.contains(left)), "{kind_of}: {all}");
    }
}

#[tokio::test]
async fn unsearchable_response_encoding_is_refused() {
    for (coding, expected) in
        [("gzip", "broken"), ("br", "broken"), ("identity", "response"), ("Identity", "response")]
    {
        let answer =
            format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: 2\r\n\r\nok");
        let server = Server::responding(answer).await;
        let credentials = [credential(&server.url("/"), "bearer").unwrap()];
        for (credentials, expected) in
            [(&credentials[..], expected), (&credentials[..0], "response")]
        {
            let result = send_with(&server, get(&server.url("/")), credentials).await;
            assert_eq!(kind(&result), expected, "{coding}: {}", credentials.len());
        }
    }
}

/// Without credentials, nothing has to be searched.
#[tokio::test]
async fn response_too_large_to_search_is_refused() {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", BOMB.len());
    let server = Server::responding([head.as_bytes(), &BOMB].concat()).await;
    let credentials = [credential(&server.url("/"), "bearer").unwrap()];
    for (credentials, expected) in [(&credentials[..], "broken"), (&credentials[..0], "response")] {
        let result = in_time(send_with(&server, get(&server.url("/")), credentials)).await;
        assert_eq!(kind(&result), expected);
        assert!(result.is_ok() || format!("{result:?}").contains("too large to search"));
    }
}

/// A value could begin or end outside of the part.
#[tokio::test]
async fn unrequested_partial_response_is_refused() {
    let part =
        "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 5-6/9\r\ncontent-length: 2\r\n\r\nok";
    let server = Server::responding(part).await;
    let credentials = [credential(&server.url("/"), "bearer").unwrap()];
    assert_eq!(kind(&send_with(&server, get(&server.url("/")), &credentials).await), "broken");
    assert_eq!(kind(&send_with(&server, get(&server.url("/")), &[]).await), "broken");
    let asked = with_header(get(&server.url("/")), "range", "bytes=5-6");
    assert_eq!(kind(&send_with(&server, asked, &[]).await), "response");
}

/// A value spread over many headers, one character in each.
#[tokio::test]
async fn secret_spread_over_headers_is_redacted() {
    let spelled: String =
        VALUE_SPELLED.chars().enumerate().map(|(at, c)| format!("x-{at}: {c}\r\n")).collect();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nx-before: a\r\n{spelled}x-after: b\r\ncontent-length: 2\r\n\r\nok"
    );
    let server = Server::responding(answer).await;
    let credentials = [credential_of(VALUE_SPELLED, &server.url("/"), "bearer").unwrap()];
    let response = send_with(&server, get(&server.url("/")), &credentials).await.unwrap();
    let of = |name: &str| response.headers().get(name).map(|value| value.as_bytes());
    for at in 0..VALUE_SPELLED.len() {
        assert_eq!(of(&format!("x-{at}")), Some(&b"[redacted]"[..]), "{response:?}");
    }
    assert_eq!((of("x-before"), of("x-after")), (Some(&b"a"[..]), Some(&b"b"[..])));
}

/// The head does not declare the compression.
#[tokio::test]
async fn undeclared_compression_is_searched_for_secrets() {
    for (prefix, suffix) in COMPRESSED {
        for (text, expected) in [(VALUE_SPELLED, "broken"), ("nothing of it", "response")] {
            let text = format!("<{text}> ").repeat(50);
            let deflated = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 6);
            let body = [*prefix, &deflated, *suffix].concat();
            for chunk in [body.len(), 7, 1] {
                let mut answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
                for piece in body.chunks(chunk) {
                    answer.extend(format!("{:x}\r\n", piece.len()).bytes());
                    answer.extend(piece.iter().chain(b"\r\n"));
                }
                answer.extend(b"0\r\n\r\n");
                let server = Server::responding(answer).await;
                let bound = credential_of(VALUE_SPELLED, &server.url("/"), "bearer");
                let credentials = [bound.unwrap()];
                let result = send_with(&server, get(&server.url("/")), &credentials).await;
                assert_eq!(kind(&result), expected, "{prefix:?} {text} in pieces of {chunk}");
                assert!(result.is_err() || result.unwrap().body() == &body);
            }
        }
    }
}

/// A thousandth of the bytes arrives. Fails without: the pauses.
#[tokio::test]
async fn search_of_a_body_that_inflates_much_pauses() {
    let bomb = miniz_oxide::deflate::compress_to_vec(&vec![0; 70 << 20], 9);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", bomb.len());
    let server = Server::responding([head.as_bytes(), &bomb].concat()).await;
    let (egress, budget, outgoing) = (Egress::new(), Budget::default(), get(&server.url("/")));
    let bound = credential_of(VALUE_SPELLED, &server.url("/"), "bearer").unwrap();
    let secrets = Secrets { credentials: vec![bound], ..Secrets::default() };
    let admitted = admit(&local(&server), &budget, outgoing.method, &outgoing.target).unwrap();
    let begun = egress.begin(admitted, &budget, outgoing, secrets, Instant::now() + AMPLE).unwrap();
    let (mut body, mut pauses) = (begun.head().await.unwrap().into_body(), 0);
    let end = poll_fn(|cx| {
        loop {
            match hyper::body::Body::poll_frame(Pin::new(&mut body), cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(end) => return Poll::Ready(end),
                Poll::Pending => {
                    pauses += 1;
                    return Poll::Pending;
                }
            }
        }
    });
    assert!(matches!(end.await, Some(Err(SendError::Broken(_)))));
    assert!(pauses >= 20, "{pauses} pauses in 64 MiB");
}
