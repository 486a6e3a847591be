//! Decides to which IP addresses a tool's request may be sent, so that tools cannot reach private
//! networks.
//!
//! The HTTP capability calls it with each address that a name resolved to and with the networks
//! that the granting rule names. The answer is true for an address of the public internet, and for
//! an address within a named network. An IPv6 address can carry an IPv4 address (NAT64, 6to4,
//! Teredo); the inner address is checked too. An address that is not known to be public counts as
//! private. The module also recognises the metadata services of clouds, which hand out credentials
//! of the machine, so that other code can warn about them.
//!
//! The decision is pure: the module resolves no names and opens no connections.
//!
//! Source: the IANA registries of special-purpose addresses, RFC 6890 and its updates.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::target::Host;
use crate::controls::enforced;

/// IPv4 blocks without public hosts: first address and prefix length.
const SPECIAL_V4: [([u8; 4], u32); 16] = [
    // This network; its unspecified address is this host.
    ([0, 0, 0, 0], 8),
    // Private.
    ([10, 0, 0, 0], 8),
    // Shared address space of carriers. Some clouds have their metadata service here.
    ([100, 64, 0, 0], 10),
    // This host.
    ([127, 0, 0, 0], 8),
    // Azure's host service, which serves credentials of machines, at an address that looks public.
    ([168, 63, 129, 16], 32),
    // Link-local: clouds have their metadata service here.
    ([169, 254, 0, 0], 16),
    // Private.
    ([172, 16, 0, 0], 12),
    // Protocol assignments.
    ([192, 0, 0, 0], 24),
    // Documentation.
    ([192, 0, 2, 0], 24),
    // 6to4 relays.
    ([192, 88, 99, 0], 24),
    // Private.
    ([192, 168, 0, 0], 16),
    // Benchmarking.
    ([198, 18, 0, 0], 15),
    // Documentation, two blocks.
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    // Multicast.
    ([224, 0, 0, 0], 4),
    // Reserved, and broadcast.
    ([240, 0, 0, 0], 4),
];

/// IPv6 blocks inside 2000::/3 without public hosts.
const SPECIAL_V6: [([u16; 8], u32); 4] = [
    // Protocol assignments, including Teredo.
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    // Documentation.
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    // 6to4: packets go through any host that offers a relay.
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    // Documentation.
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// Returns true if an address belongs to the public internet, whatever address it carries.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !SPECIAL_V4.iter().any(|&(start, length)| is_v4_in(address, start, length))
        }
        IpAddr::V6(address) => {
            is_v6_in(address, [0x2000, 0, 0, 0, 0, 0, 0, 0], 3)
                && !SPECIAL_V6.iter().any(|&(start, length)| is_v6_in(address, start, length))
        }
    }
}

/// Returns true if an address may be connected to: it is public, or one of these networks contains
/// it. If it carries another address, that one has to be allowed as well.
pub fn is_allowed_address(address: IpAddr, networks: &[IpNet]) -> bool {
    let is_named = |address: IpAddr| networks.iter().any(|network| network.contains(&address));
    let inner_passes = |inner: Ipv4Addr| is_public(inner.into()) || is_named(inner.into());
    match embedded_v4(address) {
        None => is_public(address) || is_named(address),
        Some(EmbeddedV4::Forwarded(inner)) => inner_passes(inner),
        // No public network runs these tunnels any more: only a private network still answers
        // there.
        Some(EmbeddedV4::Tunnelled(inner)) => is_named(address) && inner_passes(inner),
    }
}

/// Returns the networks that a rule for this host has to name before a request can be sent there:
/// none for a public address, and none for a name, except for the names of this machine
/// (`localhost`).
pub(crate) fn private_networks(host: &Host) -> Vec<IpNet> {
    match host {
        Host::Address(address) => networks_of(*address),
        Host::Name(name) if name == "localhost" || name.ends_with(".localhost") => {
            LOOPBACK.iter().filter_map(|network| network.parse().ok()).collect()
        }
        Host::Name(_) => Vec::new(),
    }
}

/// Returns the smallest networks that allow an address; an empty list if it is public.
pub fn networks_of(address: IpAddr) -> Vec<IpNet> {
    if is_allowed_address(address, &[]) {
        return Vec::new();
    }
    match embedded_v4(address) {
        None => vec![address.into()],
        Some(EmbeddedV4::Forwarded(inner)) => vec![IpAddr::V4(inner).into()],
        Some(EmbeddedV4::Tunnelled(inner)) => vec![address.into(), IpAddr::V4(inner).into()],
    }
}

/// The addresses of `localhost`.
const LOOPBACK: [&str; 2] = ["127.0.0.1/32", "::1/128"];
/// Names of the metadata services of clouds.
const METADATA_NAMES: [&str; 4] =
    ["metadata", "metadata.google.internal", "metadata.goog", "instance-data"];
/// Addresses of metadata services. Every other IPv4 link-local address counts as one of them.
const METADATA_ADDRESSES: [&str; 5] =
    ["169.254.169.254", "fd00:ec2::254", "fd00:ec2::23", "100.100.100.200", "168.63.129.16"];

/// Returns true if a host is known to serve credentials of the machine: the metadata service of a
/// cloud, by name or by address.
#[must_use]
pub fn is_metadata_service(host: &Host) -> bool {
    match host {
        Host::Name(name) => METADATA_NAMES.contains(&name.as_str()),
        Host::Address(address) => {
            let inner = match embedded_v4(*address) {
                Some(EmbeddedV4::Forwarded(inner) | EmbeddedV4::Tunnelled(inner)) => {
                    IpAddr::V4(inner)
                }
                None => *address,
            };
            metadata_addresses().any(|listed| listed == inner)
                || matches!(inner, IpAddr::V4(inner) if inner.is_link_local())
        }
    }
}

/// Returns true if a network contains the address of a metadata service.
#[must_use]
pub fn has_metadata_service(network: &IpNet) -> bool {
    metadata_addresses().any(|address| network.contains(&address))
        || matches!(network.addr(), IpAddr::V4(address) if address.is_link_local())
}

fn metadata_addresses() -> impl Iterator<Item = IpAddr> {
    METADATA_ADDRESSES.iter().filter_map(|address| address.parse().ok())
}

/// The IPv4 address that an IPv6 address carries.
enum EmbeddedV4 {
    /// The system or the network's own translator forwards packets to it.
    Forwarded(Ipv4Addr),
    /// Packets reach it through a tunnel.
    Tunnelled(Ipv4Addr),
}

fn embedded_v4(address: IpAddr) -> Option<EmbeddedV4> {
    let IpAddr::V6(address) = address else { return None };
    if !enforced!(CarriedAddresses) {
        return None;
    }
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // The unspecified address, and loopback.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        // IPv4-mapped, and IPv4-translated (SIIT).
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            Some(EmbeddedV4::Forwarded(v4(high, low)))
        }
        // NAT64.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(EmbeddedV4::Forwarded(v4(high, low))),
        // IPv4-compatible, and local-use NAT64 with the longest prefix.
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 1, _, _, _, high, low] => {
            Some(EmbeddedV4::Tunnelled(v4(high, low)))
        }
        // 6to4.
        [0x2002, high, low, ..] => Some(EmbeddedV4::Tunnelled(v4(high, low))),
        // Teredo: the client's address, inverted.
        [0x2001, 0, _, _, _, _, high, low] => Some(EmbeddedV4::Tunnelled(v4(!high, !low))),
        _ => None,
    }
}

fn is_v4_in(address: Ipv4Addr, start: [u8; 4], length: u32) -> bool {
    (u32::from(address) ^ u32::from(Ipv4Addr::from(start))) >> (u32::BITS - length) == 0
}

fn is_v6_in(address: Ipv6Addr, start: [u16; 8], length: u32) -> bool {
    (u128::from(address) ^ u128::from(Ipv6Addr::from(start))) >> (u128::BITS - length) == 0
}
