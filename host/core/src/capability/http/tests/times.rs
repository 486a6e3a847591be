//! Tests of the time limits that a tool sets for the parts of a request, and of the names of budget
//! errors. Connecting includes the lookup, the wait for a free connection and TLS.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::server::{Lookup, head};
use super::*;

/// The pause before the server's answer begins, and before it continues.
const PAUSE: Duration = Duration::from_millis(300);
/// Longer than a connection takes on a busy machine, and less than both pauses.
const TO_CONNECT: Duration = Duration::from_millis(550);

fn get_with_times(url: &str, times: Times) -> Outgoing {
    Outgoing { times, ..get(url) }
}

fn timeout_phase(result: &Result<Incoming, SendError>) -> Option<TimeoutPhase> {
    match result {
        Err(SendError::Timeout(stage)) => Some(*stage),
        _ => None,
    }
}

/// A server that pauses before its answer and once in it.
async fn slow_server() -> Server {
    Server::start(|mut stream| async move {
        head(&mut stream).await;
        tokio::time::sleep(PAUSE).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no").await;
        tokio::time::sleep(PAUSE).await;
        let _ = stream.write_all(b"k").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await
}

#[tokio::test]
async fn each_timeout_bounds_only_its_own_stage() {
    let (server, short, long, connect) =
        (slow_server().await, Some(SHORT), Some(AMPLE), Some(TO_CONNECT));
    for (connect, first_byte, between_bytes, expected) in [
        (None, None, None, None),
        (connect, None, None, None),
        (connect, long, long, None),
        (long, short, None, Some(TimeoutPhase::FirstByte)),
        (None, None, short, Some(TimeoutPhase::BetweenBytes)),
        (connect, long, short, Some(TimeoutPhase::BetweenBytes)),
        (long, Some(Duration::ZERO), long, Some(TimeoutPhase::FirstByte)),
    ] {
        let times = Times { connect, first_byte, between_bytes };
        let request = get_with_times(&server.url("/"), times);
        let result = in_time(send(&Egress::new(), &local(&server), request)).await;
        assert_eq!(timeout_phase(&result), expected, "{times:?}: {result:?}");
        let is_answered = result.is_ok_and(|response| response.body() == "ok");
        assert!(expected.is_some() || is_answered, "{times:?}");
    }
}

/// Name lookup and the wait for a free connection are part of connecting.
#[tokio::test]
async fn connect_timeout_covers_dns_wait_and_tls() {
    let rights =
        rights(["http://slow.example".parse().unwrap(), "https://slow.example".parse().unwrap()]);
    let times = Times { connect: Some(SHORT), ..Times::default() };
    let egress = Egress::new().with_resolver(Lookup(|_| None)).with_connections(1);
    let asked = || send(&egress, &rights, get_with_times("http://slow.example/", times));
    for result in in_time(futures_util::future::join_all([asked(), asked()])).await {
        assert_eq!(timeout_phase(&result), Some(TimeoutPhase::Connect), "{result:?}");
    }
    // A TLS server that sends nothing.
    let mute = Server::responding("").await;
    let url = mute.url("/").replace("http", "https");
    let request = get_with_times(&url, times);
    let result = in_time(send(&Egress::new(), &loopback(&url), request)).await;
    assert_eq!(timeout_phase(&result), Some(TimeoutPhase::Connect), "{result:?}");
}

#[tokio::test]
async fn budget_error_names_the_exhausted_share() {
    let server = Server::responding(ok("hello")).await;
    let closed = Budget::default();
    closed.close();
    let share = |result: &Result<Incoming, SendError>| match result {
        Err(SendError::OverBudget(share, _)) => Some(*share),
        _ => None,
    };
    for (budget, expected) in [
        (Budget::new(0, 1000, 1000), Some(Share::Requests)),
        (Budget::new(1, 1, 1000), Some(Share::Sent)),
        (Budget::new(1, 1000, 3), Some(Share::Received)),
        (Budget::new(1, 1000, 1000), None),
        (closed, Some(Share::Closed)),
    ] {
        let rights = local(&server);
        let result = spend(&Egress::new(), &rights, &budget, get(&server.url("/"))).await;
        assert_eq!(share(&result), expected, "{result:?}");
    }
}
