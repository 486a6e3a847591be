//! Response bodies that hold a resource until they are almost sent, or that end early.
//!
//! [`with_guard`] wraps a response so that a value, such as the slot of an open request, is dropped
//! when little of the answer is left to send, however slowly the client reads. For that it hands
//! the body to the connection in pieces of 16 KiB; the response keeps its length. [`end_with`]
//! wraps a response so that its body ends when a future does, for example when the key of a stream
//! was revoked. The HTTP layers, the MCP endpoint and the listener use them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body::{Frame, SizeHint};

/// Bytes that are handed to the connection at once. It asks for more when it has sent most of them;
/// a whole answer in one piece would be handed over before any of it is sent.
const PIECE: usize = 16 << 10;

/// Makes the response hold `held` until its body is sent or its connection is closed.
pub(crate) fn with_guard<T: Send + Unpin + 'static>(response: Response, held: T) -> Response {
    response.map(|body| Body::new(GuardedBody { body, rest: Bytes::new(), _held: held }))
}

/// Ends the body of the response when `ended` does.
pub(crate) fn end_with(
    response: Response,
    ended: impl Future<Output = ()> + Send + 'static,
) -> Response {
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(ended)))
}

struct GuardedBody<T> {
    body: Body,
    /// The rest of the last frame.
    rest: Bytes,
    _held: T,
}

impl<T: Unpin> http_body::Body for GuardedBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, rest, .. } = &mut *self;
        if rest.is_empty() {
            let frame = ready!(Pin::new(body).poll_frame(context));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => *rest = data,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let piece = rest.split_to(PIECE.min(rest.len()));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, mut hint) = (self.rest.len() as u64, self.body.size_hint());
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};

    use http_body::Body as _;
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn held_resource_is_freed_when_body_is_almost_sent() {
        let text = Bytes::from(vec![7; 3 * PIECE + 1]);
        let held = Arc::new(());
        let kept: Weak<()> = Arc::downgrade(&held);
        let mut body = with_guard(Response::new(Body::from(text.clone())), held).into_body();
        let mut sent = Vec::new();
        while !body.is_end_stream() {
            assert!(kept.upgrade().is_some(), "after {} bytes", sent.len());
            assert_eq!(body.size_hint().exact(), Some((text.len() - sent.len()) as u64));
            let piece =
                body.frame().await.expect("a frame").expect("no error").into_data().expect("data");
            assert!(piece.len() <= PIECE);
            sent.extend(piece);
        }
        drop(body);
        assert!(kept.upgrade().is_none() && sent == text);
    }
}
