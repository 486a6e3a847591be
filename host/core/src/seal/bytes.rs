//! Seals bytes of a server's own, which travel through an untrusted client and come back.
//!
//! Sealing is encryption that also detects changes. A server calls [`Sealer::seal_bytes`] and gives
//! the text to a client; when the client sends it back, the server calls [`Sealer::open_bytes`].
//! The MCP code sends a pending question this way. A text opens only with the same key, for the
//! principal (a key or user of a tenant) that the sealer is bound to, and before it expires;
//! otherwise the result is a [`ResumeFault`]. Unlike the state of a question, it is not bound to a
//! tool or its arguments.
//!
//! Form: as in the parent module, with the prefix `tb1.`; the plaintext is the principal's
//! fingerprint, the time of expiry and the bytes.

use super::{FINGERPRINT_BYTES, Fingerprint, ResumeFault, Sealer, bound, millis, of_text};

/// The version of the form.
const PREFIX: &str = "tb1.";

impl Sealer {
    /// Seals bytes for the principal that the sealer is [bound to](Self::for_principal). They can
    /// be opened until the lifetime is over. Returns `None` if the system has no randomness.
    ///
    /// ```
    /// use toolcell::Sealer;
    ///
    /// let sealer = Sealer::generate()?.for_principal("key:1");
    /// let sealed = sealer.seal_bytes(b"what the client brings back").expect("randomness");
    /// assert_eq!(sealer.open_bytes(&sealed), Ok(b"what the client brings back".to_vec()));
    /// assert!(sealer.for_principal("key:2").open_bytes(&sealed).is_err());
    /// # Ok::<(), toolcell::Error>(())
    /// ```
    #[must_use]
    pub fn seal_bytes(&self, bytes: &[u8]) -> Option<String> {
        let mut plain = self.holder().to_vec();
        plain.extend(self.now().saturating_add(millis(self.lifetime)).to_le_bytes());
        plain.extend(bytes);
        self.encrypt(PREFIX, &plain)
    }

    /// Opens a text that [`seal_bytes`](Self::seal_bytes) returned.
    ///
    /// # Errors
    /// [`ResumeFault::Tampered`], [`ResumeFault::Expired`], and [`ResumeFault::Foreign`] for
    /// another principal.
    pub fn open_bytes(&self, sealed: &str) -> Result<Vec<u8>, ResumeFault> {
        let plain = self.decrypt(PREFIX, sealed).ok_or(ResumeFault::Tampered)?;
        let (holder, rest) =
            plain.split_first_chunk::<FINGERPRINT_BYTES>().ok_or(ResumeFault::Tampered)?;
        if *holder != self.holder() {
            return Err(ResumeFault::Foreign);
        }
        let (expires, bytes) = rest.split_first_chunk().ok_or(ResumeFault::Tampered)?;
        if self.now() >= bound!(SealedTime, u64::from_le_bytes(*expires)) {
            return Err(ResumeFault::Expired);
        }
        Ok(bytes.to_vec())
    }

    fn holder(&self) -> Fingerprint {
        self.principal().copied().unwrap_or_else(|| of_text(None))
    }
}
