//! Secrets for which tenants have values of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;
use toolcell_test_guests::rows;

use crate::place::Place;
use crate::server::Server;
use crate::serving::serve::Served;
use crate::typed::CommandResult;

const SHARED: &str = "canary-that-all-share";
const ACME: &str = "canary-of-acme-4711";
const GLOBEX: &str = "canary-of-globex-0815";

/// Returns a place where `fetch` puts a secret into its requests to this server. The text is the
/// end of the configuration.
fn place(server: &Server, tenants: &str) -> Place {
    let url = server.url("/");
    let config = format!(
        "[components.fetch]\npath = \"fetch.wasm\"\n[components.fetch.grants]\n\
         http = [{{ rule = \"GET {url}\", private_networks = [\"127.0.0.1/32\"] }}]\n[components.fetch.grants.secrets]\n\
         fetch_token = {{ destination = \"GET {url}\", source = {{ env = \"SHARED_TOKEN\" }} }}\n{tenants}"
    );
    let place = Place::new(&config);
    let own = place.path().join("globex.token");
    fs::write(&own, format!("{GLOBEX}\n")).expect("a place");
    fs::set_permissions(own, fs::Permissions::from_mode(0o600)).expect("a place");
    place
}

/// Returns the command in the place, with these variables.
fn command(place: &Place, variables: &[(&str, &str)]) -> Command {
    let mut command = place.command();
    command.envs(variables.iter().copied());
    command
}

fn run(place: &Place, server: &Server, variables: &[(&str, &str)], tenant: &str) -> CommandResult {
    let url = format!("url={}", server.url("/page"));
    let words = ["run", "--json", "--tenant", tenant, "fetch", &url, "with_token:=true"];
    place.shown(command(place, variables).args(words))
}

/// Returns the token of the last request.
fn sent(server: &Server) -> String {
    let heads = server.heads();
    let head = heads.last().expect("a request");
    let line = head.lines().find_map(|line| line.strip_prefix("authorization: Bearer "));
    line.unwrap_or_else(|| panic!("no token: {head}")).to_owned()
}

const OWN: &str = "[tenants.acme.secret_values]\nfetch_token = { env = \"ACME_TOKEN\" }\n\
                   [tenants.globex]\nsecret_values.fetch_token = { file = \"globex.token\" }\n[tenants.initech]\n";
const VARIABLES: [(&str, &str); 2] = [("SHARED_TOKEN", SHARED), ("ACME_TOKEN", ACME)];
const EACH: [(&str, &str); 3] = [("acme", ACME), ("globex", GLOBEX), ("initech", SHARED)];

/// The server returns every value: no answer to a tenant contains the tenant's own.
const REPEATED: &str = "canary-that-all-share canary-of-acme-4711 canary-of-globex-0815";

#[test]
fn request_carries_its_tenants_secret_value() {
    for isolation in ["strict", "process"] {
        let server = Server::answering(REPEATED);
        let place =
            place(&server, &format!("{OWN}[host]\nisolation = \"{isolation}\"\n")).approved();
        for (tenant, value) in EACH {
            let shown = run(&place, &server, &VARIABLES, tenant);
            assert_eq!(
                (shown.status, sent(&server).as_str()),
                (0, value),
                "{isolation} {tenant}: {shown}"
            );
            assert!(!shown.to_string().contains(value), "{isolation} {tenant}: {shown}");
        }
    }
}

#[test]
fn server_uses_and_reloads_tenant_secret_values() {
    let server = Server::answering(REPEATED);
    let place = place(&server, OWN).approved();
    let serving = Served::start_with(&place, &VARIABLES, &[]);
    let arguments = json!({"url": server.url("/page"), "with_token": true});
    let fetched = |key: &str| {
        let body = json!({"name": "fetch", "arguments": arguments});
        let (status, answer) = serving.asked("POST", "/v1/calls", Some(key), Some(&body));
        assert_eq!(status, 200, "{answer}");
        (sent(&server), answer.to_string())
    };
    let keys = EACH.map(|(tenant, value)| (place.key(tenant), value));
    for (key, value) in &keys {
        let (token, answer) = fetched(key);
        assert!(token == *value && !answer.contains(value), "{token}: {answer}");
    }
    let new = "canary-of-globex-new";
    place.replace("globex.token", new);
    serving.wait_for_stderr("reloaded: the same components as before");
    assert_eq!(fetched(&keys[1].0).0, new);
}

#[test]
fn invalid_secret_values_are_errors_with_hint() {
    let server = Server::answering("a page");
    for (section, message, hint) in
        rows::<(&str, &str, &str)>("secrets", "invalid_secret_values_are_errors_with_hint")
    {
        let shown = place(&server, section).typed(&["check"]);
        assert!(
            shown.status != 0 && shown.stderr.contains(message) && shown.stderr.contains(hint),
            "{section}: {shown}"
        );
        assert!(!shown.stderr.contains(ACME), "{shown}");
    }
}
