//! Addresses that are not on the public internet, and how they can be spelt. The same table stands in the library's own tests.

use std::net::{IpAddr, Ipv6Addr};

const PRIVATE_V4: [&str; 64] = [
    "0.0.0.0",
    "0.0.0.1",
    "0.1.2.3",
    "0.255.255.255",
    "10.0.0.0",
    "10.0.0.1",
    "10.1.2.3",
    "10.96.0.1",
    "10.255.255.255",
    "100.64.0.0",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.0",
    "127.0.0.1",
    "127.0.0.53",
    "127.0.1.1",
    "127.1.1.1",
    "127.127.127.127",
    "127.255.255.255",
    "168.63.129.16",
    "169.254.0.0",
    "169.254.0.1",
    "169.254.169.123",
    "169.254.169.253",
    "169.254.169.254",
    "169.254.170.2",
    "169.254.255.255",
    "172.16.0.0",
    "172.16.0.1",
    "172.17.0.1",
    "172.20.10.5",
    "172.31.255.255",
    "192.0.0.0",
    "192.0.0.1",
    "192.0.0.170",
    "192.0.0.192",
    "192.0.0.255",
    "192.0.2.0",
    "192.0.2.1",
    "192.0.2.255",
    "192.88.99.0",
    "192.88.99.1",
    "192.168.0.0",
    "192.168.0.1",
    "192.168.1.254",
    "192.168.255.255",
    "198.18.0.0",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.0",
    "198.51.100.7",
    "203.0.113.0",
    "203.0.113.9",
    "224.0.0.0",
    "224.0.0.1",
    "233.252.0.1",
    "239.255.255.250",
    "239.255.255.255",
    "240.0.0.0",
    "240.0.0.1",
    "250.1.2.3",
    "255.255.255.254",
    "255.255.255.255",
];

const PRIVATE_V6: [&str; 62] = [
    "::",
    "::1",
    "::2",
    "::7f00:1",
    "::127.0.0.1",
    "::10.0.0.1",
    "::8.8.8.8",
    "::ffff:0.0.0.0",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:192.168.0.1",
    "::ffff:0:127.0.0.1",
    "::ffff:0:10.0.0.1",
    "64:ff9b::",
    "64:ff9b::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b::192.168.1.1",
    "64:ff9b:1::",
    "64:ff9b:1::8.8.8.8",
    "64:ff9b:1::10.0.0.1",
    "64:ff9b:1:a00:0:100::",
    "64:ff9b:2::1",
    "100::",
    "100::1",
    "100:0:0:1::1",
    "200::1",
    "1000::1",
    "1fff:ffff::1",
    "2001::",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "2001:1::1",
    "2001:2::1",
    "2001:3::1",
    "2001:10::1",
    "2001:20::1",
    "2001:30::1",
    "2001:1ff:ffff::1",
    "2001:db8::",
    "2001:db8::1",
    "2001:db8:ffff::1",
    "2002::",
    "2002:7f00:1::1",
    "2002:a00:1::1",
    "2002:a9fe:a9fe::1",
    "2002:808:808::1",
    "2002:c0a8:101::1",
    "3fff::1",
    "3fff:fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff:ffff::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
];

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = IpAddr> {
    PRIVATE_V4.iter().chain(&PRIVATE_V6).map(|text| text.parse().expect("an address"))
}

/// What a resolver may answer that wants to be sent there.
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

/// How a URL may spell an address.
pub(crate) fn spellings(address: IpAddr) -> Vec<String> {
    let v4 = match address {
        IpAddr::V4(v4) => v4,
        IpAddr::V6(v6) => {
            let long = v6.segments().map(|part| format!("{part:04X}")).join(":");
            // The last ones are no addresses for a careful parser: a zone, and a port in the wrong place.
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
    let wide = |text: String| {
        text.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).expect("a wide letter")).collect::<String>()
    };
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
        wide(v4.to_string().replace('.', "\u{e}")).replace('\u{feee}', "\u{3002}"),
        v4.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect(),
        format!("[::ffff:{v4}]"),
        format!("[::FFFF:{:x}:{:x}]", number >> 16, number & 0xffff),
        format!("[::{v4}]"),
        format!("[64:ff9b::{v4}]"),
        format!("[2002:{:x}:{:x}::1]", number >> 16, number & 0xffff),
    ]
}
