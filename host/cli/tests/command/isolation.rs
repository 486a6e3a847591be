//! The isolation of calls, from the configuration.

use serde_json::json;

use crate::place::Place;
use crate::typed::check;

const CONFIG: &str = r#"
[components.plain]
path = "hello.wasm"
[components.careful]
path = "asks.wasm"
isolation = "strict"
[components.careful.grants]
secrets = { key = { source = { env = "TOKEN" } } }
reveal = ["key"]
[tenants.acme]
isolation = "strict"
[tenants.free]
"#;

const GREET: [&str; 4] = ["run", "hello.wasm", "greet", r#"{"name": "Ada"}"#];

#[test]
fn layers_can_only_raise_isolation() {
    let place = Place::new(CONFIG).approved();
    check("check_isolation", &place.typed(&["check"]));
    let told = place.typed(&["check", "--json"]).json();
    let of = |name: &str| {
        let components = told["components"].as_array().expect("components");
        let found =
            components.iter().find(|component| component["name"] == name).expect("it is there");
        (found["isolation"].clone(), found["tenant_isolation"].clone())
    };
    assert_eq!(of("plain"), (json!("pooled"), json!({"acme": "strict", "free": "pooled"})));
    assert_eq!(of("careful"), (json!("strict"), json!({"acme": "strict", "free": "strict"})));
    let host = CONFIG
        .replacen("", "[host]\nisolation = \"strict\"\n", 1)
        .replace("\"strict\"\n[tenants.f", "\"pooled\"\n[tenants.f");
    let place = Place::new(&host).approved();
    let inspected = place.typed(&["inspect", "plain", "--json"]).json();
    assert_eq!((&inspected["isolation"], &inspected["pooled"]), (&json!("strict"), &json!(false)));
    let told = place.typed(&["check", "--json"]).json();
    assert_eq!(
        told["components"][1]["tenant_isolation"],
        json!({"acme": "strict", "free": "strict"}),
        "{told}"
    );
}

/// The strictest layer decides about a call's cells, and the answer is the same.
#[test]
fn strictest_layer_decides_call_isolation() {
    let place = Place::new(CONFIG).approved();
    for (words, pooled) in [
        (vec!["--tenant", "free"], "pooled=true"),
        (vec!["--tenant", "acme"], "pooled=false"),
        (vec![], "pooled=true"),
    ] {
        let shown = place.typed(&[&GREET[..], &["-v"], &words].concat());
        assert_eq!((shown.status, shown.stdout.as_str()), (0, "Hello, Ada!\n"), "{shown}");
        assert!(shown.stderr.contains(pooled), "{shown}");
    }
}

#[test]
fn invalid_isolation_error_suggests_nearest() {
    let place = Place::new(
        "[host]\nisolation = \"strickt\"\n[tenants.a]\nisolation = \"none\"\n\
         [components.x]\npath = \"hello.wasm\"\nisolation = true\n",
    );
    check("config_isolation", &place.typed(&["check"]));
    let place = Place::new(
        "[components.x]\npath = \"hello.wasm\"\n[components.x.tools.greet]\nisolation = \"strict\"\n",
    );
    check("config_isolation_of_a_tool", &place.typed(&["check"]));
}
