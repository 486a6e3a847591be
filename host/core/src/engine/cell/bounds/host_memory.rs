//! Limits the host memory that the objects of one cell occupy between its calls into the host.
//!
//! A cell is the store of one call; its guest (the WebAssembly code of the tool) can keep buffers,
//! requests and listings on the host, which the guest's memory limit does not count. A host
//! function that creates such an object calls [`HostMemory::charge`] with its bytes and keeps the
//! [`Charge`], which is given back on drop. Over `Limits::HOST_BYTES` it gets [`LimitReached`],
//! which ends the call.
//! Objects of wasmtime's `wasi:http` do not report their growth. [`table_weight`] sums them at each
//! tick (about every millisecond), each by the most that one of its kind holds.
//! Source: docs/threat-model.md, row 17.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{any::Any, sync::Arc};

use toolcell_contract::outcome::tool_error::{LimitHit, LimitKind};
use toolcell_contract::{controls::bound, limits::Limits};
use wasmtime::component::ResourceTable;
use wasmtime_wasi_http::FieldMap;
use wasmtime_wasi_http::p2::bindings::http::types::{Method, Scheme};
use wasmtime_wasi_http::p2::body::{HostIncomingBody, HostOutgoingBody};
use wasmtime_wasi_http::p2::types::{
    HostFutureIncomingResponse, HostIncomingResponse, HostOutgoingRequest,
};

use crate::tenant::limit_reached::LimitReached;

/// Bytes of headers in memory, in one collection of them.
pub(crate) const FIELDS: usize = 64 << 10;
/// Bytes of a piece of a request's body; the stock size is 1 MiB.
pub(crate) const CHUNK: usize = 64 << 10;
/// Bytes of a body that is being sent, beside those that the guest has written into it.
const OUTGOING: u64 = CHUNK as u64;
/// Bytes of a response: its head, and the last piece that was read of its body.
const INCOMING: u64 = 64 << 10;

/// The sum of the charges of one cell.
#[derive(Debug, Default)]
pub(crate) struct HostMemory(AtomicU64);

/// The charge of one object.
#[derive(Debug)]
pub(crate) struct Charge {
    host_memory: Arc<HostMemory>,
    bytes: u64,
}

impl HostMemory {
    /// Charges an object.
    ///
    /// # Errors
    /// [`LimitReached`] if the sum would exceed the limit.
    pub(crate) fn charge(self: &Arc<Self>, bytes: u64) -> Result<Charge, LimitReached> {
        let mut charge = Charge { host_memory: Arc::clone(self), bytes: 0 };
        charge.grow(bytes)?;
        Ok(charge)
    }

    /// Returns the bytes that are charged now.
    pub(crate) fn charged(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Charge {
    /// Charges this many more bytes for the same object.
    ///
    /// # Errors
    /// [`LimitReached`] if the sum would exceed the limit: then nothing is added.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), LimitReached> {
        within(self.host_memory.0.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes))
            .inspect_err(|_| {
                self.host_memory.0.fetch_sub(bytes, Ordering::Relaxed);
            })?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.host_memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Returns an error if this sum exceeds the limit.
pub(crate) fn within(total: u64) -> Result<(), LimitReached> {
    if total <= bound!(HostBytes, Limits::HOST_BYTES) {
        Ok(())
    } else {
        Err(LimitReached(LimitHit::new(LimitKind::HostBytes, Limits::HOST_BYTES, total)))
    }
}

/// Returns the most that wasmtime's own objects in a table may keep.
pub(crate) fn table_weight(table: &mut ResourceTable) -> u64 {
    table.iter_mut().map(|object| weight(object)).sum()
}

fn weight(object: &(dyn Any + Send)) -> u64 {
    if let Some(HostOutgoingRequest {
        method, scheme, authority, path_with_query, headers, ..
    }) = object.downcast_ref()
    {
        let method = if let Method::Other(name) = method { name.len() } else { 0 };
        let scheme = if let Some(Scheme::Other(name)) = scheme { name.len() } else { 0 };
        let texts = [authority, path_with_query].into_iter().flatten().map(String::len);
        return (method + scheme + texts.sum::<usize>()) as u64 + fields(headers);
    }
    if let Some(headers) = object.downcast_ref() {
        return fields(headers);
    }
    if object.is::<HostOutgoingBody>() {
        return OUTGOING;
    }
    let is_incoming = object.is::<HostIncomingBody>()
        || object.is::<HostIncomingResponse>()
        || object.is::<HostFutureIncomingResponse>();
    if is_incoming { INCOMING } else { 0 }
}

fn fields(map: &FieldMap) -> u64 {
    if map.is_empty() { 0 } else { FIELDS as u64 }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    /// Fails without: the sum over all charges; the release of a charge.
    #[test]
    fn objects_share_and_release_one_budget() {
        let retained = Arc::<HostMemory>::default();
        let mut first = retained.charge(Limits::HOST_BYTES / 2).unwrap();
        let second = retained.charge(Limits::HOST_BYTES / 2).unwrap();
        let LimitReached(hit) = retained.charge(1).unwrap_err();
        let (limit, needed) = (Limits::HOST_BYTES, Limits::HOST_BYTES + 1);
        assert_eq!(hit, LimitHit::new(LimitKind::HostBytes, limit, needed));
        assert_eq!(retained.charged(), Limits::HOST_BYTES, "what was refused is not kept");
        drop(second);
        first.grow(Limits::HOST_BYTES / 2).unwrap();
        drop(first);
        assert_eq!(retained.charged(), 0);
    }

    /// Fails without: each kind of object in `weight`.
    #[test]
    fn engine_objects_have_a_weight() {
        let mut table = ResourceTable::new();
        let mut headers = FieldMap::new_mutable(FIELDS);
        table.push(headers.clone()).unwrap();
        assert_eq!(table_weight(&mut table), 0);
        headers.append_raw(HeaderName::from_static("a"), HeaderValue::from_static("1")).unwrap();
        table.push(headers.clone()).unwrap();
        assert_eq!(table_weight(&mut table), FIELDS as u64);
        let request = HostOutgoingRequest {
            method: Method::Other("m".repeat(1000)),
            scheme: Some(Scheme::Other("s".repeat(100))),
            authority: Some("a".repeat(10)),
            path_with_query: Some("p".to_owned()),
            headers,
            body: None,
        };
        table.push(request).unwrap();
        assert_eq!(table_weight(&mut table), 2 * FIELDS as u64 + 1111);
    }
}
