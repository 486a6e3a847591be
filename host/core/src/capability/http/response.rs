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

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::body::{Body as _, Frame, Incoming as Received};
use tokio_util::task::AbortOnDropHandle;
use toolcell_contract::controls::enforced;

use super::connection::meter::Meter;
use super::connection::threads::Threads;
use super::outgoing::head_size;
use super::{Budget, SendError, Share, TimeoutPhase};
use crate::secrets::redact::{Inflated, Inflation, REPLACEMENT, Redaction, Redactor};

use crate::os::clock::{self, Sleep};

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
pub(crate) struct Body {
    received: Received,
    terms: ResponseTerms,
    redaction: Option<Redaction>,
    inflation: Option<Inflation>,
    /// Completes when the wait for the next piece has been too long.
    silence: Option<Sleep>,
    /// The received bytes that were not searched yet.
    rest: Bytes,
    /// True if the next poll only gives others a turn.
    is_pausing: bool,
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
    let body = Body {
        received,
        redaction: terms.redactor.as_ref().map(Redactor::in_pieces),
        inflation: terms.redactor.clone().map(Inflation::new),
        terms,
        silence: None,
        rest: Bytes::new(),
        is_pausing: false,
        is_over: false,
        _connection: connection,
        _threads: threads,
    };
    let mut response = Response::new(body);
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

impl Body {
    fn receive(&mut self, piece: Bytes) -> Result<Bytes, SendError> {
        self.terms.budget.take_received(piece.len() as u64)?;
        self.rest = piece;
        self.take()
    }

    /// Searches the received bytes, and returns those that are final. If much was inflated, leaves a
    /// rest, and the next poll pauses.
    fn take(&mut self) -> Result<Bytes, SendError> {
        let (Some(inflation), Some(redaction)) = (&mut self.inflation, &mut self.redaction) else {
            return Ok(std::mem::take(&mut self.rest));
        };
        let mut rest = &self.rest[..];
        let found = inflation.push(&mut rest);
        let left = rest.len();
        let problem = match found {
            Inflated::Clean => {
                self.is_pausing = inflation.takes_pause();
                let searched = self.rest.split_to(self.rest.len() - left);
                return Ok(redaction.push(&searched).into());
            }
            Inflated::Secret => "it is compressed, and carries a secret",
            Inflated::TooLarge => "its decompressed content is too large to search for secrets",
        };
        Err(SendError::broken(problem))
    }

    /// Completes when the wait for the next piece has been too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(time) = self.terms.between_bytes else { return Poll::Pending };
        let begun = || Box::pin(clock::until_deadline(Instant::now().checked_add(time))) as Sleep;
        self.silence.get_or_insert_with(begun).as_mut().poll(cx)
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

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        while !self.is_over {
            if std::mem::take(&mut self.is_pausing) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let piece = if self.rest.is_empty() {
                let received = Pin::new(&mut self.received).poll_frame(cx);
                if received.is_ready() {
                    self.silence = None;
                }
                match received {
                    // Trailers are dropped: few clients read them, and they would have to be
                    // checked like a head.
                    Poll::Ready(Some(Ok(frame))) => {
                        frame.into_data().map_or(Ok(Bytes::new()), |data| self.receive(data))
                    }
                    Poll::Ready(Some(Err(error))) => Err(self.terms.fault(&error)),
                    Poll::Ready(None) => {
                        self.is_over = true;
                        self.end()
                    }
                    Poll::Pending => {
                        ready!(self.poll_silence(cx));
                        Err(SendError::Timeout(TimeoutPhase::BetweenBytes))
                    }
                }
            } else {
                self.take()
            };
            self.is_over |= piece.is_err();
            if !piece.as_ref().is_ok_and(Bytes::is_empty) {
                return Poll::Ready(Some(piece.map(Frame::data)));
            }
        }
        Poll::Ready(None)
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
