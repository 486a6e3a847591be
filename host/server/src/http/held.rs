//! Answers that hold something until they have been sent, or that end early.
//!
//! Invariants: the length of an answer is told as before.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// The response holds `held` until its body has been sent, or its connection is closed.
pub(crate) fn hold<T: Send + Unpin + 'static>(response: Response, held: T) -> Response {
    response.map(|body| Body::new(Held { body, _held: held }))
}

/// The body of the response ends when `ended` does.
pub(crate) fn end_with(response: Response, ended: impl Future<Output = ()> + Send + 'static) -> Response {
    response.map(|body| Body::new(Ending { body: Some(body), ended: Box::pin(ended) }))
}

struct Held<T> {
    body: Body,
    _held: T,
}

impl<T: Unpin> http_body::Body for Held<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

struct Ending {
    body: Option<Body>,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl http_body::Body for Ending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if this.body.is_some() && this.ended.as_mut().poll(context).is_ready() {
            // What makes the body ends with it.
            this.body = None;
        }
        this.body.as_mut().map_or(Poll::Ready(None), |body| Pin::new(body).poll_frame(context))
    }
}
