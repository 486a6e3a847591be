//! Who signed a component: publishers by their keys, and what a signature is worth.
//!
//! In: keys as a `.pub` file has them; a signature as `ssh-keygen -Y sign` makes it, and the bytes
//! that it should be over.
//! Out: the [`Signer`], or the [`Fault`].
//! Invariants: no I/O; a signature counts when it is over these bytes, for this purpose, by an
//! Ed25519 key of a publisher's; a key is one publisher's; one that was revoked is good nowhere; a
//! stranger's text is cut and shown harmless.
//! Not here: that an older version is put back, whose signature is as good as ever. A digest or the
//! lock tells it.
//! Source: OpenSSH, PROTOCOL.sshsig; docs/threat-model.md, row 60.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use ssh_key::{HashAlg, LineEnding, PublicKey, SshSig};
use toolcell::defence::{Defence, stands};

use crate::clean;
use crate::units::Size;

/// What a signature has to be made for (`ssh-keygen -n`), so that none over a mail or a commit
/// passes for one.
const NAMESPACE: &str = "toolcell";
/// Bytes of a signature's file; one has about 300.
pub(crate) const MAX_SIGNATURE: u64 = 4 << 10;
/// Characters that are shown of what a signature says it is for.
const MAX_PURPOSE: usize = 40;

/// What a publisher's key is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It signs.
    Good,
    /// It signs no more: others may have it.
    Revoked,
}

/// All publishers, by the bytes of their keys.
#[derive(Debug, Default)]
pub(crate) struct Publishers(BTreeMap<[u8; 32], Owner>);

#[derive(Debug)]
struct Owner {
    publisher: String,
    trust: Trust,
}

/// Who signed a component.
///
/// # Shape
/// As JSON: `{"publisher", "key"}`, the key by its fingerprint as `ssh-keygen -l` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signer {
    /// The publisher's name in the configuration.
    pub publisher: String,
    /// The key's fingerprint.
    pub key: String,
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.publisher, self.key)
    }
}

/// Why text is no key of a publisher's. The text is in no message: it may be a private key that was
/// mistaken for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadKey {
    /// It is no public key, or none of Ed25519.
    NotEd25519,
    /// It is this publisher's.
    Taken(String),
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEd25519 => f.write_str("this is not an Ed25519 public key"),
            Self::Taken(publisher) => write!(f, "this key already belongs to `{publisher}`"),
        }
    }
}

impl BadKey {
    /// What to do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::NotEd25519 => {
                "write the line of a `.pub` file, \"ssh-ed25519 AAAA…\"; `ssh-keygen -t ed25519` makes one"
            }
            Self::Taken(_) => "remove one of the two: a key belongs to one publisher",
        }
    }
}

/// What is wrong with a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is none.
    Missing,
    /// It is larger than any signature.
    TooLarge,
    /// It is no signature, or more than one, or one with something around it.
    NoSignature,
    /// It is made with a key of another kind.
    OtherAlgorithm,
    /// It is made for something else: its own words, cut and harmless.
    OtherPurpose(String),
    /// It is not a signature of these bytes.
    OtherBytes,
    /// It is good, by a key that no publisher has.
    UnknownKey(String),
    /// It is good, by a key that was revoked.
    Revoked(Signer),
    /// It is good, by another publisher.
    OtherPublisher(Signer),
}

/// What is said of the file: "… is not an SSH signature".
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is not there"),
            Self::TooLarge => f.write_str("is too large for a signature"),
            Self::NoSignature => f.write_str("is not an SSH signature"),
            Self::OtherAlgorithm => f.write_str("is not made with an Ed25519 key"),
            Self::OtherPurpose(purpose) => {
                write!(f, "is made for `{purpose}`, not for `{NAMESPACE}`")
            }
            Self::OtherBytes => f.write_str("is not a signature of these bytes"),
            Self::UnknownKey(key) => {
                write!(f, "is made with a key that no publisher in the configuration has: {key}")
            }
            Self::Revoked(Signer { publisher, key }) => {
                write!(f, "is made with a key of `{publisher}` that was revoked: {key}")
            }
            Self::OtherPublisher(signer) => write!(f, "is made by {signer}"),
        }
    }
}

impl Fault {
    /// What to do about it.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Missing => format!(
                "get the signature from the publisher (`ssh-keygen -Y sign -n {NAMESPACE} -f KEY FILE`), \
                 or name its file in `signature`"
            ),
            Self::TooLarge => format!(
                "a signature file has at most {}: get the signature again from its publisher",
                Size(MAX_SIGNATURE)
            ),
            Self::NoSignature => {
                "get the signature again: its file has what `ssh-keygen -Y sign` writes, and nothing else".to_owned()
            }
            Self::OtherAlgorithm => {
                "ask the publisher to sign the component with a key of `ssh-keygen -t ed25519`".to_owned()
            }
            Self::OtherPurpose(_) => {
                format!("ask the publisher to sign the component with `ssh-keygen -Y sign -n {NAMESPACE}`")
            }
            Self::OtherBytes => "get the component and its signature again, both of one version".to_owned(),
            Self::UnknownKey(_) => {
                "do not use the component, unless its publisher confirms the key elsewhere: then add the key to `keys`"
                    .to_owned()
            }
            Self::Revoked(_) => {
                "do not use the component: ask its publisher for one that is signed with another key".to_owned()
            }
            Self::OtherPublisher(_) => {
                "do not use the component, unless you trust this publisher for it: then write its name in `publisher`"
                    .to_owned()
            }
        }
    }
}

impl Publishers {
    /// Adds a key of a publisher's. Revoked once, it stays revoked.
    pub(crate) fn add(&mut self, publisher: &str, key: &str, trust: Trust) -> Result<(), BadKey> {
        let key = PublicKey::from_openssh(key).map_err(|_| BadKey::NotEd25519)?;
        let key = key.key_data().ed25519().ok_or(BadKey::NotEd25519)?.0;
        let new = || Owner { publisher: publisher.to_owned(), trust };
        let owner = self.0.entry(key).or_insert_with(new);
        if owner.publisher != publisher {
            return Err(BadKey::Taken(owner.publisher.clone()));
        }
        if trust == Trust::Revoked {
            owner.trust = trust;
        }
        Ok(())
    }

    /// Who signed these bytes: this publisher, or any where none is named.
    pub(crate) fn judge(
        &self,
        signature: Option<&[u8]>,
        bytes: &[u8],
        by: Option<&str>,
    ) -> Result<Signer, Fault> {
        let signature = signature.ok_or(Fault::Missing)?;
        if signature.len() as u64 > MAX_SIGNATURE {
            return Err(Fault::TooLarge);
        }
        let signature = decoded(signature)?;
        // Of the key that it names by itself: whose that is comes after.
        let key = PublicKey::from(signature.public_key().clone());
        let raw = key.key_data().ed25519().ok_or(Fault::OtherAlgorithm)?.0;
        if signature.namespace() != NAMESPACE && stands(Defence::SignatureNamespace) {
            let purpose: String = signature.namespace().chars().take(MAX_PURPOSE).collect();
            return Err(Fault::OtherPurpose(clean::shown(&purpose)));
        }
        if key.verify(signature.namespace(), bytes, &signature).is_err()
            && stands(Defence::SignedBytes)
        {
            return Err(Fault::OtherBytes);
        }
        let key = key.fingerprint(HashAlg::Sha256).to_string();
        let Some(owner) = self.0.get(&raw) else { return Err(Fault::UnknownKey(key)) };
        let signer = Signer { publisher: owner.publisher.clone(), key };
        if owner.trust == Trust::Revoked && stands(Defence::RevokedKeys) {
            return Err(Fault::Revoked(signer));
        }
        if by.is_some_and(|by| by != signer.publisher) && stands(Defence::SignaturePublisher) {
            return Err(Fault::OtherPublisher(signer));
        }
        Ok(signer)
    }
}

/// A signature that is written in the one way in which `ssh-keygen` writes it. The decoder alone
/// would let text stand before it, and lengths within it be wrong.
fn decoded(text: &[u8]) -> Result<SshSig, Fault> {
    let signature = SshSig::from_pem(text).map_err(|error| {
        if error == ssh_key::Error::AlgorithmUnknown {
            Fault::OtherAlgorithm
        } else {
            Fault::NoSignature
        }
    })?;
    let plain = String::from_utf8_lossy(text).replace("\r\n", "\n");
    let is_plain = signature
        .to_pem(LineEnding::LF)
        .is_ok_and(|written| written.trim_end() == plain.trim_end());
    if is_plain && signature.version() == SshSig::VERSION {
        Ok(signature)
    } else {
        Err(Fault::NoSignature)
    }
}

#[cfg(test)]
mod tests;
