//! `[network]`: requests of tools through an operator's proxy, and to servers with a certificate of
//! the operator's authority.

use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::json;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring};
use toolcell_test_guests::{example, rows};

use crate::place::Place;
use crate::server::Server;
use crate::serving::serve::Served;
use crate::typed::CommandResult;

const PASSWORD: &str = "canary-of-the-proxy";

/// Reads the head of a request.
fn head(stream: &mut impl io::Read) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// Answers each connection in a thread of its own.
fn listening(answer: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("bound");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

/// Starts a proxy. Returns its address, and the heads of the requests that it receives.
fn proxy() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&heads);
    let address = listening(move |mut client| {
        let head = head(&mut client);
        let server = head.split(' ').nth(1).and_then(|address| TcpStream::connect(address).ok());
        seen.lock().push(head);
        let Some(mut server) = server else { return };
        let _ = client.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        let (mut from_client, mut to_server) =
            (client.try_clone().expect("a copy"), server.try_clone().expect("a copy"));
        std::thread::spawn(move || io::copy(&mut from_client, &mut to_server));
        let _ = io::copy(&mut server, &mut client);
    });
    (address, heads)
}

/// Starts a server with TLS. Returns its address and its certificate as PEM, which no public
/// authority has signed.
fn site() -> (SocketAddr, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a certificate");
    let config = Arc::new(config);
    let address = listening(move |stream| {
        let mut stream = StreamOwned::new(
            ServerConnection::new(Arc::clone(&config)).expect("a session"),
            stream,
        );
        if !head(&mut stream).is_empty() {
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 6\r\n\r\nsecure",
            );
            let _ = stream.flush();
        }
    });
    (
        address,
        format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            STANDARD.encode(cert.der())
        ),
    )
}

/// Returns a configuration in which `fetch` may access this local server, with these lines at its
/// beginning.
fn config(url: &str, lines: &str) -> String {
    format!(
        "{lines}\n[components.fetch]\npath = \"fetch.wasm\"\n[components.fetch.grants]\n\
         http = [{{ rule = \"GET {url}\", private_networks = [\"127.0.0.1/32\"] }}]\n[tenants.acme]\nisolation = \"process\"\n[tenants.plain]\n"
    )
}

fn place(url: &str, lines: &str) -> Place {
    Place::new(&config(url, lines))
}

fn private(place: &Place, name: &str, text: &str) {
    let file = place.path().join(name);
    fs::write(&file, text).expect("a place");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("a place");
}

/// Runs `fetch` for a URL, with this environment variable naming a proxy.
fn fetched(place: &Place, url: &str, tenant: &str, variable: Option<&str>) -> CommandResult {
    let mut command = place.command();
    command.envs(variable.map(|name| (name, format!("http://u:{PASSWORD}@127.0.0.1:9"))));
    place.shown(command.args(["run", "--json", "--tenant", tenant, "fetch", &format!("url={url}")]))
}

#[test]
fn requests_use_configured_proxy_and_roots() {
    let (site, certificate) = site();
    let (proxy, heads) = proxy();
    let url = format!("https://{site}/");
    let address = format!("http://us%40er:{PASSWORD}@{proxy}");
    let roots = "root_certificates = [\"corp.pem\"]";
    for line in [
        format!("proxy = \"{address}\""),
        "proxy = { file = \"proxy.url\" }".into(),
        "proxy = { env = \"CORP\" }".into(),
    ] {
        let place = place(&url, &format!("[network]\n{line}\n{roots}\n"));
        fs::write(place.path().join("corp.pem"), &certificate).expect("a place");
        private(&place, "proxy.url", &format!("{address}\n"));
        let calls = place.path().join("calls");
        fs::write(&calls, json!({ "name": "fetch", "arguments": { "url": url } }).to_string())
            .expect("a place");
        let typed = |words: &[&str]| place.shown(place.command().env("CORP", &address).args(words));
        let approved = typed(&["approve", "--yes"]);
        assert!(
            approved.status == 0 && !approved.to_string().contains(PASSWORD),
            "{line}: {approved}"
        );
        let argument = format!("url={url}");
        for words in [
            &["run", "--tenant", "plain", "fetch", &argument][..],
            &["run", "--tenant", "acme", "fetch", &argument],
            &["batch", "--tenant", "plain", "--calls", "calls"],
            &["learn", "--tenant", "plain", "fetch", &argument],
        ] {
            heads.lock().clear();
            let shown = typed(words);
            assert_eq!(shown.status, 0, "{line} {words:?}: {shown}");
            let heads = heads.lock().clone();
            let [head] = heads.as_slice() else { panic!("{line} {words:?}: {heads:?} {shown}") };
            let user = STANDARD.encode(format!("us@er:{PASSWORD}"));
            assert!(
                head.starts_with(&format!("CONNECT {site} ")) && head.contains(&user),
                "{line} {words:?}: {head}"
            );
        }
        for words in
            [&["check"][..], &["check", "--json"], &["explain", "fetch", &format!("GET {url}")]]
        {
            let shown = typed(words);
            assert!(
                shown.status == 0 && !shown.to_string().contains(PASSWORD),
                "{line} {words:?}: {shown}"
            );
        }
    }
    let place = place(&url, &format!("[network]\nproxy = \"{address}\"\n")).approved();
    let shown = fetched(&place, &url, "plain", None);
    assert!(
        shown.stdout.contains("not signed by a certificate authority that is trusted"),
        "{shown}"
    );
}

#[test]
fn server_reloads_changed_network() {
    let (proxy, heads) = proxy();
    let (site, certificate) = site();
    let (url, lines) =
        (format!("https://{site}/"), "[network]\nroot_certificates = [\"corp.pem\"]\n");
    let config = |lines: &str| {
        config(&url, lines)
            .replace("[tenants.acme]\nisolation = \"process\"\n[tenants.plain]\n", "")
    };
    let place = place(&url, "");
    fs::write(place.path().join("corp.pem"), &certificate).expect("a place");
    place.write(&config(lines));
    place.approve();
    let server = Served::start(&place, &[]);
    let fetched = || {
        let call = json!({ "name": "fetch", "arguments": { "url": url } });
        let (status, answer) = server.asked("POST", "/v1/calls", None, Some(&call));
        assert_eq!(status, 200, "{answer}");
        (answer["outcome"]["ok"]["value"]["text"] == "secure", heads.lock().len())
    };
    assert_eq!(fetched(), (true, 0));
    place.write(&config(&format!("{lines}proxy = \"http://{proxy}\"\n")));
    place.approve();
    server.wait_for_stderr("reloaded: the same components as before");
    assert_eq!(fetched(), (true, 1));
    place.replace("corp.pem", self::site().1);
    server.wait_for_stderr("reloaded: the same components as before");
    assert_eq!(fetched(), (false, 2), "another authority");
}

/// Each error has its line and a hint, and no password.
#[test]
fn unusable_network_error_names_its_line() {
    let place = place("http://127.0.0.1:9", "");
    for (name, text, mode) in [
        ("empty.pem", "", 0o644),
        ("no.pem", "hello", 0o644),
        ("key.pem", "-----BEGIN X-----\n", 0o644),
        ("open.pem", "", 0o666),
    ] {
        fs::write(place.path().join(name), text).expect("a place");
        fs::set_permissions(place.path().join(name), fs::Permissions::from_mode(mode))
            .expect("a place");
    }
    private(&place, "bad.url", &format!("ftp://u:{PASSWORD}@proxy"));
    for (line, problem, hint) in
        rows::<(&str, &str, &str)>("network", "unusable_network_error_names_its_line")
    {
        let text = config("http://127.0.0.1:9", &format!("# first\n[network]\n{line}\n"));
        let file = place.path().join("toolcell.toml");
        fs::write(&file, text).expect("a place");
        for words in [
            &["check"][..],
            &["run", "--tenant", "plain", "fetch", "url=http://127.0.0.1:9/"],
            &["serve", "--check"],
        ] {
            let mut command = place.command();
            let shown = place.shown(command.env("TOOLCELL_CONFIG", &file).args(words));
            assert!(shown.status != 0 && shown.stderr.contains(":3:"), "{line} {words:?}: {shown}");
            assert!(
                shown.stderr.contains(problem) && shown.stderr.contains(hint),
                "{line} {words:?}: {shown}"
            );
            assert!(!shown.to_string().contains(PASSWORD), "{line} {words:?}: {shown}");
        }
    }
}

/// A repository that a user opens must not see the requests of other tools.
#[test]
fn unapproved_network_is_not_used() {
    let server = Server::answering("a page");
    let (proxy, heads) = proxy();
    let place = place(
        &server.url("/"),
        &format!("[network]\nproxy = \"http://{proxy}\"\nroot_certificates = [\"absent.pem\"]\n"),
    );
    let grant = format!(
        "http={{ rule = \"GET {}\", private_networks = [\"127.0.0.1/32\"] }}",
        server.url("/")
    );
    fs::copy(example("fetch"), place.path().join("other.wasm")).expect("a place");
    let shown =
        place.typed(&["run", "other.wasm", &format!("url={}", server.url("/")), "--grant", &grant]);
    assert_eq!((shown.status, server.heads().len(), heads.lock().len()), (0, 1, 0), "{shown}");
}

/// The tool could read the password there.
#[test]
fn folder_with_proxy_password_is_not_granted() {
    let grant = "[components.x]\npath = \"hello.wasm\"\ngrants.directories = [{ name = \"/d\", path = \".\", access = \"read\" }]\n";
    let place = Place::new("");
    for (proxy, told) in [
        ("u:p@proxy", "toolcell.toml`, which holds the value of a secret"),
        ("proxy", "not approved"),
    ] {
        place.write(&format!("[network]\nproxy = \"http://{proxy}\"\n{grant}"));
        let shown = place.shown(place.command().env("HOME", place.state()).args([
            "check",
            "--config",
            "toolcell.toml",
        ]));
        assert!(shown.stderr.contains(told), "{shown}");
    }
    place.write(
        "[network]\nproxy = \"http://u:p@proxy\"\nroot_certificates = [\"certs/corp.pem\"]\n",
    );
    fs::create_dir(place.path().join("certs")).expect("a place");
    fs::write(place.path().join("certs/corp.pem"), site().1).expect("a place");
    for (path, access, told) in
        [(".", "read", "which holds the value of a secret"), ("certs", "write", "certs/corp.pem`")]
    {
        let grant = format!("directories=[{{name=\"/d\",path=\"{path}\",access=\"{access}\"}}]");
        let words = ["run", "--config", "toolcell.toml", "hello.wasm", "hello", "--grant", &grant];
        let shown = place.shown(place.command().env("HOME", place.state()).args(words));
        assert!(shown.stderr.contains(told), "{shown}");
    }
}

/// The hint is for the operator only: the tool gets the same error with the variable and without.
#[test]
fn environment_proxy_is_mentioned_once() {
    const TOLD: &str = "requests of tools do not use the proxy of `";
    let unused =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port").local_addr().expect("bound");
    let url = format!("http://{unused}/");
    let place = place(&url, "").approved();
    for tenant in ["plain", "acme"] {
        let without = fetched(&place, &url, tenant, None);
        assert!(
            without.stdout.contains("cannot be reached") && !without.stderr.contains(TOLD),
            "{tenant}: {without}"
        );
        for variable in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            let with = fetched(&place, &url, tenant, Some(variable));
            let pasted = format!("    [network]\n    proxy = {{ env = \"{variable}\" }}\n");
            assert!(
                with.stderr.contains(TOLD) && with.stderr.contains(&pasted),
                "{variable} {tenant}: {with}"
            );
            assert!(!with.to_string().contains(PASSWORD), "{variable} {tenant}: {with}");
            assert_eq!(with.json()["outcome"], without.json()["outcome"], "{variable} {tenant}");
        }
    }
    let call = json!({ "name": "fetch", "arguments": { "url": url } }).to_string();
    fs::write(place.path().join("calls"), format!("{call}\n{call}\n{call}\n")).expect("a place");
    let mut command = place.command();
    let words = ["batch", "--tenant", "plain", "--calls", "calls"];
    let shown = place.shown(command.env("HTTPS_PROXY", "127.0.0.1:9").args(words));
    assert_eq!(shown.stderr.matches(TOLD).count(), 1, "{shown}");
    assert!(
        shown.stderr.contains("proxy = \"http://HOST:PORT\"\n"),
        "its value is no URL: {shown}"
    );
    let server = Server::answering("a page");
    place.write(&config(&server.url("/"), ""));
    place.approve();
    let shown = fetched(&place, &server.url("/"), "plain", Some("HTTPS_PROXY"));
    assert!(shown.status == 0 && !shown.stderr.contains(TOLD), "{shown}");
    place.write(&config(&url, "[network]\nroot_certificates = []\n"));
    place.approve();
    let shown = fetched(&place, &url, "plain", Some("HTTPS_PROXY"));
    let pasted = "write in [network] of `toolcell.toml`, line 1:\n    proxy = { env = ";
    assert!(shown.stderr.contains(pasted), "{shown}");
    place.write(&config(&url, "[network]\nproxy = { env = \"HTTPS_PROXY\" }\n"));
    place.approve();
    let shown = fetched(&place, &url, "plain", Some("HTTPS_PROXY"));
    assert!(
        shown.stdout.contains("the proxy cannot be reached") && !shown.stderr.contains(TOLD),
        "{shown}"
    );
}
