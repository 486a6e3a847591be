//! Verifies the signatures of tokens with `ring`, the cryptography library that TLS uses too.
//!
//! The crate `jsonwebtoken` needs a cryptography provider that is installed once for the process;
//! [`install`] installs this one, unless the embedding program has installed another. `JwtIssuer`
//! calls it before it reads keys. The provider only verifies, with RSA, P-256, P-384 and Ed25519
//! keys. It signs nothing, and refuses algorithms with a shared secret (HS256 to HS512).

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{self, RsaParameters, UnparsedPublicKey, VerificationAlgorithm};

/// The algorithms of RSA keys.
pub(super) const RSA: [Algorithm; 6] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs `PROVIDER` for this process, unless the embedding program has installed another one.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// The method that verifies a signature.
enum Check {
    Rsa(&'static RsaParameters),
    Other(&'static dyn VerificationAlgorithm),
}

struct RingVerifier {
    algorithm: Algorithm,
    check: Check,
    key: DecodingKey,
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let check = match algorithm {
        Algorithm::RS256 => Check::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Check::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Check::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Check::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Check::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Check::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Check::Other(&signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Check::Other(&signature::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Check::Other(&signature::ED25519),
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => {
            return Err(ErrorKind::UnsupportedAlgorithm.into());
        }
        _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
    };
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(RingVerifier { algorithm: *algorithm, check, key: key.clone() }))
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        let checked = match (&self.check, self.key.kind()) {
            (Check::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                signature::RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Check::Other(algorithm), DecodingKeyKind::SecretOrDer(bytes)) => {
                UnparsedPublicKey::new(*algorithm, bytes).verify(message, signature)
            }
            (Check::Rsa(_) | Check::Other(_), _) => return Err(SignatureError::new()),
        };
        checked.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
