//! Re-exports the generated bindings, and defines the host objects behind a guest's handles.
//!
//! A guest (the WebAssembly code of a tool) refers to host objects by handles, numbers in a table
//! of its cell (a fresh WebAssembly instance for one call). [`Handle`] is a secret: the name under
//! which it was granted. [`Pending`] is an HTTP request that was sent and continues while the guest
//! does other work; the guest can wait for it and then takes its response. The bytes of the
//! request, and then of the response, are charged to the host memory of the cell until they are
//! taken.
//! Not here: the conversion of generated types to the crate's own (`translate`), and the host
//! functions that create these objects (`imports`).

mod generated;

use std::pin::Pin;

use futures_util::future::MaybeDone;
use toolcell_contract::limits::Limits;
use wasmtime_wasi::p2::Pollable;

use super::bounds::host_memory::Charge;
use crate::capability::http::{SendError, Share};

use generated::toolcell::tool::http::Response;
pub(crate) use generated::{ToolboxWithGrantsIndices, exports, toolcell};

/// A guest's handle of a secret: the name under which it was granted.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings name it in a `pub use`")]
pub struct Handle {
    pub(crate) name: String,
}

/// A request that was sent. It continues while the guest does other work.
#[expect(unreachable_pub, reason = "the generated bindings name it in a `pub use`")]
pub struct Pending {
    pub(crate) response: MaybeDone<PendingResponse>,
    /// The host-memory charge for the request, and then for its response.
    pub(crate) charge: Charge,
}

impl Pending {
    /// Returns true if it has no response yet.
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.response, MaybeDone::Future(_))
    }
}

pub(crate) type Sent = Result<Response, SendError>;
pub(crate) type PendingResponse = Pin<Box<dyn Future<Output = Sent> + Send>>;

#[wasmtime_wasi::async_trait]
impl Pollable for Pending {
    async fn ready(&mut self) {
        if self.is_pending() {
            (&mut self.response).await;
            if let MaybeDone::Done(Ok(response)) = &self.response
                && let Err(error) = charge_response(&mut self.charge, response)
            {
                self.response = MaybeDone::Done(Err(error));
            }
        }
    }
}

/// Returns the bytes of names and values.
pub(crate) fn bytes_of(headers: &[(String, String)]) -> usize {
    headers.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// Charges a response, whose bytes count until the guest takes it.
fn charge_response(charge: &mut Charge, response: &Response) -> Result<(), SendError> {
    let bytes = response.body.len() + bytes_of(&response.headers);
    charge.grow(bytes as u64).map_err(|_| {
        let most = Limits::HOST_BYTES >> 20;
        let problem =
            format!("the responses that the call has not taken have more than {most} MiB");
        SendError::OverBudget(Share::Received, problem)
    })
}
