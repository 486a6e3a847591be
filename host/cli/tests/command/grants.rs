//! `toolcell.toml`: its errors, its effective grants, and the steps to a grant.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::place::{Place, WITHOUT_TENANT};
use crate::typed::{check, command};

const GOOD: &str = r#"
[defaults.limits]
timeout = "5s"

[components.hello]
path = "hello.wasm"
[components.hello.limits]
fuel = "500M"
memory = "16MiB"
[components.hello.grants]
http = ["GET,POST https://.example.com/v1", { rule = "http://localhost:8080", private_networks = ["127.0.0.0/8"] }]
directories = [{ name = "/data", path = "data", access = "read", max_bytes = "1MiB", max_files = 100 }]
scratch = true
environment = { LANG = "C" }
kv = ["write notes/*"]
[components.hello.grants.secrets]
token = { destination = "https://api.example.com", injection = { header = "X-Key" }, source = { file = "token" } }
TOKEN = { destination = "https://elsewhere.example" }
[components.asks]
path = "asks.wasm"
[components.asks.grants]
secrets = { key = { source = { env = "TOKEN" } }, token = { destination = "https://a.example", source = { file = "token" } } }
reveal = ["key"]

[tenants.acme]
http = ["GET https://api.example.com"]
paths = []
reveal = []
[tenants.acme.limits]
timeout = "1s"
[tenants.free]
"#;

#[test]
fn check_shows_resulting_rights() {
    let place = Place::new(GOOD).approved();
    let shown = place.typed(&["check"]);
    assert_eq!(shown.status, 0, "{shown}");
    check("check", &shown);
    let json = place.typed(&["check", "--json"]).json();
    assert_eq!((&json["ok"], &json["warnings"][0]["line"]), (&true.into(), &18.into()), "{json}");
    let asks = &json["components"][0]["tools"][0];
    assert_eq!(
        (&asks["rights"]["reveal"][0], &asks["tenants"]["acme"]["reveal"]),
        (&"key".into(), &serde_json::Value::Null),
        "{json}"
    );
    check("inspect_grants", &place.typed(&["inspect", "asks"]));
    assert!(!place.typed(&["check", "--json"]).to_string().contains("a-secret-value"));
}

/// All errors are printed at once, each with its place, and no call runs.
#[test]
fn all_config_errors_are_listed_with_location() {
    let place = Place::new("");
    for (name, config) in [
        ("syntax", "[components.x\npath = \"x.wasm\"\ny = = 2\n"),
        (
            "keys",
            "[compnents.x]\n[components.y]\npaht = 3\ngrants = { htp = [], kv = \"x\", reveal = [1] }\n",
        ),
        ("twice", "[components.x]\npath = \"hello.wasm\"\n[components.x]\npath = \"asks.wasm\"\n"),
        (
            "rules",
            "[components.x]\npath = \"hello.wasm\"\ndigest = \"sha256:no\"\n[components.x.grants]\n\
             http = [\"https://*\", \"GET nowhere\", { rule = \"https://.com\", private_networks = [\"all\"] }]\n\
             kv = [\"*\"]\nenvironment = { A = \"…\" }\nreveal = [\"key\"]\nsecrets = { a = { source = { env = \"TOKEN\" } } }\n\
             [components.x.limits]\nfuel = \"lots\"\ntimeout = 5\nmemory = -1\n",
        ),
        (
            "all",
            "[components.x]\npath = \"hello.wasm\"\npth = 1\n[components.x.grants]\nhttp = [\"GT https://a.example\"]\n\
             kv = \"read a\"\n[tenants.t]\nisolation = \"proces\"\n[tenants.\"a b\"]\n",
        ),
        (
            "access",
            "[components.x]\npath = \"hello.wasm\"\n\
             grants.directories = [{ name = \"/z\", path = \"other\", access = \"raed\" }]\n",
        ),
        (
            "directories",
            "[components.x]\npath = \"hello.wasm\"\n[components.x.grants]\nscratch = true\ndirectories = [\n\
             \x20 { name = \"/a\", path = \"/etc\", access = \"read\" },\n\
             \x20 { name = \"/b\", path = \"link/ssl\", access = \"read\" },\n\
             \x20 { name = \"/c\", path = \"data_link\", access = \"read\" },\n\
             \x20 { name = \"/d\", path = \"nothing\", access = \"read\" },\n\
             \x20 { name = \"/e\", path = \"home\", access = \"read\" },\n\
             \x20 { name = \"/f\", path = \"home/.ssh\", access = \"read\" },\n\
             \x20 { name = \"/g\", path = \"*\", access = \"read\" },\n\
             \x20 { name = \"/h\", path = \".\", access = \"write\" },\n\
             \x20 { name = \"data\", path = \"data\", access = \"read\" },\n\
             \x20 { name = \"/data\", path = \"data\", access = \"read\" },\n\
             \x20 { name = \"/deep\", path = \"data/deep\", access = \"write\" },\n\
             \x20 { name = \"/data/x\", path = \"other\", access = \"write\" },\n\
             \x20 { name = \"/data\", path = \"other\", access = \"read\" },\n\
             \x20 { name = \"/scratch/x\", path = \"other\", access = \"read\" },\n]\n",
        ),
        (
            "secrets",
            "[components.x]\npath = \"hello.wasm\"\n[components.x.grants.secrets]\n\
             a = { destination = \"https://a.example\", source = { env = \"NOT_SET\" } }\n\
             b = { destination = \"https://a.example\", source = { file = \"open\" } }\n\
             c = { destination = \"https://a.example\", source = { file = \"nothing\" } }\n\
             d = { destination = \"https://a.example\", source = { file = \"token\", env = \"TOKEN\" } }\n\
             e = { destination = \"…\", injection = \"magic\", source = { env = \"TOKEN\" } }\n\
             [components.y]\npath = \"hello.wasm\"\n[components.y.grants.secrets]\n\
             a = { destination = \"https://a.example\", source = { file = \"token\" } }\n\
             [components.\"a b\"]\npath = \"asks.wasm\"\n[tenants.t]\nhttp = [\"x\"]\nlimits = { fuel = 0 }\n",
        ),
    ] {
        place.write(config);
        // Named: of a configuration that was only found, no secret is read.
        let named = ["--config", "toolcell.toml"];
        let shown = place
            .typed(&[&named[..], &["run", "hello.wasm", "greet", "{\"name\": \"Ada\"}"]].concat());
        assert_eq!((shown.status, shown.stdout.as_str()), (1, ""), "{name}: {shown}");
        let labels =
            |label: &str| shown.stderr.lines().filter(|line| line.starts_with(label)).count();
        assert_eq!(labels("error: toolcell.toml:"), labels("hint: "), "{name}: {shown}");
        assert!(!shown.stderr.contains("a-secret-value"), "{name}: {shown}");
        check(&format!("config_{name}"), &shown);
        let json = place.typed(&[&named[..], &["check", "--json"]].concat()).json();
        let problems = json["error"]["problems"].as_array().expect("problems");
        assert!(
            problems.iter().all(|problem| problem["line"].is_u64() && problem["column"].is_u64()),
            "{json}"
        );
    }
}

#[test]
fn config_is_found_upwards_or_by_name() {
    let place = Place::new("[components.named]\npath = \"hello.wasm\"\n").approved();
    let call = ["run", "named", "greet", "{\"name\": \"Ada\"}"];
    assert_eq!(place.typed(&call).stdout, "Hello, Ada!\n");
    fs::create_dir_all(place.path().join("sub/dir")).unwrap();
    let below = place.shown(place.command().current_dir(place.path().join("sub/dir")).args(call));
    assert_eq!(below.stdout, "Hello, Ada!\n", "found upwards");
    let mut elsewhere = command();
    let elsewhere = elsewhere
        .env("TOOLCELL_CONFIG", place.path().join("toolcell.toml"))
        .args(call)
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&elsewhere.stdout),
        "Hello, Ada!\n",
        "named by the environment"
    );
    let gone = place.shown(place.command().env("TOOLCELL_CONFIG", "gone.toml").arg("check"));
    let told =
        "the configuration that the variable `TOOLCELL_CONFIG` names: `gone.toml` does not exist";
    assert!(gone.status == 1 && gone.stderr.contains(told), "{gone}");
    let named = place.typed(&["--config", "nothing.toml", "list", "hello.wasm"]);
    assert!(named.status == 1 && named.stderr.contains("`nothing.toml` does not exist"), "{named}");
    let mistyped = place.typed(&["run", "namde", "greet"]);
    assert!(
        mistyped.status == 2 && mistyped.stderr.contains("hint: did you mean `named`?"),
        "{mistyped}"
    );
    for (spoilt, mode, good) in
        [("toolcell.toml", 0o666, 0o644), ("toolcell.toml", 0o664, 0o644), (".", 0o770, 0o700)]
    {
        fs::set_permissions(place.path().join(spoilt), fs::Permissions::from_mode(mode)).unwrap();
        let open = place.typed(&call);
        assert!(open.status == 1 && open.stderr.contains("other users can write to `"), "{open}");
        assert!(open.stderr.contains("hint: `chmod go-w "), "{open}");
        fs::set_permissions(place.path().join(spoilt), fs::Permissions::from_mode(good)).unwrap();
    }
    assert_eq!(place.typed(&call).status, 0);
    fs::remove_file(place.path().join("toolcell.toml")).unwrap();
    assert_eq!(place.typed(&["check"]).status, 2);
}

#[test]
fn pinned_digest_must_match_component() {
    let pin = |digest: &str| {
        format!("[components.hello]\npath = \"hello.wasm\"\ndigest = \"{digest}\"\n")
    };
    let place = Place::new("");
    let digest = place.typed(&["inspect", "hello.wasm", "--json"]).json()["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    place.write(&pin(&digest));
    assert_eq!(place.typed(&["check"]).status, 0);
    place.write(&pin(&format!("sha256:{}", "0".repeat(64))));
    for words in [
        &["check"][..],
        &["run", "hello", "greet"],
        &["run", "hello.wasm", "greet"],
        &["list", "hello"],
    ] {
        let shown = place.typed(&[&["--config", "toolcell.toml"], words].concat());
        assert_eq!(shown.status, 1, "{shown}");
        assert!(
            shown
                .stderr
                .contains("error: toolcell.toml:3:10: the component does not have the digest that is written here"),
            "{shown}"
        );
    }
}

/// A refusal, `learn`, the printed grant, a call, and no further access.
#[test]
fn learned_grants_allow_the_refused_call() {
    let place = Place::new("");
    check("refused_undeclared", &place.typed(&["run", "asks.wasm", "asks"]));
    check("refused_declared", &place.typed(&["run", "declares.wasm", "asks"]));
    check("refused_named", &{
        place.write("[components.mine]\npath = \"declares.wasm\"\n");
        place.approve();
        place.typed(&["run", "mine", "asks"])
    });
    let learned = place.typed(&["learn", "asks.wasm", "asks"]);
    check("learn", &learned);
    check("learn_declared", &place.typed(&["learn", "mine"]));
    // The printed lines, with the operator's own values filled in.
    let config = learned
        .stdout
        .replace('…', "https://a.example")
        .replace("env = \"key\"", "file = \"token\"");
    place.write(&config.replace("env = \"token\"", "env = \"TOKEN\""));
    place.approve();
    let shown = place.typed(&["run", "asks", "asks", "{\"a\": 1}"]);
    assert_eq!(
        (shown.status, shown.stdout.as_str(), shown.stderr.as_str()),
        (0, "{\"a\": 1}\n", ""),
        "{shown}"
    );
    let by_path = place.typed(&["run", "./asks.wasm", "asks"]);
    assert!(
        by_path.status == 0 && by_path.stderr.contains("the grants of `toolcell.toml` apply"),
        "{by_path}"
    );
    let denied = place.typed(&["explain", "asks", "reveal token"]);
    assert_eq!(denied.status, 21, "{denied}");
}

#[test]
fn explain_reports_decision_and_remedy() {
    let place = Place::new(GOOD);
    for (name, status, words) in [
        ("allowed", 0, &["hello", "greet", "GET http://localhost:8080/v1/users?page=1"][..]),
        ("granted", 21, &["hello", "greet", "DELETE https://api.example.com/v1/users?page=1"]),
        ("path", 21, &["hello", "greet", "write /data/x"]),
        ("tenant", 21, &["hello", "read /data/x", "--tenant", "acme"]),
        ("tenant_free", 0, &["hello", "greet", "read /data/x", "--tenant", "free"]),
        ("no_tenant", 2, &["hello", "greet", "read /data/x", "--tenant", "acne"]),
        ("no_request", 2, &["hello", "greet", "fetch https://api.example.com"]),
        ("no_tool", 1, &["hello", "great", "read /data/x"]),
        ("declared", 21, &["declares.wasm", "asks", "kv write k"]),
        ("no_component", 2, &["great", "reveal key"]),
    ] {
        let shown = place.typed(&[&["explain"], words].concat());
        assert_eq!(shown.status, status, "{name}: {shown}");
        check(&format!("explain_{name}"), &shown);
    }
    // A hint can be pasted unchanged: the tenant's section lists these grants by name.
    place.write(&GOOD.replace("paths = []", "paths = []\nsecrets = []\nkv = []"));
    let shown = place.typed(&["explain", "asks", "asks", "secret token", "--tenant", "acme"]);
    let line = r#"write this in [tenants.acme]: secrets = ["token"]  # in place of line "#;
    assert!(shown.stderr.contains(line), "{shown}");
    // Without quotes, split into words by the shell.
    for words in [
        "hello greet GET http://localhost:8080/v1",
        "hello GET http://localhost:8080/v1",
        "asks kv read x",
    ] {
        let words: Vec<_> = ["explain"].into_iter().chain(words.split(' ')).collect();
        let asked = place.typed(&words);
        assert_eq!(asked.status, if words[1] == "asks" { 21 } else { 0 }, "{asked}");
    }
    let nothing = place.typed(&["explain"]);
    assert!(
        nothing.status == 2
            && nothing.stderr.contains("error: the request is missing\nhint: a request is `GET"),
        "{nothing}"
    );
    let address = place.typed(&["explain", "hello", "http://169.254.169.254/"]);
    assert!(
        address.status == 2
            && address.stderr.contains("explain hello 'GET http://169.254.169.254/'`"),
        "its method was left out: {address}"
    );
    // A file is granted with its directory.
    fs::copy(toolcell_test_guests::example("clerk"), place.path().join("clerk.wasm")).unwrap();
    let passwd = place.typed(&["explain", "clerk.wasm", "read /etc/passwd"]).stderr;
    for needle in ["the grant is for its directory `/etc`", r#"name = "/etc""#] {
        assert!(passwd.contains(needle), "{needle}: {passwd}");
    }
    place.write(GOOD);
    let json = place.typed(&["explain", "hello", "greet", "write /data/x", "--json"]).json();
    assert_eq!(
        (&json["allowed"], &json["denial"]["layer"]),
        (&false.into(), &"component".into()),
        "{json}"
    );
}

#[test]
fn tenant_section_narrows_the_call() {
    let place = Place::new(GOOD).approved();
    let told = |words: &[&str]| place.typed(&[&["run", "asks", "asks"], words].concat());
    assert_eq!(told(&[]).stderr, WITHOUT_TENANT);
    for words in [&["--tenant", "acme"][..], &["--context", "{\"tenant\": \"acme\"}"]] {
        let shown = told(words);
        let denied = "denied: `reveal key` is denied for this tenant\n\
                      hint: to allow it, write this in [tenants.acme]: reveal = [\"key\"]  # in place of line 28\n\
                      hint: after the change of the configuration, approve it with `toolcell approve`\n";
        assert_eq!(shown.stderr, denied, "{shown}");
    }
    for words in [&["--tenant", "acne"][..], &["--context", "{\"tenant\": \"x\"}"]] {
        assert_eq!(told(words).status, 2);
    }
    assert_eq!(told(&["--tenant", "acme", "--context", "{\"tenant\": \"free\"}"]).status, 2);
    let learned = place.typed(&["learn", "asks", "asks", "--tenant", "acme"]);
    let line = "hint: [tenants.acme] narrows this call; to allow it, write there:\n    reveal = [\"key\"]  # in place of line ";
    assert!(learned.status == 0 && learned.stderr.contains(line), "{learned}");
    assert_eq!(place.typed(&["learn", "asks", "asks", "--tenant", "acne"]).status, 2);
}

#[test]
fn config_limits_apply_to_calls() {
    let place = Place::new("[components.hello]\npath = \"hello.wasm\"\nlimits = { fuel = 1000 }\n")
        .approved();
    let call = |more: &[&str]| {
        place.typed(&[&["run", "hello", "greet", "{\"name\": \"Ada\"}"], more].concat())
    };
    let shown = call(&[]);
    assert!(shown.status == 20 && shown.stderr.contains("raise `--fuel` (now 1k)"), "{shown}");
    assert_eq!(call(&["--fuel", "1G"]).status, 0);
    place.write("[defaults.limits]\nmemory = \"64KiB\"\n");
    assert_eq!(place.typed(&["run", "hello.wasm", "greet", "{\"name\": \"Ada\"}"]).status, 20);
}

/// `UPDATE=1` writes the file anew.
#[test]
fn config_schema_file_is_current() {
    let shown = command().args(["check", "--schema"]).output().unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/toolcell.schema.json");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, &shown.stdout).unwrap();
    }
    assert_eq!(
        String::from_utf8_lossy(&shown.stdout),
        fs::read_to_string(path).unwrap_or_default(),
        "run with UPDATE=1"
    );
}

#[test]
fn call_without_tenant_warns_if_tenants_exist() {
    let hello = "[components.hello]\npath = \"hello.wasm\"\n";
    let place = Place::new(hello);
    fs::write(place.path().join("calls"), r#"{"name": "greet", "arguments": {"name": "Ada"}}"#)
        .unwrap();
    for (config, tenant, expected) in [
        (hello.to_owned(), &[][..], ""),
        (format!("{hello}[tenants.acme]\n"), &[], WITHOUT_TENANT),
        (format!("{hello}[tenants.acme]\n"), &["--quiet"], ""),
        (format!("{hello}[tenants.acme]\n"), &["--tenant", "acme"], ""),
        (format!("{hello}[tenants.acme]\n"), &["--context", r#"{"tenant": "acme"}"#], ""),
    ] {
        place.write(&config);
        place.approve();
        for words in [&["run", "hello", "name=Ada"][..], &["batch", "--calls", "calls"]] {
            let shown = place.typed(&[words, tenant].concat());
            let told: String = shown
                .stderr
                .split_inclusive('\n')
                .filter(|line| !line.starts_with("summary: "))
                .collect();
            assert_eq!((shown.status, told.as_str()), (0, expected), "{words:?}: {shown}");
        }
        fs::copy(place.path().join("hello.wasm"), place.path().join("other.wasm")).unwrap();
        let shown = place.typed(&[&["run", "other.wasm", "name=Ada"], tenant].concat());
        assert_eq!(
            (shown.status, shown.stderr.as_str()),
            (0, ""),
            "no configuration grants it anything: {shown}"
        );
    }
}
