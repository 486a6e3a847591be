//! Tests of the outbound scan, which searches a tool's request for secrets before it is sent. One
//! secret belongs to another destination, one to the tool and is bound to a path.

use toolcell_contract::grants::rights::Layer;

use super::*;

const OTHERS: &str = "canary-4711-of-another";
const OWN: &str = "canary-1234-of-the-tool";

fn secret(value: &str) -> Secret {
    Secret::new(value).unwrap()
}

/// The values that a request is scanned for: another tenant's value, and one of the tool's own that
/// is bound to a place.
fn scan_secrets(bound_to: &str, seen: &Arc<Mutex<Vec<&'static str>>>) -> Secrets {
    let others = Redactor::of_whole(vec![secret(OTHERS)]).unwrap();
    let own = Redactor::new(vec![secret(OWN)]);
    let seen = Arc::clone(seen);
    let tell = Box::new(move |kind| seen.lock().push(kind));
    let bound = vec![(bound_to.parse().unwrap(), secret(OWN))];
    let scan = Some(OutboundScan { others, own, bound, on_suspect: tell });
    Secrets { scan, ..Secrets::default() }
}

fn with_body(mut outgoing: Outgoing, body: impl Into<Bytes>) -> Outgoing {
    (outgoing.method, outgoing.body) = (Method::Post, body.into());
    outgoing
}

async fn sent(
    server: &Server,
    outgoing: Outgoing,
    seen: &Arc<Mutex<Vec<&'static str>>>,
) -> Result<Incoming, SendError> {
    let secrets = scan_secrets(&format!("GET,POST {}", server.url("/own")), seen);
    Egress::new()
        .send(&local(server), &Budget::default(), outgoing, secrets, Instant::now() + AMPLE)
        .await
}

/// A body that the tool compressed itself.
fn deflated(text: &str) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec_zlib(text.repeat(20).as_bytes(), 6)
}

/// A body that inflates to more than the limit of the search.
#[tokio::test]
async fn body_too_large_to_scan_is_refused() {
    let (server, seen) = (Server::echoing().await, Arc::default());
    assert!(BOMB.len() < 1 << 20);
    let request = with_body(get(&server.url("/")), BOMB.clone());
    assert_eq!(kind(&in_time(sent(&server, request, &seen)).await), "invalid");
}

/// Fails without: the outbound scan.
#[tokio::test]
async fn secret_of_another_destination_is_not_sent() {
    let (server, seen) = (Server::echoing().await, Arc::default());
    let url = |path: &str| get(&server.url(path));
    let large = |value: &str| {
        [&vec![b'.'; (64 << 10) - 5], value.as_bytes(), &vec![b'.'; 100_000]].concat()
    };
    let partly = OTHERS.replace('c', "%63").replace('4', "%34");
    let basic = format!("Basic {}", STANDARD.encode(format!("a:{OTHERS}")));
    let piece = |outgoing, name: &str, c: char| with_header(outgoing, name, c.to_string());
    let pieces = OWN.chars().enumerate().map(|(at, c)| (format!("x-{at}"), c));
    let table = [
        (url("/?a=b"), "response"),
        (with_body(url("/"), "canary of no owner, 4711"), "response"),
        (url(&format!("/?q={OTHERS}")), "denied"),
        (url(&format!("/{OTHERS}/x")), "denied"),
        (url(&format!("/?q={partly}")), "denied"),
        (url(&format!("/?q={}", STANDARD.encode(format!("user:{OTHERS}")))), "denied"),
        (with_header(url("/"), "x-note", OTHERS), "denied"),
        // A part of a value that the tool cannot know does not count: a denial would reveal how the
        // value continues.
        (with_body(url("/"), &OTHERS[..OTHERS.len() - 1]), "response"),
        (with_header(url("/"), "authorization", basic), "denied"),
        (with_body(url("/"), format!("{{\"a\":\"{OTHERS}\"}}")), "denied"),
        (with_body(url("/"), OTHERS.chars().rev().collect::<String>()), "denied"),
        (with_body(url("/"), large(OTHERS)), "denied"),
        // The tool's own value may go to the place it is bound to, and nowhere else.
        (with_body(url("/own/x"), OWN), "response"),
        (url(&format!("/own?q={OWN}")), "response"),
        (with_body(url("/own"), format!("{OWN} {OTHERS}")), "denied"),
        (with_body(url("/other"), OWN), "denied"),
        (with_body(url("/"), large(OWN)), "denied"),
        (with_header(with_header(url("/"), "x-1", &OWN[..11]), "x-2", &OWN[11..]), "denied"),
        (OTHERS.chars().fold(url("/"), |outgoing, c| piece(outgoing, "x-piece", c)), "denied"),
        (pieces.fold(url("/"), |outgoing, (name, c)| piece(outgoing, &name, c)), "denied"),
        (with_body(url("/"), OTHERS.split("").collect::<Vec<_>>().join(".")), "denied"),
        (with_body(url("/"), deflated(OTHERS)), "denied"),
        (with_body(url("/"), deflated(OWN)), "denied"),
        (with_body(url("/own"), deflated(OWN)), "response"),
        (with_body(url("/"), deflated("nothing of it")), "response"),
    ];
    let answered = table.iter().filter(|(_, expected)| *expected == "response").count();
    for (outgoing, expected) in table {
        let shown = format!("{outgoing:?}").chars().take(300).collect::<String>();
        let result = sent(&server, outgoing, &seen).await;
        assert_eq!(kind(&result), expected, "{shown}");
        if let Err(SendError::Denied(denial)) = result {
            assert_eq!(denial.layer, Layer::Secrets);
            assert!(!format!("{denial:?} {}", denial.hint()).contains("canary"), "{denial:?}");
        }
    }
    assert_eq!(server.connections(), answered);
    assert!(seen.lock().is_empty());
}

/// The tool could try one value after the other otherwise.
#[tokio::test]
async fn call_denied_for_a_secret_sends_nothing_more() {
    let (server, seen, budget) = (Server::echoing().await, Arc::default(), Budget::default());
    let (egress, rights) = (Egress::new(), local(&server));
    for (body, expected) in
        [("harmless", "response"), (OTHERS, "denied"), ("harmless", "over budget")]
    {
        let outgoing = with_body(get(&server.url("/")), body);
        let secrets = scan_secrets("GET https://own.example", &seen);
        let result = egress.send(&rights, &budget, outgoing, secrets, Instant::now() + AMPLE).await;
        assert_eq!(kind(&result), expected, "{body}");
    }
}

/// Requests that were admitted together are scanned one after the other.
#[tokio::test]
async fn concurrent_requests_yield_one_secret_denial() {
    let (server, seen, budget) = (Server::echoing().await, Arc::default(), Budget::default());
    let (egress, rights) = (Egress::new(), local(&server));
    let admitted: Vec<_> = (0..8)
        .map(|_| {
            let outgoing = with_body(get(&server.url("/")), OTHERS);
            (admit(&rights, &budget, outgoing.method, &outgoing.target).unwrap(), outgoing)
        })
        .collect();
    // The first request may be scanned before the last one begins.
    let begin = |(admitted, outgoing)| {
        let secrets = scan_secrets("GET https://own.example", &seen);
        egress.begin(admitted, &budget, outgoing, secrets, Instant::now() + AMPLE).unwrap()
    };
    let begun: Vec<_> = admitted.into_iter().map(begin).collect();
    let mut denied = 0;
    for begun in begun {
        let end = kind(&in_time(begun.collect()).await);
        denied += usize::from(end == "denied");
        assert!(["denied", "over budget"].contains(&end), "{end}");
    }
    assert_eq!(denied, 1);
}

#[tokio::test]
async fn token_like_text_is_reported_and_sent() {
    let (server, seen) = (Server::echoing().await, Arc::default());
    let token = format!("{}_{}", "ghp", "a1".repeat(18));
    let outgoing = with_body(get(&server.url("/")), format!("{token} {token}"));
    let outgoing = with_header(outgoing, "x-token", &token);
    assert_eq!(kind(&sent(&server, outgoing, &seen).await), "response");
    assert_eq!(*seen.lock(), ["a GitHub token"]);
}
