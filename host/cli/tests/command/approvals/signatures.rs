//! Components that have to be signed: publishers, keys, and all ways to forge a signature.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use ssh_key::private::Ed25519Keypair;
use ssh_key::public::{KeyData, RsaPublicKey};
use ssh_key::{Algorithm, HashAlg, LineEnding, Mpint, PrivateKey, Signature, SshSig};
use toolcell_test_guests::{Answer, Hostile, bytes, rows};

use crate::place::Place;
use crate::typed::{CommandResult, check};

const RUN: [&str; 4] = ["run", "mine", "greet", "{\"name\": \"Ada\"}"];
/// Seeds of keys.
const ACME: u8 = 1;
const OTHER: u8 = 2;
const REVOKED: u8 = 3;
const STRANGER: u8 = 4;
/// A signature that `ssh-keygen -Y sign` makes with an ECDSA key.
const ECDSA: &str = "\
-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAAGgAAAATZWNkc2Etc2hhMi1uaXN0cDI1NgAAAAhuaXN0cDI1NgAAAE
EE+X0fFzQdvbBWfuc9oDNXE4bYhzW4vYT6Creiy/jk2fgLKkZUY5tA0gthy8Obuimr5sSs
oC2xu+7MfnDwQR62mAAAAAh0b29sY2VsbAAAAAAAAAAGc2hhNTEyAAAAYwAAABNlY2RzYS
1zaGEyLW5pc3RwMjU2AAAASAAAACB4qeV9byTcPfxRadyUawWDTxWj6NN721s/rWlkvsz+
/gAAACBxp+ZWhj3TaS7U+u0fBMS2hySZWwU2GumB6ZMa8rQXYg==
-----END SSH SIGNATURE-----
";

fn key(seed: u8) -> PrivateKey {
    Ed25519Keypair::from_seed(&[seed; 32]).into()
}

fn public(seed: u8) -> String {
    key(seed).public_key().to_openssh().expect("a key")
}

fn signature(seed: u8, namespace: &str, bytes: &[u8]) -> String {
    let signature = key(seed).sign(namespace, HashAlg::Sha512, bytes).expect("a signature");
    signature.to_pem(LineEnding::LF).expect("a signature")
}

/// Returns a signature that claims to be by an RSA key.
fn of_rsa() -> String {
    let number = |byte| Mpint::from_positive_bytes(&[byte; 256]).expect("a number");
    let key = KeyData::Rsa(RsaPublicKey { e: number(3), n: number(5) });
    let signature = Signature::new(Algorithm::Rsa { hash: Some(HashAlg::Sha512) }, [7; 256])
        .expect("a signature");
    let signature = SshSig::new(key, "toolcell", HashAlg::Sha512, signature).expect("a signature");
    signature.to_pem(LineEnding::LF).expect("a signature")
}

/// Returns a configuration with the publishers of these tests, and a component with these further
/// lines.
fn config(host: &str, component: &str) -> String {
    let (acme, other, revoked) = (public(ACME), public(OTHER), public(REVOKED));
    format!(
        "{host}\n[publishers]\nacme = {{ keys = [\"{acme}\"], revoked_keys = [\"{revoked}\"] }}\n\
         other = {{ keys = [\"{other}\"] }}\n[components.mine]\npath = \"mine.wasm\"\n{component}\n"
    )
}

/// Returns a place with a component `mine.wasm`, signed by this key.
fn place(config: &str, seed: u8) -> Place {
    let place = Place::new(config);
    put(&place, &bytes("hello"), seed);
    place
}

fn put(place: &Place, component: &[u8], seed: u8) {
    fs::write(place.path().join("mine.wasm"), component).expect("a place");
    fs::write(place.path().join("mine.wasm.sig"), signature(seed, "toolcell", component))
        .expect("a place");
}

/// Checks that the component is refused, with the line of the file that requires the signature and
/// a hint.
fn refused(shown: &CommandResult, line: &str, needle: &str) {
    assert_eq!((shown.status, shown.stdout.as_str()), (1, ""), "{needle}: {shown}");
    assert!(
        shown.stderr.starts_with(&format!("error: toolcell.toml:{line}: `")),
        "{needle}: {shown}"
    );
    assert!(
        shown.stderr.contains(needle) && shown.stderr.contains("\nhint: "),
        "{needle}: {shown}"
    );
}

#[test]
fn forged_signature_is_refused() {
    let place = place(&config("", "publisher = \"acme\""), ACME).approved();
    assert_eq!(place.typed(&RUN).stdout, "Hello, Ada!\n");
    let component = bytes("hello");
    let good = signature(ACME, "toolcell", &component);
    let signed =
        rows::<(&str, u8, &str, Option<&str>, &str)>("signatures", "forged_signature_is_refused");
    let signed = signed.into_iter().map(|(name, seed, namespace, text, needle)| {
        let bytes = text.map_or(&component[..], str::as_bytes);
        (name, signature(seed, namespace, bytes), needle)
    });
    for (name, forged, needle) in signed.chain([
        ("by a key of RSA", of_rsa(), "is not made with an Ed25519 key"),
        ("by a key of ECDSA", ECDSA.to_owned(), "is not made with an Ed25519 key"),
        ("cut in two", good[..good.len() / 2].to_owned(), "is not an SSH signature"),
        ("with text after it", format!("{good}and so on\n"), "is not an SSH signature"),
        ("with text before it", format!("so\n{good}"), "is not an SSH signature"),
        ("twice", good.repeat(2), "is not an SSH signature"),
        ("with nothing in it", String::new(), "is not an SSH signature"),
        ("no text", "\u{0}\u{fffd}".repeat(100), "is not an SSH signature"),
        ("a public key", public(ACME), "is not an SSH signature"),
    ]) {
        fs::write(place.path().join("mine.wasm.sig"), forged).unwrap();
        let shown = place.typed(&RUN);
        refused(
            &shown,
            "7:13",
            "`HERE/mine.wasm` must be signed by `acme`: `HERE/mine.wasm.sig` is ",
        );
        refused(&shown, "7:13", needle);
        assert!(!shown.stderr.contains('\u{1b}'), "{name}: {shown}");
    }
    // A valid signature of another version, in both directions.
    put(&place, b"another version", ACME);
    fs::write(place.path().join("mine.wasm"), &component).unwrap();
    refused(&place.typed(&RUN), "7:13", "is not a signature of these bytes");
    fs::write(place.path().join("mine.wasm"), [&component[..], &[0, 2, 1, b'x']].concat()).unwrap();
    fs::write(place.path().join("mine.wasm.sig"), &good).unwrap();
    refused(&place.typed(&RUN), "7:13", "is not a signature of these bytes");
}

/// Reading it never blocks, and is bounded.
#[test]
fn signature_must_be_a_small_regular_file() {
    let place = place(&config("", "publisher = \"acme\""), ACME).approved();
    let path = place.path().join("mine.wasm.sig");
    let good = fs::read(&path).unwrap();
    let put = |make: &dyn Fn(&Path)| {
        fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).unwrap();
        make(&path);
        place.typed(&RUN)
    };
    let nothing = put(&|_| File::create(place.path().join("elsewhere.sig")).map(drop).unwrap());
    refused(&nothing, "7:13", "`HERE/mine.wasm.sig` is not there");
    fs::write(&path, &good).unwrap();
    let huge = put(&|path| File::create(path).and_then(|file| file.set_len(1 << 30)).unwrap());
    refused(&huge, "7:13", "is too large for a signature");
    for (what, make) in [
        (
            "a pipe",
            &(|path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()))
                as &dyn Fn(&Path),
        ),
        ("a directory", &|path: &Path| fs::create_dir(path).unwrap()),
        ("a device", &|path: &Path| symlink("/dev/zero", path).unwrap()),
        ("does not exist", &|path: &Path| symlink("nowhere", path).unwrap()),
    ] {
        let shown = put(make);
        assert_eq!((shown.status, shown.stdout.as_str()), (1, ""), "{shown}");
        assert!(
            shown.stderr.contains(what) && shown.stderr.contains("\nhint: "),
            "{what}: {shown}"
        );
    }
    let linked = put(&|path| {
        fs::write(place.path().join("elsewhere.sig"), &good).unwrap();
        symlink("elsewhere.sig", path).unwrap();
    });
    assert_eq!(linked.status, 0, "it is what it says that counts: {linked}");
}

/// By no command, also not by one that only shows the component: unsigned bytes are not parsed.
#[test]
fn no_command_uses_wrongly_signed_component() {
    let place = place(&config("", "publisher = \"acme\"\nsignature = \"signatures/mine\""), ACME);
    refused(&place.typed(&["approve", "--yes"]), "7:13", "`HERE/signatures/mine` is not there");
    fs::create_dir(place.path().join("signatures")).unwrap();
    fs::rename(place.path().join("mine.wasm.sig"), place.path().join("signatures/mine")).unwrap();
    let place = place.approved();
    assert_eq!(place.typed(&RUN).status, 0);
    fs::write(place.path().join("mine.wasm"), "no component").unwrap();
    fs::write(place.path().join("calls"), "[]").unwrap();
    symlink("mine.wasm", place.path().join("link.wasm")).unwrap();
    for words in [
        &RUN[..],
        &["run", "link.wasm", "greet"],
        &["batch", "mine", "--calls", "calls"],
        &["tools", "mine"],
        &["list", "mine"],
        &["inspect", "mine"],
        &["check"],
        &["approve", "--yes"],
        &["learn", "mine", "{}"],
        &["explain", "mine", "greet", "GET https://a.example"],
    ] {
        let shown = place.typed(words);
        let needle = "`HERE/signatures/mine` is not a signature of these bytes";
        assert!(
            shown.status == 1 && shown.stdout.is_empty() && shown.stderr.contains(needle),
            "{words:?}: {shown}"
        );
    }
}

/// Components that the configuration names, and those that are named by their path. Without the
/// setting no signature is required.
#[test]
fn require_signed_applies_to_every_component() {
    let place = place(&config("[host]\nrequire_signatures = true", ""), OTHER).approved();
    let by_path = ["run", "hello.wasm", "greet", "{\"name\": \"Ada\"}"];
    assert_eq!(place.typed(&RUN).status, 0, "any of the publishers will do");
    refused(
        &place.typed(&by_path),
        "2:22",
        "`hello.wasm` must be signed: `hello.wasm.sig` is not there",
    );
    let sign = |seed| {
        fs::write(place.path().join("hello.wasm.sig"), signature(seed, "toolcell", &bytes("hello")))
    };
    sign(STRANGER).unwrap();
    refused(
        &place.typed(&by_path),
        "2:22",
        "is made with a key that no publisher in the configuration has: SHA256:",
    );
    sign(REVOKED).unwrap();
    refused(
        &place.typed(&by_path),
        "2:22",
        "is made with a key of `acme` that was revoked: SHA256:",
    );
    sign(OTHER).unwrap();
    assert_eq!(place.typed(&by_path).status, 0);
    fs::remove_file(place.path().join("mine.wasm.sig")).unwrap();
    refused(&place.typed(&RUN), "2:22", "`HERE/mine.wasm.sig` is not there");
    // If no signature is required, none is read.
    fs::write(place.path().join("hello.wasm.sig"), "no signature").unwrap();
    for without in ["", "[host]\nrequire_signatures = false"] {
        place.write(&config(without, ""));
        place.approve();
        assert_eq!((place.typed(&RUN).status, place.typed(&by_path).status), (0, 0));
        assert_eq!(
            place.typed(&["inspect", "mine", "--json"]).json()["signed_by"],
            serde_json::Value::Null
        );
    }
}

#[test]
fn check_and_inspect_show_the_signer() {
    let place = place(&config("", "publisher = \"acme\""), ACME).approved();
    check("signed_check", &place.typed(&["check"]));
    check("signed_inspect", &place.typed(&["inspect", "mine"]));
    let key = key(ACME).fingerprint(HashAlg::Sha256).to_string();
    let signer = serde_json::json!({ "publisher": "acme", "key": key });
    assert_eq!(place.typed(&["inspect", "mine", "--json"]).json()["signed_by"], signer);
    assert_eq!(place.typed(&["check", "--json"]).json()["components"][0]["signed_by"], signer);
}

/// The lock has the approved publisher: another publisher that is also allowed is a change, and so
/// is none.
#[test]
fn changed_publisher_needs_new_approval() {
    let lines = ["publisher = \"acme\"", "publisher = \"other\"", "", "publisher = \"acme\""];
    let place = place(&config("", lines[0]), ACME).approved();
    let lock = || fs::read_to_string(place.path().join("toolcell.lock")).unwrap();
    assert!(lock().contains("publisher = \"acme\"\n"), "{}", lock());
    for (line, seed, needle) in [
        (lines[1], OTHER, "its publisher was acme, and is other now"),
        (lines[2], OTHER, "its publisher was other, and is not checked now"),
        (lines[3], ACME, "its publisher was not checked, and is acme now"),
    ] {
        place.write(&config("", line));
        put(&place, &bytes("hello"), seed);
        // The configuration is named, so that only the component has to be approved.
        let shown = place.typed(&[&["--config", "toolcell.toml"], &RUN[..]].concat());
        assert!(shown.status == 21 && shown.stderr.contains(needle), "{needle}: {shown}");
        assert_eq!(place.typed(&["check", "--json"]).json()["components"][0]["state"], "changed");
        if line == lines[1] {
            check("signed_approve", &place.typed(&["approve"]));
            let json = place.typed(&["approve", "--json"]).json();
            assert_eq!(
                json["components"][0]["publisher"],
                serde_json::json!({ "old": "acme", "new": "other" })
            );
            assert_eq!(json["components"][0]["signed_by"]["publisher"], "other");
        }
        place.approve();
        assert_eq!(place.typed(&RUN).status, 0);
    }
}

/// An older version has a valid signature too: only the lock tells it from the newer one.
#[test]
fn lock_detects_older_signed_version() {
    let place = place(&config("", "publisher = \"acme\""), ACME);
    let version = |description: &'static str| {
        Hostile { description, ..Hostile::answering(Answer::Echo) }.component()
    };
    put(&place, &version("the newer one"), ACME);
    place.approve();
    put(&place, &version("the older one"), ACME);
    let shown = place.typed(&["tools", "mine"]);
    shown.tells(21, "is not the one that was approved");
}

#[test]
fn publisher_errors_name_their_location() {
    let place = Place::new("");
    let key = public(ACME);
    let component = "[components.mine]\npath = \"hello.wasm\"\n";
    place.write(&format!(
        "[host]\nrequire_singatures = true\n[publishers.acme]\nrevoked_keys = []\n[publishers.other]\nkeys = \"{key}\"\n{component}"
    ));
    check("config_publishers_keys", &place.typed(&["check"]));
    place.write(&format!(
        "[publishers.acme]\nkeys = [\"{key}\", \"ssh-rsa AAAAB3NzaC1yc2E\", \"a private key\"]\n\
         [publishers.other]\nkeys = []\nrevoked_keys = [\"{key}\"]\n[publishers.\"a\\nb\"]\nkeys = []\n\
         {component}publisher = \"amce\"\n[components.yours]\npath = \"asks.wasm\"\nsignature = \"asks.sig\"\n"
    ));
    check("config_publishers", &place.typed(&["check"]));
    place.write(&format!("[host]\nrequire_signatures = true\n{component}"));
    check("config_publishers_none", &place.typed(&["check"]));
    let json = place.typed(&["check", "--json"]).json();
    assert_eq!(
        (&json["error"]["kind"], &json["error"]["problems"][0]["line"]),
        (&"config".into(), &2.into()),
        "{json}"
    );
}
