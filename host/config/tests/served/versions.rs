//! Approved versions: one is served while a changed one waits for approval, and an earlier one can
//! be restored.

use std::fs;

use ssh_key::private::Ed25519Keypair;
use ssh_key::{HashAlg, LineEnding, PrivateKey};
use toolcell_config::{Error, LoadedTools, Lock, Reason, ReloadChanges, Serving};

use crate::place::{Place, TWO, description, names, problems, rebuilt, refused, tool};

/// Returns the problems, and the description of the tool `one`.
fn state(loaded: &LoadedTools) -> (Vec<(&str, Reason, Serving)>, String) {
    (problems(loaded), description(loaded, "one"))
}

#[tokio::test]
async fn approved_version_serves_until_change_is_approved() {
    let place = Place::approved(TWO).await;
    let reloader = place.reloader().await;
    place.write("one.wasm", tool("one", "Changed."));
    assert_eq!(reloader.reload().await.expect("no error"), ReloadChanges::default());
    let changed = [("one", Reason::Changed, Serving::Approved)];
    let waiting = reloader.loaded();
    assert_eq!(state(&waiting), (changed.to_vec(), "The first.".to_owned()));
    assert_eq!(refused(&waiting, "one", None).await, None);
    // After a restart the approved version comes from the state directory.
    let restarted = place.load().await;
    assert_eq!(state(&restarted), (changed.to_vec(), "The first.".to_owned()));
    place.approve(&["one"]).await;
    assert!(reloader.reload().await.expect("no error").definitions_changed);
    assert_eq!(state(&reloader.loaded()), (vec![], "Changed.".to_owned()));
    // A kept version is accepted by its digest alone.
    place.write("one.wasm", tool("one", "Unapproved."));
    let kept = place.path().join("state/versions");
    for project in fs::read_dir(kept).expect("no error") {
        for version in
            fs::read_dir(project.expect("no error").path().join("one")).expect("no error")
        {
            let version = version.expect("no error").path();
            if version.extension().is_some_and(|ending| ending == "wasm") {
                fs::write(version, rebuilt(&tool("one", "Changed."))).expect("no error");
            }
        }
    }
    assert_eq!(names(&place.load().await), ["two"]);
}

#[tokio::test]
async fn approval_refuses_a_lock_written_meanwhile() {
    let place = Place::new(TWO);
    let configuration = place.read();
    let lock = Lock::beside(&configuration).expect("no error");
    place.write("toolcell.lock", "written by another process since");
    let error = configuration.approve(&lock, &[], &["two".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("another process has just written"), "{error}");
}

#[tokio::test]
async fn rollback_makes_the_previous_version_current() {
    let place = Place::new(TWO);
    let versions =
        ["The first.", "The next.", "The last."].map(|description| tool("one", description));
    for version in &versions {
        place.write("one.wasm", version);
        place.approve(&["one", "two"]).await;
    }
    let reloader = place.reloader().await;
    for (before, now) in [("The last.", "The next."), ("The next.", "The first.")] {
        assert_eq!(description(&reloader.loaded(), "one"), before);
        let rolled_back = place.read().rollback("one").expect("no error");
        assert!(rolled_back.replaced_file && rolled_back.from != rolled_back.to, "{rolled_back:?}");
        assert!(reloader.reload().await.expect("no error").replaced.contains("one"));
        assert_eq!(description(&reloader.loaded(), "one"), now);
        assert!(reloader.loaded().problems().is_empty());
    }
    assert_eq!(place.file("one.wasm"), versions[0]);
    let lock = place.file("toolcell.lock");
    for (name, needle) in [
        ("one", "no earlier version of `one`"),
        ("two", "no earlier version of `two`"),
        ("three", "has no component `three`"),
    ] {
        let error = place.read().rollback(name).unwrap_err();
        assert!(error.to_string().contains(needle) && !error.hint().is_empty(), "{error}");
    }
    assert_eq!(place.file("toolcell.lock"), lock);
    // A version that was rolled back is not the predecessor of the next approval.
    place.write("one.wasm", tool("one", "After."));
    place.approve(&["one"]).await;
    place.write("one.wasm", tool("one", "Never approved."));
    let rolled_back = place.read().rollback("one").expect("no error");
    let kept = rolled_back.backup.expect("a copy of the file that was never approved");
    assert_eq!(std::fs::read(kept).expect("no error"), tool("one", "Never approved."));
    assert_eq!(place.file("one.wasm"), tool("one", "After."));
    let rolled_back = place.read().rollback("one").expect("no error");
    assert!(rolled_back.replaced_file && rolled_back.backup.is_none(), "{rolled_back:?}");
    assert_eq!(description(&place.load().await, "one"), "The first.");
    // A digest in the configuration takes precedence.
    place.write("one.wasm", tool("one", "After."));
    place.approve(&["one"]).await;
    let digest = Lock::beside(&place.read()).expect("no error").components["one"].digest.clone();
    place.write(
        "toolcell.toml",
        TWO.replacen("one.wasm\"", &format!("one.wasm\"\ndigest = \"{digest}\""), 1),
    );
    assert!(matches!(place.read().rollback("one"), Err(Error::DigestMismatch(_))));
    let never_approved = Place::new(TWO);
    assert!(matches!(never_approved.read().rollback("one"), Err(Error::NotApproved { .. })));
}

/// A revoked key is valid for no version, whenever that was approved.
#[tokio::test]
async fn kept_version_obeys_current_signature_rules() {
    let key = PrivateKey::from(Ed25519Keypair::from_seed(&[7; 32]));
    let public = key.public_key().to_openssh().expect("no error");
    let signed = |bytes: &[u8]| {
        key.sign("toolcell", HashAlg::Sha512, bytes)
            .expect("no error")
            .to_pem(LineEnding::LF)
            .expect("no error")
    };
    let configuration = |revoked: &str| {
        let publisher =
            format!("[publishers.acme]\nkeys = [\"{public}\"]\nrevoked_keys = [{revoked}]\n");
        format!("{publisher}[components.one]\npath = \"one.wasm\"\npublisher = \"acme\"\n")
    };
    let place = Place::new(&configuration(""));
    let versions = [tool("one", "The first."), tool("one", "The next.")];
    for version in &versions {
        place.write("one.wasm", version);
        place.write("one.wasm.sig", signed(version));
        place.approve(&["one"]).await;
    }
    place.write("one.wasm", tool("one", "Forged."));
    let loaded = place.load().await;
    let unsigned = vec![("one", Reason::Unsigned, Serving::Approved)];
    assert_eq!(state(&loaded), (unsigned, "The next.".to_owned()));
    place.write("one.wasm", &versions[1]);
    place.read().rollback("one").expect("no error");
    let loaded = place.load().await;
    assert_eq!(state(&loaded), (vec![], "The first.".to_owned()));
    place.write("toolcell.toml", configuration(&format!("\"{public}\"")));
    let loaded = place.load().await;
    assert_eq!(problems(&loaded), [("one", Reason::Unsigned, Serving::Nothing)]);
    assert!(names(&loaded).is_empty());
}
