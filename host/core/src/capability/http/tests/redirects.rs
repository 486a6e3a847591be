//! Tests a chain of redirects that a tool follows itself. Two servers, one of them with TLS, answer
//! each request with a redirect to the next of ten hops. Each hop is sent once with a secret and
//! once without.

use std::sync::OnceLock;

use super::*;

/// The requests that arrived, and the target of each redirect.
#[derive(Default)]
struct RedirectLog {
    received: Mutex<Vec<String>>,
    hops: OnceLock<Vec<String>>,
}

impl RedirectLog {
    /// Returns a redirect to the hop after the requested one.
    fn redirect(&self, request: &str) -> String {
        self.received.lock().push(request.to_owned());
        let path = request.split(' ').nth(1).unwrap();
        let hop: usize = path.rsplit('/').next().unwrap().parse().unwrap();
        let hops = self.hops.get().unwrap();
        let next = &hops[hop % hops.len()];
        format!("HTTP/1.1 302 Found\r\nlocation: {next}\r\ncontent-length: 0\r\n\r\n")
    }
}

#[tokio::test]
async fn every_redirect_hop_is_checked_anew() {
    let chain = rows::<(&str, &str, &str)>("capability/http/redirects", "chain");
    let seen = Arc::new(RedirectLog::default());
    let (plain, secure) = (Arc::clone(&seen), Arc::clone(&seen));
    let plain = Server::answering(move |request| plain.redirect(request)).await;
    let secure = tls::start_site(&["t.example"], move |request, _| secure.redirect(request)).await;
    let (plain_port, tls_port) = (plain.port.to_string(), secure.server.port.to_string());
    let placed = |text: &str| text.replace("PLAIN", &plain_port).replace("TLS", &tls_port);
    seen.hops.set(chain.iter().map(|(hop, ..)| placed(hop)).collect()).unwrap();

    let loopback = || ["127.0.0.0/8".parse().unwrap()];
    let rule = |text| placed(text).parse::<HttpRule>().unwrap().with_private(loopback());
    let rights = rights(rows::<&str>("capability/http/redirects", "granted").into_iter().map(rule));
    let roots = tls::only(&secure.authority);
    let names = server::Lookup(|host| {
        Some(if host == "meta.example" { "169.254.169.254" } else { "127.0.0.1" })
    });
    let egress = Egress::new().with_resolver(names).with_root_certificates(roots);
    let bound_to = placed("http://a.example:PLAIN/api").parse().unwrap();
    let secret = Secret::new("canary-of-the-first-hop").unwrap();
    let credential =
        Credential::new("token", &SecretGrant::new(bound_to, Injection::Bearer), secret).unwrap();

    let budget = Budget::default();
    let mut expected = Vec::new();
    for (number, (hop, with_secret, without)) in chain.iter().enumerate() {
        let hop = placed(hop);
        for (has_secret, end) in [(true, *with_secret), (false, *without)] {
            let credentials = has_secret.then(|| credential.clone()).into_iter().collect();
            let secrets = Secrets { credentials, ..Secrets::default() };
            let result =
                egress.send(&rights, &budget, get(&hop), secrets, Instant::now() + AMPLE).await;
            assert_eq!(kind(&result), end, "{hop}, with the secret: {has_secret}");
            let Ok(response) = result else { continue };
            // The redirect is returned unchanged.
            let next = placed(chain[(number + 1) % chain.len()].0);
            assert!(response.status() == 302 && response.headers()["location"] == next, "{hop}");
            let (_, rest) = hop.split_once("://").unwrap();
            let (host, path) = rest.split_at(rest.find('/').unwrap());
            expected.push((host.to_owned(), path.to_owned(), has_secret));
        }
    }
    // One request per response, and the secret only in those that it is bound to.
    let arrived = std::mem::take(&mut *seen.received.lock());
    let arrived = arrived.iter().map(|head| {
        let line =
            |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let has_secret =
            line("authorization: ").is_some_and(|value| value == "Bearer canary-of-the-first-hop");
        assert_eq!(has_secret, head.contains("canary") || head.contains("authorization"), "{head}");
        (line("host: ").unwrap(), path, has_secret)
    });
    assert_eq!(arrived.collect::<Vec<_>>(), expected);
    assert_eq!(plain.connections() + secure.server.connections(), expected.len());
}
