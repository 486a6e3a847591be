//! Addresses that are not on the public internet, and their spellings in URLs and DNS answers.

use std::net::{IpAddr, Ipv6Addr};

/// One address a line: the list of the library's own tests.
const PRIVATE: &str =
    include_str!("../../../../../host/core/src/capability/http/tests/cases/private.txt");

/// Returns all addresses of the list.
pub(crate) fn all() -> impl Iterator<Item = IpAddr> {
    PRIVATE.lines().map(|text| text.parse().expect("an address"))
}

/// Returns a DNS answer that leads to the address: as it is, repeated, or (IPv4) embedded in IPv6
/// in one of several ways.
pub(crate) fn disguised(address: IpAddr, index: usize) -> Vec<IpAddr> {
    let IpAddr::V4(v4) = address else {
        return vec![address; [1, 2, 64, 10_000][index % 4]];
    };
    let [a, b, c, d] = v4.octets().map(u16::from);
    let (high, low) = (a << 8 | b, c << 8 | d);
    let v6 = |segments: [u16; 8]| IpAddr::V6(Ipv6Addr::from(segments));
    match index % 6 {
        0 => vec![address],
        1 => vec![v6([0, 0, 0, 0, 0, 0xffff, high, low])],
        2 => vec![v6([0, 0, 0, 0, 0, 0, high, low])],
        3 => vec![v6([0x64, 0xff9b, 0, 0, 0, 0, high, low])],
        4 => vec![v6([0x2002, high, low, 0, 0, 0, 0, 1]), address],
        _ => (0..10_000).map(|_| address).collect(),
    }
}

/// Returns the spellings of an address in a URL.
pub(crate) fn spellings(address: IpAddr) -> Vec<String> {
    let v4 = match address {
        IpAddr::V4(v4) => v4,
        IpAddr::V6(v6) => {
            let long = v6.segments().map(|part| format!("{part:04X}")).join(":");
            // The last two are no addresses for a strict parser: one has a zone, one escapes its
            // brackets.
            return vec![
                format!("[{v6}]"),
                format!("[{v6}]").to_uppercase(),
                format!("[{long}]"),
                format!("[{}]", v6.segments().map(|part| format!("{part:04x}")).join(":")),
                format!("[{v6}%25lo]"),
                format!("%5b{v6}%5d"),
            ];
        }
    };
    let ([a, b, c, d], number) = (v4.octets(), u32::from(v4));
    let wide = |c: char| char::from_u32(u32::from(c) + 0xfee0).expect("a wide letter");
    let widened: String = v4.to_string().replace('.', "\u{e}").chars().map(wide).collect();
    vec![
        v4.to_string(),
        format!("{v4}."),
        number.to_string(),
        format!("0x{number:x}"),
        format!("0X{number:08X}"),
        format!("0{number:o}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("{a}.{b}.{}", u32::from(c) << 8 | u32::from(d)),
        format!("{a}.{}", number & 0xff_ffff),
        widened.replace('\u{feee}', "\u{3002}"),
        v4.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect(),
        format!("[::ffff:{v4}]"),
        format!("[::FFFF:{:x}:{:x}]", number >> 16, number & 0xffff),
        format!("[::{v4}]"),
        format!("[64:ff9b::{v4}]"),
        format!("[2002:{:x}:{:x}::1]", number >> 16, number & 0xffff),
    ]
}
