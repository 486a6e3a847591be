//! Random bytes of hostile clients: the server answers or closes the connection, and serves other
//! tenants as before.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolcell_server::ListenOptions;
use toolcell_test_guests::{own_process, rows};

use crate::http::client::{JSON, bearer};
use crate::http::fixture::Fixture;
use crate::setup::PATIENCE;

/// The seed of all cases.
const SEED: u64 = 15;
const CASES: usize = 400;
/// One in this many cases leaves its connection open, and waits until the server closes it.
const SLOW: usize = 40;
/// Connections of a flood.
const FLOOD: usize = 300;
const ECHO: &str = r#"{"name": "echo", "arguments": {"n": 7}}"#;

/// Lines that are put into a head or body.
static PIECES: LazyLock<Vec<&str>> = LazyLock::new(|| rows("server/http/hostile_bytes", "pieces"));

/// Valid requests of one tenant.
fn requests(key: &str) -> Vec<Vec<u8>> {
    let headers = format!("{}{JSON}", bearer(key));
    let requests = rows::<&str>("server/http/hostile_bytes", "requests").into_iter();
    requests.map(|text| text.replace("{headers}", &headers).into_bytes()).collect()
}

/// Returns a request with random changes.
fn changed(random: &mut fastrand::Rng, requests: &[Vec<u8>]) -> Vec<u8> {
    let any = |random: &mut fastrand::Rng| requests[random.usize(..requests.len())].clone();
    let mut bytes = any(random);
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..bytes.len());
        let ends: Vec<usize> = (1..bytes.len()).filter(|end| bytes[end - 1] == b'\n').collect();
        let line_end = if ends.is_empty() { at } else { ends[random.usize(..ends.len())] };
        match random.u8(..7) {
            0 => bytes[at] = random.u8(..),
            1 => bytes.truncate(at.max(1)),
            2 => drop(bytes.splice(at..at, any(random))),
            3 => {
                drop(bytes.splice(line_end..line_end, PIECES[random.usize(..PIECES.len())].bytes()))
            }
            4 => {
                bytes.drain(at..(at + random.usize(..20)).min(bytes.len() - 1).max(at));
            }
            5 => drop(bytes.splice(at..at, vec![random.u8(..); random.usize(..100_000)])),
            _ => bytes.extend(any(random)),
        }
    }
    bytes
}

/// Sends bytes and closes. Returns the statuses of the answers once the server has closed the
/// connection.
async fn statuses(fixture: &Fixture, bytes: &[u8]) -> Vec<u16> {
    sent(fixture, &[bytes], true).await
}

/// Like [`statuses`], for bytes in pieces. Without `closed` the server has to close the connection.
async fn sent(fixture: &Fixture, pieces: &[&[u8]], closed: bool) -> Vec<u16> {
    let mut stream = TcpStream::connect(fixture.address).await.expect("it accepts connections");
    let mut text = Vec::new();
    let talk = async {
        for piece in pieces {
            // The server may answer and close before it has read everything.
            let _ = stream.write_all(piece).await;
            tokio::task::yield_now().await;
        }
        if closed {
            let _ = stream.shutdown().await;
        }
        let _ = stream.read_to_end(&mut text).await;
    };
    let shown = String::from_utf8_lossy(&pieces.concat()).into_owned();
    let talked = tokio::time::timeout(PATIENCE, talk).await;
    assert!(talked.is_ok(), "the connection stays open: {shown}");
    let text = String::from_utf8_lossy(&text).into_owned();
    text.match_indices("HTTP/1.1 ")
        .filter_map(|(at, line)| text.get(at + line.len()..)?.get(..3)?.parse().ok())
        .collect()
}

async fn another_tenant_is_served(fixture: &Fixture) {
    let reply = fixture.call(&fixture.globex, "", ECHO).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.json()["outcome"]["ok"]["value"]["n"], 7, "{reply:?}");
}

/// Counts panics of the whole process.
fn count_panics() -> &'static AtomicUsize {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        usual(info);
    }));
    &PANICS
}

#[tokio::test(flavor = "multi_thread")]
async fn mutated_requests_are_answered_or_closed_no_panic() {
    // Every panic of the process counts.
    let test = "mutated_requests_are_answered_or_closed_no_panic";
    if !own_process::enter(module_path!(), test) {
        return;
    }
    let panics = count_panics();
    let head_time = std::time::Duration::from_millis(200);
    let fixture = Fixture::with(ListenOptions { head_time, ..ListenOptions::default() }).await;
    let requests = requests(&fixture.acme);
    let mut random = fastrand::Rng::with_seed(SEED);
    let (mut answered, mut refused) = (0, 0);
    for case in 0..CASES {
        let bytes = changed(&mut random, &requests);
        let pieces = bytes.split_at(random.usize(..=bytes.len()));
        for status in sent(&fixture, &[pieces.0, pieces.1], case % SLOW != 0).await {
            answered += usize::from(status == 200);
            refused += usize::from((400..500).contains(&status));
            let shown = String::from_utf8_lossy(&bytes);
            let is_good = status < 500 || status == 503;
            assert!(is_good, "case {case} of seed {SEED}: {status} for {shown}");
        }
        another_tenant_is_served(&fixture).await;
    }
    // On a busy machine some heads are not read in time.
    assert!(
        answered > CASES / 20 && refused > CASES / 4,
        "{answered} and {refused} of {CASES}: they are too alike"
    );
    assert_eq!(panics.load(Ordering::Relaxed), 0);
}

/// If a proxy and the server could disagree about the end of a request, the second request hidden
/// in it is not answered.
#[tokio::test(flavor = "multi_thread")]
async fn smuggled_request_is_not_answered() {
    let fixture = Fixture::start().await;
    let key = bearer(&fixture.acme);
    let hidden = format!("GET /v1/usage HTTP/1.1\r\nHost: localhost\r\n{key}\r\n");
    let body = format!("0\r\n\r\n{hidden}");
    let head = format!("POST /v1/calls HTTP/1.1\r\nHost: localhost\r\n{key}{JSON}");
    let length = format!("Content-Length: {}\r\n", body.len());
    for framing in rows::<&str>("server/http/hostile_bytes", "framings") {
        let framing = framing.replace("{length}", &length);
        let answers = statuses(&fixture, format!("{head}{framing}\r\n{body}").as_bytes()).await;
        assert_eq!(answers, [400], "{framing:?}");
    }
    another_tenant_is_served(&fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flood_of_one_tenant_leaves_others_served() {
    let fixture = Fixture::start().await;
    let mut silent = Vec::new();
    for _ in 0..FLOOD {
        silent.push(TcpStream::connect(fixture.address).await.expect("it accepts connections"));
    }
    let flood: Vec<_> = (0..FLOOD).map(|_| fixture.begin(&fixture.acme, "", ECHO)).collect();
    another_tenant_is_served(&fixture).await;
    for reply in flood {
        let reply = reply.await.expect("no panic").expect("an answer");
        let code = reply.code();
        assert!([(200, ""), (429, "overloaded")].contains(&(reply.status, &*code)), "{reply:?}");
    }
    another_tenant_is_served(&fixture).await;
}
