//! Replaces the network by a function, for the tests of tools.
//!
//! An author of a tool sets the function with `Egress::with_canned_responses`; the test cases of
//! `toolcell-author` do so with recorded answers. [`connection`] takes method and URL of a request
//! and asks the function for a [`CannedResponse`]. It returns one end of an in-memory connection,
//! at whose other end a task writes that answer as HTTP/1.1. Without an answer, the tool gets the
//! error for a server that cannot be reached.
//! Only the connection is replaced. Rights, headers, secrets, budgets, deadlines and redaction are
//! those of a real request.

use std::sync::Arc;

use futures_util::future::join;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, duplex, sink, split};
use toolcell_contract::grants::{Method, Target};

use super::SendError;
use super::connection::connect::Stream;

/// Bytes. The buffer between the two ends of a connection.
const BUFFER: usize = 64 << 10;

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannedResponse {
    /// The status code, from 100 to 599.
    pub status: u16,
    /// Names and values. `content-length` is added.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Returns the response to a request. `None`: the tool gets the error for a server that cannot be
/// reached.
pub(super) type Answers = Arc<dyn Fn(Method, &Target) -> Option<CannedResponse> + Send + Sync>;

/// Returns a connection that answers one request.
pub(super) fn connection(
    answers: &Answers,
    method: Method,
    target: &Target,
) -> Result<Box<dyn Stream>, SendError> {
    let Some(CannedResponse { status, headers, body }) = answers(method, target) else {
        return Err(SendError::unreachable(target, "the test has no answer for this request"));
    };
    let mut answer = format!("HTTP/1.1 {status} Answer\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        answer.push_str(&format!("{name}: {value}\r\n"));
    }
    let answer = [answer.as_bytes(), b"\r\n", body.as_slice()].concat();
    let (near, far) = duplex(BUFFER);
    tokio::spawn(async move {
        let (mut reader, mut writer) = split(far);
        // A client rejects a response that arrives before it has sent its request.
        if matches!(reader.read(&mut [0; 4096]).await, Ok(1..)) {
            // A write fails only if the request was dropped, and then the response is not needed.
            let _ = join(writer.write_all(&answer), copy(&mut reader, &mut sink())).await;
        }
    });
    Ok(Box::new(near))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn response_waits_for_its_request() {
        let answers: Answers = Arc::new(|_, _| {
            Some(CannedResponse { status: 200, headers: Vec::new(), body: b"done".to_vec() })
        });
        let target = Target::parse("https://api.example.com/").expect("a URL");
        let mut connection = connection(&answers, Method::Get, &target).expect("an answer");
        let mut bytes = [0; 12];
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let early = connection.read(&mut bytes).now_or_never();
        assert!(early.is_none(), "nothing was asked, and this was answered: {bytes:?}");
        connection.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("it is read");
        connection.read_exact(&mut bytes).await.expect("a response");
        assert_eq!(&bytes, b"HTTP/1.1 200");
    }
}
