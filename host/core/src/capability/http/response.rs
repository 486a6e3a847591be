//! Checks a server's response, and redacts secrets in it while the tool reads it.
//!
//! [`accept`] takes the response that hyper has parsed, with its limits and an optional redactor.
//! It refuses an ambiguous length, an upgrade and a partial response without a `Range`. It removes
//! the headers about the connection, redacts the others, and returns the head with a [`Body`]. The
//! body is a stream: each piece is charged to the call's budget, searched and redacted as it
//! arrives. `collect` reads it to its end.
//! Invariants: nothing is decompressed for the tool. With a redactor, a response that declares a
//! compression is refused, and so is one that contains a secret in compressed bytes. A truncated
//! body is an error, never a short body. Errors of hyper are described in fixed words.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Body as _, Frame, Incoming as Received};
use tokio::task::yield_now;
use tokio_util::task::AbortOnDropHandle;
use toolcell_contract::controls::enforced;

use super::connection::meter::Meter;
use super::connection::threads::Threads;
use super::outgoing::head_size;
use super::{Budget, SendError, Share, TimeoutPhase};
use crate::os::clock;
use crate::secrets::redact::{Inflated, Inflation, REPLACEMENT, Redaction, Redactor};

/// Headers about the connection, which tools do not see.
const OF_THE_CONNECTION: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The limits of a response, and the redactor of its secrets.
pub(super) struct ResponseTerms {
    pub(super) budget: Budget,
    pub(super) meter: Meter,
    pub(super) deadline: Instant,
    /// Longest wait for a piece of the body.
    pub(super) between_bytes: Option<Duration>,
    /// True if the request has a `Range` header.
    pub(super) asks_for_part: bool,
    pub(super) redactor: Option<Redactor>,
}

/// A body that is still being received. Dropping it closes the connection.
pub(crate) type Body = UnsyncBoxBody<Bytes, SendError>;

/// The reception of one body.
struct Reception {
    received: Received,
    terms: ResponseTerms,
    redaction: Option<Redaction>,
    inflation: Option<Inflation>,
    /// The received bytes that were not searched yet.
    rest: Bytes,
    is_over: bool,
    _connection: AbortOnDropHandle<()>,
    _threads: Arc<Threads>,
}

/// Checks a head and removes the headers that are not for the tool.
pub(super) fn accept(
    response: Response<Received>,
    terms: ResponseTerms,
    connection: AbortOnDropHandle<()>,
    threads: Arc<Threads>,
) -> Result<Response<Body>, SendError> {
    let (head, received) = response.into_parts();
    let mut headers = head.headers;
    check(head.status, &headers)?;
    if head.status == StatusCode::PARTIAL_CONTENT && !terms.asks_for_part && enforced!(UnaskedParts)
    {
        let problem = "it is a partial response (206), and the request had no `Range` header";
        return Err(SendError::broken(problem));
    }
    terms.budget.take_received(head_size(&headers) as u64)?;
    let receivable = terms.budget.receivable();
    if received.size_hint().lower() > receivable {
        // The declared length exceeds the budget: fails before the body is read.
        terms.budget.take_received(received.size_hint().lower())?;
    }
    terms.meter.extend_for_body(receivable);
    for name in OF_THE_CONNECTION {
        headers.remove(name);
    }
    if let Some(redactor) = &terms.redactor {
        headers = redacted(&headers, redactor)?;
    }
    let reception = Reception {
        received,
        redaction: terms.redactor.as_ref().map(Redactor::in_pieces),
        inflation: terms.redactor.clone().map(Inflation::new),
        terms,
        rest: Bytes::new(),
        is_over: false,
        _connection: connection,
        _threads: threads,
    };
    let next = |mut reception: Reception| async move {
        let piece = reception.next().await?;
        Some((piece.map(Frame::data), reception))
    };
    let body = StreamBody::new(stream::unfold(reception, next).fuse());
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = head.status;
    *response.headers_mut() = headers;
    Ok(response)
}

fn check(status: StatusCode, headers: &HeaderMap) -> Result<(), SendError> {
    if status.is_informational() {
        return Err(SendError::broken("it switches to another protocol"));
    }
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        if headers.contains_key(header::CONTENT_LENGTH) && enforced!(Framing) {
            return Err(SendError::broken("it has both `content-length` and `transfer-encoding`"));
        }
        if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return Err(SendError::broken("its `transfer-encoding` is not `chunked` alone"));
        }
    }
    Ok(())
}

/// Redacts the headers. Removes the length, which may differ after redaction.
fn redacted(headers: &HeaderMap, redactor: &Redactor) -> Result<HeaderMap, SendError> {
    let is_plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if enforced!(Searchable) && !headers.get_all(header::CONTENT_ENCODING).iter().all(is_plain) {
        return Err(SendError::broken("it is compressed, so it cannot be searched for secrets"));
    }
    let mut kept = HeaderMap::new();
    for ((name, value), is_spread) in headers.iter().zip(is_split_secret(headers, redactor)) {
        if *name == header::CONTENT_LENGTH || redactor.contains_value(name.as_str().as_bytes()) {
            continue;
        }
        let value =
            if is_spread { REPLACEMENT.to_vec() } else { redactor.redact(value.as_bytes()) };
        let value = HeaderValue::from_bytes(&value)
            .map_err(|_| SendError::broken("one of its redacted headers is invalid"))?;
        kept.append(name, value);
    }
    Ok(kept)
}

/// Returns, for each header, true if its value contains part of a secret that spans several
/// headers.
fn is_split_secret(headers: &HeaderMap, redactor: &Redactor) -> Vec<bool> {
    let (mut all, mut ranges) = (Vec::new(), Vec::new());
    for value in headers.values() {
        let start = all.len();
        all.extend_from_slice(value.as_bytes());
        ranges.push(start..all.len());
        // No secret contains a line break.
        all.push(b'\n');
    }
    let mut spread = vec![false; ranges.len()];
    for place in redactor.places(&all) {
        let first = ranges.partition_point(|range| range.end <= place.start);
        let parts = ranges[first..].iter().take_while(|range| range.start < place.end).count();
        if parts > 1 {
            spread[first..first + parts].fill(true);
        }
    }
    spread
}

impl Reception {
    /// Returns the next bytes for the tool, or `None` at the end of the body.
    async fn next(&mut self) -> Option<Result<Bytes, SendError>> {
        while !self.is_over {
            let piece = self.piece().await;
            self.is_over |= piece.is_err();
            if !piece.as_ref().is_ok_and(Bytes::is_empty) {
                return Some(piece);
            }
        }
        None
    }

    /// Returns the bytes that are final after some more were received. There may be none.
    async fn piece(&mut self) -> Result<Bytes, SendError> {
        if self.rest.is_empty() {
            let wait = self.terms.between_bytes.and_then(|time| Instant::now().checked_add(time));
            let received = clock::before(wait, self.received.frame()).await;
            let late = SendError::Timeout(TimeoutPhase::BetweenBytes);
            let Some(frame) = received.ok_or(late)? else {
                self.is_over = true;
                return self.end();
            };
            let frame = frame.map_err(|error| self.terms.fault(&error))?;
            // Trailers are dropped: few clients read them, and they would have to be checked like a
            // head.
            self.rest = frame.into_data().unwrap_or_default();
            self.terms.budget.take_received(self.rest.len() as u64)?;
        }
        self.search().await
    }

    /// Searches the received bytes, and returns those that are final. If much was inflated, leaves
    /// a rest, and gives others a turn.
    async fn search(&mut self) -> Result<Bytes, SendError> {
        let (Some(inflation), Some(redaction)) = (&mut self.inflation, &mut self.redaction) else {
            return Ok(std::mem::take(&mut self.rest));
        };
        let mut rest = &self.rest[..];
        let found = inflation.push(&mut rest);
        let left = rest.len();
        let problem = match found {
            Inflated::Clean => {
                if inflation.takes_pause() {
                    yield_now().await;
                }
                let searched = self.rest.split_to(self.rest.len() - left);
                return Ok(redaction.push(&searched).into());
            }
            Inflated::Secret => "it is compressed, and carries a secret",
            Inflated::TooLarge => "its decompressed content is too large to search for secrets",
        };
        Err(SendError::broken(problem))
    }

    /// Returns the bytes that remain after hyper's last frame.
    fn end(&mut self) -> Result<Bytes, SendError> {
        if Instant::now() >= self.terms.deadline {
            return Err(SendError::Timeout(TimeoutPhase::Whole));
        }
        if self.received.size_hint().lower() > 0 {
            return Err(SendError::broken("it ended too soon"));
        }
        Ok(self.redaction.as_mut().map(Redaction::finish).unwrap_or_default().into())
    }
}

impl ResponseTerms {
    /// Classifies an error of hyper and describes it in fixed words.
    pub(super) fn fault(&self, error: &hyper::Error) -> SendError {
        if Instant::now() >= self.deadline {
            return SendError::Timeout(TimeoutPhase::Whole);
        }
        if self.meter.is_exceeded() {
            let problem = "the server sent too many headers, interim responses or chunk frames";
            return SendError::OverBudget(Share::Framing, problem.to_owned());
        }
        SendError::broken(if error.is_parse_too_large() {
            "its headers are too many or too long"
        } else if error.is_parse() {
            "it is not HTTP"
        } else if error.is_incomplete_message() {
            "it ended too soon"
        } else {
            "the connection broke"
        })
    }
}
