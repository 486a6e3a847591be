//! Tests of `toolcell.toml`: where it is found, errors of its secrets and digests, and the hints that
//! grant each kind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use toolcell::grants::GrantKind;

use crate::place::Place;
use crate::typed::{check, command};

/// A value for the parts that a hint leaves open.
const VALUE: &str = "https://a.example";

/// All errors are printed at once, each with its place, and no call runs.
#[test]
fn all_config_errors_are_listed_with_location() {
    let place = Place::new("");
    place.write(
        "[components.x]\npath = \"hello.wasm\"\n[components.x.grants.secrets]\n\
         a = { destination = \"https://a.example\", source = { env = \"NOT_SET\" } }\n\
         b = { destination = \"https://a.example\", source = { file = \"open\" } }\n\
         c = { destination = \"https://a.example\", source = { file = \"nothing\" } }\n\
         d = { destination = \"https://a.example\", source = { file = \"token\", env = \"TOKEN\" } }\n\
         e = { destination = \"…\", injection = \"magic\", source = { env = \"TOKEN\" } }\n\
         [components.y]\npath = \"hello.wasm\"\n[components.y.grants.secrets]\n\
         a = { destination = \"https://a.example\", source = { file = \"token\" } }\n\
         [components.\"a b\"]\npath = \"asks.wasm\"\n[tenants.t]\nhttp = [\"x\"]\nlimits = { fuel = 0 }\n",
    );
    // Named: of a configuration that was only found, no secret is read.
    let named = ["--config", "toolcell.toml"];
    let shown =
        place.typed(&[&named[..], &["run", "hello.wasm", "greet", "{\"name\": \"Ada\"}"]].concat());
    assert_eq!((shown.status, shown.stdout.as_str()), (1, ""), "{shown}");
    let labels = |label: &str| shown.stderr.lines().filter(|line| line.starts_with(label)).count();
    assert_eq!(labels("error: toolcell.toml:"), labels("hint: "), "{shown}");
    assert!(!shown.stderr.contains("a-secret-value"), "{shown}");
    check("config_secrets", &shown);
    let json = place.typed(&[&named[..], &["check", "--json"]].concat()).json();
    let problems = json["error"]["problems"].as_array().expect("problems");
    assert!(
        problems.iter().all(|problem| problem["line"].is_u64() && problem["column"].is_u64()),
        "{json}"
    );
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
    gone.tells(1, told);
    let named = place.typed(&["--config", "nothing.toml", "list", "hello.wasm"]);
    named.tells(1, "`nothing.toml` does not exist");
    let mistyped = place.typed(&["run", "namde", "greet"]);
    mistyped.tells(2, "hint: did you mean `named`?");
    for (spoilt, mode, good) in
        [("toolcell.toml", 0o666, 0o644), ("toolcell.toml", 0o664, 0o644), (".", 0o770, 0o700)]
    {
        fs::set_permissions(place.path().join(spoilt), fs::Permissions::from_mode(mode)).unwrap();
        let open = place.typed(&call);
        open.tells(1, "other users can write to `");
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

/// The lines that a hint shows for a request grant it. The options that it shows are accepted, and
/// grant the interface that is for the kind alone. An empty list in the tool's section takes the
/// access away, and the line that a hint shows then allows it.
#[test]
fn hints_grant_requests_of_each_kind() {
    let forms = |kind: GrantKind| kind.row().requests.iter().map(move |form| (kind, *form));
    let scratch = (GrantKind::Scratch, "write /scratch/x");
    for (kind, request) in GrantKind::all().flat_map(forms).chain([scratch]) {
        let place = Place::new("");
        fs::remove_file(place.path().join("toolcell.toml")).unwrap();
        place.replace("visitor.wasm", toolcell_test_guests::bytes("visitor"));
        let explain = |component| {
            let shown = place.typed(&["explain", component, "visit", request]);
            (shown.stdout.starts_with("allowed by `"), shown)
        };
        let (is_allowed, shown) = explain("visitor.wasm");
        assert!(!is_allowed && shown.stdout.contains("it was not granted"), "{shown}");
        let lines: Vec<_> = shown.stderr.lines().map(|line| line.replace('…', VALUE)).collect();
        let at = |start: &str| lines.iter().position(|line| line.trim().starts_with(start));
        let (start, or) = (at("[components.visitor]").unwrap(), at("or, to try").unwrap());
        let config = lines[start..or].join("\n");
        assert!(config.contains(&format!("\n    {} = ", kind.key())), "{shown}");

        // The handle to a secret reveals nothing: its interface needs no grant.
        let interface = kind.row().interface().filter(|_| kind != GrantKind::Secrets);
        let lacks_grant = |options: &[&str]| {
            let run = ["run", "visitor.wasm", "visit", "url=x"];
            let shown = place.shown(place.command().env("NAME", VALUE).args(run).args(options));
            let note = "the component imports interfaces that are not granted: ";
            let imports = shown.stderr.lines().find_map(|line| Some(line.split_once(note)?.1));
            let imports = imports.unwrap_or_else(|| panic!("{request} {shown}"));
            interface.is_some_and(|name| imports.contains(&format!("toolcell:tool/{name}@")))
        };
        let options = lines[or + 1].split("--grant '").skip(1);
        let options = options.flat_map(|it| ["--grant", it.trim_end().trim_end_matches('\'')]);
        let options: Vec<_> = options.collect();
        assert_eq!(lacks_grant(&[]), interface.is_some(), "{request}");
        assert!(!options.is_empty() && !lacks_grant(&options), "{request} {options:?}");

        let check = |section: &str| {
            place.write(&format!("{config}\n[components.visitor.tools.visit]\n{section}\n"));
            place.approve();
            explain("visitor")
        };
        let (is_allowed, shown) = check("");
        assert!(is_allowed, "{shown}");
        let narrowing = format!("{} = []", kind.row().section);
        let (is_allowed, shown) = check(&narrowing);
        assert!(!is_allowed && shown.stdout.contains(&format!("`{narrowing}`")), "{shown}");
        let line = shown.stderr.lines().find_map(|line| line.split_once("tools.visit]: "));
        let (is_allowed, shown) = check(line.unwrap().1);
        assert!(is_allowed, "{shown}");
    }
}
