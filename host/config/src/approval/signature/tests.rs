//! Tests of valid and invalid signatures of a component.
//!
//! A signature of `ssh-keygen` must be accepted; one with any changed, missing or added byte must
//! not. A key has one publisher and stays revoked.

use ssh_key::PrivateKey;
use ssh_key::private::Ed25519Keypair;

use super::*;

/// The output of `ssh-keygen -Y sign -n toolcell` of OpenSSH 9.2 for [`BYTES`].
const SIGNATURE: &str = "\
-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgCEhMJsDfZkQUEY3pBybjkVQk55
HuAMNiSVe1JIN/LV4AAAAIdG9vbGNlbGwAAAAAAAAABnNoYTUxMgAAAFMAAAALc3NoLWVk
MjU1MTkAAABAGjyeC2eF+jmabtLWUrrUHY409EuTMDC0dhc5ID1gtiTLO7xx6Ww2FlcIDE
BvfWtS1px2Wss/RkYBkdmHig4fCQ==
-----END SSH SIGNATURE-----
";
const BYTES: &[u8] = b"the bytes of a tool";
/// The key, as in its `.pub` file.
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAhITCbA32ZEFBGN6Qcm45FUJOeR7gDDYklXtSSDfy1e test";
/// The output of `ssh-keygen -l`.
const FINGERPRINT: &str = "SHA256:uAOiuJ2WXyhiKceeLtZBPeLnfavhu/b5B0wLxWtTIVI";

/// Returns publishers with these keys.
fn publishers(keys: &[(&str, &str, Trust)]) -> Result<Publishers, InvalidKey> {
    let mut publishers = Publishers::default();
    keys.iter().try_for_each(|(name, key, trust)| publishers.add(name, key, *trust))?;
    Ok(publishers)
}

fn key(seed: u8) -> PrivateKey {
    Ed25519Keypair::from_seed(&[seed; 32]).into()
}

/// Returns a signature of [`BYTES`] by this key.
fn signature(seed: u8, hash: HashAlg) -> String {
    key(seed).sign(NAMESPACE, hash, BYTES).unwrap().to_pem(LineEnding::LF).unwrap()
}

fn public(seed: u8) -> String {
    key(seed).public_key().to_openssh().unwrap()
}

#[test]
fn ssh_keygen_signature_is_accepted() {
    let publishers =
        publishers(&[("acme", KEY, Trust::Good), ("other", &public(1), Trust::Good)]).unwrap();
    let signer = Signer { publisher: "acme".to_owned(), key: FINGERPRINT.to_owned() };
    for (text, by) in
        [(SIGNATURE, None), (SIGNATURE, Some("acme")), (&SIGNATURE.replace('\n', "\r\n"), None)]
    {
        let found = publishers.verify(Some(text.as_bytes()), BYTES, by);
        assert_eq!(found, Ok(signer.clone()), "{by:?}");
    }
    for hash in [HashAlg::Sha256, HashAlg::Sha512] {
        let found = publishers.verify(Some(signature(1, hash).as_bytes()), BYTES, None);
        assert_eq!(found.unwrap().publisher, "other", "{hash}");
    }
}

#[test]
fn changed_or_shortened_signature_is_refused() {
    let publishers = publishers(&[("acme", KEY, Trust::Good)]).unwrap();
    let judge = |text: &[u8], bytes: &[u8]| publishers.verify(Some(text), bytes, None);
    for at in 0..SIGNATURE.len() {
        let mut text = SIGNATURE.as_bytes().to_vec();
        text[at] ^= 1;
        assert!(judge(&text, BYTES).is_err(), "{at}");
        text.remove(at);
        // The line break after the last line is optional.
        let is_last = at == SIGNATURE.len() - 1;
        assert!(judge(&text, BYTES).is_err() || is_last, "{at}");
        assert!(judge(&SIGNATURE.as_bytes()[..at], BYTES).is_err() || is_last, "{at}");
    }
    for bytes in [&BYTES[1..], &BYTES[..BYTES.len() - 1], b"", &[BYTES, b"\0"].concat()] {
        assert_eq!(judge(SIGNATURE.as_bytes(), bytes), Err(Fault::OtherBytes));
    }
}

#[test]
fn key_has_one_publisher_and_stays_revoked() {
    use Trust::{Good, Revoked};
    let (own, other) = (public(1), public(2));
    let ecdsa = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBJhY";
    for (keys, expected) in [
        (&[("a", own.as_str(), Good), ("a", &other, Good), ("a", &own, Good)][..], None),
        (&[("a", &own, Good), ("b", &own, Good)], Some(InvalidKey::Taken("a".to_owned()))),
        (&[("a", &own, Revoked), ("b", &own, Good)], Some(InvalidKey::Taken("a".to_owned()))),
        (&[("a", "", Good)], Some(InvalidKey::NotEd25519)),
        (&[("a", &own[..own.len() - 1], Good)], Some(InvalidKey::NotEd25519)),
        (&[("a", &own.replace("ssh-ed25519", "ssh-rsa"), Good)], Some(InvalidKey::NotEd25519)),
        (&[("a", ecdsa, Good)], Some(InvalidKey::NotEd25519)),
        (&[("a", "-----BEGIN OPENSSH PRIVATE KEY-----", Good)], Some(InvalidKey::NotEd25519)),
    ] {
        assert_eq!(publishers(keys).err(), expected, "{keys:?}");
    }
    let text = signature(1, HashAlg::Sha512);
    for keys in [
        [("a", own.as_str(), Good), ("a", &own, Revoked)],
        [("a", &own, Revoked), ("a", &own, Good)],
    ] {
        let judged = publishers(&keys).unwrap().verify(Some(text.as_bytes()), BYTES, Some("a"));
        assert!(
            matches!(judged, Err(Fault::Revoked(signer)) if signer.publisher == "a"),
            "{keys:?}"
        );
    }
}
