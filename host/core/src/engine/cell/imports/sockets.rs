//! Implements `wasi:sockets` without sockets: each use is denied.
//!
//! Language runtimes import these interfaces even if a program never uses them, so they must exist.
//! A guest (the WebAssembly code of a tool) that creates a socket or resolves a name gets
//! `access-denied`, and observers of the call get a denial event. No grant changes this; a tool
//! uses HTTP instead.
//! Nothing here opens, binds or resolves anything: there is no code for it. The resources that
//! stand for a socket are types without a value, so their methods cannot be reached.

use toolcell_contract::grants::rights::Denial;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, Resource, ResourceType};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};

use crate::engine::cell::Cell;

/// The version that is linked; it serves every version of WASI 0.2.
const VERSION: &str = "0.2.6";
/// Characters of a name that a denial quotes: more than a DNS name has.
const NAME_CHARS: usize = 255;

/// A guest's handle of the network, which other functions take as an argument; nothing is behind
/// it.
enum Network {}
enum TcpSocket {}
enum UdpSocket {}
enum IncomingDatagrams {}
enum OutgoingDatagrams {}
enum Addresses {}

/// The methods of a resource that a guest never gets. Source: WASI 0.2.
const TCP_METHODS: &str = "
    start-bind finish-bind start-connect finish-connect start-listen finish-listen accept
    local-address remote-address is-listening address-family set-listen-backlog-size
    keep-alive-enabled set-keep-alive-enabled keep-alive-idle-time set-keep-alive-idle-time
    keep-alive-interval set-keep-alive-interval keep-alive-count set-keep-alive-count hop-limit
    set-hop-limit receive-buffer-size set-receive-buffer-size send-buffer-size
    set-send-buffer-size subscribe shutdown";
const UDP_METHODS: &str = "
    start-bind finish-bind stream local-address remote-address address-family unicast-hop-limit
    set-unicast-hop-limit receive-buffer-size set-receive-buffer-size send-buffer-size
    set-send-buffer-size subscribe";

/// Links the interfaces.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    let mut network = interface(linker, "network")?;
    network.resource("network", ResourceType::host::<Network>(), drop_handle)?;
    network.func_wrap("network-error-code", |_, (_,): (Resource<wasmtime::Error>,)| {
        Ok((None::<ErrorCode>,))
    })?;
    interface(linker, "instance-network")?.func_wrap("instance-network", |mut store, ()| {
        store.data_mut().called("sockets", "instance-network")?;
        // Without an entry in the cell's table, since nothing is behind it.
        Ok((Resource::<Network>::new_own(0),))
    })?;

    interface(linker, "ip-name-lookup")?.func_wrap(
        "resolve-addresses",
        |store, (_, name): (Resource<Network>, String)| {
            let name: String = name.chars().take(NAME_CHARS).collect();
            denied::<Addresses>(store, "resolve-addresses", format!("resolve {name}"))
        },
    )?;
    interface(linker, "tcp-create-socket")?.func_wrap(
        "create-tcp-socket",
        |store, (_,): (IpAddressFamily,)| {
            denied::<TcpSocket>(store, "create-tcp-socket", "tcp socket".to_owned())
        },
    )?;
    interface(linker, "udp-create-socket")?.func_wrap(
        "create-udp-socket",
        |store, (_,): (IpAddressFamily,)| {
            denied::<UdpSocket>(store, "create-udp-socket", "udp socket".to_owned())
        },
    )?;

    let lookup = "resolve-next-address subscribe";
    unreachable::<Addresses>(linker, "ip-name-lookup", "resolve-address-stream", lookup)?;
    unreachable::<TcpSocket>(linker, "tcp", "tcp-socket", TCP_METHODS)?;
    unreachable::<UdpSocket>(linker, "udp", "udp-socket", UDP_METHODS)?;
    let (incoming, outgoing) = ("receive subscribe", "check-send send subscribe");
    unreachable::<IncomingDatagrams>(linker, "udp", "incoming-datagram-stream", incoming)?;
    unreachable::<OutgoingDatagrams>(linker, "udp", "outgoing-datagram-stream", outgoing)
}

/// Links a resource that a guest never gets: each of its methods is a trap.
fn unreachable<T: 'static>(
    linker: &mut Linker<Cell>,
    name: &str,
    resource: &str,
    methods: &str,
) -> wasmtime::Result<()> {
    let mut interface = interface(linker, name)?;
    interface.resource(resource, ResourceType::host::<T>(), drop_handle)?;
    for method in methods.split_whitespace() {
        interface.func_new(&format!("[method]{resource}.{method}"), |_, _, _, _| {
            Err(wasmtime::Error::msg("a socket that was never made"))
        })?;
    }
    Ok(())
}

fn interface<'a>(
    linker: &'a mut Linker<Cell>,
    name: &str,
) -> wasmtime::Result<LinkerInstance<'a, Cell>> {
    linker.instance(&format!("wasi:sockets/{name}@{VERSION}"))
}

/// Drops a handle, behind which there is nothing.
fn drop_handle(mut store: StoreContextMut<'_, Cell>, _: u32) -> wasmtime::Result<()> {
    Ok(store.data_mut().count_host_call()?)
}

type Answer<T> = wasmtime::Result<(Result<Resource<T>, ErrorCode>,)>;

/// Reports a denial event, and returns `access-denied` to the guest.
fn denied<T: 'static>(
    mut store: StoreContextMut<'_, Cell>,
    function: &'static str,
    request: String,
) -> Answer<T> {
    let cell = store.data_mut();
    cell.called("sockets", function)?;
    cell.scope.invocation.denied(&Denial::by_host(request));
    Ok((Err(ErrorCode::AccessDenied),))
}
