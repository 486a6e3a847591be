//! Tests of tokens that are accepted, and of each reason to refuse one.
//!
//! They sign tokens with test keys and change one claim, header or key at a time. A further test
//! checks which keys of a JWK set an issuer accepts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use toolcell_test_guests::rows;

use super::*;

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "https://tools.example";

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns a test key derived from its number.
fn pair(number: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[number; 32]).unwrap()
}

fn jwks(pair: &Ed25519KeyPair) -> String {
    let key = json!({"kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key()), "kid": "one", "use": "sig"});
    json!({"keys": [key]}).to_string()
}

fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()))
}

fn token(pair: &Ed25519KeyPair, header: &Value, claims: &Value) -> String {
    let message = message(header, claims);
    format!("{message}.{}", encoded(pair.sign(message.as_bytes())))
}

/// Valid claims with one changed.
fn claims(name: &str, value: Value) -> Value {
    let now = jsonwebtoken::get_current_timestamp();
    let mut claims = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "tenant": "acme", "exp": now + 600, "scope": "a tools"});
    claims[name] = value;
    claims
}

#[test]
fn token_needs_issuer_signature_audience_and_time() {
    let (pair, now) = (pair(1), jsonwebtoken::get_current_timestamp());
    let issuer = JwtIssuer::from_jwks(ISSUER, AUDIENCE, &jwks(&pair)).unwrap().with_scope("tools");
    let header = json!({"alg": "EdDSA", "kid": "one", "typ": "at+jwt"});
    let principal =
        |header: &Value, claims: &Value| issuer.principal_of(&token(&pair, header, claims));
    let good = principal(&header, &claims("extra", json!(1))).unwrap();
    assert_eq!((good.tenant(), good.id()), (Some("acme"), "sub:https://issuer.example#ada"));
    assert!(principal(&header, &claims("aud", json!([AUDIENCE, "https://other.example"]))).is_ok());
    for (name, value) in rows::<(&str, Value)>("auth/jwt", "bad_claims")
        .into_iter()
        .chain([("exp", json!(now - 60)), ("nbf", json!(now + 600))])
    {
        let refused = principal(&header, &claims(name, value.clone()));
        assert_eq!(refused, Err(AuthError::Unauthenticated), "{name}: {value}");
    }
    let refused = principal(&header, &claims("scope", json!("toolsx a")));
    assert_eq!(refused, Err(AuthError::InsufficientScope));
    for (name, value) in rows::<(&str, Value)>("auth/jwt", "bad_headers") {
        let mut header = header.clone();
        header[name] = value.clone();
        let refused = principal(&header, &claims("x", json!(1)));
        assert_eq!(refused, Err(AuthError::Unauthenticated), "{name}: {value}");
    }
    let good = token(&pair, &header, &claims("x", json!(1)));
    let (message, signature) = good.rsplit_once('.').unwrap();
    let foreign = token(&self::pair(2), &header, &claims("x", json!(1)));
    let (head, _) = message.split_once('.').unwrap();
    let other_claims =
        format!("{head}.{}.{signature}", encoded(claims("tenant", json!("globex")).to_string()));
    let long = format!("{good}{}", "x".repeat(MAX_TOKEN));
    let unsigned = format!("{message}.");
    for bad in [message, &unsigned, &foreign, &other_claims, &long, "", ".."] {
        assert_eq!(issuer.principal_of(bad), Err(AuthError::Unauthenticated), "{bad:.200}");
    }
}

/// The issuer's signature on each of them is valid.
#[test]
fn ambiguous_token_is_refused() {
    let pair = pair(1);
    let issuer = JwtIssuer::from_jwks(ISSUER, AUDIENCE, &jwks(&pair)).unwrap();
    let principal = |header: &str, claims: &str| {
        let message = format!("{}.{}", encoded(header), encoded(claims));
        issuer.principal_of(&format!("{message}.{}", encoded(pair.sign(message.as_bytes()))))
    };
    let header = r#"{"alg": "EdDSA", "kid": "one"}"#;
    let claims = claims("x", json!({"y": 1})).to_string();
    assert!(principal(header, &claims).is_ok());
    for (place, again) in rows::<(&str, &str)>("auth/jwt", "ambiguous_token_is_refused") {
        let claims = claims.replacen(place, again, 1);
        assert_eq!(principal(header, &claims), Err(AuthError::Unauthenticated), "{claims}");
    }
    for again in [r#"{"alg": "EdDSA", "#, r#"{"kid": "one", "#, r#"{"x": 1, "x": 1, "#] {
        let header = header.replacen('{', again, 1);
        assert_eq!(principal(&header, &claims), Err(AuthError::Unauthenticated), "{header}");
    }
}

#[test]
fn audience_is_compared_as_normalized_url() {
    let pair = pair(1);
    let issuer =
        JwtIssuer::from_jwks(ISSUER, "https://Tools.example:443/mcp/", &jwks(&pair)).unwrap();
    let header = json!({"alg": "EdDSA", "kid": "one"});
    for (aud, expected) in rows::<(Value, bool)>("auth/jwt", "audiences") {
        let accepted =
            issuer.principal_of(&token(&pair, &header, &claims("aud", aud.clone()))).is_ok();
        assert_eq!(accepted, expected, "{aud}");
    }
}

#[test]
fn key_is_chosen_by_id_and_algorithm() {
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING};
    assert_key_is_chosen("ES256", ("P-256", 32), &ECDSA_P256_SHA256_FIXED_SIGNING);
    assert_key_is_chosen("ES384", ("P-384", 48), &ECDSA_P384_SHA384_FIXED_SIGNING);
}

fn assert_key_is_chosen(
    name: &str,
    (crv, half): (&str, usize),
    algorithm: &'static EcdsaSigningAlgorithm,
) {
    let random = ring::rand::SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let curve = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
    let (x, y) = curve.public_key().as_ref()[1..].split_at(half);
    let ec = json!({"kty": "EC", "crv": crv, "x": encoded(x), "y": encoded(y), "kid": "one"});
    let okp = |number: u8| {
        serde_json::from_str::<Value>(&jwks(&pair(number))).unwrap()["keys"][0].clone()
    };
    let by_ed = token(&pair(1), &json!({"alg": "EdDSA", "kid": "one"}), &claims("x", json!(1)));
    let message = message(&json!({"alg": name, "kid": "one"}), &claims("x", json!(1)));
    let by_ec = format!("{message}.{}", encoded(curve.sign(&random, message.as_bytes()).unwrap()));
    for keys in [[okp(1), ec.clone()], [ec, okp(1)]] {
        let set = json!({"keys": keys}).to_string();
        let read = [
            JwtIssuer::from_jwks(ISSUER, AUDIENCE, &set),
            JwtIssuer::from_published(ISSUER, AUDIENCE, &set),
        ];
        for issuer in read.map(Result::unwrap) {
            let accepted = |issuer: &JwtIssuer| {
                [&by_ed, &by_ec].map(|token| issuer.principal_of(token).is_ok())
            };
            assert_eq!(accepted(&issuer), [true, true], "{set}");
            assert!(issuer.has_key_of(&by_ed) && issuer.has_key_of(&by_ec));
            let only = issuer.with_algorithms([name]).unwrap();
            assert_eq!(accepted(&only), [false, true], "{set}");
        }
    }
    let twice = json!({"keys": [okp(1), okp(2)]}).to_string();
    let error = JwtIssuer::from_jwks(ISSUER, AUDIENCE, &twice).unwrap_err().to_string();
    let same =
        "the key `one` cannot be used: another key has the same `kid` and the same algorithm";
    assert_eq!(error, same);
}

#[test]
fn rsa_key_verifies_its_algorithm() {
    let rows = rows::<(&str, String)>("auth/jwt", "rsa_signatures");
    let rows: Vec<_> = rows.iter().map(|(name, text)| (*name, text.replace(' ', ""))).collect();
    let ((_, modulus), signatures) = rows.split_first().unwrap();
    for (algorithm, signature) in signatures {
        // RS256 is the algorithm of a key that names none.
        let named = (*algorithm != "RS256").then_some(algorithm);
        let key = json!({"kty": "RSA", "n": modulus, "e": "AQAB", "alg": named});
        let set = json!({"keys": [key]}).to_string();
        let issuer = JwtIssuer::from_jwks(ISSUER, AUDIENCE, &set).unwrap();
        for (subject, is_accepted) in [("ada", true), ("eve", false)] {
            let claims = format!(
                r#"{{"iss":"{ISSUER}","aud":"{AUDIENCE}","sub":"{subject}","tenant":"acme","exp":9999999999}}"#
            );
            let header = format!(r#"{{"alg":"{algorithm}"}}"#);
            let token = format!("{}.{}.{signature}", encoded(header), encoded(claims));
            let accepted = issuer.principal_of(&token).is_ok();
            assert_eq!(accepted, is_accepted, "{algorithm} {subject}");
        }
    }
}

#[test]
fn unusable_signature_keys_are_refused() {
    for (jwks, problem) in rows::<(&str, &str)>("auth/jwt", "unusable_signature_keys_are_refused") {
        let error = JwtIssuer::from_jwks(ISSUER, AUDIENCE, jwks).unwrap_err().to_string();
        assert!(error.contains(problem), "{jwks}: {error}");
    }
}
