//! The HTTP client of the exporter of spans.
//!
//! The OpenTelemetry exporter calls it with each request to the collector. It sends the request
//! with `Outbound`, so the same rules hold for time, size and TLS as for other requests of the
//! server. It records the error, or that there was none, in the exporter's `State`. It runs on the
//! exporter's thread only and blocks that thread, so a slow collector blocks no thread of a call.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::{Builder, Runtime};

use super::exporter::State;
use crate::auth::outbound::Outbound;

/// The most bytes of a collector's answer.
const MAX_ANSWER: usize = 64 << 10;

/// Sends the exporter's requests.
#[derive(Debug)]
pub(super) struct Client {
    outbound: Outbound,
    /// `None` only during drop.
    runtime: Option<Runtime>,
    state: Arc<State>,
}

impl Client {
    pub(super) fn new(time: Duration, state: Arc<State>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { outbound: Outbound::new(time, MAX_ANSWER), runtime: Some(runtime), state })
    }
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let Some(runtime) = &self.runtime else { return Err("the exporter has ended".into()) };
        let sent = runtime.block_on(self.outbound.send(request));
        let problem = match &sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!(
                "the collector answered with the status {}",
                response.status().as_u16()
            )),
            Err(error) => Some(error.to_string()),
        };
        self.state.note(problem);
        Ok(sent?)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Does not block, because the client may be dropped on a thread of a runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
