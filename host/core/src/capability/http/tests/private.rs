//! Tests that no request reaches a private address, unless a rule names its network.

use std::net::{IpAddr, Ipv4Addr};

use toolcell_contract::grants::is_allowed_address;
use toolcell_contract::grants::rights::Layer;

use super::server::Scripted;
use super::*;

/// One address per line. The attack campaign uses the same list.
const PRIVATE: &str = include_str!("cases/private.txt");

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Returns the spellings of an address in a URL.
fn spellings(address: IpAddr) -> Vec<String> {
    let v4 = match address {
        IpAddr::V4(v4) => v4,
        IpAddr::V6(v6) => {
            let ([high @ .., _, _], [.., a, b, c, d]) = (v6.segments(), v6.octets());
            return vec![
                format!("[{v6}]"),
                format!("[{v6}]").to_uppercase(),
                format!("[{}]", v6.segments().map(|part| format!("{part:04X}")).join(":")),
                format!("[{}]", v6.segments().map(|part| format!("{part:x}")).join(":")),
                format!("[{}:{a}.{b}.{c}.{d}]", high.map(|part| format!("{part:x}")).join(":")),
                format!("[{}:{a}.{b}.{c}.{d}]", high.map(|part| format!("{part:04X}")).join(":")),
            ];
        }
    };
    let ([a, b, c, d], number) = (v4.octets(), u32::from(v4));
    let wide = |text: String| {
        text.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap()).collect::<String>()
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

#[test]
fn only_public_addresses_are_let_through() {
    assert_eq!(PRIVATE.lines().count(), 126);
    for text in PRIVATE.lines() {
        assert!(!is_allowed_address(address(text), &[]), "{text}");
    }
    for text in rows::<&str>("capability/http/private", "public") {
        assert!(is_allowed_address(address(text), &[]), "{text}");
    }
}

#[test]
fn rule_networks_admit_only_named_private_addresses() {
    let networks = rows::<(&str, IpAddr, bool)>("capability/http/private", "networks");
    for (network, address, expected) in networks {
        let is_allowed = is_allowed_address(address, &[network.parse().unwrap()]);
        assert_eq!(is_allowed, expected, "{address} with {network}");
    }
}

/// Returns the result of a request to this host on the server's port, with a rule that grants it.
async fn send_result(egress: &Egress, server: &Server, host: &str) -> Option<&'static str> {
    let target = Target::parse(&format!("http://{host}:{}/", server.port)).ok()?;
    let rights = rights([HttpRule::smallest(Method::Get, &target)]);
    Some(kind(&send(egress, &rights, get(target.as_str())).await))
}

#[tokio::test]
async fn private_address_is_refused_in_every_spelling() {
    let server = Server::echoing().await;
    let egress = Egress::new();
    let mut spelt = 0;
    for text in PRIVATE.lines() {
        for host in spellings(address(text)) {
            let end = send_result(&egress, &server, &host).await;
            // Browsers do not accept some of the IPv4 spellings.
            assert!(end.map_or(!host.starts_with('['), |end| end == "private"), "{host}: {end:?}");
            spelt += usize::from(end.is_some());
        }
    }
    assert!(spelt > 1000, "{spelt} were URLs");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn names_resolving_to_private_addresses_are_refused() {
    let server = Server::echoing().await;
    let resolver = Scripted::of(PRIVATE.lines().map(|text| vec![address(text)]));
    let egress = Egress::new().with_resolver(resolver.clone());
    for _ in 0..PRIVATE.lines().count() {
        assert_eq!(send_result(&egress, &server, "rebind.example").await, Some("private"));
    }
    assert_eq!(send_result(&Egress::new(), &server, "localhost").await, Some("private"));
    assert_eq!(send_result(&Egress::new(), &server, "LOCALHOST.").await, Some("private"));
    assert_eq!((server.connections(), resolver.lookups()), (0, PRIVATE.lines().count()));
}

/// The network named here stands for the public internet, which no test can reach.
fn rebinding_request(server: &Server) -> (Rights, Outgoing) {
    let url = format!("http://rebind.example:{}/", server.port);
    let rule: HttpRule = url.parse().unwrap();
    (rights([rule.with_private(["127.0.0.1/32".parse().unwrap()])]), get(&url))
}

#[tokio::test]
async fn each_request_resolves_once_and_checks_the_answer() {
    let server = Server::echoing().await;
    let (rights, outgoing) = rebinding_request(&server);
    let resolver = Scripted::new([["127.0.0.1"], ["127.0.0.2"]]);
    let egress = Egress::new().with_resolver(resolver.clone());
    for turn in 0..1000 {
        let expected = ["response", "private"][turn % 2];
        assert_eq!(kind(&send(&egress, &rights, outgoing.clone()).await), expected, "{turn}");
    }
    assert_eq!((server.connections(), resolver.lookups()), (500, 1000));
}

#[tokio::test]
async fn only_allowed_addresses_of_an_answer_are_tried() {
    let server = Server::echoing().await;
    let (rights, outgoing) = rebinding_request(&server);
    let crowd = (0..10_000).map(|number| Ipv4Addr::from(0x7f00_0002 + number).into());
    let answers = [
        (vec![address("127.0.0.2"), address("127.0.0.1")], "response"),
        (vec![address("::ffff:127.0.0.1")], "response"),
        (vec![address("::1"), address("::ffff:127.0.0.2"), address("::127.0.0.1")], "private"),
        (crowd.chain([address("127.0.0.1")]).collect(), "private"),
        (vec![], "unreachable"),
    ];
    let egress =
        Egress::new().with_resolver(Scripted::of(answers.iter().map(|(answer, _)| answer.clone())));
    for (answer, expected) in &answers {
        let result = send(&egress, &rights, outgoing.clone()).await;
        assert_eq!(kind(&result), *expected, "{:?}", answer.first());
        assert!(!format!("{result:?}").contains("127.0.0.2"));
    }
    assert_eq!(server.connections(), 2);
    // A name without an address.
    let unknown = Egress::new().with_resolver(Scripted::of([]));
    assert_eq!(kind(&send(&unknown, &rights, outgoing).await), "unreachable");
}

#[tokio::test]
async fn next_address_is_tried_when_one_fails() {
    let server = Server::echoing().await;
    let url = format!("http://two.example:{}/", server.port);
    let egress = Egress::new().with_resolver(Scripted::new([["127.0.0.9", "127.0.0.1"]]));
    assert_eq!(kind(&send(&egress, &loopback(&url), get(&url)).await), "response");
}

/// The hint contains the rule for the host if it is known without a lookup, and never a path or a
/// resolved address.
#[test]
fn private_host_hint_contains_its_rule() {
    for (url, expected) in rows::<(&str, &str)>("capability/http/private", "hints") {
        let error = SendError::private(Method::Get, &Target::parse(url).unwrap());
        let SendError::Private(host) = error else { panic!("{error:?}") };
        let hint = host.hint;
        assert!(hint.starts_with(expected) && !hint.contains("canary"), "{hint}");
    }
}

/// The denial includes the grant that would allow the request, but not the network that a name
/// resolves to, because observers may be other people than the operator.
#[test]
fn private_network_denial_reports_its_grant() {
    for (url, grant) in rows::<(&str, &str)>("capability/http/private", "denials") {
        let error = SendError::private(Method::Get, &Target::parse(url).unwrap());
        let denial = error.denial().expect("it is told");
        assert_eq!((denial.layer, &denial.request), (Layer::Network, &format!("GET {url}")));
        assert_eq!(denial.grant.as_deref(), Some(grant));
        let hint = "to allow it, write in place of the rule that grants the request: http";
        assert!(denial.hint().starts_with(hint), "{}", denial.hint());
    }
}
