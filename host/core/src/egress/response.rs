//! A response as a tool sees it.
//!
//! In: what hyper read. Out: a head and a body within their bounds, without the secrets that went into the request.
//! Invariants: a message that two readers could end at different places is refused; nothing is decompressed; a body that
//! stopped early is an error, never a short body.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, Incoming as Received, SizeHint};
use tokio_util::task::AbortOnDropHandle;

use super::meter::Meter;
use super::outgoing::head_size;
use super::redact::{Redaction, Redactor};
use super::threads::Threads;
use super::{Budget, SendError};

use crate::defence::{Defence, stands};

/// Headers about the connection, which is not the tool's.
const OF_THE_CONNECTION: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A whole response.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    /// Its status. A redirect is the tool's to follow, by a request of its own.
    pub(crate) status: u16,
    /// Names in lower case, and values.
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    /// The body, as it was sent.
    pub(crate) body: Bytes,
}

/// What bounds a response, and what must not stand in it.
pub(super) struct Terms {
    pub(super) budget: Budget,
    pub(super) meter: Meter,
    pub(super) deadline: Instant,
    pub(super) redactor: Option<Redactor>,
}

/// A body that is still coming. Dropping it ends the connection.
pub(crate) struct Body {
    received: Received,
    terms: Terms,
    redaction: Option<Redaction>,
    is_over: bool,
    _connection: AbortOnDropHandle<()>,
    _threads: Arc<Threads>,
}

/// Checks a head and takes out what is not for the tool.
pub(super) fn accept(
    response: Response<Received>,
    terms: Terms,
    connection: AbortOnDropHandle<()>,
    threads: Arc<Threads>,
) -> Result<Response<Body>, SendError> {
    let (head, received) = response.into_parts();
    let mut headers = head.headers;
    check(head.status, &headers)?;
    terms.budget.take_received(head_size(&headers) as u64)?;
    let receivable = terms.budget.receivable();
    if received.size_hint().lower() > receivable {
        // Said by one who knows: nothing of it needs to come.
        terms.budget.take_received(received.size_hint().lower())?;
    }
    terms.meter.extend_for_body(receivable);
    for name in OF_THE_CONNECTION {
        headers.remove(name);
    }
    if let Some(redactor) = &terms.redactor {
        headers = redacted(&headers, redactor)?;
    }
    let redaction = terms.redactor.as_ref().map(Redactor::in_pieces);
    let body = Body { received, terms, redaction, is_over: false, _connection: connection, _threads: threads };
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = headers;
    Ok(response)
}

fn check(status: StatusCode, headers: &HeaderMap) -> Result<(), SendError> {
    if status.is_informational() {
        return Err(SendError::broken("it speaks another protocol from here on"));
    }
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        if headers.contains_key(header::CONTENT_LENGTH) && stands(Defence::Framing) {
            return Err(SendError::broken("it says its length in two ways"));
        }
        if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return Err(SendError::broken("it is encoded for its way in a form other than chunks"));
        }
    }
    Ok(())
}

/// Headers without secrets. The length goes too: it may be another one afterwards.
fn redacted(headers: &HeaderMap, redactor: &Redactor) -> Result<HeaderMap, SendError> {
    let is_plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if stands(Defence::Searchable) && !headers.get_all(header::CONTENT_ENCODING).iter().all(is_plain) {
        return Err(SendError::broken("it is compressed, which cannot be searched for the secret of its request"));
    }
    let mut kept = HeaderMap::new();
    for (name, value) in headers {
        if *name == header::CONTENT_LENGTH || redactor.finds(name.as_str().as_bytes()) {
            continue;
        }
        let value = HeaderValue::from_bytes(&redactor.redact(value.as_bytes()))
            .map_err(|_| SendError::broken("one of its headers cannot be written"))?;
        kept.append(name, value);
    }
    Ok(kept)
}

impl Body {
    /// All of it.
    pub(crate) async fn whole(self) -> Result<Bytes, SendError> {
        Ok(self.collect().await?.to_bytes())
    }

    fn take(&mut self, piece: Bytes) -> Result<Bytes, SendError> {
        self.terms.budget.take_received(piece.len() as u64)?;
        Ok(match &mut self.redaction {
            Some(redaction) => redaction.feed(&piece).into(),
            None => piece,
        })
    }

    /// What is left when hyper has no more.
    fn end(&mut self) -> Result<Bytes, SendError> {
        let missing = self.received.size_hint().lower() > 0;
        if Instant::now() >= self.terms.deadline {
            return Err(SendError::Timeout);
        }
        if missing {
            return Err(SendError::broken("it ended too soon"));
        }
        Ok(self.redaction.as_mut().map(Redaction::finish).unwrap_or_default().into())
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        while !self.is_over {
            let piece = match ready!(Pin::new(&mut self.received).poll_frame(cx)) {
                // Trailers are dropped: few clients read them, and what they say would have to be checked like a head.
                Some(Ok(frame)) => frame.into_data().map_or(Ok(Bytes::new()), |data| self.take(data)),
                Some(Err(error)) => {
                    self.is_over = true;
                    Err(self.terms.fault(&error))
                }
                None => {
                    self.is_over = true;
                    self.end()
                }
            };
            match piece {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Err(error) => {
                    self.is_over = true;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        if self.redaction.is_some() { SizeHint::default() } else { self.received.size_hint() }
    }
}

impl Terms {
    /// What an error of hyper's is, in words of ours.
    pub(super) fn fault(&self, error: &hyper::Error) -> SendError {
        if Instant::now() >= self.deadline {
            SendError::Timeout
        } else if self.meter.is_exceeded() {
            SendError::OverBudget("the server sends more around its response than a response has".to_owned())
        } else if error.is_parse_too_large() {
            SendError::broken("its headers are too many or too long")
        } else if error.is_parse() {
            SendError::broken("it is not HTTP")
        } else if error.is_incomplete_message() {
            SendError::broken("it ended too soon")
        } else {
            SendError::broken("the connection broke")
        }
    }
}
