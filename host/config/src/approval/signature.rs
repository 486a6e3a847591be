//! Verifies the signatures of components by the keys of their publishers.
//!
//! Reading a configuration adds the keys of `[publishers]` to a [`Publishers`], in the form of a
//! `.pub` file. When a component is read, `verify` takes the text of its signature, as
//! `ssh-keygen -Y sign` writes it, and the component's bytes. It returns the [`Signer`], or a
//! [`Fault`] with a hint. A signature is valid if it is over these bytes, for the purpose
//! `toolcell`, by an Ed25519 key of a publisher. A key belongs to one publisher, and a revoked key
//! is never valid. There is no I/O, and untrusted text is truncated and escaped.
//!
//! Not here: detecting that an older version was put back, whose signature is still valid. A digest
//! in the configuration or the lock file (approvals) detects it.
//!
//! Source: OpenSSH, PROTOCOL.sshsig; docs/threat-model.md, row 60.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use ssh_key::{HashAlg, LineEnding, PublicKey, SshSig};
use toolcell::controls::enforced;

use crate::paths::files::MAX_SIGNATURE;
use crate::text::clean;
use crate::text::units::Size;

/// The required namespace of a signature (`ssh-keygen -n`), so that a signature of a mail or a
/// commit is not accepted.
const NAMESPACE: &str = "toolcell";
/// Maximum characters shown of a signature's namespace.
const MAX_PURPOSE: usize = 40;

/// The state of a publisher's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Valid.
    Good,
    /// Revoked: others may have it.
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

/// The signer of a component.
///
/// # Shape
/// As JSON: `{"publisher", "key"}`, with the fingerprint of the key as `ssh-keygen -l` shows it.
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

/// The reason why a text is not a publisher's key. The text is in no message, since it may be a
/// private key by mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidKey {
    #[error("this is not an Ed25519 public key")]
    NotEd25519,
    #[error("this key already belongs to `{0}`")]
    Taken(String),
}

impl InvalidKey {
    /// Returns a suggestion on how to resolve it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::NotEd25519 => {
                "write the line of a `.pub` file, \"ssh-ed25519 AAAA…\"; `ssh-keygen -t ed25519` makes one"
            }
            Self::Taken(_) => "remove one of the two: a key belongs to one publisher",
        }
    }
}

/// The reason why a signature is not accepted: the predicate of a sentence about the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("is not there")]
    Missing,
    #[error("is too large for a signature")]
    TooLarge,
    /// The file is not a signature, or it has other content too.
    #[error("is not an SSH signature")]
    NoSignature,
    #[error("is not made with an Ed25519 key")]
    OtherAlgorithm,
    /// The namespace is another one: its text, truncated and escaped.
    #[error("is made for `{0}`, not for `{own}`", own = NAMESPACE)]
    OtherPurpose(String),
    #[error("is not a signature of these bytes")]
    OtherBytes,
    #[error("is made with a key that no publisher in the configuration has: {0}")]
    UnknownKey(String),
    #[error("is made with a key of `{}` that was revoked: {}", _0.publisher, _0.key)]
    Revoked(Signer),
    #[error("is made by {0}")]
    OtherPublisher(Signer),
}

impl Fault {
    /// Returns a suggestion on how to resolve it.
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
    /// Adds a publisher's key. A revoked key stays revoked.
    pub(crate) fn add(
        &mut self,
        publisher: &str,
        key: &str,
        trust: Trust,
    ) -> Result<(), InvalidKey> {
        let key = PublicKey::from_openssh(key).map_err(|_| InvalidKey::NotEd25519)?;
        let key = key.key_data().ed25519().ok_or(InvalidKey::NotEd25519)?.0;
        let new = || Owner { publisher: publisher.to_owned(), trust };
        let owner = self.0.entry(key).or_insert_with(new);
        if owner.publisher != publisher {
            return Err(InvalidKey::Taken(owner.publisher.clone()));
        }
        if trust == Trust::Revoked {
            owner.trust = trust;
        }
        Ok(())
    }

    /// Returns the signer of these bytes: the publisher `by`, or any if it is `None`.
    pub(crate) fn verify(
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
        // Verified with the key in the signature itself. The owner of the key is checked
        // afterwards.
        let key = PublicKey::from(signature.public_key().clone());
        let raw = key.key_data().ed25519().ok_or(Fault::OtherAlgorithm)?.0;
        if signature.namespace() != NAMESPACE && enforced!(SignatureNamespace) {
            let purpose: String = signature.namespace().chars().take(MAX_PURPOSE).collect();
            return Err(Fault::OtherPurpose(clean::escaped(&purpose)));
        }
        if key.verify(signature.namespace(), bytes, &signature).is_err() && enforced!(SignedBytes) {
            return Err(Fault::OtherBytes);
        }
        let key = key.fingerprint(HashAlg::Sha256).to_string();
        let Some(owner) = self.0.get(&raw) else { return Err(Fault::UnknownKey(key)) };
        let signer = Signer { publisher: owner.publisher.clone(), key };
        if owner.trust == Trust::Revoked && enforced!(RevokedKeys) {
            return Err(Fault::Revoked(signer));
        }
        if by.is_some_and(|by| by != signer.publisher) && enforced!(SignaturePublisher) {
            return Err(Fault::OtherPublisher(signer));
        }
        Ok(signer)
    }
}

/// Decodes a signature, and accepts only the exact encoding of `ssh-keygen`. The decoder alone
/// would accept text before it and wrong lengths within it.
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
